//! The power settings in force while a load ran: without them its numbers compare to nothing.
//!
//! Who sets the clock and who the sleep, within which limits, and who holds a latency limit (a limit left behind by
//! something else once meant that "default" was not the default: docs/methods/README.md). Read before the first level and
//! after each ([`Watch`]), never inside a recorded window; what differs is kept with the moment. A setting that was changed
//! and put back between two readings is not seen.

use std::fmt::Display;
use wakewatt_core::fact::{Fact, PerCpu};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::timeline::Change;
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
    let off: Vec<String> =
        off.map(|s| format!("{} on CPUs {}", s.label(), s.is_disabled.cpus_where(|off| *off))).collect();
    if !facts.idle.states.is_empty() {
        out.push(("idle states off".into(), if off.is_empty() { "none".into() } else { off.join(", ") }));
    }
    one(&mut out, "latency limit of the machine", &facts.qos.global);
    per_cpu(&mut out, "latency limit of CPUs", &facts.qos.per_cpu, LatencyLimit::to_string);
    out
}

/// Reads them again and again.
pub struct Watch {
    last: Vec<(String, String)>,
    last_at_ns: u64,
}

impl Watch {
    /// What is in force now, if the load runs under it.
    pub fn start(src: &dyn Source, now_ns: u64) -> Watch {
        Watch { last: settings(src), last_at_ns: now_ns }
    }

    /// As they were read last.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.last.clone()
    }

    /// Reads them and says what is not as it was at the last reading.
    pub fn look(&mut self, src: &dyn Source, now_ns: u64) -> Vec<Change> {
        let now = settings(src);
        let within_ns = now_ns.saturating_sub(self.last_at_ns) / 2;
        let at_ns = now_ns.saturating_sub(within_ns);
        let changes = differences(&self.last, &now).into_iter().map(|what| Change { at_ns, within_ns, what });
        let changes = changes.collect();
        (self.last, self.last_at_ns) = (now, now_ns);
        changes
    }
}

/// `governor: ondemand -> performance`.
fn differences(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    let value = |all: &[(String, String)], name: &str| {
        all.iter().find(|(n, _)| n == name).map_or("absent".to_string(), |(_, value)| value.clone())
    };
    let is_new = |(name, _): &&(String, String)| !before.iter().any(|(n, _)| n == name);
    let names = before.iter().chain(after.iter().filter(is_new)).map(|(name, _)| name.as_str());
    let pairs = names.map(|name| (name, value(before, name), value(after, name)));
    pairs.filter(|(_, was, is)| was != is).map(|(name, was, is)| format!("{name}: {was} -> {is}")).collect()
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
        let told = differences(&before, &after);
        assert_eq!(
            told,
            ["idle governor: menu -> teo", "latency limit of CPUs: none -> poll on CPUs 0, none on CPUs 1"]
        );
        assert_eq!(differences(&before, &before), Vec::<String>::new());
        assert_eq!(differences(&before, &[]).len(), before.len());
        assert_eq!(differences(&[], &before)[0], format!("{}: absent -> {}", before[0].0, before[0].1));
    }

    #[test]
    fn a_change_lies_between_two_readings() {
        let cpu = "/sys/devices/system/cpu";
        let host = |is_off: u8| {
            let state = format!("{cpu}/cpu0/cpuidle/state1");
            Tree::from_text(&format!(
                "//- {cpu}/online\n0\n//- {cpu}/present\n0\n//- {state}/name\nC1\n//- {state}/latency\n2\n\
                 //- {state}/disable\n{is_off}\n"
            ))
        };
        let mut watch = Watch::start(&host(0), 100);
        assert_eq!(watch.look(&host(0), 200), []);
        let what = "idle states off: none -> C1 on CPUs 0".to_string();
        assert_eq!(watch.look(&host(1), 300), [Change { at_ns: 250, within_ns: 50, what }]);
        assert_eq!(watch.look(&host(1), 400), []);
        assert!(watch.settings().contains(&("idle states off".into(), "C1 on CPUs 0".into())));
    }
}
