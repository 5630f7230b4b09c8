//! A rollout as text: how it stands, each stage with its gates, nodes that are not as they should be.

use crate::view::Style;
use crate::view::table::Table;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_carry::rollout::Looked;
use wakewatt_core::visible;
use wakewatt_fleet::rollout::gate::Word;
use wakewatt_fleet::rollout::plan::Plan;
use wakewatt_fleet::rollout::state::{Is, Rollout};

/// Nodes that are told one by one.
const MOST_NODES: usize = 30;

/// A moment as people write it.
pub(super) fn moment(ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// All of it.
pub(super) fn text(r: &Rollout, style: Style, width: usize) -> String {
    let mut out = format!("{}\n", style.bold(&visible::line(&r.sentence())));
    let _ = writeln!(out, "{}, begun {} by {}, over {}.", r.id, moment(r.began_ms), visible::line(&r.by), r.carrier);
    out.push('\n');
    let row = |(at, stage): (usize, &wakewatt_fleet::rollout::state::StageState)| {
        let n = |is: &dyn Fn(Is) -> bool| r.of_stage(at).filter(|(_, n)| is(n.is)).count().to_string();
        let gates: Vec<String> = stage.gates.iter().map(|g| format!("{} {}", g.name, word(g.verdict.word))).collect();
        vec![
            stage.name.clone(),
            stage
                .passed_ms
                .map_or_else(|| if at == r.stage && r.end.is_none() { "now".into() } else { "-".into() }, moment),
            gates.join(", "),
            n(&|_| true),
            n(&|is| matches!(is, Is::Applied | Is::Confirming | Is::Confirmed)),
            n(&|is| is == Is::Unchanged),
            n(&|is| is == Is::Undone),
            n(&|is| is == Is::Refused),
            n(&|is| is == Is::Lost),
        ]
    };
    let rows: Vec<Vec<String>> = r.stages.iter().enumerate().map(row).collect();
    let heads =
        ["stage", "passed", "gates", "nodes", "changed", "was so", "undone", "left out", "lost"].map(String::from);
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 3 }.text(width));
    for gate in r.stages.iter().flat_map(|s| s.gates.iter().map(move |g| (s, g))) {
        let line =
            format!("{}, gate {}: {}: {}", gate.0.name, gate.1.name, word(gate.1.verdict.word), gate.1.verdict.why);
        let _ = writeln!(out, "  - {}", visible::line(&line));
    }
    let told: Vec<_> = r.nodes.iter().filter(|n| n.why.is_some() || n.is == Is::Lost).collect();
    for node in told.iter().take(MOST_NODES) {
        let by = match (node.is, node.is_confirmed, node.undone_by_ms) {
            (Is::Lost | Is::Applied, false, Some(ms)) => format!("; undoes itself by {}", moment(ms)),
            (Is::Lost, true, _) => "; it was told to keep the change: look at it".into(),
            _ => String::new(),
        };
        let line = format!("{} is {}: {}{by}", node.name, is(node.is), node.why.as_deref().unwrap_or("no answer"));
        let _ = writeln!(out, "  - {}", visible::line(&line));
    }
    if told.len() > MOST_NODES {
        let _ = writeln!(out, "  … and {} more nodes (--json has all)", told.len() - MOST_NODES);
    }
    out
}

fn word(word: Word) -> &'static str {
    match word {
        Word::Passed => "passed",
        Word::Failed => "FAILED",
        Word::CannotTell => "cannot tell",
        Word::NoAnswer => "no answer",
    }
}

/// As in the document, for people.
pub(super) fn is(is: Is) -> &'static str {
    match is {
        Is::Waiting => "waiting",
        Is::Applying => "being changed",
        Is::Applied => "changed, not confirmed",
        Is::Confirming => "being confirmed",
        Is::Confirmed => "changed",
        Is::Undoing => "being undone",
        Is::Undone => "as before",
        Is::Unchanged => "unchanged, it was so already",
        Is::Refused => "left out",
        Is::Lost => "LOST",
    }
}

/// Every node's own plan, equal ones together.
pub(super) fn dry(plan: &Plan, looked: &[Looked], style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&format!("{}: nothing is changed.", plan.name)));
    let of = plan.stages_of(looked.len());
    for (at, stage) in plan.stages.iter().enumerate() {
        let n = of.iter().filter(|s| **s == Some(at)).count();
        let window_s = plan.window_ms(at, n) / 1000;
        let gates: Vec<&str> = plan.gates_of(at).map(|(_, g)| g.name.as_str()).collect();
        let gates = if gates.is_empty() { "no gates".into() } else { format!("gates {}", gates.join(", ")) };
        let nodes = if n == 1 { "1 node".into() } else { format!("{n} nodes") };
        let pause_s = stage.pause_ms / 1000;
        let _ = writeln!(
            out,
            "\n{}: {nodes}, pause {pause_s} s, {gates}; a node undoes itself after {window_s} s unless confirmed",
            style.bold(&visible::line(&stage.name))
        );
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
    /// The plan's name.
    pub name: String,
    /// What is changed, in words of `tune plan`.
    pub change: Vec<String>,
    /// The nodes that are meant, in the order in which they would be changed.
    pub nodes: Vec<DryNode>,
}

/// A node of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryNode {
    /// Its name.
    pub name: String,
    /// Its stage, by place; none where no stage reaches it.
    pub stage: Option<usize>,
    /// Why it would be left out.
    pub left_out: Option<String>,
    /// Its own plan, as `tune plan --json` has it there.
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
