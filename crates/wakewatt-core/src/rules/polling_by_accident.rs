//! Does an idle CPU spin instead of sleeping?
//!
//! An idle CPU spins if no sleeping state is left to it: every one is disabled, a limit lies below the first one's exit
//! latency, both together, the driver has none, or `idle=poll` (`nohlt` on Arm) forbids them all. It then runs at full power and
//! takes turbo headroom from its neighbours. C1 claims 1us on Ice Lake and 2us on Skylake, so a limit of 1us sleeps on one
//! and spins on the other (docs/knobs/idle.md). The per-CPU file spells zero latency `n/a` and no limit `0`. A limit of zero
//! and `idle=poll` may be meant, a small number or a set of disabled states hardly ever is. Without a polling state in the
//! table (Arm) no limit makes a CPU spin. [`crate::enterable`] decides.

use super::exclusions::Assertion;
use super::idle_disabled_by_user::switch;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, on_cpus, would_poll};
use crate::budget;
use crate::cpuset::CpuSet;
use crate::enterable::{self, Barrier, Cause, Enterable, WhenIdle};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::pm_qos::{GLOBAL, cpu_limit_path};
use crate::units::LatencyLimit;
use wakewatt_words::{say, word};

const DISABLE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable";

pub(super) struct PollingByAccident;

impl Rule for PollingByAccident {
    fn id(&self) -> &'static str {
        "rule.polling-by-accident"
    }
    fn question(&self) -> &'static str {
        word!("does an idle CPU spin instead of sleeping?")
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        vec![Assertion::Spins(enterable::spinning(&enterable::of(&evidence.facts)))]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let all = enterable::of(facts);
        let spinning: Vec<&Enterable> = all.iter().filter(|group| group.spins().is_some()).collect();
        let Some(first) = spinning.first() else { return not_seen(facts, &all) };
        let cpus = enterable::spinning(&all);
        let mut causes: Vec<String> = Vec::new();
        for why in spinning.iter().filter_map(|group| group.spins()).map(Cause::words) {
            if !causes.contains(&why) {
                causes.push(why);
            }
        }
        let is_meant = |cause: &Cause| matches!(cause, Cause::BootArgument(_) | Cause::Limit(LatencyLimit::Poll));
        let weight = match spinning.iter().filter_map(|group| group.spins()).all(is_meant) {
            true => Weight::Risk,
            false => Weight::Problem,
        };
        let title = say!("Idle CPUs spin instead of sleeping on {}: {}", facts.cpus.extent(&cpus), causes.join("; "));
        let cost = Cost::unknown(word!(
            "an idle CPU that spins draws power as if busy and takes turbo headroom; how many watts is not measured"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        for group in &spinning {
            finding = on(finding, evidence, group);
        }
        let (finding, what) = mend(finding, facts, first, &spinning);
        finding
            .remedy(
                what,
                word!("Wake-ups on these CPUs get slower by the exit latency of the states that are left."),
                word!("wakewatt inspect idle qos boot, then wakewatt measure wakeup"),
            )
            .yes()
    }
}

/// No CPU is seen to spin: is it certain?
fn not_seen(facts: &Snapshot, all: &[Enterable]) -> Answer {
    if all.is_empty() || all.iter().all(|group| group.when_idle == WhenIdle::Unknown) {
        return Answer::cannot_tell(
            word!("no idle state is listed"),
            word!("wakewatt inspect idle qos on the machine itself"),
        );
    }
    let sleeps = all.iter().any(|group| group.when_idle == WhenIdle::Sleeps);
    match facts.qos.global.gap().or(facts.qos.per_cpu.gaps().next().map(|(_, gap)| gap)) {
        // Without a driver no limit acts.
        Some(gap) if sleeps => Answer::gap(gap),
        _ if sleeps => Answer::no(word!("every CPU may enter at least one sleeping state")),
        _ => Answer::no(word!("without an idle driver the CPUs halt; see rule.no-idle-driver")),
    }
}

/// What shows that these CPUs spin.
fn on(mut finding: Finding, evidence: &Evidence, group: &Enterable) -> Finding {
    let facts = &evidence.facts;
    let has = |is: fn(&Barrier) -> bool| group.states.iter().any(|state| state.barriers.iter().any(is));
    if let Some(Cause::BootArgument(argument)) = group.spins() {
        return finding.on("/proc/cmdline", *argument);
    }
    if let Some(Cause::NoSleepState) = group.spins() {
        let says = say!("no sleeping state on {}", facts.cpus.extent(&group.cpus));
        return finding.on("/sys/devices/system/cpu/cpu*/cpuidle", says);
    }
    let off: Vec<&str> = group
        .states
        .iter()
        .filter(|s| s.row.is_enabled == Some(false) && !s.row.is_polling())
        .map(|s| s.row.name.as_str())
        .collect();
    if !off.is_empty() {
        finding = finding.on(DISABLE, say!("1 for {} on {}", off.join(", "), facts.cpus.extent(&group.cpus)));
    }
    if has(|barrier| matches!(barrier, Barrier::GlobalLimit(_))) {
        finding = finding.on(GLOBAL, group.limit);
        for holder in facts.holders.of_latency_limit().unwrap_or_default() {
            let name = holder.comm.as_deref().unwrap_or("?");
            finding = finding.on(format!("/proc/{}/fd", holder.pid), say!("{name} holds {}", holder.path));
        }
    }
    if has(|barrier| matches!(barrier, Barrier::OwnLimit(_))) {
        let path = cpu_limit_path(group.cpus.first().unwrap_or(0));
        let own = group.cpus.first().and_then(|cpu| facts.qos.per_cpu.of(cpu)?.get().copied());
        let text = own.unwrap_or(group.limit).as_cpu_text();
        finding = finding.on(path, say!("{text} on {}", facts.cpus.extent(&group.cpus)));
    }
    finding
}

/// The remedy, from what keeps the CPUs awake.
fn mend(mut finding: Finding, facts: &Snapshot, first: &Enterable, spinning: &[&Enterable]) -> (Finding, String) {
    let mut what: Vec<String> = Vec::new();
    let is = |is: fn(&Cause) -> bool| spinning.iter().any(|group| group.spins().is_some_and(is));
    if let Some(Cause::BootArgument(argument)) = first.spins() {
        what.push(say!("If spinning is not meant, take {argument} off the command line and reboot."));
    }
    if is(|cause| matches!(cause, Cause::Disabled | Cause::DisabledAndLimit(_))) {
        what.push(word!("If spinning is not meant, enable the disabled states again.").into());
        for state in &facts.idle.states {
            let off = |group: &&&Enterable| {
                let disabled = |b: &Barrier| matches!(b, Barrier::Disabled);
                group.states.iter().any(|s| s.row.index == state.index && s.barriers.iter().any(disabled))
            };
            let cpus = spinning.iter().filter(off).fold(CpuSet::new(), |all, group| all.union(&group.cpus));
            if !cpus.is_empty() && state.label() != "POLL" {
                let why = word!("back to what it was at boot");
                finding = switch(finding, facts, state, &cpus, "on", why);
            }
        }
    }
    if is(|cause| matches!(cause, Cause::Limit(_) | Cause::DisabledAndLimit(_))) {
        let idle = &facts.idle;
        // The shallowest sleep of every kind of CPU, so that none of them goes on spinning.
        let to = budget::shallowest(idle).unwrap_or(LatencyLimit::None);
        what.push(say!(
            "If spinning is not meant, raise the limit to {to}: {}. A global limit ends when its holder closes the file.",
            budget::sentence_here(to, facts)
        ));
        let limited = |group: &&&Enterable| {
            let own = |b: &Barrier| matches!(b, Barrier::OwnLimit(_));
            group.states.iter().any(|state| state.barriers.iter().any(own))
        };
        let cpus = spinning.iter().filter(limited).fold(CpuSet::new(), |all, group| all.union(&group.cpus));
        if let Some(cpu) = cpus.first().filter(|_| !would_poll(to, idle)) {
            let (on, why) = (on_cpus(facts, &cpus), say!("{cpus} may sleep again", cpus = cpus.named()));
            finding = finding.step("qos.cpu", on, to.to_string(), cpu_limit_path(cpu), why);
        }
    }
    if is(|cause| *cause == Cause::NoSleepState) {
        let where_to = match (Where::Intel.holds(facts), Where::X86.holds(facts)) {
            _ if facts.virt.is_guest() == Some(true) => {
                word!("The hypervisor offers no sleeping state; only its host can change that.")
            }
            (_, Some(false)) => word!("Look in the kernel log for what became of the firmware's idle states."),
            (Some(false), _) => {
                word!("Look for processor.max_cstate on the command line, and for C-states in the BIOS.")
            }
            _ => word!(
                "Look for intel_idle.max_cstate or processor.max_cstate on the command line, and for C-states in the BIOS."
            ),
        };
        what.push(where_to.into());
    }
    (finding, what.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, edited, evidence, icx, idle, line, plan};
    use super::*;
    use crate::fact::Fact;

    const FILE: &str = "//- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\n";

    #[test]
    fn spins_or_not() {
        let said = ask(&PollingByAccident, &(icx() + FILE + "n/a\n"));
        assert_eq!(
            said,
            "yes risk unknown: idle cpus spin instead of sleeping on cpu 1 only: the latency limit poll excludes every sleeping state"
        );
        let skx = idle("intel_idle", &[("POLL", 0, 0), ("C1", 2, 2), ("C6", 133, 600)]);
        let said = ask(&PollingByAccident, &(skx + FILE + "1\n"));
        assert!(said.starts_with("yes problem unknown: idle cpus spin instead of sleeping on cpu 1 only"), "{said}");
        assert!(ask(&PollingByAccident, "").starts_with("cannot tell"));
    }

    #[test]
    fn nobody_asked() {
        let mut host = evidence(&icx());
        assert!(line(&PollingByAccident, &host).starts_with("cannot tell: /dev/cpu_dma_latency"));
        host.facts.qos.global = Fact::Known(LatencyLimit::None);
        assert!(line(&PollingByAccident, &host).starts_with("no"));
        host.facts.qos.global = Fact::Known(LatencyLimit::Poll);
        assert!(line(&PollingByAccident, &host).starts_with("yes risk"));
    }

    #[test]
    fn every_sleeping_state_disabled_without_a_limit() {
        let off: String = (0..2)
            .flat_map(|cpu| (1..4).map(move |state| (cpu, state)))
            .map(|(cpu, state)| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable\n1\n"))
            .collect();
        let host = icx() + &off;
        assert_eq!(
            ask(&PollingByAccident, &host),
            "yes problem unknown: idle cpus spin instead of sleeping on all 2 cpus: every sleeping state is disabled"
        );
        let steps = plan(&PollingByAccident, &host);
        assert_eq!(steps, "--set idle.state.C1=on --set idle.state.C1E=on --set idle.state.C6=on");
        let line = "//- /proc/cmdline\nro idle=poll\n";
        let said = ask(&PollingByAccident, &(icx() + line));
        assert!(said.starts_with("yes risk") && said.ends_with("all 2 cpus: booted with idle=poll"), "{said}");
    }

    #[test]
    fn a_recorded_server_with_every_sleeping_state_disabled() {
        let text = include_str!("../../../../fixtures/hosts/sklep0.host");
        let evidence = edited(text, |path| {
            (path.contains("/cpuidle/state") && path.ends_with("/disable") && !path.contains("state0")).then_some("1")
        });
        let said = line(&PollingByAccident, &evidence);
        assert!(said.starts_with("yes problem") && said.contains("on all 104 cpus"), "{said}");
    }
}
