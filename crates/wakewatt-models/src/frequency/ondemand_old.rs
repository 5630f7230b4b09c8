//! ondemand of 2.6.9 to 3.11: to the top above the threshold, and below it down to the lowest clock that would keep the load under it.
//!
//! Unlike its successor it steps from the clock it has, so its threshold matters at every load. Below the threshold lies a gap of
//! `down_differential` percent in which nothing happens. 2.6.18 counts load in ticks, with a threshold of 80 and a gap of 10;
//! with exact accounting (2.6.28) it is 95 and 3, and the load is scaled by the measured clock before it comes here.

use super::{Relation, Table};

/// Its files under sysfs, as far as they decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Percent above which the top is asked for.
    pub up_threshold: u32,
    /// Percent below that from which it steps down.
    pub down_differential: u32,
}

impl Tunables {
    /// Of 2.6.18.
    pub const TICKS: Tunables = Tunables { up_threshold: 80, down_differential: 10 };
    /// With exact accounting.
    pub const EXACT: Tunables = Tunables { up_threshold: 95, down_differential: 3 };
}

/// Load of a CPU counted in ticks, in percent.
pub fn load_percent(ticks: u32, idle_ticks: u32) -> u32 {
    let busy = u64::from(ticks.saturating_sub(idle_ticks));
    (100 * busy).checked_div(u64::from(ticks)).and_then(|l| u32::try_from(l).ok()).unwrap_or(0)
}

/// The clock after a sample.
pub fn next_khz(table: &Table, tunables: Tunables, cur_khz: u32, load_percent: u32) -> u32 {
    if load_percent > tunables.up_threshold {
        return if cur_khz == table.max_khz { cur_khz } else { table.resolve(table.max_khz, Relation::AtMost) };
    }
    let bound = tunables.up_threshold.saturating_sub(tunables.down_differential);
    if cur_khz == table.min_khz || load_percent >= bound {
        return cur_khz;
    }
    let wish = u64::from(cur_khz) * u64::from(load_percent) / u64::from(bound);
    table.resolve(u32::try_from(wish).unwrap_or(u32::MAX), Relation::AtLeast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_matters_at_every_load() {
        let clocks = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        let table = Table::new(clocks, 1_200_000, 3_000_000).unwrap();
        let said = |up_threshold| {
            let tunables = Tunables { up_threshold, ..Tunables::TICKS };
            [60, 50, 30].map(|load| next_khz(&table, tunables, 3_000_000, load) / 1000)
        };
        assert_eq!((said(80), said(98)), ([3000, 2400, 1500], [2400, 1800, 1200]));
        assert_eq!(next_khz(&table, Tunables::TICKS, 1_500_000, 81), 3_000_000);
        assert_eq!(next_khz(&table, Tunables::TICKS, 1_200_000, 3), 1_200_000);
        assert_eq!((load_percent(20, 5), load_percent(0, 0), load_percent(1, 9)), (75, 0, 0));
    }
}
