//! cpuspeed: the daemon of Red Hat Enterprise Linux 4 and 5 (versions 1.2 to 1.5), which set userspace's clock.
//!
//! Every interval, two seconds as shipped, it looks at how much of it each core was idle: almost never, and the core gets its
//! highest clock at once; seldom, one step up; more, one step down. From its manual page, not from its code.

/// Idle below this, in percent: the highest clock.
const BUSY: u32 = 10;
/// Idle below this: one step up; above: one down.
const ENOUGH: u32 = 25;

/// Time between two looks as shipped, in microseconds.
pub const INTERVAL_US: u32 = 2_000_000;

/// The clock after a look; the present one where nothing asks for another. `khz` in any order.
pub fn next_khz(khz: &[u32], cur_khz: u32, idle_percent: u32) -> u32 {
    let found = if idle_percent < BUSY {
        khz.iter().max()
    } else if idle_percent < ENOUGH {
        khz.iter().filter(|f| **f > cur_khz).min()
    } else if idle_percent > ENOUGH {
        khz.iter().filter(|f| **f < cur_khz).max()
    } else {
        None
    };
    found.copied().unwrap_or(cur_khz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_steps_except_to_the_top() {
        let khz = [3000, 2400, 1800, 1500, 1200];
        let said = |cur, idle| next_khz(&khz, cur, idle);
        assert_eq!([said(1200, 9), said(1200, 10), said(1800, 24)], [3000, 1500, 2400]);
        assert_eq!([said(1800, 25), said(1800, 26), said(1200, 99), said(3000, 15)], [1800, 1500, 1200, 3000]);
    }
}
