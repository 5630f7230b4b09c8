//! How well do two CPUs read the same clock? The bound below which a latency between them means nothing.
//!
//! One CPU stamps, shows it, and stamps again when the other has stamped and shown that. The other's stamp lies between the
//! two of the first, so its clock is ahead by at most `theirs - before` and behind by at most `after - theirs`. A thousand
//! exchanges leave the tightest of each (Cristian 1989: the quickest exchange tells most). Both ends together are the bound:
//! it says nothing of a clock that drifts within the seconds of a measurement, which the kernel would call unstable.

use super::BenchError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wakewatt_core::units::Cpu;
use wakewatt_host::{clock, sched::MeasuringThread};

const EXCHANGES: u64 = 1000;
/// CPUs that others keep take longer; then the bound is what was found by then.
const LONGEST_NS: u64 = 20_000_000;

/// What the exchanges leave open, in nanoseconds: the other's clock minus ours lies in `-behind..=ahead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    ahead_ns: i64,
    behind_ns: i64,
}

impl Open {
    const ALL: Open = Open { ahead_ns: i64::MAX, behind_ns: i64::MAX };

    fn narrow(&mut self, before_ns: u64, theirs_ns: u64, after_ns: u64) {
        let apart = |later: u64, sooner: u64| i64::try_from(i128::from(later) - i128::from(sooner)).unwrap_or(i64::MAX);
        self.ahead_ns = self.ahead_ns.min(apart(theirs_ns, before_ns));
        self.behind_ns = self.behind_ns.min(apart(after_ns, theirs_ns));
    }

    fn bound_ns(self) -> Option<u64> {
        (self != Open::ALL).then(|| self.ahead_ns.unsigned_abs().max(self.behind_ns.unsigned_abs()))
    }
}

/// The clocks of these two CPUs agree within this; none where not one exchange was had in time.
pub fn clock_bound(from_cpu: Cpu, cpu: Cpu) -> Result<Option<u64>, BenchError> {
    // Odd: asked; even: answered.
    let (turn, theirs_ns, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let end_at_ns = clock::monotonic_ns() + LONGEST_NS;
    // In the ordinary class: two spinning threads of the real-time class could starve what they wait for.
    let enter = |cpu| {
        MeasuringThread::enter(Some(cpu), None)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {cpu}"), e))
    };
    let answer = || -> Result<(), BenchError> {
        let _thread = enter(cpu)?;
        while !is_over.load(Ordering::Relaxed) && clock::monotonic_ns() < end_at_ns {
            let asked = turn.load(Ordering::Acquire);
            if asked % 2 == 1 {
                theirs_ns.store(clock::monotonic_ns(), Ordering::Release);
                turn.store(asked + 1, Ordering::Release);
            }
            std::hint::spin_loop();
        }
        Ok(())
    };
    let ask = || -> Result<Open, BenchError> {
        let entered = enter(from_cpu);
        let mut open = Open::ALL;
        if entered.is_ok() {
            for exchange in 0..EXCHANGES {
                let before_ns = clock::monotonic_ns();
                turn.store(2 * exchange + 1, Ordering::Release);
                while turn.load(Ordering::Acquire) != 2 * exchange + 2 && clock::monotonic_ns() < end_at_ns {
                    std::hint::spin_loop();
                }
                let after_ns = clock::monotonic_ns();
                if turn.load(Ordering::Acquire) != 2 * exchange + 2 {
                    break;
                }
                open.narrow(before_ns, theirs_ns.load(Ordering::Acquire), after_ns);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        entered.map(|_| open)
    };
    let (asked, answered) = std::thread::scope(|scope| {
        let other = scope.spawn(answer);
        let one = scope.spawn(ask);
        (one.join(), other.join())
    });
    answered.map_err(|_| BenchError::Crashed)??;
    Ok(asked.map_err(|_| BenchError::Crashed)??.bound_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_exchange_tells_most() {
        let mut open = Open::ALL;
        assert_eq!(open.bound_ns(), None);
        open.narrow(1000, 1900, 2000);
        assert_eq!((open, open.bound_ns()), (Open { ahead_ns: 900, behind_ns: 100 }, Some(900)));
        open.narrow(5000, 5080, 5300);
        assert_eq!(open.bound_ns(), Some(100));
        // A clock that is behind by more than an exchange takes shows as a stamp before the question.
        open.narrow(9000, 8700, 9100);
        assert_eq!(open.bound_ns(), Some(300));
    }

    #[test]
    fn two_cpus_of_one_machine_agree_within_what_an_exchange_takes() {
        let allowed = wakewatt_host::affinity::allowed_cpus().unwrap();
        let mut cpus = allowed.iter();
        let (Some(one), Some(other)) = (cpus.next(), cpus.next()) else { return };
        // Others may keep the CPUs for all of the time: then there is no bound, and none is made up.
        if let Some(bound_ns) = clock_bound(one, other).unwrap() {
            assert!(bound_ns <= LONGEST_NS * 100, "{bound_ns}");
        }
    }
}
