//! How often a governor may act, where nobody set it: from the driver's transition latency.
//!
//! Up to 6.6 a thousand times the latency, at most 10 ms; by 6.12 one and a half times. A driver that knows better says so itself. The sampling
//! governors never sample more often than every second tick. Between 6.6 and 6.12 nobody looked: the older rule is assumed.

use crate::kernel::{Basis, Release, Row, row_of};
use crate::tick::Tick;

/// One kernel's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A thousand times the latency.
    Thousandfold,
    /// One and a half times.
    HalfMore,
}

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "delay of 6.6", Basis::Assumed, Form::Thousandfold),
    Row::new((5, 3, 0), "delay of 6.6", Basis::Inferred, Form::Thousandfold),
    Row::new((6, 7, 0), "delay of 6.6", Basis::Assumed, Form::Thousandfold),
    Row::new((6, 12, 0), "delay of 6.12", Basis::Inferred, Form::HalfMore),
    Row::new((6, 19, 0), "delay of 6.12", Basis::Assumed, Form::HalfMore),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

/// Where the driver gives no latency, in microseconds.
const UNKNOWN_US: u32 = 1000;
/// At most, in the older rule.
const MOST_US: u32 = 10_000;

/// Least time between two changes, in microseconds; also schedutil's `rate_limit_us` as shipped.
pub fn transition_delay_us(form: Form, latency_us: u32) -> u32 {
    match (form, latency_us) {
        (_, 0) => UNKNOWN_US,
        (Form::Thousandfold, us) => us.saturating_mul(1000).min(MOST_US),
        (Form::HalfMore, us) => us.saturating_add(us / 2),
    }
}

/// `sampling_rate` of ondemand and conservative as shipped, in microseconds.
pub fn sampling_rate_us(form: Form, latency_us: u32, tick: Tick) -> u32 {
    transition_delay_us(form, latency_us).max(tick.us().saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_latency_and_the_tick() {
        let said = |major, minor, us| {
            let form = form_in(Release { major, minor, patch: 0 }).form;
            sampling_rate_us(form, us, Tick::of_hz(250).unwrap())
        };
        assert_eq!([said(6, 1, 10), said(6, 12, 10), said(6, 18, 10)], [10_000, 8000, 8000]);
        assert_eq!((said(6, 1, 0), transition_delay_us(Form::HalfMore, 0)), (8000, 1000));
        assert_eq!((said(6, 1, 4), transition_delay_us(Form::Thousandfold, 4)), (8000, 4000));
    }
}
