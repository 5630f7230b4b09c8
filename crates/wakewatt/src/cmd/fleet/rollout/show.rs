//! A rollout as text: how it stands, each stage with its gates, nodes that are not as they should be.

use crate::view::Style;
use crate::view::table::Table;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_core::visible;
use wakewatt_fleet::rollout::gate::Word;
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
    if let Some(why) = &r.why {
        let _ = writeln!(out, "Why: {}", visible::line(why));
    }
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
            n(&|is| matches!(is, Is::Undone | Is::UndoWaits)),
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
        Is::UndoWaits => "taken back, at its next boot",
        Is::Unchanged => "unchanged, it was so already",
        Is::Refused => "left out",
        Is::Lost => "LOST",
    }
}
