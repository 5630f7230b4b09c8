//! A fleet as text: the answer, the odd nodes with what differs, a table per class, and what must be known.

use crate::view::Style;
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::units::three_digits;
use wakewatt_core::visible;
use wakewatt_fleet::document::{Change, Fleet, Label, Node, Word};
use wakewatt_fleet::measure::Measure;

/// Nodes of a class that are shown without `--all`.
const MOST_ROWS: usize = 12;
/// Settings of a node that are shown without `--all`.
const MOST_DIFFERS: usize = 6;

/// All of it.
pub(super) fn fleet(fleet: &Fleet, is_all: bool, style: Style, width: usize) -> String {
    let mut out = format!("{}\n", style.bold(&visible::line(&fleet.sentence)));
    if let Some(work) = &fleet.work {
        let _ = writeln!(out, "Work: {}", visible::line(work));
    }
    if let Some(seconds) = fleet.window_s {
        let _ = writeln!(out, "{} windows of {} min each.", fleet.n_windows, three_digits(seconds / 60.0));
    }
    for node in fleet.nodes.iter().filter(|n| n.is_odd() || !n.differs.is_empty()) {
        odd(&mut out, node, is_all, style);
    }
    firmware(&mut out, fleet, is_all, style);
    for (at, class) in fleet.classes.iter().enumerate() {
        let nodes: Vec<&Node> = fleet.nodes.iter().filter(|n| n.class == at).collect();
        let plural = if class.n_nodes == 1 { "node" } else { "nodes" };
        let ranked = if class.is_ranked_only { ", ranked only" } else { "" };
        let name = visible::line(&class.name);
        let _ = writeln!(out, "\n{}: {} {plural}{ranked}", style.bold(&name), class.n_nodes);
        rows(&mut out, fleet, &nodes, is_all, width);
    }
    let lacking: Vec<String> = fleet
        .measures
        .iter()
        .filter(|m| m.label != Label::Measured)
        .map(|m| format!("{}: {}", m.measure, m.why.as_deref().unwrap_or("not known")))
        .collect();
    list(&mut out, "Not measured", &lacking, style);
    list(&mut out, "To be known with it", &fleet.remarks, style);
    list(&mut out, "The agent on each node would add", &fleet.agent_would_add, style);
    out
}

/// What firmware has otherwise on some nodes of a class.
fn firmware(out: &mut String, fleet: &Fleet, is_all: bool, style: Style) {
    let Some(found) = &fleet.firmware else { return };
    let _ = writeln!(out, "\n{}", style.bold("Firmware"));
    if found.uneven.is_empty() {
        let _ =
            writeln!(out, "  Nothing differs within a class: {} settings and versions are equal.", found.n_settings);
    }
    let n = if is_all { found.uneven.len() } else { found.uneven.len().min(MOST_ROWS) };
    for uneven in &found.uneven[..n] {
        let class = fleet.classes.get(uneven.class).filter(|_| fleet.classes.len() > 1);
        let class = class.map_or_else(String::new, |class| format!("{}: ", class.name));
        let _ = writeln!(out, "  - {}", visible::line(&format!("{class}{}", uneven.sentence)));
    }
    if n < found.uneven.len() {
        let _ = writeln!(out, "  … and {} more (--all shows them)", found.uneven.len() - n);
    }
}

fn odd(out: &mut String, node: &Node, is_all: bool, style: Style) {
    let name = visible::line(&node.name).into_owned();
    let _ = writeln!(out, "\n{} {}", style.bold(&name), visible::line(&node.sentence));
    let n = if is_all { node.differs.len() } else { node.differs.len().min(MOST_DIFFERS) };
    for differs in &node.differs[..n] {
        let among = match (differs.n_like_here, differs.n_peers) {
            (0, _) => String::new(),
            (n, of) => format!("; {n} of {of} peers that are not odd have it too"),
        };
        let line = format!("{}: {} here, {} on peers{among}", differs.what, differs.here, differs.peers);
        let _ = writeln!(out, "  - {}", visible::line(&line));
        if let Some(predicted) = &differs.predicted {
            let _ = writeln!(out, "    predicted (modelled): {}", visible::line(predicted));
        }
    }
    if n < node.differs.len() {
        let _ = writeln!(out, "  … and {} more (--all shows them)", node.differs.len() - n);
    }
    if node.differs.is_empty() {
        let _ = writeln!(out, "  No setting that is known differs from its peers'.");
    }
}

fn rows(out: &mut String, fleet: &Fleet, nodes: &[&Node], is_all: bool, width: usize) {
    let has = |m: &Measure| fleet.measures.iter().any(|s| s.measure == *m && s.label != Label::Unavailable);
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(has).collect();
    // Where only firmware is known, a column of "cannot tell" says nothing.
    if measures.is_empty() && fleet.firmware.is_some() {
        return;
    }
    let is_changed = nodes.iter().any(|n| n.change.is_some());
    let mut heads = vec!["node".to_string(), "is".into()];
    heads.extend(measures.iter().map(|m| format!("{m} (of peers)")));
    heads.extend(is_changed.then(|| "before -> after (beside peers)".to_string()));
    let n = if is_all { nodes.len() } else { nodes.len().min(MOST_ROWS) };
    let row = |node: &&Node| {
        let mut row = vec![node.name.clone(), word(node.word).to_string()];
        row.extend(measures.iter().map(|m| {
            node.measure(*m).map_or("-".into(), |m| format!("{} ×{}", m.measure.show(m.value), three_digits(m.ratio)))
        }));
        row.extend(is_changed.then(|| node.change.as_ref().map_or("-".into(), change)));
        row
    };
    let rows: Vec<Vec<String>> = nodes[..n].iter().map(row).collect();
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 2 }.text(width));
    if n < nodes.len() {
        let _ = writeln!(out, "… and {} more (--all shows them)", nodes.len() - n);
    }
}

fn change(c: &Change) -> String {
    format!("{} -> {} ×{}", c.measure.show(c.before), c.measure.show(c.after), three_digits(c.ratio))
}

fn word(word: Word) -> &'static str {
    match word {
        Word::Dearer => "DEARER",
        Word::Cheaper => "CHEAPER",
        Word::Like => "like its peers",
        Word::Ranked => "ranked",
        Word::CannotTell => "cannot tell",
    }
}

fn list(out: &mut String, head: &str, lines: &[String], style: Style) {
    if !lines.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(head));
    }
    for line in lines {
        let _ = writeln!(out, "  - {}", visible::line(line));
    }
}
