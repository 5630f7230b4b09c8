//! ondemand since 3.12: above the threshold to the top, else a clock in proportion to the load.
//!
//! Mirrors 6.1 to 6.18, which decide alike; the same is assumed from 3.12 on. The proportion is of the hardware's range, not the policy's, and the closest clock is
//! taken, so near the top the threshold changes nothing. `sampling_down_factor` keeps the top for so many periods;
//! `powersave_bias` takes that many thousandths off each wish, and where that lies between two clocks, runs each for its share of a period.

use super::load::{Elapsed, Loads};
use super::{Relation, Step, Table};

/// Its files under sysfs, as far as they decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Period, in microseconds.
    pub sampling_rate_us: u32,
    /// Percent above which the top is asked for.
    pub up_threshold: u32,
    /// Periods for which the top is kept.
    pub sampling_down_factor: u32,
    /// Thousandths taken off each wish.
    pub powersave_bias: u32,
}

/// The ondemand governor of one policy.
#[derive(Clone, Debug)]
pub struct Ondemand {
    table: Table,
    /// Lowest and highest clock of the hardware, in kilohertz.
    hardware_khz: (u32, u32),
    tunables: Tunables,
    loads: Loads,
    cur_khz: u32,
    multiplier: u32,
    /// The lower clock of a pair, and for how long, in microseconds: the second part of a period.
    second_part: Option<(u32, u32)>,
    /// Time of samples that were not looked at.
    passed: Vec<Elapsed>,
}

/// A wish, made less by the bias.
struct Biased {
    khz: u32,
    /// Of the first clock, in microseconds, then the second clock, its time.
    split: Option<(u32, u32, u32)>,
}

impl Ondemand {
    /// As started at this clock.
    pub fn new(table: Table, hardware_khz: (u32, u32), tunables: Tunables, n_cpus: usize, cur_khz: u32) -> Ondemand {
        Ondemand {
            table,
            hardware_khz,
            tunables,
            loads: Loads::new(n_cpus),
            cur_khz,
            multiplier: 1,
            second_part: None,
            passed: vec![Elapsed::default(); n_cpus],
        }
    }

    /// The timer of a sample ran out.
    pub fn sample(&mut self, cpus: &[Elapsed]) -> Step {
        for (passed, cpu) in self.passed.iter_mut().zip(cpus) {
            passed.wall_us = passed.wall_us.saturating_add(cpu.wall_us);
            passed.idle_us = passed.idle_us.saturating_add(cpu.idle_us);
        }
        if let Some((khz, time_us)) = self.second_part.take() {
            self.cur_khz = khz;
            return Step { khz, next_delay_us: time_us };
        }
        let rate_us = self.tunables.sampling_rate_us;
        let load = self.loads.sample(&self.passed, rate_us.saturating_mul(self.multiplier)).percent;
        self.passed.fill(Elapsed::default());
        let mut split = None;
        if load > self.tunables.up_threshold {
            if self.cur_khz < self.table.max_khz {
                self.multiplier = self.tunables.sampling_down_factor;
            }
            if self.tunables.powersave_bias > 0 {
                split = self.go(self.table.max_khz, Relation::AtMost);
            } else if self.cur_khz != self.table.max_khz {
                self.cur_khz = self.table.resolve(self.table.max_khz, Relation::AtMost);
            }
        } else {
            let (low, high) = self.hardware_khz;
            let share = u64::from(load) * u64::from(high.saturating_sub(low)) / 100;
            let wish = low.saturating_add(u32::try_from(share).unwrap_or(u32::MAX));
            self.multiplier = 1;
            // With a bias the kernel looks upwards; found in recorded decisions.
            let is_biased = self.tunables.powersave_bias > 0;
            split = self.go(wish, if is_biased { Relation::AtLeast } else { Relation::Closest });
        }
        let next_delay_us = match split {
            Some((first_us, khz, second_us)) => {
                self.second_part = Some((khz, second_us));
                first_us
            }
            None => rate_us.saturating_mul(self.multiplier),
        };
        Step { khz: self.cur_khz, next_delay_us }
    }

    /// Sets the clock of a wish; where the bias splits the period, its first part and what comes second.
    fn go(&mut self, wish_khz: u32, relation: Relation) -> Option<(u32, u32, u32)> {
        if self.tunables.powersave_bias == 0 {
            self.cur_khz = self.table.resolve(wish_khz, relation);
            return None;
        }
        let biased = self.biased(wish_khz, relation);
        self.cur_khz = self.table.resolve(biased.khz, Relation::Closest);
        biased.split
    }

    fn biased(&self, wish_khz: u32, relation: Relation) -> Biased {
        let wish = self.table.resolve(wish_khz, relation);
        let less = u64::from(wish) * u64::from(self.tunables.powersave_bias) / 1000;
        let average = wish.saturating_sub(u32::try_from(less).unwrap_or(u32::MAX));
        let low = self.table.resolve(average, Relation::AtMost);
        let high = self.table.resolve(average, Relation::AtLeast);
        if low == high {
            return Biased { khz: low, split: None };
        }
        // In 32 bits, as the kernel has it: kHz times microseconds wrap from 430 MHz at a rate of 10 ms on.
        let (rate_us, apart) = (self.tunables.sampling_rate_us, high.wrapping_sub(low));
        let product = average.wrapping_sub(low).wrapping_mul(rate_us);
        let first_us = product.wrapping_add(apart / 2) / apart;
        let second_us = rate_us.wrapping_sub(first_us);
        Biased { khz: high, split: Some((first_us, low, second_us)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: Tunables =
        Tunables { sampling_rate_us: 10_000, up_threshold: 95, sampling_down_factor: 1, powersave_bias: 0 };

    fn governor(tunables: Tunables, cur_khz: u32) -> Ondemand {
        let clocks = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        let table = Table::new(clocks, 1_200_000, 3_000_000).unwrap();
        Ondemand::new(table, (1_200_000, 3_000_000), tunables, 1, cur_khz)
    }

    fn at(wall_us: u32, idle_us: i64) -> [Elapsed; 1] {
        [Elapsed { wall_us, idle_us }]
    }

    #[test]
    fn below_the_threshold_the_clock_is_in_proportion() {
        let of = |load: i64| governor(SHIPPED, 1_500_000).sample(&at(10_000, (100 - load) * 100)).khz / 1000;
        assert_eq!([100, 83, 84, 50, 10, 5].map(of), [3000, 2400, 3000, 2400, 1500, 1200]);
    }

    #[test]
    fn a_wake_up_from_a_long_sleep_is_helped_once() {
        let mut g = governor(SHIPPED, 1_200_000);
        let said = [(10_000, 2000), (50_000, 45_000), (10_000, 9000)].map(|(wall, idle)| g.sample(&at(wall, idle)).khz);
        assert_eq!(said, [2_400_000, 2_400_000, 1_500_000]);
    }

    #[test]
    fn the_top_is_kept_longer_with_a_factor() {
        let mut g = governor(Tunables { sampling_down_factor: 10, ..SHIPPED }, 1_200_000);
        assert_eq!(g.sample(&at(10_000, 0)), Step { khz: 3_000_000, next_delay_us: 100_000 });
    }

    #[test]
    fn a_wide_bias_wraps_as_in_the_kernel() {
        let mut g = governor(Tunables { powersave_bias: 50, ..SHIPPED }, 1_200_000);
        // 2.85 GHz of 2.4 and 3.0: (450,000 * 10,000 mod 2^32 + 300,000) / 600,000.
        assert_eq!(g.sample(&at(10_000, 0)), Step { khz: 3_000_000, next_delay_us: 342 });
    }

    #[test]
    fn a_bias_runs_two_clocks_in_a_period() {
        let mut g = governor(Tunables { powersave_bias: 100, ..SHIPPED }, 1_200_000);
        assert_eq!(g.sample(&at(10_000, 5000)), Step { khz: 2_400_000, next_delay_us: 6000 });
        assert_eq!(g.sample(&at(6000, 3000)), Step { khz: 1_800_000, next_delay_us: 4000 });
        assert_eq!(g.sample(&at(4000, 2000)).khz, 2_400_000);
    }
}
