//! conservative of 2.6: steps, decided by idle ticks.
//!
//! It compares ticks instead of percent, of 20 ticks a sample as shipped, so thresholds are coarser than they look: with 98 and 95 it
//! steps up only where no tick was idle, and down where two of 20 were, that is at a load of 90. The table follows the wish with the
//! highest clock at or below, in both directions. `sampling_down_factor` is left out: one, as shipped.

use super::{Relation, Table};

/// Its files under sysfs, as far as they decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Percent above which it steps up.
    pub up_threshold: u32,
    /// Percent below which it steps down.
    pub down_threshold: u32,
    /// A step, in percent of the highest clock.
    pub freq_step: u32,
}

/// The old conservative governor of one policy.
#[derive(Clone, Debug)]
pub struct ConservativeOld {
    table: Table,
    tunables: Tunables,
    cur_khz: u32,
    wish_khz: u32,
}

impl ConservativeOld {
    /// As started at this clock.
    pub fn new(table: Table, tunables: Tunables, cur_khz: u32) -> ConservativeOld {
        ConservativeOld { table, tunables, cur_khz, wish_khz: cur_khz }
    }

    /// A sample of so many ticks, of which the busiest CPU had so many idle; the clock from now.
    pub fn sample(&mut self, ticks: u32, idle_ticks: u32) -> u32 {
        let t = self.tunables;
        let idle = u64::from(idle_ticks) * 100;
        let share = |threshold: u32| u64::from(100u32.saturating_sub(threshold)) * u64::from(ticks);
        let step = u32::try_from(u64::from(self.table.max_khz) * u64::from(t.freq_step) / 100).unwrap_or(u32::MAX);
        if idle < share(t.up_threshold) {
            self.wish_khz = self.wish_khz.saturating_add(step).min(self.table.max_khz);
        } else if idle > share(t.down_threshold) {
            self.wish_khz = self.wish_khz.saturating_sub(step).max(self.table.min_khz);
        } else {
            return self.cur_khz;
        }
        self.cur_khz = self.table.resolve(self.wish_khz, Relation::AtMost);
        self.cur_khz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_counted_in_ticks() {
        let clocks = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        let table = Table::new(clocks, 1_200_000, 3_000_000).unwrap();
        let tunables = Tunables { up_threshold: 98, down_threshold: 95, freq_step: 20 };
        let from = |idle| ConservativeOld::new(table.clone(), tunables, 1_800_000).sample(20, idle) / 1000;
        assert_eq!([from(0), from(1), from(2)], [2400, 1800, 1200]);
    }
}
