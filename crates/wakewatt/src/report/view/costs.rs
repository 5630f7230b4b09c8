//! What each idle state costs to leave: a heat map of state by kind of wake-up, and the claim beside the measured extra.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::grid::Grid;
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, table_if_any};
use wakewatt_core::samples::state_cost::{StateCost, StateCosts};
use wakewatt_core::samples::wakeup::WakeKind;

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[StateCosts]) -> Option<Section> {
    let mut out = Section::new("What each idle state costs");
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
            &format!("Wake-up by idle state and by what woke, CPU {}", costs.cpu),
            "Median wake-up with only that state allowed. States that the CPU did not enter are left out; the table of states says why.",
            &heat(costs, &kinds),
        );
        let mut ranges = Ranges {
            title: format!("Exit latency of CPU {}, claimed and measured", costs.cpu),
            of: "state".into(),
            range: "least to most of the rounds",
            x: AxisSpec::new("extra over the floor", Show::Ns, Scale::Log),
            series: vec!["claimed by the driver".into()],
            is_first_claimed: true,
            rows: Vec::new(),
        };
        ranges.series.extend(kinds.iter().map(|k| format!("measured, {}", k.word())));
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
        let floor = costs.floor.as_deref().unwrap_or("the shallowest state");
        out.draw(
            format!("idle-claims-cpu{}", costs.cpu),
            &format!("Exit latency claimed and measured, CPU {}", costs.cpu),
            format!(
                "Claimed: a worst case from the driver's table. Measured: the median's extra over {floor}, paired by round; the line spans the rounds. An extra that is not positive has no place on a logarithmic axis; the table has it."
            ),
            &ranges,
        );
        out.tables.extend(table_if_any(
            &table(costs, &kinds),
            &format!("Idle states of CPU {}: claimed and measured", costs.cpu),
        ));
        if let Some(deepest) = entered().next_back() {
            let p50 = deepest.wakes.first().and_then(|w| w.latency.p50_ns());
            let said = |ns: u64| format!("waking CPU {} from {}: {}", costs.cpu, deepest.name, words::ns(ns as f64));
            out.lines.extend(p50.map(said));
        }
        out.remarks.extend(costs.not_restored.iter().map(|path| format!("not put back: {path}")));
    }
    (!out.is_empty()).then_some(out)
}

fn heat(costs: &StateCosts, kinds: &[WakeKind]) -> Grid {
    let p50 = |s: &StateCost, kind: WakeKind| Some(s.wake(kind)?.latency.p50_ns()? as f64);
    Grid {
        title: format!("Median wake-up of CPU {} by idle state and kind", costs.cpu),
        of: ("idle state".into(), "what woke it".into()),
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
        ("state", Show::Text),
        ("not entered because", Show::Text),
        ("claimed exit", Show::Ns),
        ("claimed residency", Show::Ns),
        ("entered", Show::Count),
    ]);
    for kind in kinds {
        data.columns.push((format!("{}, p50", kind.word()), Show::Ns));
        data.columns.push((format!("{}, extra", kind.word()), Show::Ns));
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
