//! What a wake-up latency limit means on this host's idle table.
//!
//! The kernel lets an idle state be entered if its exit latency is at most the limit, and if none fits it enters state
//! 0 all the same: POLL on x86, where the CPU then spins (docs/knobs/idle.md). A number of microseconds is therefore not a
//! setting but a question to the table: with C1E at 4us and C6 at 170us, 50us and 169us are one and the same. Hybrid
//! machines have several tables and get several answers. Claims only: what a state costs here is measured elsewhere.

use crate::cpuset::CpuSet;
use crate::facts::Snapshot;
use crate::facts::idle::{Idle, TableRow};
use crate::units::{LatencyLimit, exact_ns};
use serde::Serialize;
use std::fmt;
use wakewatt_words::{say, word};

/// A state that takes this long to leave is deep: a budget is worth having (server C1 and C1E claim 1 to 10us, the
/// next state 70us and more).
pub const DEEP_NS: u64 = 20_000;

/// A state with its claimed exit latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// Name of the idle state: C1E.
    pub name: String,
    /// As the driver or the firmware claims it.
    pub exit_latency_ns: u64,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, exact_ns(self.exit_latency_ns))
    }
}

/// What a limit comes to on the CPUs that share one idle table. Prints as
/// "50us -> C1E (4us); C6 (170us) excluded; 51-169us would be the same".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution {
    /// The limit that was asked for.
    pub limit: LatencyLimit,
    /// The CPUs it holds for.
    pub cpus: CpuSet,
    /// The deepest state still allowed; none where the table has no readable, enabled state.
    pub deepest: Option<Claim>,
    /// Enabled states that the limit excludes, shallowest first.
    pub excluded: Vec<Claim>,
    /// The idle CPU spins.
    pub is_polling: bool,
    /// Every limit from here …
    pub same_from_ns: u64,
    /// … to here comes to the same; none: any larger one does.
    pub same_to_ns: Option<u64>,
    /// States whose latency cannot be read; they are left out.
    pub unreadable: Vec<String>,
}

/// Resolves a limit against one table.
pub fn resolve_table(limit: LatencyLimit, cpus: &CpuSet, table: &[TableRow]) -> Resolution {
    let enabled = || table.iter().filter(|r| r.is_enabled != Some(false));
    let claim = |r: &TableRow| Some(Claim { name: r.name.clone(), exit_latency_ns: r.exit_latency_ns? });
    let fits = |r: &&TableRow| r.exit_latency_ns.is_some_and(|ns| limit.allows(ns));
    // Nothing fits: the governors fall back to state 0, whatever it is.
    let row = enabled().filter(fits).max_by_key(|r| r.index).or_else(|| table.iter().find(|r| r.index == 0));
    let mut excluded: Vec<Claim> = enabled().filter(|r| !fits(r)).filter_map(claim).collect();
    excluded.retain(|c| row.is_none_or(|r| r.name != c.name));
    let next = excluded.iter().map(|c| c.exit_latency_ns).min();
    Resolution {
        limit,
        cpus: cpus.clone(),
        deepest: row.and_then(claim),
        is_polling: row.is_some_and(TableRow::is_polling),
        same_from_ns: row.and_then(|r| r.exit_latency_ns).unwrap_or(0),
        // The kernel takes whole microseconds.
        same_to_ns: next.map(|ns| ns.saturating_sub(1000)),
        excluded,
        unreadable: enabled().filter(|r| r.exit_latency_ns.is_none()).map(|r| r.name.clone()).collect(),
    }
}

/// Resolves a limit on every kind of CPU; empty where no idle table is known.
pub fn resolve(limit: LatencyLimit, idle: &Idle) -> Vec<Resolution> {
    idle.tables().iter().map(|(cpus, table)| resolve_table(limit, cpus, table)).collect()
}

/// One line for all kinds of CPU: resolutions joined, each with its CPUs where there is more than one.
pub fn sentence(limit: LatencyLimit, idle: &Idle) -> String {
    let all = resolve(limit, idle);
    let one = |r: &Resolution| if all.len() > 1 { format!("{}: {r}", r.cpus.named()) } else { r.to_string() };
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Plain C1, whatever the driver calls it; C1E is another state.
pub fn is_plain_c1(name: &str) -> bool {
    matches!(name, "C1" | "C1_ACPI")
}

/// The same line, with what is known to be wrong about the claims: where C1 is entered as C1E (bit 1 of MSR 0x1FC, see
/// rule.c1e-promotion), a budget that ends in C1 buys C1E, at an exit latency that the table does not tell.
pub fn sentence_here(limit: LatencyLimit, facts: &Snapshot) -> String {
    let (said, all) = (sentence(limit, &facts.idle), resolve(limit, &facts.idle));
    match c1_promoted(facts).filter(|_| all.iter().any(Resolution::ends_in_c1)) {
        Some(on) => said + &promoted(&on),
        None => said,
    }
}

/// Says that a budget which ends in C1 gets C1E (bit 1 of MSR 0x1FC); `on` is where, from [`promoted_on`].
pub fn promoted(on: &str) -> String {
    say!("; but C1 is entered as C1E {on}, which takes longer than C1 claims")
}

/// Where C1 is entered as C1E, by the registers that were read.
fn c1_promoted(facts: &Snapshot) -> Option<String> {
    let bit = facts.msr.field("power_ctl", "c1e")?;
    let read: CpuSet = bit.known().flat_map(|(cpus, _)| cpus.iter()).collect();
    promoted_on(facts, &bit.cpus_where(|bit| *bit != 0), &read)
}

/// Where C1 is entered as C1E: "here", or "on 2 of 4 CPUs (0-1)"; none where it is so nowhere. Given are the CPUs whose
/// register says so, of those that were read; a CPU that was not read is taken to be like the others of its package.
pub fn promoted_on(facts: &Snapshot, set: &CpuSet, read: &CpuSet) -> Option<String> {
    if set.is_empty() || set == read {
        return (!set.is_empty()).then(|| word!("here").into());
    }
    let unread = |cpus: &CpuSet| if cpus.and(set).is_empty() { CpuSet::new() } else { cpus.minus(read) };
    let packages = facts.topology.packages();
    let all = packages.iter().fold(set.clone(), |all, (_, cpus)| all.union(&unread(cpus)));
    Some(say!("on {cpus}", cpus = facts.cpus.extent(&all)))
}

impl Resolution {
    /// Is plain C1 the deepest state left?
    pub fn ends_in_c1(&self) -> bool {
        self.deepest.as_ref().is_some_and(|deepest| is_plain_c1(&deepest.name))
    }
}

/// A budget that keeps the shallow sleeping states and excludes the deep ones on every kind of CPU: the exit latency
/// of the deepest state below [`DEEP_NS`]. None where no table has both kinds.
pub fn shallow(idle: &Idle) -> Option<LatencyLimit> {
    let mut best = None;
    let mut has_deep = false;
    for (_, table) in idle.tables() {
        let sleeps = table.iter().filter(|r| r.is_enabled != Some(false) && !r.is_polling());
        for ns in sleeps.filter_map(|r| r.exit_latency_ns) {
            if ns >= DEEP_NS {
                has_deep = true;
            } else {
                best = best.max(Some(ns));
            }
        }
    }
    best.filter(|_| has_deep).map(LatencyLimit::AtMostNs)
}

/// The limit that keeps only the shallowest sleeping state of every kind of CPU (and polling). None where none is known.
pub fn shallowest(idle: &Idle) -> Option<LatencyLimit> {
    let first = |table: &[TableRow]| {
        let sleeps = table.iter().filter(|r| r.is_enabled != Some(false) && !r.is_polling());
        sleeps.filter_map(|r| r.exit_latency_ns).min()
    };
    let all = idle.tables().into_iter().filter_map(|(_, table)| first(&table));
    all.max().map(|ns| LatencyLimit::AtMostNs(ns.max(1000)))
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(deepest) = &self.deepest else {
            return write!(f, "{}", say!("{} -> unknown: no idle state is readable", self.limit));
        };
        if self.is_polling {
            write!(f, "{}", say!("{} -> {}: an idle CPU spins", self.limit, deepest.name))?;
        } else {
            write!(f, "{} -> {deepest}", self.limit)?;
        }
        if !self.excluded.is_empty() {
            let names: Vec<String> = self.excluded.iter().map(Claim::to_string).collect();
            write!(f, "{}", say!("; {} excluded", names.join(", ")))?;
        }
        if let LatencyLimit::AtMostNs(limit) = self.limit {
            let first = limit - limit % 1000 + 1000;
            match self.same_to_ns {
                Some(last) if last == first => write!(f, "{}", say!("; {} would be the same", exact_ns(last)))?,
                Some(last) if last > first => {
                    write!(f, "{}", say!("; {}-{}us would be the same", first / 1000, last / 1000))?;
                }
                Some(_) => {}
                None => f.write_str(word!("; any larger one would be the same"))?,
            }
        }
        if !self.unreadable.is_empty() {
            write!(f, "{}", say!("; {} not readable", self.unreadable.join(", ")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(states: &[(&str, u64)]) -> Vec<TableRow> {
        let row = |(i, (name, us)): (usize, &(&str, u64))| TableRow {
            index: u32::try_from(i).unwrap(),
            name: (*name).into(),
            exit_latency_ns: Some(us * 1000),
            target_residency_ns: None,
            is_enabled: Some(true),
        };
        states.iter().enumerate().map(row).collect()
    }

    fn check(limit: &str, states: &[(&str, u64)]) -> String {
        resolve_table(LatencyLimit::parse(limit).unwrap(), &CpuSet::new(), &table(states)).to_string()
    }

    #[test]
    fn says_what_a_budget_comes_to() {
        let icx = [("POLL", 0), ("C1", 1), ("C1E", 4), ("C6", 170)];
        assert_eq!(check("50us", &icx), "50us -> C1E (4us); C6 (170us) excluded; 51-169us would be the same");
        assert_eq!(check("169us", &icx), "169us -> C1E (4us); C6 (170us) excluded");
        assert_eq!(check("1ms", &icx), "1ms -> C6 (170us); any larger one would be the same");
        assert_eq!(check("none", &icx), "none -> C6 (170us)");
        let poll = "poll -> POLL: an idle CPU spins; C1 (1us), C1E (4us), C6 (170us) excluded";
        assert_eq!(check("poll", &icx), poll);
    }

    #[test]
    fn c1_that_is_c1e_is_not_sold_as_c1() {
        let state = |i: u32, name: &str, us: u64| {
            let at = format!("//- /sys/devices/system/cpu/cpu0/cpuidle/state{i}");
            format!("{at}/name\n{name}\n{at}/latency\n{us}\n{at}/disable\n0\n")
        };
        let root = "//- /sys/devices/system/cpu";
        let text = format!(
            "{root}/present\n0-1\n{root}/online\n0-1\n{root}/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n"
        ) + &state(0, "POLL", 0)
            + &state(1, "C1", 1)
            + &state(2, "C6", 120);
        let facts = |registers: &str| {
            let both = text.clone() + &text.replace("cpu0/cpuidle", "cpu1/cpuidle") + registers;
            crate::facts::Snapshot::read(&crate::source::Tree::from_text(&both), |_| true)
        };
        let said = |us: u64, registers: &str| sentence_here(LatencyLimit::AtMostNs(us * 1000), &facts(registers));
        let (all, half) =
            ("//- msr 0x1fc cpu0 2\n//- msr 0x1fc cpu1 2\n", "//- msr 0x1fc cpu0 0\n//- msr 0x1fc cpu1 2\n");
        assert!(said(1, all).ends_with("; but C1 is entered as C1E here, which takes longer than C1 claims"));
        assert!(said(1, all).starts_with("1us -> C1 (1us); C6 (120us) excluded"));
        assert!(said(1, half).contains("but C1 is entered as C1E on CPU 1 only"), "{}", said(1, half));
        assert!(!said(1, "").contains("C1E") && !said(500, all).contains("C1E"));
    }

    #[test]
    fn one_microsecond_polls_on_one_host_and_sleeps_on_the_next() {
        let skx = [("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133)];
        let said = check("1us", &skx);
        assert_eq!(said, "1us -> POLL: an idle CPU spins; C1 (2us), C1E (10us), C6 (133us) excluded");
        assert_eq!(check("1us", &[("POLL", 0), ("C1", 1)]), "1us -> C1 (1us); any larger one would be the same");
        // Arm has no polling state: state 0 is entered whatever the limit.
        assert_eq!(check("poll", &[("WFI", 1), ("cpu-sleep", 811)]), "poll -> WFI (1us); cpu-sleep (811us) excluded");
    }

    #[test]
    fn a_hybrid_machine_gets_two_answers_and_disabled_states_do_not_count() {
        let state = |cpu: u32, i: u32, name: &str, us: u64, off: u8| {
            let at = format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state{i}");
            format!("{at}/name\n{name}\n{at}/latency\n{us}\n{at}/disable\n{off}\n")
        };
        let text = "//- /sys/devices/system/cpu/present\n0-1\n//- /sys/devices/system/cpu/online\n0-1\n".to_string()
            + &state(0, 0, "C1E", 2, 0)
            + &state(0, 1, "C6", 220, 0)
            + &state(1, 0, "C1E", 2, 0)
            + &state(1, 1, "C6", 15, 0)
            + &state(1, 2, "C10", 680, 1);
        let tree = crate::source::Tree::from_text(&text);
        let facts = crate::facts::Snapshot::read(&tree, |topic| topic == "idle");
        assert_eq!(
            sentence(LatencyLimit::AtMostNs(50_000), &facts.idle),
            "CPU 0: 50us -> C1E (2us); C6 (220us) excluded; 51-219us would be the same; \
             CPU 1: 50us -> C6 (15us); any larger one would be the same"
        );
        assert_eq!(shallow(&facts.idle), Some(LatencyLimit::AtMostNs(15_000)));
        assert_eq!(shallowest(&facts.idle), Some(LatencyLimit::AtMostNs(2_000)));
        assert!(resolve(LatencyLimit::None, &Idle::default()).is_empty());
    }
}
