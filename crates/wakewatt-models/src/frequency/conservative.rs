//! conservative since 3.12: one step up while the load is high, one step down while it is low.
//!
//! It steps a wish of its own, and the table follows: the highest clock at or below on the way up, the lowest at or above on the way
//! down, so several steps may pass before the clock moves. Steps for periods slept through are taken off first, but kept
//! only if the load then asks for a step as well. Mirrors 6.1 to 6.18: 6.1.178 and 6.12.97 gave up returning early at the limits, 6.12.117 takes
//! steps off only where the load is low without the help after a long sleep (`load.rs`).

use super::load::{Elapsed, Loads};
use super::{Relation, Step, Table};
use crate::kernel::{Basis, Release, Row, row_of};
use Basis::{Assumed, Checked, Inferred};

/// One kernel's conservative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Nothing happens at a limit, and the step down is taken before the limit is looked at.
    returns_early: bool,
    /// Steps for periods slept through need a low load.
    needs_low_load: bool,
}

const EARLY: Form = Form { returns_early: true, needs_low_load: false };
const LATER: Form = Form { returns_early: false, needs_low_load: false };
const LATEST: Form = Form { returns_early: false, needs_low_load: true };

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "conservative of 6.1", Assumed, EARLY),
    Row::new((6, 1, 0), "conservative of 6.1", Checked, EARLY),
    Row::new((6, 1, 178), "conservative of 6.1.178", Checked, LATER),
    Row::new((6, 2, 0), "conservative of 6.1", Inferred, EARLY),
    Row::new((6, 6, 0), "conservative of 6.1", Checked, EARLY),
    Row::new((6, 6, 10), "conservative of 6.1", Assumed, EARLY),
    Row::new((6, 7, 0), "conservative of 6.1", Inferred, EARLY),
    Row::new((6, 12, 0), "conservative of 6.1", Checked, EARLY),
    Row::new((6, 12, 97), "conservative of 6.1.178", Inferred, LATER),
    Row::new((6, 12, 117), "conservative of 6.12.117", Checked, LATEST),
    Row::new((6, 13, 0), "conservative of 6.1", Inferred, EARLY),
    Row::new((6, 18, 0), "conservative of 6.1", Checked, EARLY),
    Row::new((6, 18, 3), "conservative of 6.12.117", Assumed, LATEST),
    Row::new((7, 0, 0), "conservative of 6.12.117", Assumed, LATEST),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

/// Its files under sysfs, as far as they decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Period, in microseconds.
    pub sampling_rate_us: u32,
    /// Percent above which it steps up.
    pub up_threshold: u32,
    /// Percent below which it steps down.
    pub down_threshold: u32,
    /// A step, in percent of the policy's highest clock; zero freezes the clock.
    pub freq_step: u32,
    /// Samples without a high load that a step down needs.
    pub sampling_down_factor: u32,
}

/// A step of nothing is this much, in kilohertz.
const SMALLEST_STEP_KHZ: u32 = 5;

/// The conservative governor of one policy.
#[derive(Clone, Debug)]
pub struct Conservative {
    form: Form,
    table: Table,
    tunables: Tunables,
    loads: Loads,
    cur_khz: u32,
    wish_khz: u32,
    n_not_high: u32,
}

impl Conservative {
    /// As started at this clock.
    pub fn new(form: Form, table: Table, tunables: Tunables, n_cpus: usize, cur_khz: u32) -> Conservative {
        Conservative { form, table, tunables, loads: Loads::new(n_cpus), cur_khz, wish_khz: cur_khz, n_not_high: 0 }
    }

    /// The timer of a sample ran out.
    pub fn sample(&mut self, cpus: &[Elapsed]) -> Step {
        self.step(cpus);
        Step { khz: self.cur_khz, next_delay_us: self.tunables.sampling_rate_us }
    }

    fn step(&mut self, cpus: &[Elapsed]) {
        let t = self.tunables;
        let load = self.loads.sample(cpus, t.sampling_rate_us);
        if t.freq_step == 0 {
            return;
        }
        let (min, max) = (self.table.min_khz, self.table.max_khz);
        if self.wish_khz < min || self.wish_khz > max {
            self.wish_khz = self.cur_khz;
        }
        let step = u32::try_from(u64::from(t.freq_step) * u64::from(max) / 100).unwrap_or(u32::MAX);
        let step = if step == 0 { SMALLEST_STEP_KHZ } else { step };
        let down = |wish: u32, by: u32| if wish > min.saturating_add(by) { wish - by } else { min };
        let mut wish = self.wish_khz;
        if let Some(periods) = load.periods {
            if !self.form.needs_low_load || load.unhelped_percent < t.down_threshold {
                wish = down(wish, periods.saturating_mul(step));
            }
        }
        if load.percent > t.up_threshold {
            self.n_not_high = 0;
            if self.form.returns_early && wish == max {
                return;
            }
            self.go(wish.saturating_add(step).min(max), Relation::AtMost);
            return;
        }
        self.n_not_high = self.n_not_high.saturating_add(1);
        if self.n_not_high < t.sampling_down_factor {
            return;
        }
        self.n_not_high = 0;
        if load.percent < t.down_threshold {
            if !self.form.returns_early {
                wish = down(wish, step);
            } else if wish == min {
                return;
            } else {
                wish = if wish > step { wish - step } else { min };
            }
            self.go(wish, Relation::AtLeast);
        }
    }

    fn go(&mut self, wish_khz: u32, relation: Relation) {
        self.wish_khz = wish_khz;
        self.cur_khz = self.table.resolve(wish_khz, relation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: Tunables = Tunables {
        sampling_rate_us: 10_000,
        up_threshold: 80,
        down_threshold: 20,
        freq_step: 5,
        sampling_down_factor: 1,
    };

    fn governor(form: Form, tunables: Tunables, cur_khz: u32) -> Conservative {
        let clocks = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        Conservative::new(form, Table::new(clocks, 1_200_000, 3_000_000).unwrap(), tunables, 1, cur_khz)
    }

    fn clocks(g: &mut Conservative, loads: &[i64]) -> Vec<u32> {
        let of = |load: &i64| g.sample(&[Elapsed { wall_us: 10_000, idle_us: (100 - load) * 100 }]).khz / 1000;
        loads.iter().map(of).collect()
    }

    #[test]
    fn several_steps_pass_before_the_clock_moves() {
        assert_eq!(clocks(&mut governor(EARLY, SHIPPED, 1_200_000), &[100; 4]), [1200, 1500, 1500, 1800]);
        assert_eq!(clocks(&mut governor(EARLY, SHIPPED, 3_000_000), &[10; 4]), [3000, 3000, 3000, 2400]);
        assert_eq!(clocks(&mut governor(EARLY, Tunables { freq_step: 0, ..SHIPPED }, 1_200_000), &[100; 2]), [1200; 2]);
    }

    #[test]
    fn a_constant_demand_is_cycled_around() {
        let tunables = Tunables { up_threshold: 98, down_threshold: 95, ..SHIPPED };
        let mut g = governor(EARLY, tunables, 3_000_000);
        let mut seen = Vec::new();
        for _ in 0..40 {
            let load = (50 * 3_000_000 / i64::from(g.cur_khz)).min(100);
            seen.extend(clocks(&mut g, &[load]));
        }
        let cycle = &seen[seen.len() - 8..];
        let n = |khz| cycle.iter().filter(|f| **f == khz).count();
        assert_eq!((n(1800), n(1500)), (4, 4), "{seen:?}");
    }

    #[test]
    fn steps_for_periods_slept_through_come_first() {
        let mut g = governor(EARLY, SHIPPED, 3_000_000);
        g.sample(&[Elapsed { wall_us: 10_000, idle_us: 9000 }]);
        g = Conservative { wish_khz: 3_000_000, cur_khz: 3_000_000, ..g };
        let said = g.sample(&[Elapsed { wall_us: 60_000, idle_us: 55_000 }]);
        assert_eq!((g.wish_khz, said.khz), (2_100_000, 2_400_000));
    }
}
