//! Which teo a kernel has: five generations, and what changed within them.
//!
//! Early hits (to 5.13); intercepts, timers first (5.14 to 6.4, at the end with the CPU's utilisation); timers looked at only
//! where they matter, with a count of ticks (6.5 to 6.13); short sleeps counted apart (6.14 to 6.18). 7.x differs again and is not mirrored.

use crate::kernel::{Basis, Release, Row, row_of};
use Basis::{Assumed, Checked, Inferred};

/// One kernel's teo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Early hits, in microseconds.
    EarlyHits,
    /// Intercepts; timers are looked at first.
    TimersFirst {
        /// A CPU in use gets a shallower state.
        uses_utilisation: bool,
    },
    /// Intercepts; timers are looked at where they matter.
    TimersLate {
        /// Recent intercepts count, and a CPU in use gets a shallower state.
        is_first: bool,
        /// A state that the timers forbid is given up even where the stopped tick would forbid the shallower one.
        always_yields: bool,
    },
    /// Short sleeps are counted apart.
    ShortSleeps {
        /// As above.
        always_yields: bool,
    },
}

const B: Form = Form::TimersFirst { uses_utilisation: false };
const B_USED: Form = Form::TimersFirst { uses_utilisation: true };
const C: Form = Form::TimersLate { is_first: true, always_yields: false };
const D: Form = Form::TimersLate { is_first: false, always_yields: false };
const D_YIELDS: Form = Form::TimersLate { is_first: false, always_yields: true };
const E: Form = Form::ShortSleeps { always_yields: false };
const E_YIELDS: Form = Form::ShortSleeps { always_yields: true };

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "teo of 5.3", Assumed, Form::EarlyHits),
    Row::new((5, 3, 0), "teo of 5.3", Checked, Form::EarlyHits),
    Row::new((5, 4, 0), "teo of 5.3", Assumed, Form::EarlyHits),
    Row::new((5, 14, 0), "teo of 5.14", Checked, B),
    Row::new((5, 15, 0), "teo of 5.14", Inferred, B),
    Row::new((6, 1, 0), "teo of 5.14", Checked, B),
    Row::new((6, 2, 0), "teo of 5.14", Assumed, B),
    Row::new((6, 3, 0), "teo of 6.4", Inferred, B_USED),
    Row::new((6, 4, 0), "teo of 6.4", Checked, B_USED),
    Row::new((6, 5, 0), "teo of 6.6", Assumed, C),
    Row::new((6, 6, 0), "teo of 6.6", Checked, C),
    Row::new((6, 7, 0), "teo of 6.6", Inferred, C),
    Row::new((6, 11, 0), "teo of 6.12", Assumed, D),
    Row::new((6, 12, 0), "teo of 6.12", Checked, D),
    Row::new((6, 12, 64), "teo of 6.12.64", Checked, D_YIELDS),
    Row::new((6, 13, 0), "teo of 6.12", Checked, D),
    Row::new((6, 14, 0), "teo of 6.18.2", Checked, E),
    Row::new((6, 15, 0), "teo of 6.18.2", Inferred, E),
    Row::new((6, 18, 0), "teo of 6.18.2", Checked, E),
    // That this came is known, not with which release.
    Row::new((6, 18, 3), "teo of 6.18.2 with a later change", Assumed, E_YIELDS),
    Row::new((7, 0, 0), "teo of 6.18.2 with a later change; later rules are not mirrored", Assumed, E_YIELDS),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}
