//! How long each package slept, beside what its cores did: the hardware's own residency counters.
//!
//! Which registers there are follows from the generation: those package states that its firmware limit can name. They count at
//! the rate of the TSC, which is read with them, so that a share needs no clock of ours. They are registers of one CPU of the
//! package, whose reading wakes that CPU, so the default does not read them; in a guest they are not the hardware's. Which
//! generation it is is told by the modalias of the CPUs, because reading /proc/cpuinfo would interrupt them on older kernels. Sources:
//! Intel SDM volume 4 (MSR_PKG_Cn_RESIDENCY, IA32_TIME_STAMP_COUNTER); turbostat(8) for who has which.

use super::document::PackageStateRate;
use super::layout::PackageStateInfo;
use super::reading::{Reading, Why};
use crate::fact::{fact, parse};
use crate::facts::cpuinfo::{self, Processor};
use crate::facts::cpus::ROOT;
use crate::facts::msr::identity;
use crate::facts::msr::package_limit::{self, PackageLimit};
use crate::facts::msr::registers::Vendor;
use crate::package_states::generations::{self, Generation};
use crate::source::Source;

/// IA32_TIME_STAMP_COUNTER.
pub const TSC: u32 = 0x10;

/// The counter of each package state.
const REGISTERS: &[(PackageLimit, u32)] = &[
    (PackageLimit::Pc2, 0x60d),
    (PackageLimit::Pc3, 0x3f8),
    (PackageLimit::Pc6, 0x3f9),
    (PackageLimit::Pc7, 0x3fa),
    (PackageLimit::Pc8, 0x630),
    (PackageLimit::Pc9, 0x631),
    (PackageLimit::Pc10, 0x632),
];

/// X86_FEATURE_HYPERVISOR as the modalias lists it: word 4, bit 31.
const HYPERVISOR: &str = "009F";

/// The generation of the CPUs, where it is in the list; none in a guest, whose packages are its host's business.
pub(super) fn generation(src: &dyn Source) -> Option<&'static Generation> {
    let modalias = fact(src, &format!("{ROOT}/modalias"), parse::word);
    let processor = match modalias.get() {
        Some(modalias) if modalias.split([',', ':']).any(|feature| feature == HYPERVISOR) => return None,
        Some(modalias) => {
            let (vendor, family, model) = identity(modalias)?;
            let vendor = match vendor {
                Vendor::Intel => "GenuineIntel",
                Vendor::Amd => "AuthenticAMD",
            };
            Processor { vendor: Some(vendor.into()), family: Some(family), model: Some(model), ..Processor::default() }
        }
        // A recording has no CPU to interrupt.
        None if !src.is_live() => cpuinfo::read(src).processor.uniform()?.clone(),
        None => return None,
    };
    generations::of(&processor)
}

/// The deepest package state while every core is at least in a state of this name and description. A core that polls works,
/// and its package with it.
pub(super) fn lets(generation: &Generation, name: &str, description: &str) -> Option<String> {
    let pairing = generation.pairing(description).map(|allows| allows.package);
    pairing.or((name == "POLL" && !generation.allows.is_empty()).then_some("PC0")).map(str::to_string)
}

/// The package states of a generation that are counted, shallowest first.
pub(super) fn counted(generation: &Generation) -> Vec<PackageStateInfo> {
    let codes = generation.models.first().filter(|_| generation.maker == generations::Maker::Intel);
    let codes = codes.and_then(|(model, _)| package_limit::codes(*model));
    let named = |limit: &PackageLimit| codes.is_some_and(|codes| codes.limits().any(|known| known == *limit));
    let all = REGISTERS.iter().filter(|(limit, _)| named(limit));
    all.map(|(limit, register)| PackageStateInfo { name: limit.to_string(), register: *register }).collect()
}

/// The shares of a window; `then` and `now` are the counters with the TSC behind them.
pub(super) fn shares(
    states: &[PackageStateInfo],
    why: Option<Why>,
    then: &[Reading<u64>],
    now: &[Reading<u64>],
) -> Vec<PackageStateRate> {
    let gone = Reading::Missing(why.unwrap_or(Why::Absent));
    let moved = |at: usize| {
        let of = |counters: &[Reading<u64>]| counters.get(at).copied().unwrap_or(gone);
        of(now).since(of(then))
    };
    let ticks = moved(states.len());
    let share = |at: usize| match (moved(at), ticks) {
        (Reading::Known(_), Reading::Known(0)) => Reading::Missing(Why::Dead),
        // Read one after the other, so a package that slept throughout may seem to have slept a little longer.
        (Reading::Known(slept), Reading::Known(ticks)) => Reading::Known((slept as f64 / ticks as f64).min(1.0)),
        (Reading::Missing(why), _) | (_, Reading::Missing(why)) => Reading::Missing(why),
    };
    states.iter().enumerate().map(|(at, s)| PackageStateRate { name: s.name.clone(), share_ratio: share(at) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;
    use crate::watch::counters::{Clocks, FromSource};
    use crate::watch::{Counters, Rates, Sources, discover::discover};

    /// Two CPUs of one Emerald Rapids package with C1 and C6.
    fn tree(features: &str, (pc2, pc6, tsc): (u64, u64, u64)) -> Tree {
        let mut text = format!(
            "//- {ROOT}/present\n0-1\n//- {ROOT}/online\n0-1\n//- {ROOT}/modalias\ncpu:type:x86,ven0000fam0006mod00CF:feature:,{features},\n\
             //- /proc/stat\ncpu  1 0 0 9\ncpu0 1 0 0 9\ncpu1 1 0 0 9\n"
        );
        for cpu in 0..2 {
            text += &format!("//- {ROOT}/cpu{cpu}/topology/physical_package_id\n0\n");
            for (at, (name, hint)) in [("POLL", "none"), ("C1", "0x00"), ("C6", "0x20")].iter().enumerate() {
                let state = format!("//- {ROOT}/cpu{cpu}/cpuidle/state{at}");
                text += &format!("{state}/name\n{name}\n{state}/desc\nMWAIT {hint}\n");
            }
        }
        let mut tree = Tree::from_text(&text);
        tree.msrs.extend([(0x60d, pc2), (0x3f9, pc6), (TSC, tsc)].map(|(register, value)| ((register, 0), Ok(value))));
        tree
    }

    /// What the package did between two moments of this machine.
    fn watched(sources: Sources, features: &str) -> (Rates, u64) {
        let layout = discover(&tree(features, (0, 0, 0)), sources);
        let at = |counted, at_ns| {
            let clocks = Clocks { at_ns, boot_at_ns: at_ns, ..Clocks::default() };
            let tree = tree(features, counted);
            Counters::read(&layout, &mut FromSource::new(&tree as &dyn Source), clocks, None)
        };
        let (then, now) = (at((100, 1000, 5000), 0), at((150, 1400, 6000), 1_000_000_000));
        (Rates::between(&layout, &then, &now), now.n_remote_interrupts)
    }

    #[test]
    fn shares_are_those_of_the_hardware() {
        let (rates, _) = watched(Sources::Package, "0000");
        let shares: Vec<_> = rates.packages[0].states.iter().map(|s| (s.name.as_str(), s.share_ratio.get())).collect();
        assert_eq!(shares, [("PC2", Some(0.05)), ("PC6", Some(0.4))]);
        let lets: Vec<_> = rates.states.iter().map(|s| (s.name.as_str(), s.lets_package.as_deref())).collect();
        assert_eq!(lets, [("POLL", Some("PC0")), ("C1", Some("PC0")), ("C6", Some("PC6"))]);
    }

    #[test]
    fn nothing_is_read_that_wakes_unasked() {
        let (rates, n_interrupts) = watched(Sources::Quiet, "0000");
        assert_eq!(n_interrupts, 0);
        let whys: Vec<_> = rates.packages[0].states.iter().map(|s| s.share_ratio.why()).collect();
        assert_eq!(whys, [Some(Why::NotAsked); 2]);
        assert_eq!(rates.states[2].lets_package.as_deref(), Some("PC6"), "what the settings allow wakes nobody");
        let (guest, _) = watched(Sources::All, "0000,009F");
        assert!(guest.packages[0].states.is_empty() && guest.states[2].lets_package.is_none(), "a guest");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let states = [PackageStateInfo { name: "PC6".into(), register: 0x3f9 }];
        let share = |then: [Reading<u64>; 2], now: [Reading<u64>; 2]| shares(&states, None, &then, &now)[0].share_ratio;
        let known = |a, b| [Reading::Known(a), Reading::Known(b)];
        assert_eq!(share(known(5, 10), known(3, 20)), Reading::Missing(Why::Backwards));
        assert_eq!(share(known(5, 10), known(5, 10)), Reading::Missing(Why::Dead));
        assert_eq!(share(known(5, 10), [Reading::Missing(Why::Denied); 2]), Reading::Missing(Why::Denied));
        assert_eq!(share(known(0, 10), known(11, 20)), Reading::Known(1.0));
    }

    #[test]
    fn each_generation_counts_what_its_limit_names() {
        let names = |model| {
            let processor = Processor {
                vendor: Some("GenuineIntel".into()),
                family: Some(6),
                model: Some(model),
                ..Processor::default()
            };
            counted(generations::of(&processor).unwrap()).into_iter().map(|s| s.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((names(0x4f).as_str(), names(0xad).as_str()), ("PC2 PC3 PC6", "PC2 PC6"));
        assert_eq!((names(0x8c).as_str(), names(0x86).as_str()), ("PC2 PC3 PC6 PC7 PC8 PC9 PC10", ""));
    }
}
