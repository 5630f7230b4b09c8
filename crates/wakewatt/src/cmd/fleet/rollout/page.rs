//! The page: what gates saw before and after, with the moment of each stage.

use super::{now_ms, show, store};
use crate::cli::rollout::RolloutArgs;
use crate::report::rollout::{Course, RolloutReport};
use anyhow::Result;
use wakewatt_core::stats::middle::median;
use wakewatt_core::visible;
use wakewatt_fleet::rollout::plan::{Compare, Gate, GateKind, parse};
use wakewatt_fleet::rollout::state::Rollout;
use wakewatt_fleet::series::window::windows;
use wakewatt_fleet::series::{Door, Wanted, courses, gather, places};
use wakewatt_fleet::table::Window;

/// Points of a line.
const N_WINDOWS: u64 = 120;
/// Lines of a figure.
const MOST_LINES: usize = 8;

/// Of a rollout; where a store is named, with what its queries say.
pub(super) fn html(args: &RolloutArgs, r: &Rollout) -> Result<String> {
    let (mut all, mut remarks) = (Vec::new(), Vec::new());
    let plan = parse(&r.plan).ok();
    if let (Some(plan), Some(url)) = (plan, args.prometheus.as_deref()) {
        let door = store::open(&args.store, url)?;
        let until_ms = r.ended_ms.unwrap_or_else(now_ms).saturating_add(60_000).min(now_ms());
        // As long before it as it took.
        let length_ms = 2 * until_ms.saturating_sub(r.began_ms).max(60_000);
        for gate in &plan.gates {
            match course(&door, gate, r, (until_ms, length_ms)) {
                Ok(None) => {}
                Ok(Some(mut course)) => {
                    if course.lines.len() > MOST_LINES {
                        remarks.push(format!(
                            "Gate {}: {MOST_LINES} of {} lines are drawn.",
                            gate.name,
                            course.lines.len()
                        ));
                        course.lines.truncate(MOST_LINES);
                    }
                    all.push(course);
                }
                Err(why) => remarks.push(visible::line(&format!("Gate {}: no chart: {why}", gate.name)).into_owned()),
            }
        }
    } else {
        remarks.push("No store was named (--prometheus), so there are no charts.".into());
    }
    RolloutReport::of(r, &all, remarks, &show::is).to_html(&show::moment(now_ms()))
}

fn course(
    door: &dyn Door,
    gate: &Gate,
    r: &Rollout,
    (until_ms, length_ms): (u64, u64),
) -> Result<Option<Course>, String> {
    let moments = |step_s: u64| windows(until_ms, step_s, usize::try_from(length_ms / 1000 / step_s).unwrap_or(0));
    let at_ms = |moments: &[Window]| moments.iter().map(|w| w.to_ms).collect();
    match &gate.kind {
        GateKind::Promql { query, below, above } => {
            let moments = moments((length_ms / N_WINDOWS / 1000).max(5));
            // All nodes: who was changed when is what the marks say.
            let query = query.replace("$changed", ".+").replace("$unchanged", ".+");
            let lines = courses(door, &query, &moments).map_err(|why| why.to_string())?;
            let (name, what) = (gate.name.clone(), "value of the query".into());
            Ok(Some(Course { name, what, limits: [*below, *above], at_ms: at_ms(&moments), lines }))
        }
        GateKind::Compare(compare) => {
            let moments = moments((length_ms / N_WINDOWS / 1000).max(compare.window_ms / 1000));
            let lines = by_stage(door, compare, r, &moments)?;
            let (name, what) = (gate.name.clone(), format!("{}, median", compare.measure.title()));
            Ok(Some(Course { name, what, limits: [None, None], at_ms: at_ms(&moments), lines }))
        }
        GateKind::Command { .. } | GateKind::Experiment { .. } => Ok(None),
    }
}

/// The measure of a comparison: the median over the nodes of each stage that was changed, and of the others.
fn by_stage(
    door: &dyn Door,
    compare: &Compare,
    r: &Rollout,
    moments: &[Window],
) -> Result<Vec<wakewatt_fleet::series::Course>, String> {
    let wanted = Wanted {
        label: compare.node_label.clone(),
        matchers: compare.select.clone(),
        windows: moments.to_vec(),
        work: compare.work.clone(),
        latency: compare.latency.clone(),
        cpu: compare.cpu.clone(),
        power: compare.power.clone(),
        peers_by: Vec::new(),
    };
    let table = gather(door, &wanted).map_err(|why| why.to_string())?.table;
    let was_changed = |stage: Option<usize>| stage.filter(|s| r.stages.get(*s).is_some_and(|s| s.began_ms.is_some()));
    let mut groups: Vec<(String, Option<usize>)> = r
        .stages
        .iter()
        .enumerate()
        .filter(|(_, s)| s.began_ms.is_some())
        .map(|(at, s)| (s.name.clone(), Some(at)))
        .collect();
    groups.push(("not changed".into(), None));
    let line = |(name, stage): (String, Option<usize>)| {
        let of: Vec<&str> = r.nodes.iter().filter(|n| was_changed(n.stage) == stage).map(|n| n.name.as_str()).collect();
        let nodes: Vec<usize> = places(&table.nodes, &of).into_iter().flatten().collect();
        let value = |window: usize| {
            let mut all: Vec<f64> =
                nodes.iter().filter_map(|at| table.nodes.get(*at)?.measured(compare.measure, window)).collect();
            median(&mut all)
        };
        (name, (0..moments.len()).map(value).collect::<Vec<Option<f64>>>())
    };
    Ok(groups.into_iter().map(line).filter(|(_, line)| line.iter().any(Option::is_some)).collect())
}
