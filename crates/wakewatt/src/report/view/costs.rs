//! What each idle state costs to leave: a heat map of state by kind of wake-up, and the claim beside the measured extra.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::grid::Grid;
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::{Cell, Data, Show};
use super::super::words;
use super::break_even;
use super::section::{Section, table_if_any};
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::state_cost::{Extra, FirstWork, Piece, StateCost, StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_words::{say, told, word};

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[StateCosts]) -> Option<Section> {
    let mut out = Section::new(word!("What each idle state costs"));
    for costs in samples {
        let mut kinds: Vec<WakeKind> = Vec::new();
        for wake in costs.states.iter().flat_map(|s| &s.wakes) {
            if !kinds.contains(&wake.kind) {
                kinds.push(wake.kind);
            }
        }
        let entered = || costs.states.iter().filter(|s| s.is_entered());
        out.draw(
            format!("idle-costs-cpu{}", costs.cpu),
            &say!("Wake-up by idle state and by what woke, CPU {}", costs.cpu),
            word!("Median wake-up with only that state allowed. States that the CPU did not enter are left out; the table of states says why."),
            &heat(costs, &kinds),
        );
        let mut ranges = Ranges {
            title: say!("Exit latency of CPU {}, claimed and measured", costs.cpu),
            of: word!("state").into(),
            range: word!("least to most of the rounds"),
            x: AxisSpec::new(word!("extra over the floor"), Show::Ns, Scale::Log),
            series: vec![word!("claimed by the driver").into()],
            is_first_claimed: true,
            rows: Vec::new(),
        };
        ranges.series.extend(kinds.iter().map(|k| say!("measured, {}", k.word())));
        for state in entered() {
            let claim = state.claimed_exit_ns.map(|ns| Mark { series: 0, value: ns as f64, range: None });
            let extra = kinds.iter().enumerate().filter_map(|(i, kind)| {
                let extra = state.wake(*kind)?.extra?;
                Some(Mark { series: i + 1, value: extra.median_ns, range: Some((extra.low_ns, extra.high_ns)) })
            });
            let marks: Vec<Mark> = claim.into_iter().chain(extra).collect();
            if marks.len() > 1 {
                ranges.add(state.name.clone(), marks);
            }
        }
        let floor = costs.floor.as_deref().unwrap_or(word!("the shallowest state"));
        out.draw(
            format!("idle-claims-cpu{}", costs.cpu),
            &say!("Exit latency claimed and measured, CPU {}", costs.cpu),
            say!(
                "Claimed: a worst case from the driver's table. Measured: the median's extra over {floor}, paired by round; the line spans the rounds. An extra that is not positive has no place on a logarithmic axis; the table has it."
            ),
            &ranges,
        );
        out.tables.extend(table_if_any(
            &table(costs, &kinds),
            &say!("Idle states of CPU {}: claimed and measured", costs.cpu),
        ));
        if let Some(deepest) = entered().next_back() {
            let p50 = deepest.wakes.first().and_then(|w| w.latency.p50_ns());
            let said = |ns: u64| say!("waking CPU {} from {}: {}", costs.cpu, deepest.name, words::ns(ns as f64));
            out.lines.extend(p50.map(said));
        }
        out.folded.extend(table_if_any(
            &wakes(costs),
            &say!("Each kind of wake-up of CPU {}: measured, with their {}; the extra is over {floor}, its range that of the rounds", costs.cpu, words::interval_of(wakewatt_core::covers::Covers::Window)),
        ));
        break_even::add(&mut out, costs);
        out.remarks.extend(remarks(costs));
    }
    (!out.is_empty()).then_some(out)
}

/// Every state by every kind, with what it is sure of.
fn wakes(costs: &StateCosts) -> Data {
    let mut data = Data::with(&[
        (word!("state"), Show::Text),
        (word!("kind"), Show::Text),
        ("n", Show::Count),
        ("p50", Show::Ns),
        (word!("p50, low"), Show::Ns),
        (word!("p50, high"), Show::Ns),
        ("p99", Show::Ns),
        (word!("p99, low"), Show::Ns),
        (word!("p99, high"), Show::Ns),
        (word!("extra"), Show::Ns),
        (word!("extra, least"), Show::Ns),
        (word!("extra, most"), Show::Ns),
        (word!("out of this state"), Show::Ratio),
    ]);
    for (state, wake) in costs.states.iter().flat_map(|s| s.wakes.iter().map(move |w| (s, w))) {
        let mut row: Vec<Cell> =
            vec![state.name.clone().into(), told(wake.kind.word()).into(), (wake.latency.n as f64).into()];
        for q in [0.5, 0.99].map(|q| wake.latency.quantile(q)) {
            row.extend(
                [q.map(|q| q.value_ns), q.map(|q| q.low_ns), q.map(|q| q.high_ns)].map(|v| v.map(|v| v as f64).into()),
            );
        }
        row.extend(
            [wake.extra.map(|e| e.median_ns), wake.extra.map(|e| e.low_ns), wake.extra.map(|e| e.high_ns)]
                .map(Cell::of),
        );
        row.push(wake.entered_ratio().into());
        data.rows.push(row);
    }
    data
}

/// With fewer rounds the range of the differences is no 95 % interval.
const LEAST_ROUNDS: u32 = 6;

/// What sleeping costs in CPU time, whatever it costs in latency; where the rounds agree that it does.
fn cpu_time(state: &StateCost, floor: &str) -> Vec<String> {
    let of = |extra: fn(&StateWake) -> Option<Extra>| state.wakes.iter().find_map(extra);
    let range = |extra: Extra| words::ns_interval(extra.low_ns, extra.high_ns);
    let is_sure = |extra: &Extra| extra.low_ns > 0.0 && extra.n_rounds >= LEAST_ROUNDS;
    let (busy, waker) = (of(|wake| wake.extra_busy), of(|wake| wake.extra_waker_busy));
    let mut all = Vec::new();
    all.extend(busy.map(|busy| {
        if is_sure(&busy) {
            let median = words::ns(busy.median_ns);
            return say!(
                "{}: each sleep takes {median} of CPU time more than one in {floor} ({} in the rounds), by the idle counters.",
                state.name,
                range(busy)
            );
        }
        say!(
            "{}: that a sleep takes more CPU time than one in {floor} is not shown: {} in the rounds; a longer --duration may show it.",
            state.name,
            range(busy)
        )
    }));
    all.extend(waker.filter(is_sure).map(|waker| {
        say!(
            "{}: waking a CPU out of it takes {} of CPU time of the CPU that wakes ({} in the rounds).",
            state.name,
            words::ns(waker.median_ns),
            range(waker)
        )
    }));
    all
}

/// What the first work after a pause takes, beside the wake-up; where the rounds agree that it is more.
fn first_work(state: &StateCost, work: &FirstWork) -> Option<String> {
    let extra = work.extra().filter(|extra| extra.low_ns > 0.0 && extra.n_rounds >= LEAST_ROUNDS)?;
    let (more, again) = (words::ns(extra.median_ns), words::ns(work.again.p50_ns()? as f64));
    let range = words::ns_interval(extra.low_ns, extra.high_ns);
    Some(match work.piece {
        Piece::Trip => say!(
            "{}: right after a pause a round trip over TCP takes {more} longer ({range} in the rounds) than when it is repeated at once ({again}).",
            state.name
        ),
        Piece::Table => say!(
            "{}: right after a pause 100 us of work over a table of 256 KiB takes {more} longer ({range} in the rounds) than when it is repeated at once ({again}).",
            state.name
        ),
    })
}

/// What the CPU does for itself in a state.
fn own(state: &StateCost) -> Option<String> {
    let all = || state.round_own_ratio.iter().copied();
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    Some(say!(
        "{}: while nobody wakes it, the CPU is busy for itself {low} to {high} of the time, by its idle counters.",
        state.name,
        low = words::percent(low),
        high = words::percent(high)
    ))
}

/// How it was had, claims that are far off, and what was left.
fn remarks(costs: &StateCosts) -> Vec<String> {
    let from = costs.from_cpu.map_or(word!("by its own timer only").to_string(), |cpu| say!("from CPU {cpu} too"));
    let mut all = vec![
        say!(
            "CPU {} was woken {from}, each {}; one state allowed at a time, {} rounds in random order.",
            costs.cpu,
            words::ns(costs.gap_ns as f64),
            costs.n_rounds
        ),
        say!(
            "Claimed is the driver's exit latency; a wake-up contains more, so compare it with the extra. The extra is paired \
             by round, with its 95 % interval (sign test)."
        ),
    ];
    let floor = costs.floor.as_deref().unwrap_or_default();
    all.extend(costs.states.iter().flat_map(|state| cpu_time(state, floor)));
    let entered = || costs.states.iter().filter(|state| state.is_entered());
    let works = entered().flat_map(|state| state.first_work.iter().map(move |work| (state, work)));
    all.extend(works.filter_map(|(state, work)| first_work(state, work)));
    all.extend(entered().filter_map(own));
    all.extend(costs.states.iter().filter_map(far_off));
    if let Some(Scheduling::Other(why)) = &costs.scheduling {
        all.push(say!("SCHED_OTHER ({why}): run-queue delay is included."));
    }
    // Other drivers have no such parameter; there nothing is missing.
    if costs.driver.as_deref() == Some("intel_idle") {
        all.push(break_even::parameter(costs));
    }
    match costs.not_restored.is_empty() {
        true => all.push(say!("Settings on {} were changed meanwhile and put back.", costs.set_cpus.named())),
        false => all.extend(costs.not_restored.iter().map(|path| say!("NOT PUT BACK: {path}"))),
    }
    all
}

/// One line for a claim that is far off.
fn far_off(state: &StateCost) -> Option<String> {
    let off = state.claim_off()?;
    let above = if off.above_floor_ns == off.claimed_ns { "" } else { word!(" above the floor's claim") };
    Some(say!(
        "{}: claims {}{above}, costs {} ({}) by {}: ×{} the claim.",
        state.name,
        words::ns(off.above_floor_ns as f64),
        words::ns(off.extra.median_ns),
        words::ns_interval(off.extra.low_ns, off.extra.high_ns),
        told(off.kind.word()),
        words::ratio(off.ratio)
    ))
}

fn heat(costs: &StateCosts, kinds: &[WakeKind]) -> Grid {
    let p50 = |s: &StateCost, kind: WakeKind| Some(s.wake(kind)?.latency.p50_ns()? as f64);
    Grid {
        title: say!("Median wake-up of CPU {} by idle state and kind", costs.cpu),
        of: (word!("idle state").into(), word!("what woke it").into()),
        show: Show::Ns,
        columns: kinds.iter().map(|k| k.word().to_string()).collect(),
        rows: costs
            .states
            .iter()
            .filter(|s| s.is_entered())
            .map(|s| (s.name.clone(), kinds.iter().map(|k| p50(s, *k)).collect()))
            .collect(),
    }
}

fn table(costs: &StateCosts, kinds: &[WakeKind]) -> Data {
    let mut data = Data::with(&[
        (word!("state"), Show::Text),
        (word!("not entered because"), Show::Text),
        (word!("claimed exit"), Show::Ns),
        (word!("claimed residency"), Show::Ns),
        (word!("entered"), Show::Count),
    ]);
    for kind in kinds {
        data.columns.push((format!("{}, p50", told(kind.word())), Show::Ns));
        data.columns.push((say!("{}, extra", told(kind.word())), Show::Ns));
    }
    for state in &costs.states {
        let claims = [state.claimed_exit_ns, state.claimed_residency_ns, Some(state.n_entered)];
        let mut row = vec![state.name.clone().into(), state.not_entered.clone().unwrap_or_default().into()];
        row.extend(claims.map(|v| v.map(|v| v as f64).into()));
        for kind in kinds {
            let wake = state.wake(*kind).filter(|_| state.is_entered());
            row.push(wake.and_then(|w| w.latency.p50_ns()).map(|ns| ns as f64).into());
            row.push(wake.and_then(|w| w.extra).map(|e| e.median_ns).into());
        }
        data.rows.push(row);
    }
    data
}
