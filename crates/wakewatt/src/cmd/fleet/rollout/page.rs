//! The page: what gates saw before and after, with the moment of each stage.

use super::{now_ms, show, store};
use crate::cli::rollout::RolloutArgs;
use crate::report::rollout::{Course, RolloutReport};
use anyhow::Result;
use wakewatt_core::visible;
use wakewatt_fleet::rollout::plan::{GateKind, parse};
use wakewatt_fleet::rollout::state::Rollout;
use wakewatt_fleet::series::courses;
use wakewatt_fleet::series::window::windows;

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
        let length_ms = until_ms.saturating_sub(r.began_ms).max(60_000);
        // As long before it as it took.
        let step_s = (2 * length_ms / N_WINDOWS / 1000).max(5);
        let moments = windows(until_ms, step_s, usize::try_from(N_WINDOWS).unwrap_or(0));
        for gate in &plan.gates {
            let GateKind::Promql { query, below, above } = &gate.kind else { continue };
            // All nodes: who was changed when is what the marks say.
            let query = query.replace("$changed", ".+").replace("$unchanged", ".+");
            match courses(&door, &query, &moments) {
                Ok(mut lines) => {
                    if lines.len() > MOST_LINES {
                        remarks.push(format!("gate {}: {MOST_LINES} of {} lines are drawn", gate.name, lines.len()));
                        lines.truncate(MOST_LINES);
                    }
                    let at_ms = moments.iter().map(|w| w.to_ms).collect();
                    all.push(Course { name: gate.name.clone(), limits: [*below, *above], at_ms, lines });
                }
                Err(why) => remarks.push(visible::line(&format!("gate {}: no chart: {why}", gate.name)).into_owned()),
            }
        }
    } else {
        remarks.push("No store was named (--prometheus), so there are no charts.".into());
    }
    RolloutReport::of(r, &all, remarks, &show::is).to_html(&show::moment(now_ms()))
}
