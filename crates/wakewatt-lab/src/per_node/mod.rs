//! One copy of a command per memory node, its CPUs and its memory bound there, and where its pages really lay.
//!
//! Whether a copy was really placed so is looked up in its numa_maps while it runs, not believed. n bound copies do n times
//! the work of one, so n times the unbound wall time over the bound one is the scaling.

mod copy;
mod outcome;
mod pages;
mod plan;

pub use copy::EndedCopy;
pub use outcome::{CopyRun, Pages, Ran, Scaling};
pub use plan::{Pass, PerNodePlan, Where};

use crate::refusal::Refusal;
use crate::survey::nodes_of;
use copy::Copy;
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::source::Source;
use wakewatt_host::bound::signal_group;
use wakewatt_host::clock::monotonic_ns;

/// How often it is looked whether a copy has ended: also the precision of the wall times.
const TICK: Duration = Duration::from_millis(2);
/// When the pages are first looked at: soon, and again when the command has had time to take memory.
const LOOKS_NS: [u64; 3] = [50_000_000, 500_000_000, 3_000_000_000];
/// And then always after so long, since memory is taken at any time. A look walks the page tables, so the pause is also so
/// many times what the last look took.
const LOOK_AGAIN_NS: u64 = 3_000_000_000;
const LOOK_SHARE: u64 = 100;

/// One place per node that has both memory and CPUs of those allowed.
pub fn places(src: &dyn Source, allowed: &CpuSet) -> Result<Vec<Where>, Refusal> {
    let nodes = nodes_of(src, allowed);
    let local = nodes.with_cpus.iter().filter(|(node, _)| nodes.with_memory.contains(node));
    let places: Vec<Where> = local.map(|(node, cpus)| Where { node: Some(*node), cpus: cpus.clone() }).collect();
    if places.is_empty() {
        let why = format!("no memory node has CPUs that this process may use ({allowed}); widen taskset or cpuset");
        return Err(Refusal::Unavailable(why));
    }
    Ok(places)
}

/// Starts one copy per place, hands signals on and waits for all; also says whether a signal came.
pub fn copies(
    plan: &PerNodePlan,
    places: &[Where],
    signal: &dyn Fn() -> Option<i32>,
) -> Result<(Vec<EndedCopy>, bool), Refusal> {
    let mut copies: Vec<Copy> = Vec::with_capacity(places.len());
    for place in places {
        match Copy::start(plan, place, places.len()) {
            Ok(copy) => copies.push(copy),
            Err(why) => {
                // All or none: half a run is no result.
                copies.iter().for_each(|c| _ = signal_group(c.pid(), libc::SIGTERM));
                copies.into_iter().for_each(|c| _ = c.finish());
                return Err(why);
            }
        }
    }
    let (start_at_ns, mut looks, mut is_interrupted) = (monotonic_ns(), Looks::default(), false);
    while copies.iter_mut().any(|c| !c.is_over()) {
        if let Some(signal) = signal() {
            is_interrupted = true;
            copies.iter_mut().filter(|c| !c.is_known_over()).for_each(|c| _ = signal_group(c.pid(), signal));
        }
        let spent_ns = monotonic_ns() - start_at_ns;
        if looks.is_due(spent_ns) {
            copies.iter_mut().for_each(Copy::look);
            looks.done(spent_ns, monotonic_ns() - start_at_ns);
        }
        std::thread::sleep(TICK);
    }
    Ok((copies.into_iter().map(Copy::finish).collect(), is_interrupted))
}

/// The looks made at the pages.
#[derive(Default)]
struct Looks {
    n: usize,
    next_at_ns: u64,
}

impl Looks {
    fn is_due(&self, spent_ns: u64) -> bool {
        spent_ns >= LOOKS_NS.get(self.n).copied().unwrap_or(0).max(self.next_at_ns)
    }

    /// One more, from then to then.
    fn done(&mut self, from_ns: u64, to_ns: u64) {
        self.n += 1;
        let pause_ns = to_ns.saturating_sub(from_ns).saturating_mul(LOOK_SHARE);
        self.next_at_ns =
            // The first few are made whatever they cost: without them nothing is proved.
            if self.n < LOOKS_NS.len() { 0 } else { to_ns.saturating_add(pause_ns.max(LOOK_AGAIN_NS)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_looked_at_until_the_end() {
        let (mut looks, mut at_ms) = (Looks::default(), Vec::new());
        for ms in 0..13_000_u64 {
            if looks.is_due(ms * 1_000_000) {
                at_ms.push(ms);
                looks.done(ms * 1_000_000, ms * 1_000_000);
            }
        }
        assert_eq!(at_ms, [50, 500, 3000, 6000, 9000, 12_000]);
        // A look that takes 0.1 s is made every 10 s.
        looks.done(15_000_000_000, 15_100_000_000);
        assert!(!looks.is_due(25_000_000_000) && looks.is_due(25_100_000_000));
    }
}
