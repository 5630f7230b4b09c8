//! schedutil: the clock at which the use of a CPU would fill four fifths of it.
//!
//! Use is PELT's (`pelt.rs`) with what waits for I/O raised. The reference is the hardware's highest clock where use is measured
//! independently of the clock (x86 with APERF and MPERF), else the present one, so that it climbs by a quarter at a time. The
//! formula changed twice (5.3; 5.14 to 6.6; 6.12 on). Between 6.6 and 6.12 nobody looked; the newer is assumed from 6.8. Read, not held against compiled code.

use super::{Relation, Table};
use crate::kernel::{Basis, Release, Row, row_of};
use std::sync::Arc;

/// The whole of a CPU.
const WHOLE: u32 = 1024;

/// One kernel's formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A quarter more of the reference, times use.
    MoreReference,
    /// The reference, times a quarter more use.
    MoreUse,
    /// The same, with use held to a whole CPU and a higher reference where it is the present clock.
    HeldUse,
}

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "schedutil of 5.3", Basis::Assumed, Form::MoreReference),
    Row::new((5, 3, 0), "schedutil of 5.3", Basis::Inferred, Form::MoreReference),
    Row::new((5, 4, 0), "schedutil of 5.3", Basis::Assumed, Form::MoreReference),
    Row::new((5, 14, 0), "schedutil of 5.14", Basis::Inferred, Form::MoreUse),
    Row::new((6, 7, 0), "schedutil of 5.14", Basis::Assumed, Form::MoreUse),
    Row::new((6, 8, 0), "schedutil of 6.12", Basis::Assumed, Form::HeldUse),
    Row::new((6, 12, 0), "schedutil of 6.12", Basis::Inferred, Form::HeldUse),
    Row::new((6, 19, 0), "schedutil of 6.12", Basis::Assumed, Form::HeldUse),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

/// What use is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Of the architecture or the hardware's highest, in kilohertz: use does not depend on the clock.
    Invariant(u32),
    /// Use depends on the clock.
    Present,
}

/// The clock that a use asks for before the table is asked, in kilohertz. `least_use` is a floor that 6.12 has.
pub fn raw_khz(form: Form, reference: Reference, cur_khz: u32, utilisation: u32, least_use: u32) -> u32 {
    let quarter_more = |n: u32| u64::from(n) + u64::from(n >> 2);
    let khz = match reference {
        Reference::Invariant(khz) => khz,
        Reference::Present => cur_khz,
    };
    let product = match form {
        Form::MoreReference => quarter_more(khz) * u64::from(utilisation),
        Form::MoreUse => u64::from(khz) * quarter_more(utilisation),
        Form::HeldUse => {
            let used = quarter_more(utilisation).min(u64::from(WHOLE)).max(u64::from(least_use));
            let khz = if reference == Reference::Present { quarter_more(khz) } else { u64::from(khz) };
            khz * used
        }
    };
    u32::try_from(product / u64::from(WHOLE)).unwrap_or(u32::MAX)
}

/// What waits for I/O counts as more use, for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IowaitBoost {
    boost: u32,
    at_ns: u64,
}

impl IowaitBoost {
    /// First boost.
    const START: u32 = 128;

    /// At an update: did a task wake from waiting for I/O since the last one? The boost that counts now.
    pub fn update(&mut self, now_ns: u64, tick_ns: u64, is_iowait_wake: bool) -> u32 {
        let is_old = now_ns.saturating_sub(self.at_ns) > tick_ns;
        self.boost = match (is_iowait_wake, is_old) {
            (true, true) => IowaitBoost::START,
            (true, false) if self.boost == 0 => IowaitBoost::START,
            (true, false) => (self.boost * 2).min(WHOLE),
            (false, true) => 0,
            (false, false) => self.boost / 2,
        };
        // Half of the first is none.
        if self.boost < IowaitBoost::START {
            self.boost = 0;
        }
        self.at_ns = now_ns;
        self.boost
    }
}

/// What a policy does not change, shared by clones.
#[derive(Debug)]
struct Rules {
    form: Form,
    table: Table,
    reference: Reference,
    rate_limit_ns: u64,
    is_shared: bool,
}

/// The schedutil governor of one policy. Clones share all but its state.
#[derive(Clone, Debug)]
pub struct Schedutil {
    rules: Arc<Rules>,
    /// The largest time: never.
    updated_at_ns: u64,
    last_raw_khz: u32,
    cur_khz: u32,
}

impl Schedutil {
    /// As started at this clock. A shared policy has more than one CPU.
    pub fn new(
        form: Form,
        table: Table,
        reference: Reference,
        rate_limit_us: u32,
        is_shared: bool,
        cur_khz: u32,
    ) -> Schedutil {
        let rate_limit_ns = u64::from(rate_limit_us) * 1000;
        let rules = Arc::new(Rules { form, table, reference, rate_limit_ns, is_shared });
        Schedutil { rules, updated_at_ns: u64::MAX, last_raw_khz: 0, cur_khz }
    }

    /// At a hook of the scheduler: the busiest CPU's use (with its boost), and whether the CPU was idle since the last update (which
    /// the kernel tells by passes of the idle loop that tried to stop the tick: shorter naps are none). The clock from now.
    pub fn update(&mut self, now_ns: u64, utilisation: u32, was_idle: bool) -> u32 {
        let rules = &self.rules;
        if self.updated_at_ns != u64::MAX && now_ns.saturating_sub(self.updated_at_ns) < rules.rate_limit_ns {
            return self.cur_khz;
        }
        self.updated_at_ns = now_ns;
        let raw = raw_khz(rules.form, rules.reference, self.cur_khz, utilisation.min(WHOLE), 0);
        if raw == self.last_raw_khz {
            return self.cur_khz;
        }
        let next = rules.table.resolve(raw, Relation::AtLeast);
        // A CPU that was never idle is only thought to need less.
        if !rules.is_shared && !was_idle && next < self.cur_khz {
            return self.cur_khz;
        }
        self.last_raw_khz = raw;
        self.cur_khz = next;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(vec![3_000_000, 2_400_000, 1_800_000, 1_500_000, 1_200_000], 1_200_000, 3_000_000).unwrap()
    }

    #[test]
    fn use_asks_for_a_quarter_more() {
        let raw = |used| raw_khz(Form::MoreUse, Reference::Invariant(3_000_000), 0, used, 0);
        assert_eq!([raw(300), raw(500), raw(820)], [1_098_632, 1_831_054, 3_002_929]);
        let clocks = [300, 500, 820].map(|used| table().resolve(raw(used), Relation::AtLeast));
        assert_eq!(clocks, [1_200_000, 2_400_000, 3_000_000]);
    }

    #[test]
    fn without_invariance_it_climbs_a_step_at_a_time() {
        let next = |form, used| {
            let raw = raw_khz(form, Reference::Present, 1_200_000, used, 0);
            (raw, table().resolve(raw, Relation::AtLeast))
        };
        assert_eq!((next(Form::MoreUse, 819).1, next(Form::MoreUse, 820).1), (1_200_000, 1_500_000));
        assert_eq!(next(Form::HeldUse, 700), (1_281_738, 1_500_000));
        assert_eq!(next(Form::MoreReference, 820).1, 1_500_000);
    }

    #[test]
    fn a_busy_cpu_keeps_its_clock_and_rates_are_held() {
        let mut governor =
            Schedutil::new(Form::MoreUse, table(), Reference::Invariant(3_000_000), 1000, false, 1_200_000);
        assert_eq!(governor.update(0, 820, false), 3_000_000);
        assert_eq!(governor.update(999_999, 0, true), 3_000_000);
        assert_eq!(governor.update(1_000_000, 300, false), 3_000_000);
        assert_eq!(governor.update(2_000_000, 300, true), 1_200_000);
    }

    #[test]
    fn waiting_for_io_boosts_for_a_while() {
        let mut boost = IowaitBoost::default();
        let mut said = |now, wake| boost.update(now, 4, wake);
        assert_eq!(
            [said(10, true), said(12, true), said(14, true), said(16, true), said(18, true)],
            [128, 256, 512, 1024, 1024]
        );
        assert_eq!([said(20, false), said(22, false), said(24, false), said(26, false)], [512, 256, 128, 0]);
        assert_eq!([said(28, true), said(40, false)], [128, 0]);
    }
}
