//! Waits until the machine is quiet: so many looks in a row in which nobody else had the CPUs.
//!
//! A look lasts a second and counts what the hypervisor took and what other processes used of all CPUs that may be
//! measured, by the same bounds that mark a block as disturbed. One busy look begins the count again: a spell is what a
//! block needs, not a moment. When the time is up the caller measures all the same and says so; a machine that is never
//! quiet is one that is never measured otherwise.

use crate::noise::NoiseCounters;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
use wakewatt_core::samples::taken::Taken;
use wakewatt_core::source::Source;
use wakewatt_host::clock;

/// Length of a look.
pub const LOOK_NS: u64 = 1_000_000_000;
/// Quiet looks in a row that are a spell.
pub const SPELL: usize = 5;
/// How often the stop flag is looked at.
const STOP_LOOK: Duration = Duration::from_millis(50);

/// What is waited for, and its time.
pub trait Surroundings {
    /// Monotonic time.
    fn now_ns(&self) -> u64;
    /// Looks for about [`LOOK_NS`], less when interrupted; none where it cannot be told.
    fn look(&mut self) -> Option<Taken>;
    /// Is this to end?
    fn is_stopped(&self) -> bool;
}

/// Waits for a quiet spell, for so long at most; `on_look` hears what each look saw.
pub fn wait(machine: &mut dyn Surroundings, at_most_ns: u64, mut on_look: impl FnMut(&QuietWait)) -> QuietWait {
    let start_ns = machine.now_ns();
    let mut waited = QuietWait { end: WaitEnd::GaveUp, waited_ns: 0, n_looks: 0, n_quiet: 0, last: None };
    let mut in_a_row = 0;
    loop {
        let taken = machine.look();
        waited.waited_ns = machine.now_ns().saturating_sub(start_ns);
        waited.end = match taken {
            _ if machine.is_stopped() => WaitEnd::Interrupted,
            None => WaitEnd::Unknown,
            Some(taken) => {
                let is_quiet = !taken.is_disturbing();
                in_a_row = if is_quiet { in_a_row + 1 } else { 0 };
                waited.n_looks += 1;
                waited.n_quiet += usize::from(is_quiet);
                waited.last = Some(taken);
                on_look(&waited);
                if in_a_row < SPELL && waited.waited_ns < at_most_ns {
                    continue;
                }
                if in_a_row >= SPELL { WaitEnd::Quiet } else { WaitEnd::GaveUp }
            }
        };
        return waited;
    }
}

/// The machine this runs on.
pub struct ThisMachine<'a> {
    /// Where its counters are read.
    pub src: &'a dyn Source,
    /// CPUs that may be measured.
    pub cpus: &'a CpuSet,
    /// Set when this is to end.
    pub stop: &'a AtomicBool,
}

impl Surroundings for ThisMachine<'_> {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn look(&mut self) -> Option<Taken> {
        let read = || NoiseCounters::read(self.src, self.cpus, clock::own_cpu_ns());
        let (before, start_ns) = (read(), clock::monotonic_ns());
        while !self.is_stopped() && clock::monotonic_ns() < start_ns + LOOK_NS {
            std::thread::sleep(STOP_LOOK);
        }
        let after = read();
        if !before.is_known() || !after.is_known() {
            return None;
        }
        Some(after.since(&before, clock::monotonic_ns() - start_ns).taken())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each look takes a second of a clock that nobody else moves.
    struct Made {
        looks: Vec<Option<f64>>,
        at: usize,
        stop_at: usize,
    }

    impl Surroundings for Made {
        fn now_ns(&self) -> u64 {
            self.at as u64 * LOOK_NS
        }
        fn look(&mut self) -> Option<Taken> {
            let foreign = self.looks[self.at % self.looks.len()];
            self.at += 1;
            foreign.map(|ratio| Taken { steal_ratio: 0.0, foreign_ratio: Some(ratio) })
        }
        fn is_stopped(&self) -> bool {
            self.at >= self.stop_at
        }
    }

    fn waited(looks: &[Option<f64>], stop_at: usize) -> (WaitEnd, usize, usize, u64) {
        let mut machine = Made { looks: looks.to_vec(), at: 0, stop_at };
        let mut n_told = 0;
        let waited = wait(&mut machine, 60 * LOOK_NS, |_| n_told += 1);
        assert_eq!(n_told, waited.n_looks);
        (waited.end, waited.n_looks, waited.n_quiet, waited.waited_ns / LOOK_NS)
    }

    #[test]
    fn a_spell_is_waited_for_and_not_for_ever() {
        let (quiet, busy) = (Some(0.01), Some(0.6));
        assert_eq!(waited(&[quiet], usize::MAX), (WaitEnd::Quiet, 5, 5, 5));
        let again = [busy, quiet, quiet, quiet, quiet, busy, quiet, quiet, quiet, quiet, quiet];
        assert_eq!(waited(&again, usize::MAX), (WaitEnd::Quiet, 11, 9, 11), "a busy look begins the count again");
        assert_eq!(waited(&[busy, quiet], usize::MAX), (WaitEnd::GaveUp, 60, 30, 60));
        assert_eq!(waited(&[busy], 7), (WaitEnd::Interrupted, 6, 0, 7));
        assert_eq!(waited(&[None], usize::MAX).0, WaitEnd::Unknown);
    }

    #[test]
    fn a_machine_that_tells_nothing_is_said_so_and_a_stop_is_heard() {
        let (cpus, src) = (CpuSet::parse("0-1").unwrap(), wakewatt_core::source::Tree::default());
        let stop = AtomicBool::new(true);
        let mut machine = ThisMachine { src: &src, cpus: &cpus, stop: &stop };
        assert_eq!(machine.look(), None);
        assert_eq!(wait(&mut machine, 60 * LOOK_NS, |_| ()).end, WaitEnd::Interrupted);
    }
}
