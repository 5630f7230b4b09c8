//! Was each traced process there over the whole trace?
//!
//! Asked of /proc when the trace ends: who is still there, and had started (proc(5): `starttime`, ticks of 10 ms since
//! boot) before the trace did, was there all the time; a number used anew has a later start. In a PID namespace of our own
//! the kernel's numbers are other processes' here, so nothing is said.

use wakewatt_core::samples::traced::{Presence, ProcessRow};
use wakewatt_core::source::Source;

/// The first PID namespace has this number (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const TICK_NS: u64 = 10_000_000;

/// Marks the processes of a trace that began at this moment of the boot clock.
pub(super) fn mark(processes: &mut [ProcessRow], start_at_ns: u64, src: &dyn Source) {
    if src.link("/proc/self/ns/pid").ok().as_deref() != Some(FIRST_NAMESPACE) {
        return;
    }
    for process in processes {
        let stat = src.read(&format!("/proc/{}/stat", process.tgid)).ok();
        process.presence = match stat.map(|bytes| started_at_ns(&bytes)) {
            Some(Some(at_ns)) if at_ns <= start_at_ns => Presence::Throughout,
            Some(None) => Presence::Unknown,
            Some(Some(_)) | None => Presence::Passing,
        };
    }
}

/// Field 22, counted after the name, which may hold anything.
fn started_at_ns(stat: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(stat);
    let ticks: u64 = text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    ticks.checked_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Label;
    use wakewatt_core::source::Tree;

    fn marked(namespace: &str) -> Vec<Presence> {
        let stat = |ticks: u64| format!("({ticks}) a) b) S 1 1 1 0 -1 4194304 9 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0");
        let tree = format!(
            "//- link /proc/self/ns/pid {namespace}\n//- /proc/7/stat\n7 {}\n//- /proc/8/stat\n8 {}\n//- /proc/9/stat\n9 rubbish\n",
            stat(499),
            stat(501)
        );
        let row = |tgid| ProcessRow {
            tgid,
            name: "x".into(),
            state: "C6".into(),
            n: 1,
            total_ns: 1,
            label: Label::Measured,
            presence: Presence::Unknown,
        };
        let mut rows: Vec<ProcessRow> = [7, 8, 9, 10].map(row).to_vec();
        mark(&mut rows, 5_000_000_000, &Tree::from_text(&tree));
        rows.iter().map(|row| row.presence).collect()
    }

    #[test]
    fn who_came_or_went_is_passing() {
        use Presence::{Passing, Throughout, Unknown};
        assert_eq!(marked(FIRST_NAMESPACE), [Throughout, Passing, Unknown, Passing]);
        assert_eq!(marked("pid:[4026532000]"), [Unknown; 4], "another namespace's numbers");
    }
}
