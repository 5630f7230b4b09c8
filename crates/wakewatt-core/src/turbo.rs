//! How much clock turbo gives: with few cores busy and with all of them, by the processor's own ratios.
//!
//! MSR 0x1AD holds eight ratios of 100 MHz. On servers since Skylake-SP, and on Atom servers, 0x1AE says up to how many busy
//! cores of a package each of them holds; on clients byte n is the ratio with n + 1 busy cores. Before, servers go on in other
//! registers, so that for more than eight cores only the ratio of few is known. With turbo off every core runs at the base
//! frequency at most. The ratios are those of code without wide vectors; with them, or at the power limit, turbo gives less.
//! Nothing is said of hybrids, whose kinds of core have ratios of their own. Source: Intel SDM volume 4, MSR_TURBO_RATIO_LIMIT
//! and MSR_TURBO_RATIO_LIMIT_CORES.

use crate::cpuset::CpuSet;
use crate::facts::Snapshot;
use crate::units::show_khz;
use wakewatt_words::say;

/// Ratios by number of busy cores.
pub const RATIOS: u32 = 0x1ad;
/// Those numbers, where the model has them.
pub const CORE_COUNTS: u32 = 0x1ae;
/// Base ratio in bits 15:8.
const PLATFORM_INFO: u32 = 0xce;
const RATIO_KHZ: u64 = 100_000;

/// Models of family 6 with core counts in 0x1AE: Skylake-SP and later servers, Goldmont and later Atom servers.
const COUNTED: &[u64] = &[0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae, 0xaf, 0xdd, 0x5c, 0x5f, 0x7a, 0x86, 0xb6];
/// Knights: another layout.
const OTHER: &[u64] = &[0x57, 0x85];

/// The clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turbo {
    /// Without turbo.
    pub base_khz: u64,
    /// With the fewest cores busy.
    pub few_khz: u64,
    /// With all cores of a package busy; none where the registers do not say.
    pub all_khz: Option<u64>,
}

impl Turbo {
    /// The share of the clock that is lost without turbo when all cores are busy, else when few are.
    pub fn lost_ratio(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // some GHz
        let (base, top) = (self.base_khz as f64, self.all_khz.unwrap_or(self.few_khz) as f64);
        1.0 - base / top
    }

    /// What is lost without turbo, in words.
    pub fn lost(&self) -> String {
        let (base, few) = (show_khz(self.base_khz), show_khz(self.few_khz));
        match self.all_khz {
            Some(all) => say!(
                "{all} -> {base} on all cores, {few} -> {base} on few, by the processor's own ratios (MSR 0x1ad)",
                all = show_khz(all)
            ),
            None => say!("{few} -> {base} on few cores, by the processor's own ratios (MSR 0x1ad)"),
        }
    }
}

/// The clocks with few cores of a package busy and with all; none where the registers do not say. `register` reads one of them.
pub fn ratios(facts: &Snapshot, register: impl Fn(u32) -> Option<u64>) -> Option<(u64, Option<u64>)> {
    let processor = facts.topology.processor().filter(|processor| processor.is_intel())?;
    let model = processor.model.filter(|model| processor.family == Some(6) && !OTHER.contains(model))?;
    if !facts.topology.kinds.is_empty() {
        return None;
    }
    let ratios = register(RATIOS)?.to_le_bytes();
    let few_khz = u64::from(ratios[0]) * RATIO_KHZ;
    let all_khz = match COUNTED.contains(&model) {
        true => counted(ratios, register(CORE_COUNTS)?.to_le_bytes(), n_cores(facts)?),
        false => {
            // Where the highest clock is not the first ratio, they are something else.
            let highest = facts.freq.policies.hardware_max_khz.known().map(|(_, khz)| *khz).max()?;
            if highest.abs_diff(few_khz) > highest / 100 {
                return None;
            }
            ratios.get(n_cores(facts)?.checked_sub(1)?).map(|ratio| u64::from(*ratio) * RATIO_KHZ)
        }
    };
    Some((few_khz, all_khz))
}

/// What turbo gives here; none where the registers do not say, or it gives nothing. `register` reads one of them.
pub fn of(facts: &Snapshot, register: impl Fn(u32) -> Option<u64>) -> Option<Turbo> {
    let (few_khz, all_khz) = ratios(facts, &register)?;
    // Where cores have base frequencies of their own, there is not one clock without turbo.
    let base = &facts.freq.policies.base_khz;
    let base_khz = match base.is_unknown() {
        true => (register(PLATFORM_INFO)? >> 8 & 0xff) * RATIO_KHZ,
        false => *base.uniform()?,
    };
    let is_more = |khz: &u64| base_khz > 0 && *khz > base_khz;
    is_more(&few_khz).then(|| Turbo { base_khz, few_khz, all_khz: all_khz.filter(is_more) })
}

/// May sleeping cores leave turbo to others? Not where turbo is off, or CPPC's highest level is the nominal one.
pub fn has_headroom(facts: &Snapshot) -> bool {
    let cppc = &facts.freq.cppc;
    let levels =
        cppc.highest_perf.known().map(|(_, level)| *level).max().zip(cppc.nominal_perf.known().map(|(_, l)| *l).min());
    facts.freq.is_turbo_allowed() != Some(false) && levels.is_none_or(|(highest, nominal)| highest > nominal)
}

/// What the facts hold of these registers.
pub fn of_facts(facts: &Snapshot) -> Option<Turbo> {
    let register = |address: u32| {
        let reading = facts.msr.registers.iter().find(|reading| reading.address == address)?;
        reading.value.uniform().copied()
    };
    of(facts, register)
}

/// The ratio of the first group that is large enough for all cores, else of the largest.
fn counted(ratios: [u8; 8], counts: [u8; 8], n_cores: usize) -> Option<u64> {
    let mut groups: Vec<(usize, u8)> = counts
        .iter()
        .map(|count| usize::from(*count))
        .zip(ratios)
        .filter(|(count, ratio)| *count > 0 && *ratio > 0)
        .collect();
    groups.sort_unstable();
    let group = groups.iter().find(|(count, _)| *count >= n_cores).or(groups.last())?;
    Some(u64::from(group.1) * RATIO_KHZ)
}

/// Cores of the largest package.
fn n_cores(facts: &Snapshot) -> Option<usize> {
    let cores = facts.topology.cores();
    let of_package = |cpus: &CpuSet| cores.iter().filter(|core| !core.and(cpus).is_empty()).count();
    facts.topology.packages().iter().map(|(_, cpus)| of_package(cpus)).max().filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    /// A package of so many cores of this model, with its registers.
    fn host(model: u64, n_cores: u32, registers: &[(u32, u64)], top_khz: u64) -> Snapshot {
        let root = "/sys/devices/system/cpu";
        let last = n_cores - 1;
        let mut text = format!("//- {root}/present\n0-{last}\n//- {root}/online\n0-{last}\n");
        let mut info = String::new();
        for cpu in 0..n_cores {
            text += &format!(
                "//- {root}/cpu{cpu}/topology/physical_package_id\n0\n//- {root}/cpu{cpu}/topology/core_id\n{cpu}\n"
            );
            text += &format!(
                "//- {root}/cpufreq/policy{cpu}/affected_cpus\n{cpu}\n//- {root}/cpufreq/policy{cpu}/cpuinfo_max_freq\n{top_khz}\n"
            );
            info += &format!("processor : {cpu}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n\n");
            for (address, value) in registers {
                text += &format!("//- msr {address:#x} cpu{cpu} {value:x}\n");
            }
        }
        Snapshot::read(&Tree::from_text(&(text + "//- /proc/cpuinfo\n" + &info)), |_| true)
    }

    #[test]
    fn servers_say_how_many_cores_each_ratio_is_for() {
        // A hole in the counts, as a real register has one.
        let registers = [(0x1ad, 0x1c1c_1e21_2222_2325), (0x1ae, 0x1a18_1410_0c00_0402), (0xce, 0x0007_0a2c_fb81_1500)];
        let of = |n| of_facts(&host(0x55, n, &registers, 3_700_000)).unwrap();
        assert_eq!(of(26), Turbo { base_khz: 2_100_000, few_khz: 3_700_000, all_khz: Some(2_800_000) });
        assert_eq!(of(12).all_khz, Some(3_400_000));
        assert_eq!(of(2).all_khz, Some(3_700_000));
        assert!(
            of(26).lost().starts_with("2.8GHz -> 2.1GHz on all cores, 3.7GHz -> 2.1GHz on few"),
            "{}",
            of(26).lost()
        );
        assert!((of(26).lost_ratio() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn clients_count_by_byte_and_what_is_not_known_stays_so() {
        let tgl = [(0x1ad, 0x2b2b_2b2b_2b2b_3030), (0xce, 0x0080_4043_df08_1200)];
        assert_eq!(
            of_facts(&host(0x8c, 4, &tgl, 4_800_000)),
            Some(Turbo { base_khz: 1_800_000, few_khz: 4_800_000, all_khz: Some(4_300_000) })
        );
        // More than eight cores go on in another register.
        let bdw = [(0x1ad, 0x1e1e_1f20_2122_2424), (0xce, 0x1800)];
        assert_eq!(of_facts(&host(0x4f, 12, &bdw, 3_600_000)).unwrap().all_khz, None);
        assert_eq!(of_facts(&host(0x4f, 12, &bdw, 2_400_000)), None, "these are no ratios of 100 MHz");
        assert_eq!(of_facts(&host(0x85, 4, &tgl, 4_800_000)), None, "another layout");
        assert_eq!(of_facts(&host(0x8c, 4, &[(0xce, 0x1200)], 4_800_000)), None);
        let none = [(0x1ad, 0x1212_1212_1212_1212), (0xce, 0x1200)];
        assert_eq!(of_facts(&host(0x8c, 4, &none, 1_800_000)), None, "no turbo at all");
    }
}
