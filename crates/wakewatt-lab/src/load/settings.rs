//! The power settings in force while a load ran: without them its numbers compare to nothing.
//!
//! Who sets the clock and who the sleep, within which limits, and who holds a latency limit (two incidents of MEASURE.md
//! 2.11: a limit left behind by something else meant that "default" was not the default). Read before and after; what
//! changed meanwhile is a remark.

use std::fmt::Display;
use wakewatt_core::fact::{Fact, PerCpu};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::source::Source;
use wakewatt_core::units::{LatencyLimit, show_khz};

/// Name and value, of those this machine has.
pub fn settings(src: &dyn Source) -> Vec<(String, String)> {
    let facts = Snapshot::read(src, |topic| ["idle", "freq", "qos"].contains(&topic));
    let mut out = Vec::new();
    let policies = &facts.freq.policies;
    per_cpu(&mut out, "frequency driver", &policies.by_cpu(&policies.driver), Clone::clone);
    per_cpu(&mut out, "governor", &facts.freq.governors(), Clone::clone);
    per_cpu(&mut out, "lowest frequency", &policies.by_cpu(&policies.min_khz), |khz| show_khz(*khz));
    per_cpu(&mut out, "highest frequency", &policies.by_cpu(&policies.max_khz), |khz| show_khz(*khz));
    per_cpu(&mut out, "energy performance preference", &policies.by_cpu(&policies.energy_preference), |p| {
        format!("{p:?}").to_lowercase()
    });
    if let Some(is_on) = facts.freq.is_turbo_allowed() {
        out.push(("turbo".into(), if is_on { "allowed" } else { "off" }.into()));
    }
    one(&mut out, "idle driver", &facts.idle.driver);
    one(&mut out, "idle governor", &facts.idle.governor);
    one(&mut out, "guest halt polling, ns", &facts.idle.guest_halt_poll_ns);
    let off = facts.idle.states.iter().filter(|s| !s.is_disabled.cpus_where(|off| *off).is_empty());
    let off: Vec<String> = off.map(|s| format!("{} on {}", s.label(), s.is_disabled.cpus_where(|off| *off))).collect();
    if !facts.idle.states.is_empty() {
        out.push(("idle states off".into(), if off.is_empty() { "none".into() } else { off.join(", ") }));
    }
    one(&mut out, "latency limit of the machine", &facts.qos.global);
    per_cpu(&mut out, "latency limit of CPUs", &facts.qos.per_cpu, LatencyLimit::to_string);
    out
}

/// What is not as it was.
pub fn changed(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    let was = |name: &str| before.iter().find(|(n, _)| n == name).map_or("absent", |(_, v)| v);
    let gone = before.iter().filter(|(name, _)| !after.iter().any(|(n, _)| n == name));
    let differ = after.iter().filter(|(name, value)| was(name) != value);
    differ
        .map(|(name, value)| (name, value.as_str()))
        .chain(gone.map(|(name, _)| (name, "absent")))
        .map(|(name, value)| format!("{name} changed while the load ran: {} before, {value} after", was(name)))
        .collect()
}

fn one<T: Display>(out: &mut Vec<(String, String)>, name: &str, fact: &Fact<T>) {
    if let Some(value) = fact.get() {
        out.push((name.into(), value.to_string()));
    }
}

fn per_cpu<T>(out: &mut Vec<(String, String)>, name: &str, facts: &PerCpu<T>, show: impl Fn(&T) -> String)
where
    T: Clone + PartialEq,
{
    let groups: Vec<(String, String)> = facts.known().map(|(cpus, value)| (cpus.to_string(), show(value))).collect();
    match &groups[..] {
        [] => {}
        [(_, value)] => out.push((name.into(), value.clone())),
        many => {
            let all: Vec<String> = many.iter().map(|(cpus, value)| format!("{value} on CPUs {cpus}")).collect();
            out.push((name.into(), all.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn settings_are_read_and_a_change_is_told() {
        let cpu = "/sys/devices/system/cpu";
        let host = |governor: &str, limit: &str| {
            Tree::from_text(&format!(
                "//- {cpu}/online\n0-1\n//- {cpu}/present\n0-1\n//- {cpu}/cpuidle/current_governor_ro\nmenu\n\
                 //- {cpu}/cpuidle/current_governor\n{governor}\n\
                 //- {cpu}/cpu0/power/pm_qos_resume_latency_us\n{limit}\n\
                 //- {cpu}/cpu1/power/pm_qos_resume_latency_us\n0\n"
            ))
        };
        let (before, after) = (settings(&host("menu", "0")), settings(&host("teo", "n/a")));
        assert!(before.contains(&("idle governor".into(), "menu".into())), "{before:?}");
        assert!(before.contains(&("latency limit of CPUs".into(), "none".into())), "{before:?}");
        let told = changed(&before, &after);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("none before, poll on CPUs 0, none on CPUs 1 after"), "{told:?}");
        assert_eq!(changed(&before, &before), Vec::<String>::new());
        assert_eq!(changed(&before, &[]).len(), before.len());
    }
}
