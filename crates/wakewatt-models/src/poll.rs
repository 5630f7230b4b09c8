//! How long the polling state spins before it gives up.
//!
//! Since 5.4: as long as the first enabled state of at least 10 us residency, but at most a sixteenth of a tick. The kernel keeps that number until a
//! file of one of the CPU's states is written, so a state disabled since counts only then. 5.3 took the first enabled
//! state whatever its residency, or a whole tick. The clock is read every 201 turns, so a spin is a little longer than its limit.

use crate::kernel::Release;
use crate::table::{Disabled, Table};
use crate::tick::Tick;

/// Shorter residencies are no reason to stop spinning.
const WORTH_NS: i64 = 10_000;

/// The limit in nanoseconds.
pub fn limit_ns(release: Release, table: &Table, disabled: Disabled, tick: Tick) -> i64 {
    let residency = |i: usize| table.at(i).target_residency_ns;
    let mut enabled = (1..table.n()).filter(|i| !disabled.has(*i));
    if (release.major, release.minor) < (5, 4) {
        return enabled.next().map_or(tick.ns(), residency);
    }
    let most = tick.ns() / 16;
    enabled.map(residency).find(|ns| *ns >= WORTH_NS).map_or(most, |ns| ns.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::State;

    #[test]
    fn it_spins_as_long_as_the_first_state_that_is_worth_it() {
        let rows = [(1, 2), (41, 82), (100, 200)].map(|(l, t)| State::sleeping_us(l, t));
        let table = Table::new(&[&[State::POLL], &rows[..]].concat()).unwrap();
        let tick = Tick::of_hz(250).unwrap();
        let said = |minor, off: &[usize]| {
            let release = Release { major: 5, minor, patch: 0 };
            limit_ns(release, &table, Disabled::of(off.iter().copied()), tick) / 1000
        };
        assert_eq!([said(14, &[]), said(14, &[2]), said(14, &[2, 3])], [82, 200, 250]);
        assert_eq!((said(3, &[]), said(3, &[1, 2, 3])), (2, 4000));
    }
}
