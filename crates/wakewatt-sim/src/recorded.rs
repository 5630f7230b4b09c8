//! Arrivals from a recording of idle time: every sleep that an interrupt or another CPU ended is something that arrived.
//!
//! What a tick or a timer ended is the machine's own affair and is left out. An arrival that found its CPU at work left no trace in such a
//! recording, so some are missing, most of all on a busy machine; and another CPU may have woken it for a task of the machine's own, which cannot be
//! told apart and is counted. The count of what was left out is kept, to be said. Windows of a recording are put one after the other, without the
//! time between them. Times are the recording's.

use crate::server::{ArrivalKind, Arrivals};
use std::collections::BinaryHeap;
use wakewatt_core::record::wtrace::{Item, Mark};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};

/// More are no better, and a file of them is read at every point of a sweep.
pub const MOST_ARRIVALS: usize = 200_000;

/// Wake-ups of a recording, as they are read.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    at_ns: Vec<u64>,
    /// Of the window being read, on the recording's clock.
    window_ns: BinaryHeap<u64>,
    opened_at_ns: Option<u64>,
    /// Length of the windows before.
    before_ns: u64,
    /// Arrivals, with those beyond the bound.
    n_all: usize,
    n_lost: u64,
    n_own: u64,
    n_unknown: u64,
}

/// Arrivals, and what they are not.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// For a server.
    pub arrivals: Arrivals,
    /// What was taken, and what was left out, in a sentence.
    pub told: String,
}

impl Recorded {
    /// The next piece.
    pub fn item(&mut self, item: &Item) {
        match item {
            Item::Pairs(pairs) => pairs.iter().for_each(|pair| self.pair(pair)),
            Item::Mark(Mark::WindowOpened { at_ns }) => {
                self.close(None);
                self.opened_at_ns = Some(*at_ns);
            }
            Item::Mark(Mark::WindowClosed { at_ns, n_lost }) => {
                self.n_lost = self.n_lost.saturating_add(*n_lost);
                self.close(Some(*at_ns));
            }
            Item::Mark(_) | Item::Choices(_) => {}
        }
    }

    fn pair(&mut self, pair: &IdlePair) {
        match pair.ended_by {
            WakeCause::Interrupt | WakeCause::RemoteWake | WakeCause::PolledWake => {
                self.arrived(pair.enter_at_ns.saturating_add(pair.duration_ns));
            }
            WakeCause::Tick | WakeCause::Timer => self.n_own += 1,
            WakeCause::Unknown => self.n_unknown += 1,
        }
    }

    fn arrived(&mut self, at_ns: u64) {
        self.n_all += 1;
        self.window_ns.push(at_ns);
        // A recording may be of any length, so only the earliest are kept: the latest goes. Windows before are earlier.
        if self.at_ns.len() + self.window_ns.len() > MOST_ARRIVALS {
            self.window_ns.pop();
        }
    }

    /// A window ends; where nobody wrote when, with its last wake-up.
    fn close(&mut self, at_ns: Option<u64>) {
        // CPUs stand one after the other in a file.
        let window_ns = std::mem::take(&mut self.window_ns).into_sorted_vec();
        let first = window_ns.first().copied();
        let Some(from_ns) = self.opened_at_ns.take().or(first) else { return };
        let to_ns = at_ns.or(window_ns.last().copied()).unwrap_or(from_ns);
        let before_ns = self.before_ns;
        let within = |at: &u64| before_ns.saturating_add((*at).clamp(from_ns, to_ns.max(from_ns)) - from_ns);
        self.at_ns.extend(window_ns.iter().map(within));
        self.before_ns = before_ns.saturating_add(to_ns.saturating_sub(from_ns));
    }

    /// All of it, or why there is nothing to take.
    pub fn finish(mut self) -> Result<Taken, String> {
        self.close(None);
        let n_all = self.n_all;
        if n_all == 0 && self.n_unknown > 0 {
            return Err(format!("it does not tell what ended its {} sleeps", self.n_unknown));
        }
        let length_ns = self.at_ns.last().copied().unwrap_or(0);
        if length_ns == 0 {
            return Err("no sleep in it was ended by an interrupt or by another CPU: nothing arrived".into());
        }
        let cut = if n_all > self.at_ns.len() { format!(" of {n_all}, the first,") } else { String::new() };
        let seconds = length_ns as f64 / 1e9;
        let at_us = self.at_ns.iter().map(|ns| *ns as f64 / 1e3).collect();
        let arrivals = Arrivals { kind: ArrivalKind::Recorded, at_us, ..Arrivals::default() };
        let told = format!(
            "{}{cut} recorded wake-ups as arrivals, {:.0} per second over {seconds:.1} s, {}; left out are {} sleeps that a tick or a timer ended{}. Arrivals at CPUs that were at work are in no recording of sleep, so some are missing; wake-ups among the machine's own tasks are counted too.{}",
            self.at_ns.len(),
            self.at_ns.len() as f64 / seconds,
            if arrivals.is_resampled() { "resampled in blocks" } else { "replayed from the beginning when they end" },
            self.n_own,
            if self.n_unknown > 0 { format!(" and {} of unknown end", self.n_unknown) } else { String::new() },
            if self.n_lost > 0 { format!(" The recorder lost {} records.", self.n_lost) } else { String::new() }
        );
        Ok(Taken { arrivals, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(cpu: u32, exit_ns: u64, ended_by: WakeCause) -> IdlePair {
        IdlePair { cpu, enter_at_ns: exit_ns - 500, duration_ns: 500, ended_by, ..IdlePair::default() }
    }

    #[test]
    fn wake_ups_from_outside_are_arrivals_and_windows_follow_each_other() {
        let mut recorded = Recorded::default();
        recorded.item(&Item::Mark(Mark::WindowOpened { at_ns: 10_000 }));
        let of = |cpu, all: &[(u64, WakeCause)]| Item::Pairs(all.iter().map(|(at, by)| pair(cpu, *at, *by)).collect());
        recorded.item(&of(
            0,
            &[(12_000, WakeCause::Interrupt), (13_000, WakeCause::Tick), (19_000, WakeCause::RemoteWake)],
        ));
        recorded
            .item(&of(1, &[(11_000, WakeCause::PolledWake), (14_000, WakeCause::Timer), (15_000, WakeCause::Unknown)]));
        recorded.item(&Item::Mark(Mark::WindowClosed { at_ns: 20_000, n_lost: 0 }));
        recorded.item(&Item::Mark(Mark::WindowOpened { at_ns: 90_000 }));
        recorded.item(&of(0, &[(93_000, WakeCause::Interrupt)]));
        let taken = recorded.finish().unwrap();
        assert_eq!(taken.arrivals.at_us, [1.0, 2.0, 9.0, 13.0]);
        assert!(taken.told.starts_with("4 recorded wake-ups"), "{}", taken.told);
        assert!(
            taken.told.contains("left out are 2 sleeps") && taken.told.contains("1 of unknown end"),
            "{}",
            taken.told
        );
    }

    #[test]
    fn a_recording_without_an_arrival_says_so() {
        assert!(Recorded::default().finish().unwrap_err().contains("nothing arrived"));
        let mut recorded = Recorded::default();
        recorded.item(&Item::Pairs(vec![pair(0, 5_000, WakeCause::Unknown)]));
        assert_eq!(recorded.finish().unwrap_err(), "it does not tell what ended its 1 sleeps");
    }

    #[test]
    fn too_many_are_cut_and_said() {
        let mut recorded = Recorded::default();
        let many = (1..=MOST_ARRIVALS as u64 + 5).map(|i| pair(0, i * 1000, WakeCause::Interrupt)).collect();
        recorded.item(&Item::Pairs(many));
        let taken = recorded.finish().unwrap();
        assert_eq!(taken.arrivals.at_us.len(), MOST_ARRIVALS);
        assert!(taken.told.contains("200000 of 200005, the first,"), "{}", taken.told);
        assert!(!taken.told.contains("lost"), "{}", taken.told);
    }

    #[test]
    fn of_a_recording_of_any_length_the_earliest_are_held() {
        let mut recorded = Recorded::default();
        let n = MOST_ARRIVALS as u64;
        let of = |cpu: u32, from: u64| {
            Item::Pairs((from..from + n).map(|at| pair(cpu, at * 1000, WakeCause::Interrupt)).collect())
        };
        recorded.item(&Item::Mark(Mark::WindowOpened { at_ns: 0 }));
        // The CPU that stands second in the file was woken first.
        recorded.item(&of(0, n + 1));
        recorded.item(&of(1, 1));
        assert_eq!(recorded.window_ns.len(), MOST_ARRIVALS);
        recorded.item(&Item::Mark(Mark::WindowClosed { at_ns: 3 * n * 1000, n_lost: 3 }));
        recorded.item(&Item::Mark(Mark::WindowOpened { at_ns: 4 * n * 1000 }));
        recorded.item(&of(0, 4 * n));
        assert_eq!((recorded.at_ns.len(), recorded.window_ns.len()), (MOST_ARRIVALS, 0));
        recorded.item(&Item::Mark(Mark::WindowClosed { at_ns: 6 * n * 1000, n_lost: 4 }));
        let taken = recorded.finish().unwrap();
        let ends = (taken.arrivals.at_us.first().copied(), taken.arrivals.at_us.last().copied());
        assert_eq!(ends, (Some(1.0), Some(n as f64)));
        assert!(taken.told.contains("200000 of 600000, the first,"), "{}", taken.told);
        assert!(taken.told.ends_with("The recorder lost 7 records."), "{}", taken.told);
    }
}
