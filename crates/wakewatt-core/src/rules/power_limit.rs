//! Is a package's power limit below what the processor is made for?
//!
//! RAPL's limits over a long and a short time (`constraint_N_power_limit_uw`), the lowest of all zones of a package, against the zone's `max_power_uw`, which for a package is its
//! design power (kernel documentation power/powercap). A BMC or BIOS cap shows here; under full load the clock then
//! falls below the base frequency. Containers mask these files, and kernels without the module have none: then the registers
//! behind them are asked, 0x610 for the limit and 0x614 for the design power (Intel SDM volume 4).

use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, Where, extent, percent};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::msr::PowerLimits;
use crate::facts::power::{PackageLimit, Zone};
use crate::units::show_uw;
use std::collections::BTreeSet;
use wakewatt_words::{say, word};

pub(super) struct PowerLimit;

impl Rule for PowerLimit {
    fn id(&self) -> &'static str {
        "rule.power-limit"
    }
    fn question(&self) -> &'static str {
        word!("is a package's power limit below what the processor is made for?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let power = &evidence.facts.power;
        let known = power.package_limits();
        if known.is_empty() {
            if let Some(answer) = self.by_registers(evidence) {
                return answer;
            }
            let is_off = |zone: &&Zone| {
                zone.name.get().is_some_and(|name| name.starts_with("package")) && zone.is_enabled.get() == Some(&false)
            };
            if power.zones.iter().any(|zone| is_off(&zone)) {
                return Answer::no(word!("the limits of the packages are not in force (enabled is 0)"));
            }
            let gap = power.none_because.as_ref().or(power.zones.iter().find_map(|z| z.name.gap()));
            return match gap {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no package tells both its limit and its design power"),
                    word!("wakewatt inspect power as root"),
                ),
            };
        }
        let is_low = |limit: &&PackageLimit<'_>| limit.limit_uw < limit.design_uw - limit.design_uw / 20;
        let Some(lowest) = known.iter().filter(is_low).min_by_key(|limit| limit.limit_uw) else {
            // The register may hold less than the files say.
            return match self.by_registers(evidence) {
                Some(answer @ Answer::Yes(_)) => answer,
                _ => Answer::no(word!("no package is limited below its design power")),
            };
        };
        let PackageLimit { limit_uw: limit, design_uw: max, .. } = *lowest;
        let lost = 1.0 - limit as f64 / max as f64;
        let names = |limits: &mut dyn Iterator<Item = &PackageLimit<'_>>| -> Vec<String> {
            limits.map(|limit| limit.package.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (low, n_packages) = (names(&mut known.iter().filter(is_low)), names(&mut known.iter()).len());
        let low: Vec<&str> = low.iter().map(String::as_str).collect();
        let cost = Cost::unknown(say!(
            "{} less power than the design under full load: the clock falls then; by how much is not measured",
            percent(lost)
        ));
        let mut finding = Finding::new(
            self,
            if low.len() < n_packages { Weight::Problem } else { Weight::Risk },
            Confidence::Medium,
            say!(
                "The power limit is {} of {} by design, on {}",
                show_uw(limit),
                show_uw(max),
                Things::Packages.extent(&low, n_packages)
            ),
            cost,
        )
        .on(lowest.path(), show_uw(limit))
        .on(word!("design power (max_power_uw of long_term)"), show_uw(max));
        // One locked package is enough not to promise anything.
        let lock = evidence.facts.msr.field("pkg_power_limit", "lock");
        if lock.is_none_or(|lock| lock.cpus_where(|bit| *bit != 0).is_empty()) {
            for low in known.iter().filter(is_low) {
                let PackageLimit { zone, constraint, design_uw, .. } = low;
                // Rounded down to a whole mW: never above the design power.
                let to = if design_uw.is_multiple_of(1_000_000) {
                    format!("{}W", design_uw / 1_000_000)
                } else {
                    format!("{}mW", design_uw / 1000)
                };
                let is_short = constraint.name.get().is_some_and(|name| name == "short_term");
                let setting = if is_short { "power.limit.short" } else { "power.limit.long" };
                finding = finding.step(setting, Some(zone.id.clone()), to, low.path(), word!("the design power again"));
            }
        }
        finding
            .remedy(
                word!(
                    "Find who set it: a power cap in the BMC, a BIOS profile, thermald. Lift it there; a write to the \
                    file may be locked, or read back and still do nothing."
                ),
                word!("Watts and heat under full load."),
                word!("wakewatt inspect power thermal"),
            )
            .yes()
    }
}

impl PowerLimit {
    /// The same from the registers, where both are known; a plan needs the files.
    fn by_registers(&self, evidence: &Evidence) -> Option<Answer> {
        let msr = &evidence.facts.msr;
        let (limits, design) = (msr.power_limits()?, msr.tdp_uw()?);
        let both = limits.known().filter(|(_, l)| l.is_pl1_on && l.pl1_uw > 0).filter_map(|(cpus, limit)| {
            let tdp = *design.of(cpus.first()?)?.get()?;
            (tdp > 0).then_some((cpus, *limit, tdp))
        });
        let both: Vec<_> = both.collect();
        if both.is_empty() {
            return None;
        }
        let is_low = |(_, l, tdp): &&(&CpuSet, PowerLimits, u64)| l.pl1_uw < tdp - tdp / 20;
        let Some((_, limit, tdp)) = both.iter().filter(is_low).min_by_key(|(_, l, _)| l.pl1_uw) else {
            return Some(Answer::no(word!("by its registers no package is limited below its design power")));
        };
        let low = both.iter().filter(is_low).fold(CpuSet::new(), |all, (cpus, ..)| all.union(cpus));
        let is_uneven = both.iter().any(|both| !is_low(&both));
        let (limit, tdp) = (*limit, *tdp);
        let cost = Cost::unknown(say!(
            "{} less power than the design under full load: the clock falls then; by how much is not measured",
            percent(1.0 - limit.pl1_uw as f64 / tdp as f64)
        ));
        let title = say!(
            "The power limit is {} of {} by design, on {}",
            show_uw(limit.pl1_uw),
            show_uw(tdp),
            extent::of_register(&evidence.facts, &limits, &low)
        );
        let locked = if limit.is_locked { word!(", locked until reset") } else { "" };
        let weight = if is_uneven { Weight::Problem } else { Weight::Risk };
        let finding = Finding::new(self, weight, Confidence::Medium, title, cost)
            .on("MSR 0x610", say!("PL1 {}{locked}", show_uw(limit.pl1_uw)))
            .on("MSR 0x614", say!("design power {}", show_uw(tdp)))
            .remedy(
                word!("Find who set it: a power cap in the BMC or a BIOS profile, and lift it there. The files to change it from \
                    Linux are not there (module intel_rapl_msr)."),
                word!("Watts and heat under full load."),
                word!("wakewatt inspect msr power thermal"),
            );
        Some(finding.yes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn limits() {
        let check = |limit: u64| {
            let at = "//- /sys/class/powercap/intel-rapl:0";
            ask(
                &PowerLimit,
                &format!(
                    "{at}/name\npackage-0\n{at}/enabled\n1\n{at}/constraint_0_name\nlong_term\n{at}/constraint_0_power_limit_uw\n{limit}\n{at}/constraint_0_max_power_uw\n250000000\n"
                ),
            )
        };
        assert_eq!(check(150_000_000), "yes risk unknown: the power limit is 150w of 250w by design, on package-0");
        assert!(check(250_000_000).starts_with("no"));
        assert!(ask(&PowerLimit, "").starts_with("cannot tell"));
        // A package has two zones, and limits over two times: the lowest decides, and packages are counted once.
        let zone = |id: &str, package: u32, long: u64, short: u64, max: u64| {
            let at = format!("//- /sys/class/powercap/{id}");
            format!(
                "{at}/name\npackage-{package}\n{at}/enabled\n1\n{at}/constraint_0_name\nlong_term\n
                 {at}/constraint_0_power_limit_uw\n{long}000000\n{at}/constraint_0_max_power_uw\n{max}000000\n
                 {at}/constraint_1_name\nshort_term\n{at}/constraint_1_power_limit_uw\n{short}000000\n"
            )
        };
        let two = |mmio_long: u64, short: u64| {
            let text = zone("intel-rapl:0", 0, 250, short, 250)
                + &zone("intel-rapl-mmio:0", 0, mmio_long, 300, 0)
                + &zone("intel-rapl:1", 1, 250, 300, 250);
            ask(&PowerLimit, &text)
        };
        assert_eq!(
            two(150, 300),
            "yes problem unknown: the power limit is 150w of 250w by design, on package-0 only, of 2 packages"
        );
        assert_eq!(
            two(250, 120),
            "yes problem unknown: the power limit is 120w of 250w by design, on package-0 only, of 2 packages"
        );
        assert!(two(250, 300).starts_with("no"));
        // Units of 1/8 W: 0x4b0 is 150 W, 0x7d0 is 250 W; bit 15 is on, bit 63 the lock.
        let registers = |limit: &str| {
            let online = "//- /sys/devices/system/cpu/online\n0\n";
            ask(
                &PowerLimit,
                &format!("{online}//- msr 0x606 cpu0 a0e03\n//- msr 0x610 cpu0 {limit}\n//- msr 0x614 cpu0 7d0\n"),
            )
        };
        assert_eq!(registers("84b0"), "yes risk unknown: the power limit is 150w of 250w by design, on cpu 0");
        assert!(registers("87d0").starts_with("no: by its registers"));
        assert!(registers("4b0").starts_with("cannot tell"), "a limit that is not in force limits nothing");
    }
}
