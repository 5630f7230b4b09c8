//! Menu on a guest with two states, with and without the limit to what polling gives way to (October 2025).
//!
//! The menu of 6.12.58 and 6.18 takes the first state that sleeps instead of polling wherever its *exit* fits into the guess; from 6.12.64 on only
//! if that state also pays within 15 us. Where polling and one deep state is all there is, the first rule sends the CPU
//! to sleep nearly always, and nearly always too long.

use super::cpu::Cpu;
use super::{Sums, Truth, exponential_ns};
use crate::idle::Kind;
use crate::table::State;
use wakewatt_core::stats::random::Random;

const SEED: u64 = 20_251_001;
const N: u32 = 60_000;
const HZ: u32 = 100;
const EXIT_US: i64 = 10;
const RESIDENCY_US: i64 = 100;
const RUN_NS: i64 = 20_000;
/// Published, before: so many sleeps were too short for the deep state. The one figure that is taken over.
const TOO_SHORT_RATIO: f64 = 0.8956;
/// The standard normal below which that share lies.
const TOO_SHORT_NORMAL: f64 = 1.2569;
/// Before and after the change.
const KERNELS: [&str; 2] = ["6.12.58", "6.12.64"];

/// How sleeps come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sleeps {
    /// Each by itself, exponential.
    Exponential,
    /// Log-normal with this spread, each like the one before by this correlation.
    LogNormal { sigma: f64, alike: f64 },
}

const LIVES: [(&str, Sleeps); 4] = [
    ("exponential, independent", Sleeps::Exponential),
    ("log-normal 0.5, independent", Sleeps::LogNormal { sigma: 0.5, alike: 0.0 }),
    ("log-normal 0.5, correlated 0.9", Sleeps::LogNormal { sigma: 0.5, alike: 0.9 }),
    ("log-normal 1.0, correlated 0.9", Sleeps::LogNormal { sigma: 1.0, alike: 0.9 }),
];

/// A life under a kernel's menu.
#[allow(clippy::cast_possible_truncation)] // Sleeps of microseconds, in nanoseconds.
fn lived(kernel: &str, sleeps: Sleeps) -> Sums {
    let states = [State::POLL, State::sleeping_us(EXIT_US, RESIDENCY_US)];
    let Some(mut cpu) = Cpu::new(Kind::Menu, kernel, &states, HZ) else { return Sums::default() };
    let mut random = Random::new(SEED);
    // What is counted is the sleep and the exit, which is taken to cost half of its claim.
    let bound_ns = (RESIDENCY_US * 1000 - EXIT_US * 500) as f64;
    let mut place = random.normal();
    for _ in 0..N {
        cpu.run(RUN_NS);
        let ns = match sleeps {
            Sleeps::Exponential => exponential_ns(&mut random, bound_ns / -(1.0 - TOO_SHORT_RATIO).ln()),
            Sleeps::LogNormal { sigma, alike } => {
                place = alike * place + (1.0 - alike * alike).sqrt() * random.normal();
                (bound_ns * (sigma * (place - TOO_SHORT_NORMAL)).exp()) as i64
            }
        };
        let timer_at_ns = cpu.now_ns() + 5_000_000 + exponential_ns(&mut random, 20e6);
        cpu.sleep(timer_at_ns, Some(cpu.now_ns() + ns), 0);
    }
    Sums::of(&cpu.counts())
}

pub(super) fn truth() -> Truth {
    let published = ["published", "89.56", "0.16", "11.49", "5.05"].map(String::from).to_vec();
    let row = |(name, sleeps): &(&str, Sleeps)| {
        let shares = KERNELS.map(|kernel| lived(kernel, *sleeps)).map(|s| [s.percent(s.above), s.percent(s.below)]);
        let cells = shares.concat().into_iter().map(|percent| format!("{percent:.2}"));
        std::iter::once(name.to_string()).chain(cells).collect()
    };
    Truth {
        title: "Two states on pseries: what polling gives way to",
        source: "The kernel's power-management list, October 2025: a pseries guest with a polling and one deep state; share of entries that were too deep (above) \
                 and too shallow (below), before and after menu was kept from preferring a deep state to polling.",
        life: "The figures came without a table and without the workload. Assumed: the deep state claims 10 us exit and 100 us residency; HZ=100; the next timer is 5 ms and more away (5 ms + exponential of 20 ms), \
               so that sleeps end by events; 20 us of work between them; 60,000 sleeps. \
               **One number is taken from the published ones**: so long are sleeps that 89.56 % are too short for the deep state, \
               which is what *above* says of a governor that always takes it. How sleeps are spread and whether a short one follows a short one is not public: four ways are shown. \
               Before is the menu of 6.12.58, after that of 6.12.64.",
        columns: &["sleeps", "above before, %", "below before, %", "above after, %", "below after, %"],
        rows: std::iter::once(published).chain(LIVES.iter().map(row)).collect(),
        nearness: "Before: *above* is lower than the share taken over, because the tick and polling make entries of their own and the rule does not always apply; *below* is almost nothing, as published. \
                   After: *above* falls to between a third and an eighth (published: an eighth) and *below* rises to 2 to 9 % (published 5 %), \
                   always by less than *above* fell. The published pair lies between sleeps that are independent and sleeps that come in runs; only their recording could say more.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_trades_many_sleeps_too_deep_for_few_too_shallow() {
        for (name, sleeps) in LIVES {
            let [before, after] = KERNELS.map(|kernel| lived(kernel, sleeps));
            let (above, below) = (before.percent(before.above), before.percent(before.below));
            let (above_after, below_after) = (after.percent(after.above), after.percent(after.below));
            assert!(above > 70.0 && below < 0.5, "{name}: {above} {below}");
            let fall = above / above_after;
            assert!((3.0..10.0).contains(&fall), "{name}: {fall}");
            assert!((2.0..9.0).contains(&below_after), "{name}: {below_after}");
            assert!(below_after - below < above - above_after, "{name}");
        }
    }
}
