//! A fleet as rows for a spreadsheet: one per node and measure.

use crate::view::csv::{Ends, text};
use wakewatt_fleet::document::{Fleet, NodeMeasure, Word};

const HEADS: [&str; 16] = [
    "node",
    "class",
    "node_is",
    "measure",
    "measure_is",
    "value",
    "ratio",
    "ratio_low",
    "ratio_high",
    "rank",
    "n_ranked",
    "n_windows",
    "q_value",
    "why",
    "differs",
    "firmware",
];

/// All rows.
pub(super) fn fleet(fleet: &Fleet) -> String {
    let mut rows: Vec<Vec<String>> = vec![HEADS.map(String::from).to_vec()];
    for node in &fleet.nodes {
        let class = fleet.classes.get(node.class).map_or(String::new(), |c| c.name.clone());
        let differs: Vec<String> =
            node.differs.iter().map(|d| format!("{}: {} (peers: {})", d.what, d.here, d.peers)).collect();
        let firmware = firmware(fleet, &node.name);
        let row = |measure: Option<&NodeMeasure>| {
            let m = |f: &dyn Fn(&NodeMeasure) -> String| measure.map_or(String::new(), f);
            vec![
                node.name.clone(),
                class.clone(),
                word(node.word).into(),
                m(&|m| m.measure.id().into()),
                m(&|m| word(m.word).into()),
                m(&|m| m.value.to_string()),
                m(&|m| m.ratio.to_string()),
                m(&|m| m.low_ratio.to_string()),
                m(&|m| m.high_ratio.to_string()),
                m(&|m| m.rank.to_string()),
                m(&|m| m.n_ranked.to_string()),
                m(&|m| m.n_windows.to_string()),
                m(&|m| m.q_value.map_or(String::new(), |q| q.to_string())),
                m(&|m| m.why.clone().unwrap_or_default()),
                differs.join("; "),
                firmware.clone(),
            ]
        };
        if node.measures.is_empty() {
            rows.push(row(None));
        }
        rows.extend(node.measures.iter().map(|measure| row(Some(measure))));
    }
    text(Ends::Unix, &rows)
}

/// What its firmware has otherwise than that of most of its class.
fn firmware(fleet: &Fleet, node: &str) -> String {
    let uneven = fleet.firmware.iter().flat_map(|f| &f.uneven);
    let told = uneven.filter_map(|u| {
        let other = u.others.iter().find(|other| other.nodes.iter().any(|name| name == node))?;
        let usual = u.usual.as_ref().map_or_else(|| "mixed".to_string(), |usual| format!("usual: {usual}"));
        Some(format!("{}: {} ({usual})", u.what, other.value))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// As in the document.
fn word(word: Word) -> &'static str {
    match word {
        Word::Dearer => "dearer",
        Word::Cheaper => "cheaper",
        Word::Like => "like",
        Word::Ranked => "ranked",
        Word::CannotTell => "cannot_tell",
    }
}
