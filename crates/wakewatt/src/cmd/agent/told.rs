//! What an agent says when it has started: what it cannot do, what it gave up, where it answers.

use crate::output;
use wakewatt_agent::Started;

pub(super) fn started(started: &Started, place: &str) {
    not_traced(started.not_traced_because.as_deref());
    no_payers(started.no_payers_because.as_deref());
    started.trace_gaps.iter().for_each(|gap| output::remark(&format!("not traced: {gap}")));
    // A history that cannot be kept is no reason to answer nothing; every page says so, too.
    if let Some(why) = &started.no_history_because {
        output::remark(&format!("the past is not kept: {why}"));
    }
    started.doubted_history.iter().for_each(|why| output::remark(&format!("history: {why}")));
    for one in started.guards.iter() {
        let guard = one.guard.replace('_', " ");
        match (&one.kept, &one.not_because) {
            (Some(kept), _) => output::remark(&format!("given up for good, {guard}; kept: {kept}")),
            (None, Some(why)) => output::remark(&format!("not given up, {guard}: {why}")),
            (None, None) => {}
        }
    }
    output::remark(&format!("{place}; Ctrl-C ends it"));
}

pub(super) fn not_traced(because: Option<&str>) {
    if let Some(why) = because {
        output::remark(&format!("wake-ups are not traced: {why}"));
    }
}

pub(super) fn no_payers(because: Option<&str>) {
    if let Some(why) = because {
        output::remark(&format!("who pays is not told: {why}"));
    }
}
