//! Menu decides as worked out by hand, for each generation where they differ.

use super::typical::Intervals;
use super::*;
use crate::kernel::{Kernel, Release};
use crate::table::Disabled;

fn us(rows: &[(i64, i64)]) -> Table {
    let rows = rows.iter().map(|(l, t)| State::sleeping_us(*l, *t));
    Table::new(&std::iter::once(State::POLL).chain(rows).collect::<Vec<_>>()).unwrap()
}

fn acpi4() -> Table {
    us(&[(1, 2), (41, 82), (100, 200)])
}

const MS: i64 = 1_000_000;
const FREE: Moment = Moment {
    sleep_ns: 10 * MS,
    next_event_ns: 2 * MS,
    is_tick_stopped: false,
    latency_limit_ns: 2_000_000_000_000,
    n_iowait: 0,
    utilisation: 0,
    disabled: Disabled::NONE,
    clock_ns: 0,
};

fn menu(kernel: &str, table: Table, history: [u32; 8]) -> Menu {
    let release: Release = Kernel::parse(kernel).unwrap().release;
    let mut menu = Menu::new(form_in(release).form, table, Tick::of_hz(250).unwrap());
    let mut intervals = Intervals::default();
    history.into_iter().for_each(|us| intervals.push(us));
    menu.intervals = intervals;
    // Not fresh: refusals are not what is looked at here.
    menu.residency_ns = 1;
    menu
}

fn said(kernel: &str, history: [u32; 8], m: Moment) -> (usize, bool) {
    let d = menu(kernel, acpi4(), history).select(&m);
    (d.state, d.stop_tick)
}

#[test]
fn a_fresh_cpu_polls_because_its_guess_is_nothing() {
    let mut fresh =
        Menu::new(form_in(Release { major: 6, minor: 1, patch: 0 }).form, acpi4(), Tick::of_hz(250).unwrap());
    let d = fresh.select(&FREE);
    assert_eq!((d.state, d.stop_tick), (0, false));
}

#[test]
fn a_typical_interval_decides_and_iowait_lowers_the_limit() {
    assert_eq!(said("6.1.100", [500; 8], FREE), (3, false));
    let waiting = Moment { n_iowait: 2, ..FREE };
    assert_eq!((said("6.1.100", [500; 8], waiting), said("6.13.7", [500; 8], waiting)), ((1, false), (3, false)));
}

#[test]
fn what_came_of_a_choice_is_learned_at_the_next() {
    let mut m = menu("6.1.100", acpi4(), [500; 8]);
    assert_eq!(m.select(&FREE).state, 3);
    m.reflect(&Left { state: 3, residency_ns: MS, ..Left::default() });
    m.learn();
    assert_eq!(m.correction.ratio(4), 7260);
    assert_eq!(m.correction.estimate_us::<1000>(bucket(10_000_000, false), 10_000_000), 8862);
    // A tick that fired again for a far timer.
    let mut far = menu("6.1.100", acpi4(), [500; 8]);
    far.select(&Moment { sleep_ns: 200 * MS, ..FREE });
    far.reflect(&Left { state: 3, residency_ns: 4 * MS, is_tick_fired: true, ..Left::default() });
    far.learn();
    assert_eq!(far.correction.ratio(5), 7398);
}

#[test]
fn a_stopped_tick_trusts_the_timer() {
    let stopped = |ns| Moment { is_tick_stopped: true, sleep_ns: ns, next_event_ns: ns, ..FREE };
    assert_eq!(said("6.1.100", [500; 8], stopped(3 * MS)).0, 3);
    assert_eq!(said("6.1.100", [500; 8], stopped(150_000)).0, 2);
}

#[test]
fn a_kept_tick_makes_it_shallower() {
    let until = |us: i64| Moment { next_event_ns: us * 1000, ..FREE };
    assert_eq!((said("6.1.100", [500; 8], until(150)), said("6.1.100", [500; 8], until(60))), ((2, false), (1, false)));
}

#[test]
fn limits_hold() {
    let limit = |us: i64| Moment { latency_limit_ns: us * 1000, ..FREE };
    assert_eq!((said("6.1.100", [500; 8], limit(20)).0, said("6.1.100", [500; 8], limit(0))), (1, (0, false)));
}

#[test]
fn polling_gives_way_where_the_next_state_is_worth_it() {
    let off = |sleep_us: i64| Moment { disabled: Disabled::of([1]), sleep_ns: sleep_us * 1000, ..FREE };
    assert_eq!((said("6.1.100", [50; 8], off(5000)).0, said("6.1.100", [50; 8], off(50)).0), (2, 0));
    let by_kernel = ["6.6.9", "6.12.117", "6.18.2"].map(|kernel| said(kernel, [50; 8], off(5000)).0);
    assert_eq!(by_kernel, [2, 0, 2]);
}

#[test]
fn the_tick_stops_only_for_long_sleeps() {
    let client = us(&[(2, 2), (10, 20), (85, 200), (200, 800), (890, 5000)]);
    let of = |history, sleep_ns, next_event_ns| {
        let d = menu("6.1.100", client, [history; 8]).select(&Moment { sleep_ns, next_event_ns, ..FREE });
        (d.state, d.stop_tick)
    };
    assert_eq!(of(4500, 4_600_000, 2 * MS), (4, false));
    assert_eq!(of(9000, 20 * MS, 2 * MS), (5, true));
    assert_eq!(of(9000, 4_900_000, MS / 2), (3, false));
}

#[test]
fn short_intervals_leave_the_timers_alone() {
    let d = menu("6.6.9", acpi4(), [10; 8]).select(&FREE);
    assert_eq!((d.state, d.stop_tick, d.asked_timers), (1, false, false));
}

#[test]
fn a_slow_exit_counts_against_the_guess_until_it_did_not() {
    let odd = us(&[(1, 1), (100, 60)]);
    let of = |kernel| menu(kernel, odd, [90; 8]).select(&FREE).state;
    assert_eq!([of("6.1.100"), of("6.14.0"), of("6.18.2")], [1, 1, 2]);
}

#[test]
fn a_refused_entry_is_a_long_sleep_in_later_kernels() {
    let after_refusal = |kernel| {
        let mut m = menu(kernel, acpi4(), [500; 8]);
        m.reject();
        m.select(&FREE);
        m.intervals.typical(Typical::TwoSided, true, 0)
    };
    assert_eq!((after_refusal("6.1.140"), after_refusal("6.1.192")), (500, 500));
    let mut m = menu("6.1.192", acpi4(), [500; 8]);
    m.reject();
    (0..6).for_each(|_| {
        m.select(&FREE);
    });
    // Two of eight are left: not enough to be typical of anything but each other.
    assert_eq!(m.intervals.typical(Typical::Downward, false, 0), 500);
    (0..2).for_each(|_| {
        m.select(&FREE);
    });
    assert_eq!(m.intervals.typical(Typical::Downward, false, 0), u32::MAX);
}
