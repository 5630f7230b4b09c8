//! Which menu a kernel has: what changed, and in which release.
//!
//! Menu changed within stable series, twice in the same direction and back: "rule B" came and went again with 6.1.141 to 6.1.157
//! and 6.12.31 to 6.12.55. Rows are in order of releases; the last one not newer than a release is that release's.

use crate::kernel::{Basis, Release, Row, row_of};

/// What the typical interval does with the sleeps it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typical {
    /// Longest first is dropped; nothing is typical if even the shortest reaches the timer's estimate.
    DownwardCapped,
    /// Longest first is dropped; nothing is typical if all are zero.
    Downward,
    /// Whichever end lies further out is dropped.
    TwoSided,
}

/// How the states are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Too long a residency is looked at first.
    ResidencyFirst,
    /// Too long an exit is looked at first, and polling gives way wherever the exit fits into the guess.
    LatencyFirst,
    /// The same, but only to states of less than 15 us residency.
    LatencyFirstShort,
}

/// One kernel's menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whole microseconds, as up to 5.4.
    pub in_us: bool,
    /// Tasks in iowait count.
    pub iowait: bool,
    /// Timers are looked at only if the typical interval is not short.
    pub late_query: bool,
    /// Timers are always looked at once the tick is stopped.
    pub query_when_stopped: bool,
    /// A stopped tick makes the guess the timer's only where that is more than two ticks away.
    pub stopped_needs_two_ticks: bool,
    /// A guess lowers the latency limit.
    pub lowers_limit: bool,
    /// Rule B: where nothing is typical, the longest of at least four.
    pub longest_of_four: bool,
    /// A refused entry is remembered as a very long sleep.
    pub remembers_refusal: bool,
    /// See [`Typical`].
    pub typical: Typical,
    /// See [`Walk`].
    pub walk: Walk,
}

const V5_14: Form = Form {
    in_us: false,
    iowait: true,
    late_query: false,
    query_when_stopped: false,
    stopped_needs_two_ticks: false,
    lowers_limit: true,
    longest_of_four: false,
    remembers_refusal: false,
    typical: Typical::DownwardCapped,
    walk: Walk::ResidencyFirst,
};
const V5_3: Form = Form { in_us: true, ..V5_14 };
const V6_1_141: Form = Form { longest_of_four: true, ..V5_14 };
const V6_1_157: Form = Form { remembers_refusal: true, ..V6_1_141 };
const V6_1_158: Form = Form { remembers_refusal: true, ..V5_14 };
const V6_6: Form = Form { late_query: true, typical: Typical::Downward, ..V5_14 };
const V6_12_31: Form = Form { longest_of_four: true, ..V6_6 };
const V6_12_43: Form = Form { remembers_refusal: true, ..V6_12_31 };
const V6_12_44: Form = Form { iowait: false, lowers_limit: false, ..V6_12_43 };
const V6_12_56: Form = Form { longest_of_four: false, ..V6_12_44 };
const V6_12_58: Form = Form { walk: Walk::LatencyFirst, ..V6_12_56 };
const V6_12_64: Form = Form { walk: Walk::LatencyFirstShort, ..V6_12_56 };
const V6_12_75: Form = Form { query_when_stopped: true, ..V6_12_64 };
const V6_13: Form = Form { iowait: false, ..V6_6 };
const V6_15: Form = Form { typical: Typical::TwoSided, longest_of_four: true, ..V6_13 };
const V6_17: Form = Form { lowers_limit: false, remembers_refusal: true, ..V6_15 };
const V6_18: Form = Form { longest_of_four: false, walk: Walk::LatencyFirst, ..V6_17 };
const V6_18_LATER: Form = Form { walk: Walk::LatencyFirstShort, ..V6_18 };
const V6_18_LATEST: Form = Form { query_when_stopped: true, ..V6_18_LATER };
const V7: Form = Form { stopped_needs_two_ticks: true, ..V6_18_LATEST };

use Basis::{Assumed, Checked, Inferred};

/// By release, oldest first.
const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "menu of 5.3", Assumed, V5_3),
    Row::new((5, 3, 0), "menu of 5.3", Checked, V5_3),
    Row::new((5, 4, 0), "menu of 5.3", Assumed, V5_3),
    Row::new((5, 5, 0), "menu of 5.14", Assumed, V5_14),
    Row::new((5, 14, 0), "menu of 5.14", Checked, V5_14),
    Row::new((5, 15, 0), "menu of 5.14", Inferred, V5_14),
    Row::new((6, 1, 0), "menu of 5.14", Checked, V5_14),
    Row::new((6, 1, 141), "menu of 6.1.141", Checked, V6_1_141),
    Row::new((6, 1, 157), "menu of 6.1.157", Inferred, V6_1_157),
    Row::new((6, 1, 158), "menu of 6.1.158", Checked, V6_1_158),
    Row::new((6, 2, 0), "menu of 5.14", Inferred, V5_14),
    Row::new((6, 4, 0), "menu of 5.14", Checked, V5_14),
    Row::new((6, 5, 0), "menu of 5.14", Assumed, V5_14),
    Row::new((6, 6, 0), "menu of 6.6", Checked, V6_6),
    Row::new((6, 6, 10), "menu of 6.6", Assumed, V6_6),
    Row::new((6, 7, 0), "menu of 6.6", Inferred, V6_6),
    Row::new((6, 12, 0), "menu of 6.6", Checked, V6_6),
    Row::new((6, 12, 31), "menu of 6.12.31", Inferred, V6_12_31),
    Row::new((6, 12, 43), "menu of 6.12.43", Inferred, V6_12_43),
    Row::new((6, 12, 44), "menu of 6.12.44", Inferred, V6_12_44),
    Row::new((6, 12, 56), "menu of 6.12.56", Inferred, V6_12_56),
    Row::new((6, 12, 58), "menu of 6.12.58", Inferred, V6_12_58),
    Row::new((6, 12, 64), "menu of 6.12.64", Inferred, V6_12_64),
    Row::new((6, 12, 75), "menu of 6.12.75", Checked, V6_12_75),
    Row::new((6, 13, 0), "menu of 6.13", Checked, V6_13),
    Row::new((6, 15, 0), "menu of 6.15", Inferred, V6_15),
    Row::new((6, 17, 0), "menu of 6.17", Inferred, V6_17),
    Row::new((6, 18, 0), "menu of 6.18.2", Checked, V6_18),
    // That these came is known, not with which release.
    Row::new((6, 18, 3), "menu of 6.18.2 with the later polling rule", Assumed, V6_18_LATER),
    Row::new((6, 18, 15), "menu of 6.18.2 with the later polling and stopped-tick rules", Assumed, V6_18_LATEST),
    Row::new((6, 19, 0), "menu of 6.18.2 with the later polling rule", Assumed, V6_18_LATER),
    Row::new((7, 0, 0), "menu of 7.2", Assumed, V7),
    Row::new((7, 2, 0), "menu of 7.2", Checked, V7),
    Row::new((7, 3, 0), "menu of 7.2", Assumed, V7),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(major: u16, minor: u16, patch: u16) -> Form {
        form_in(Release { major, minor, patch }).form
    }

    #[test]
    fn stable_series_turn_where_their_changelogs_say() {
        assert_eq!(of(6, 1, 140), V5_14);
        assert_eq!([of(6, 1, 141), of(6, 1, 156)], [V6_1_141; 2]);
        assert_eq!((of(6, 1, 157), of(6, 1, 158), of(6, 1, 999)), (V6_1_157, V6_1_158, V6_1_158));
        let rule_b: Vec<u16> = (0..130).filter(|p| of(6, 12, *p).longest_of_four).collect();
        assert_eq!((rule_b.first(), rule_b.last(), rule_b.len()), (Some(&31), Some(&55), 25));
        let refusal: Vec<u16> = (0..130).filter(|p| of(6, 12, *p).remembers_refusal).collect();
        assert_eq!(refusal.first(), Some(&43));
        assert!(of(6, 12, 43).iowait && !of(6, 12, 44).iowait && !of(6, 12, 44).lowers_limit);
        assert_eq!(of(6, 12, 63).walk, Walk::LatencyFirst);
        assert_eq!(of(6, 12, 64).walk, Walk::LatencyFirstShort);
        assert!(!of(6, 12, 74).query_when_stopped && of(6, 12, 117).query_when_stopped);
    }

    #[test]
    fn releases_that_nobody_checked_are_said_to_be_assumed() {
        for (release, basis) in
            [((5, 3, 1), Checked), ((4, 18, 0), Assumed), ((6, 6, 9), Checked), ((6, 6, 99), Assumed)]
        {
            let (major, minor, patch) = release;
            assert_eq!(form_in(Release { major, minor, patch }).basis, basis, "{release:?}");
        }
    }
}
