//! What a reader of a trace's numbers must know, in words.

use wakewatt_core::samples::traced::Traced;
use wakewatt_core::samples::wakes::BUSY_TIMED_ONE_IN;

/// Of this trace.
pub(super) fn of(traced: &Traced) -> Vec<String> {
    let mut said = Vec::new();
    for state in &traced.states {
        let Some(entered) = state.n_entered else { continue };
        let (more, less) = (state.n_requested.max(entered), state.n_requested.min(entered));
        // A stay that straddles an end of the trace is counted by one side only.
        if more - less > 16 + 2 * u64::from(traced.n_cpus) + more / 50 {
            said.push(format!(
                "{}: requested {} times, entered {} times: the driver went elsewhere, or somebody else's counters moved",
                state.state, state.n_requested, entered
            ));
        }
    }
    if traced.rows.iter().any(|r| !r.contains_exit && r.state.is_some()) {
        said.push(
            "\"interrupt after exit\": the CPU had left the state before the task was woken, so the exit is not in that \
             latency; what it adds is modelled from wake-ups by another CPU"
                .into(),
        );
    }
    if traced.rows.iter().any(|r| r.state.is_none()) {
        said.push(format!(
            "wake-ups onto a CPU that was not idle are all counted; one in {} of them is timed, chosen at random, and their \
             time lost is estimated from those",
            BUSY_TIMED_ONE_IN
        ));
    }
    let mut against: Vec<&str> =
        traced.rows.iter().filter_map(|r| Some(r.exit_cost.as_ref()?.against.as_str())).collect();
    against.dedup();
    if let Some(against) = against.first() {
        said.push(format!("\"exit (modelled)\" is the mean of wake-ups by another CPU, less that of {against}"));
    }
    let missed = &traced.missed;
    let lost = missed.n_unclassed + missed.n_recursion.unwrap_or(0);
    if lost > 0 {
        said.push(format!("{lost} events were missed (no memory, or a program was already running)"));
    }
    if missed.n_lost > 0 {
        said.push(format!("{} idle records were lost: the ring buffer was full", missed.n_lost));
    }
    said
}
