//! A table of clocks, and what the cpufreq core makes of a wish.
//!
//! A wish is first held within the policy's limits. Then: L is the lowest clock at or above it, H the highest at or below, C the
//! closest; where none lies on that side, the last on the other. Two equally close: a table that falls (acpi-cpufreq) gives the higher,
//! one that rises the lower, because that is where the search comes from. Entries marked inefficient are not skipped: no x86 has any.

use std::sync::Arc;

/// On which side of a wish the clock may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// L: lowest at or above.
    AtLeast,
    /// H: highest at or below.
    AtMost,
    /// C.
    Closest,
}

/// Clocks of a policy in kilohertz, in the driver's order, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    // Shared by the copies that a machine's policies have.
    khz: Arc<[u32]>,
    /// Lowest clock that the policy allows.
    pub min_khz: u32,
    /// Highest clock that the policy allows.
    pub max_khz: u32,
}

impl Table {
    /// Of these clocks; none where there is no clock or the limits are crossed.
    pub fn new(khz: Vec<u32>, min_khz: u32, max_khz: u32) -> Option<Table> {
        (!khz.is_empty() && min_khz <= max_khz).then(|| Table { khz: khz.into(), min_khz, max_khz })
    }

    /// The clock that a wish comes to.
    pub fn resolve(&self, wish_khz: u32, relation: Relation) -> u32 {
        let wish = wish_khz.max(self.min_khz).min(self.max_khz);
        let above = self.khz.iter().copied().filter(|f| *f >= wish).min();
        let below = self.khz.iter().copied().filter(|f| *f <= wish).max();
        let found = match (relation, above, below) {
            (Relation::AtLeast, above, below) => above.or(below),
            (Relation::AtMost, above, below) => below.or(above),
            (Relation::Closest, Some(above), Some(below)) => {
                let (up, down) = (above - wish, wish - below);
                Some(if up < down || (up == down && self.falls()) { above } else { below })
            }
            (Relation::Closest, above, below) => above.or(below),
        };
        found.unwrap_or(wish)
    }

    fn falls(&self) -> bool {
        self.khz.first() > self.khz.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Relation::{AtLeast, AtMost, Closest};

    #[test]
    fn wishes_come_to_clocks_on_the_side_asked_for() {
        let falling = vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000];
        let table = Table::new(falling.clone(), 1_200_000, 3_000_000).unwrap();
        let said = |khz| [AtLeast, AtMost, Closest].map(|r| table.resolve(khz, r) / 1000);
        assert_eq!(said(2_694_000), [3000, 2400, 2400]);
        assert_eq!(said(2_100_000), [2400, 1800, 2400]);
        assert_eq!((said(1), said(9_000_000)), ([1200; 3], [3000; 3]));
        let rising = Table::new(falling.into_iter().rev().collect(), 1_200_000, 3_000_000).unwrap();
        assert_eq!(rising.resolve(2_100_000, Closest), 1_800_000);
    }

    #[test]
    fn limits_come_first() {
        let table = Table::new(vec![3_000_000, 1_000_000], 1_500_000, 2_000_000).unwrap();
        assert_eq!([AtLeast, AtMost].map(|r| table.resolve(500_000, r)), [3_000_000, 1_000_000]);
        assert_eq!((Table::new(vec![], 1, 2), Table::new(vec![1], 2, 1)), (None, None));
    }
}
