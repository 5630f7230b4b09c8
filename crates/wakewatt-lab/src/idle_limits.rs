//! What a latency limit on the whole machine means for its idle states: which one it leaves, and whether counters show that
//! it did not take.

use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::idle::{IdleState, TableRow};
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::units::LatencyLimit;

/// A share of entries into a state that an arm forbids above this contradicts the arm.
pub(crate) const MAX_FORBIDDEN_RATIO: f64 = 0.05;
/// Fewer entries say nothing.
pub(crate) const MIN_ENTRIES: u64 = 20;
/// The kernel counts in microseconds; below one it would poll.
const LEAST_NS: u64 = 1000;

/// The limit that leaves every CPU its shallowest state that sleeps, and none deeper; with the name of that state.
pub(crate) fn shallowest(facts: &Snapshot) -> Result<(LatencyLimit, String), String> {
    let tables: Vec<Vec<(u64, String)>> = facts.idle.tables().iter().map(|(_, rows)| sleeping(rows)).collect();
    let Some((ns, name)) = tables.iter().filter_map(|states| states.first()).max() else {
        return Err("no idle state here sleeps, or none says how long it takes to leave".into());
    };
    if !tables.iter().flatten().any(|(deeper_ns, _)| deeper_ns > ns) {
        return Err(format!("it would be the machine as it is: no idle state here is deeper than {name}"));
    }
    Ok((LatencyLimit::AtMostNs((*ns).max(LEAST_NS)), name.clone()))
}

/// States that may be entered and do not poll: exit latency and name, the shallowest first.
fn sleeping(rows: &[TableRow]) -> Vec<(u64, String)> {
    let rows = rows.iter().filter(|row| !row.is_polling() && row.is_enabled != Some(false));
    let mut states: Vec<(u64, String)> =
        rows.filter_map(|row| Some((row.exit_latency_ns?, row.name.clone()))).collect();
    states.arrange_by_key(|(ns, _)| *ns);
    states
}

/// Index, name and longest exit latency of each state.
pub(crate) fn all_states(facts: &Snapshot) -> Vec<(u32, String, u64)> {
    let state = |s: &IdleState| Some((s.index, s.label(), *s.exit_latency_ns.known().map(|(_, ns)| ns).max()?));
    facts.idle.states.iter().filter_map(state).collect()
}

/// Were states entered that this limit forbids?
pub(crate) fn entered_above(
    limit: LatencyLimit,
    latencies_ns: &[(u32, String, u64)],
    idle: &[IdleDelta],
) -> Option<String> {
    for delta in idle {
        let total: u64 = delta.states.iter().map(|s| s.n_usage).sum();
        let is_forbidden = |at: u32| latencies_ns.iter().any(|(i, _, ns)| *i == at && !limit.allows(*ns));
        let forbidden: u64 = delta.states.iter().filter(|s| is_forbidden(s.index)).map(|s| s.n_usage).sum();
        if total >= MIN_ENTRIES && forbidden as f64 > total as f64 * MAX_FORBIDDEN_RATIO {
            return Some(format!(
                "CPU {} entered states above {} {forbidden} times of {total}: the setting did not take",
                delta.cpu, limit
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn facts(states: &[(u32, &str, u32, u32)]) -> Snapshot {
        let cpu = "/sys/devices/system/cpu";
        let mut text = format!("//- {cpu}/online\n0-1\n//- {cpu}/present\n0-1\n");
        for (n, name, latency_us, disable) in states {
            let at = format!("//- {cpu}/cpu{}/cpuidle/state{}", n / 10, n % 10);
            text += &format!("{at}/name\n{name}\n{at}/latency\n{latency_us}\n{at}/disable\n{disable}\n");
        }
        Snapshot::read(&Tree::from_text(&text), |_| true)
    }

    #[test]
    fn the_shallowest_that_sleeps_stays_on_every_cpu() {
        let limit = |states: &[_]| shallowest(&facts(states)).map(|(limit, name)| format!("{limit} {name}"));
        let two = [(0, "POLL", 0, 0), (1, "C1", 2, 0), (2, "C6", 133, 0)];
        assert_eq!(limit(&two).as_deref(), Ok("2us C1"));
        // Two kinds of CPU: the higher of the two, or the other would poll.
        let mixed = [(1, "C1", 1, 0), (2, "C6", 130, 0), (11, "C1E", 4, 0), (12, "C6", 200, 0)];
        assert_eq!(limit(&mixed).as_deref(), Ok("4us C1E"));
        assert_eq!(limit(&[(1, "C1", 1, 1), (2, "C1E", 4, 0), (3, "C6", 9, 0)]).as_deref(), Ok("4us C1E"));
        assert!(limit(&two[..2]).unwrap_err().contains("deeper than C1"));
        assert!(limit(&two[..1]).unwrap_err().contains("no idle state here sleeps"));
    }
}
