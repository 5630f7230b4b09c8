//! Does the energy preference tell the hardware to save power?
//!
//! `energy_performance_preference` (HWP and amd-pstate-epp): power and balance_power make the hardware slow to raise the
//! clock; balance_performance is the usual default of servers and a note only. The word stands for a number that differs
//! between models: balance_performance is 128 of 255 on Ice Lake, in the middle, and 32 on later Xeons, near performance, so
//! the register (MSR 0x774) is read where it can be. Where the hardware takes no preference (`hwp` without `hwp_epp`) the
//! file writes the energy bias instead, and rule.epb speaks. Under governor performance the driver forces `performance`; a
//! write then fails with EBUSY, so the governor comes first (docs/knobs/frequency.md; admin-guide/pm/intel_pstate.rst).

use super::epb::Epb;
use super::hwp_hidden::is_led_by_bias;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, deferred, on_cpus};
use crate::clock_window;
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::freq::policies::EnergyPreference;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference";

fn word(preference: &EnergyPreference) -> String {
    match preference {
        EnergyPreference::Name(name) => name.clone(),
        EnergyPreference::Raw(n) => say!("{n} of 255"),
    }
}

/// Below this a preference leans to performance, above [`SAVING`] to power; 0 is performance and 255 is power.
const NEAR: u64 = 64;
const SAVING: u64 = 128;

/// 0 fast, 1 near it, 2 balanced, 3 saving.
fn level(preference: &EnergyPreference) -> u8 {
    match preference {
        EnergyPreference::Name(name) if name == "performance" => 0,
        EnergyPreference::Name(name) if name.ends_with("power") => 3,
        EnergyPreference::Name(_) => 2,
        EnergyPreference::Raw(n) => level_of(u64::from(*n)),
    }
}

fn level_of(raw: u64) -> u8 {
    match raw {
        0 => 0,
        1..=NEAR => 1,
        65..=SAVING => 2,
        _ => 3,
    }
}

/// Why the hardware has nothing to choose by a preference: one clock on every CPU, or no CPU that ever pauses.
fn nothing_to_choose(facts: &Snapshot) -> Option<String> {
    if let Some(one) = clock_window::only_clock(&clock_window::of(facts)) {
        return Some(one);
    }
    let all = enterable::of(facts);
    let running: CpuSet = facts.cpus.running().collect();
    let spins = !running.is_empty() && running.minus(&enterable::spinning(&all)).is_empty();
    spins.then(|| word!("every idle CPU spins, so the hardware sees no pause after which to raise the clock").into())
}

pub(super) struct Epp;

impl Rule for Epp {
    fn id(&self) -> &'static str {
        "rule.epp"
    }
    fn question(&self) -> &'static str {
        word!("does the energy preference tell the hardware to save power?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock, Where::EnergyPreference]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let policies = &evidence.facts.freq.policies;
        let all = policies.by_cpu(&policies.energy_preference);
        let Some(worst) = all.known().map(|(_, p)| level(p)).max() else {
            return match all.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), "wakewatt inspect freq"),
            };
        };
        let is_uneven = all.uniform().is_none();
        // What the hardware was given, where every CPU that was read was given the same.
        let raw = evidence.facts.msr.field("hwp_request", "epp").and_then(|epp| epp.uniform().copied());
        let raw = raw.filter(|_| !is_uneven && matches!(all.uniform(), Some(EnergyPreference::Name(_))));
        // A tool may have written the register past the kernel, whose file then says what it had asked for.
        if worst == 0 && !is_uneven && raw.is_none_or(|raw| level_of(raw) < 2) {
            return Answer::no(word!("the preference is performance"));
        }
        if let Some(why) = nothing_to_choose(&evidence.facts) {
            return Answer::no(why);
        }
        if is_led_by_bias(&evidence.facts) == Some(true) && !is_uneven {
            let because =
                word!("the hardware takes no preference (no hwp_epp): the file writes the energy bias, see rule.epb");
            let alone = || Answer::no(word!("the hardware takes no preference (no hwp_epp)"));
            return deferred(&Epb, evidence, because).unwrap_or_else(alone);
        }
        let worst = raw.map_or(worst, level_of);
        let number = raw.map_or(String::new(), |raw| say!(" (EPP {raw} of 255)"));
        let words: Vec<String> = all
            .known()
            .map(|(cpus, p)| say!("{}{number} on {cpus}", word(p), cpus = evidence.facts.cpus.extent(cpus)))
            .collect();
        let weight = match worst {
            _ if is_uneven => Weight::Problem,
            3 => Weight::Risk,
            _ => Weight::Note,
        };
        let (leans, cost) = match worst {
            0 | 1 => (
                word!(", near performance"),
                word!("little is left to gain: the hardware raises the clock almost at once; not measured"),
            ),
            2 => (
                word!(", between performance and power"),
                word!("the hardware raises the clock later after a pause; how much is not measured"),
            ),
            _ => (
                word!(", on the side of saving"),
                word!("the hardware is slow to raise the clock after a pause; how much is not measured"),
            ),
        };
        let leans = if is_uneven { "" } else { leans };
        let title = say!("The energy preference is {}{leans}", words.join(", "));
        let cost = Cost::unknown(cost);
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost).on(PATH, words.join(", "));
        if let Some(raw) = raw {
            finding = finding.on("MSR 0x774 bits 31:24", raw);
        }
        // Under governor performance the write fails with EBUSY.
        let governors = policies.by_cpu(&policies.governor);
        let cpus = all.cpus_where(|p| level(p) > 0).minus(&governors.cpus_where(|g| g == "performance"));
        if !cpus.is_empty() {
            let on = on_cpus(&evidence.facts, &cpus);
            finding = finding.step("freq.epp", on, "performance", PATH, word!("raise the clock at once"));
        }
        finding
            .remedy(
                word!(
                    "Set performance where latency matters, all CPUs alike. It is lost with the next reboot or profile \
                    change."
                ),
                word!("Watts at partial load."),
                word!("wakewatt inspect freq, then the work's own latency before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn preferences() {
        let check = |p: &str| ask(&Epp, &policy(&[("energy_performance_preference", p)]));
        assert_eq!(
            check("power"),
            "yes risk unknown: the energy preference is power on all 2 cpus, on the side of saving"
        );
        assert!(check("balance_performance").starts_with("yes note"));
        assert!(check("performance").starts_with("no"));
        assert!(check("0").starts_with("no"));
        assert!(check("32").ends_with("32 of 255 on all 2 cpus, near performance"));
        assert!(check("128").ends_with("128 of 255 on all 2 cpus, between performance and power"));
        assert!(check("200").starts_with("yes risk"));
        assert!(ask(&Epp, "").starts_with("cannot tell"));
    }

    #[test]
    fn the_register_says_what_the_word_stands_for() {
        let host = |register: &str, flags: &str| {
            let cpu = |n: u32| {
                format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 207\nflags : {flags}\n\n")
            };
            let attributes =
                [("scaling_driver", "intel_pstate"), ("energy_performance_preference", "balance_performance")];
            let registers = format!("//- msr 0x774 cpu0 {register}\n//- msr 0x774 cpu1 {register}\n");
            policy(&attributes) + &format!("//- /proc/cpuinfo\n{}{}", cpu(0), cpu(1)) + &registers
        };
        let has = "hwp hwp_epp epb";
        assert!(
            ask(&Epp, &host("20002808", has))
                .ends_with("balance_performance (epp 32 of 255) on all 2 cpus, near performance")
        );
        assert!(ask(&Epp, &host("80002808", has)).contains("(epp 128 of 255) on all 2 cpus, between"));
        assert!(ask(&Epp, &host("80002808", "hwp epb")).starts_with("cannot tell"), "as rule.epb, which knows no bias");
        let bias = |v: u8| -> String {
            (0..2).map(|n| format!("//- /sys/devices/system/cpu/cpu{n}/power/energy_perf_bias\n{v}\n")).collect()
        };
        let led = |v: u8| ask(&Epp, &(host("80002808", "hwp epb") + &bias(v)));
        assert!(led(7).starts_with("no: the hardware takes no preference (no hwp_epp): the file writes"));
        assert_eq!(led(0), "no: the hardware takes no preference (no hwp_epp)");
    }
}
