//! What a rollout would do: each node's own plan, as text and as a document.

use crate::view::Style;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use wakewatt_carry::rollout::Looked;
use wakewatt_core::visible;
use wakewatt_fleet::rollout::kind::FIRMWARE_PLAN;
use wakewatt_fleet::rollout::plan::Plan;

/// Where nobody is restarted.
const STAGED: &str = "staged for the next boot; nobody is restarted";

/// Every node's own plan, equal ones together.
pub(super) fn text(plan: &Plan, looked: &[Looked], style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&format!("{}: nothing is changed.", plan.name)));
    let of = plan.stages_of(looked.len());
    for (at, stage) in plan.stages.iter().enumerate() {
        let n = of.iter().filter(|s| **s == Some(at)).count();
        let window_s = plan.window_ms(at, n) / 1000;
        let gates: Vec<&str> = plan.gates_of(at).map(|(_, g)| g.name.as_str()).collect();
        let nodes = if n == 1 { "1 node".into() } else { format!("{n} nodes") };
        let pause_s = stage.pause_ms / 1000;
        let then = match (plan.change.is_firmware(), &plan.change.reboot) {
            (false, _) => format!("a node undoes itself after {window_s} s unless confirmed"),
            (true, None) if gates.is_empty() => format!("{STAGED}, and nothing undoes itself"),
            (true, None) => format!(
                "{STAGED}, nothing undoes itself, and until somebody boots its nodes the gates say nothing of the change"
            ),
            (true, Some(_)) => "staged, and RESTARTED; nothing undoes itself".into(),
        };
        let gates = if gates.is_empty() { "no gates".into() } else { format!("gates {}", gates.join(", ")) };
        let _ =
            writeln!(out, "\n{}: {nodes}, pause {pause_s} s, {gates}; {then}", style.bold(&visible::line(&stage.name)));
        for (node, _) in looked.iter().zip(&of).filter(|(_, s)| **s == Some(at)) {
            let _ = writeln!(out, "  {}", node.node);
            if let Some(why) = &node.left_out {
                let _ = writeln!(out, "    {}", style.red(&format!("left out: {}", visible::line(why))));
            }
            node.plan.iter().flat_map(steps).for_each(|step| {
                let _ = writeln!(out, "    {}", visible::line(&step));
            });
        }
    }
    let n_none = of.iter().filter(|s| s.is_none()).count();
    if n_none > 0 {
        let _ = writeln!(out, "\n{n_none} nodes are in no stage and stay as they are.");
    }
    out
}

/// The steps of a node's plan, equal changes together.
fn steps(plan: &Value) -> Vec<String> {
    let list = |v: &Value, key: &str| v.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let mut out = Vec::new();
    if plan.get("schema").and_then(Value::as_str) == Some(FIRMWARE_PLAN) {
        let said = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
        let line = |step: Value| {
            let (name, wished) = (text(&step, "attribute"), said(&step["wished"]));
            match text(&step, "state").as_str() {
                "no_change" => format!("{name}: {wished} already"),
                state => format!("{name}: {} -> {wished} ({})", said(&step["current"]), state.replace('_', " ")),
            }
        };
        return list(plan, "steps").into_iter().map(line).collect();
    }
    for step in list(plan, "steps") {
        let mut lines: Vec<(String, usize)> = Vec::new();
        for change in list(&step, "changes") {
            let (before, to) = (text(&change, "before_shown"), text(&change, "to_shown"));
            let line = if before == to { format!("{to} already") } else { format!("{before} -> {to}") };
            match lines.iter_mut().find(|(l, _)| *l == line) {
                Some((_, n)) => *n += 1,
                None => lines.push((line, 1)),
            }
        }
        let name = text(&step["request"], "name");
        let all: Vec<String> =
            lines.into_iter().map(|(l, n)| if n > 1 { format!("{l} ({n} places)") } else { l }).collect();
        let later = text(&step, "later");
        let what = if all.is_empty() && later.is_empty() { "left out here".into() } else { all.join(", ") + &later };
        out.push(format!("{name}: {what}"));
    }
    if plan.get("boot").is_some_and(|b| !b.is_null()) {
        out.push("kernel parameters, at the next boot".into());
    }
    out
}

/// What a rollout would do: each node's own plan.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRun {
    /// The name of the plan.
    pub name: String,
    /// What is changed, in words of `tune plan`.
    pub change: Vec<String>,
    /// The nodes that are meant, in the order in which they would be changed.
    pub nodes: Vec<DryNode>,
}

/// A node of a dry run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryNode {
    /// The node's name as its carrier has it.
    pub name: String,
    /// Its stage, by place; none where no stage reaches it.
    pub stage: Option<usize>,
    /// Why it would be left out.
    pub left_out: Option<String>,
    /// Its own plan, as `tune plan --json` has it there, or `bios plan --json` for its firmware.
    pub plan: Option<Value>,
}

impl DryRun {
    /// Of what was looked at.
    pub(super) fn of(plan: &Plan, looked: Vec<Looked>) -> DryRun {
        let of = plan.stages_of(looked.len());
        let node = |(l, stage): (Looked, Option<usize>)| DryNode {
            name: l.node.into(),
            stage,
            left_out: l.left_out,
            plan: l.plan,
        };
        DryRun {
            name: plan.name.clone(),
            change: plan.change.words(),
            nodes: looked.into_iter().zip(of).map(node).collect(),
        }
    }
}
