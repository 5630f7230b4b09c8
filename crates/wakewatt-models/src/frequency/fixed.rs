//! performance, powersave and userspace: governors that ask for the same clock until someone changes the limits.
//!
//! They act when they start, when limits change, and userspace when its file is written. Same in every version that is mirrored here.

use super::{Relation, Table};

/// The highest clock the limits allow.
pub fn performance(table: &Table) -> u32 {
    table.resolve(table.max_khz, Relation::AtMost)
}

/// The lowest.
pub fn powersave(table: &Table) -> u32 {
    table.resolve(table.min_khz, Relation::AtLeast)
}

/// What was written, as far as the limits allow.
pub fn userspace(table: &Table, set_khz: u32) -> u32 {
    if table.max_khz < set_khz {
        return performance(table);
    }
    table.resolve(set_khz.max(table.min_khz), Relation::AtLeast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_keeps_within_the_limits() {
        let clocks = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        let table = Table::new(clocks, 1_400_000, 2_900_000).unwrap();
        assert_eq!((performance(&table), powersave(&table)), (2_400_000, 1_500_000));
        assert_eq!([3_000_000, 1_600_000, 1_000_000].map(|f| userspace(&table, f)), [2_400_000, 1_800_000, 1_500_000]);
    }
}
