//! teo decides as worked out by hand, for each generation.

use super::*;
use crate::kernel::Kernel;
use crate::table::{Disabled, State};

fn icelake() -> Table {
    let rows = [(1, 1), (4, 4), (170, 600)].map(|(l, t)| State::sleeping_us(l, t));
    Table::new(&[&[State::POLL], &rows[..]].concat()).unwrap()
}

const FREE: Moment = Moment {
    sleep_ns: 10_000_000,
    next_event_ns: 2_000_000,
    is_tick_stopped: false,
    latency_limit_ns: 2_000_000_000_000,
    n_iowait: 0,
    utilisation: 0,
    disabled: Disabled::NONE,
    clock_ns: 0,
};

/// Choices in a row, each lasting so long.
fn chosen(kernel: &str, n: usize, lasted_us: i64) -> Vec<(usize, bool)> {
    let release = Kernel::parse(kernel).unwrap().release;
    let mut teo = Teo::new(form_in(release).form, icelake(), Tick::of_hz(250).unwrap());
    let (mut clock_ns, mut all) = (1_000_000_000, Vec::new());
    for _ in 0..n {
        let d = teo.select(&Moment { clock_ns, ..FREE });
        all.push((d.state, d.stop_tick));
        clock_ns += lasted_us * 1000;
        teo.reflect(&Left { state: d.state, residency_ns: lasted_us * 1000, clock_ns, ..Left::default() });
        clock_ns += 10_000;
    }
    all
}

#[test]
fn short_sleeps_move_it_to_a_shallower_state() {
    let rest = |first, n: usize, state| std::iter::once(first).chain(vec![state; n]).collect::<Vec<_>>();
    for kernel in ["5.14.2", "6.1.192"] {
        assert_eq!(chosen(kernel, 6, 50), rest((3, true), 5, (2, false)), "{kernel}");
    }
    assert_eq!(chosen("6.12.0", 6, 50), rest((3, true), 5, (2, false)));
    let latest = [(3, true), (2, false), (2, false), (2, true), (2, true), (2, true)];
    assert_eq!(chosen("6.18.2", 6, 50), latest);
    assert_eq!(chosen("6.18.2", 4, 3), rest((3, true), 3, (1, false)));
}

#[test]
fn a_limit_holds() {
    let release = Kernel::parse("6.1.192").unwrap().release;
    let mut teo = Teo::new(form_in(release).form, icelake(), Tick::of_hz(250).unwrap());
    let d = teo.select(&Moment { latency_limit_ns: 20_000, ..FREE });
    assert_eq!((d.state, d.stop_tick), (2, true));
}

#[test]
fn a_cpu_in_use_gets_a_shallower_state_where_that_counts() {
    let of = |kernel: &str| {
        let release = Kernel::parse(kernel).unwrap().release;
        let mut teo = Teo::new(form_in(release).form, icelake(), Tick::of_hz(250).unwrap());
        teo.select(&Moment { utilisation: 17, ..FREE }).state
    };
    assert_eq!([of("6.1.192"), of("6.4.6"), of("6.6.9"), of("6.12.0")], [3, 2, 2, 3]);
}
