//! What firmware has otherwise on some nodes of a class than on the others: a plain count, no statistics.
//!
//! A setting is a fact, so three of two hundred are named however few they are, and however little is known of what work costs there; that
//! it is the cause of anything is not said. Where no value has more than half of the nodes there is no usual one, and all are named.
//! Attributes that are nobody's concept (`attr:`) are told only where more than half agree: serial numbers and tags are among them.

use crate::document::{Firmware, OtherValue, Uneven};
use crate::firmware::{is_attribute, is_of_firmware};
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::arrange::Arrange as _;

/// Nodes that are named in a sentence.
const MOST_NAMED: usize = 8;

/// None where no setting of firmware is known of two nodes of a class.
pub(super) fn of(table: &Table, class_of: &[usize]) -> Option<Firmware> {
    let mut by: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut attributes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut n_of_class: BTreeMap<usize, usize> = BTreeMap::new();
    for (node, class) in table.nodes.iter().zip(class_of) {
        *n_of_class.entry(*class).or_default() += 1;
        for (what, value) in node.settings.iter().filter(|(what, _)| is_of_firmware(what)) {
            by.entry((*class, what)).or_default().entry(value).or_default().push(&node.name);
        }
        attributes.extend(node.attributes.iter().map(|(what, name)| (what.as_str(), name.as_str())));
    }
    // What is known of one node of a class only is beside nobody's.
    by.retain(|_, values| values.values().map(Vec::len).sum::<usize>() > 1);
    known.extend(by.values().flat_map(BTreeMap::values).flatten());
    if by.is_empty() {
        return None;
    }
    let n_settings = by.len();
    let mut uneven: Vec<Uneven> = Vec::new();
    for ((class, what), values) in by.into_iter().filter(|(_, values)| values.len() > 1) {
        let n_nodes = n_of_class.get(&class).copied().unwrap_or(0);
        let attribute = attributes.get(what).map(|name| (*name).to_string());
        uneven.extend(told(class, what, attribute, values, n_nodes));
    }
    // What few nodes have otherwise is what somebody looks for; single attributes explain what concepts have said.
    uneven.arrange_by(|a, b| {
        let key = |u: &Uneven| (u.class, is_attribute(&u.what), u.usual.is_none(), u.n_other());
        key(a).cmp(&key(b)).then(a.what.cmp(&b.what))
    });
    Some(Firmware { n_nodes: known.len(), n_settings, uneven })
}

fn told(
    class: usize,
    what: &str,
    attribute: Option<String>,
    values: BTreeMap<&str, Vec<&str>>,
    n_nodes: usize,
) -> Option<Uneven> {
    let n_known: usize = values.values().map(Vec::len).sum();
    let most = values.iter().map(|(value, nodes)| (nodes.len(), *value)).max();
    let usual = most.filter(|(n, _)| n * 2 > n_known).map(|(_, value)| value);
    if usual.is_none() && is_attribute(what) {
        return None;
    }
    let mut others: Vec<OtherValue> = values
        .iter()
        .filter(|(value, _)| Some(**value) != usual)
        .map(|(value, nodes)| OtherValue {
            value: (*value).to_string(),
            nodes: nodes.iter().map(ToString::to_string).collect(),
        })
        .collect();
    others.arrange_by(|a, b| b.nodes.len().cmp(&a.nodes.len()).then(a.value.cmp(&b.value)));
    let n_usual = usual.and_then(|value| values.get(value)).map_or(0, Vec::len);
    let mut out = Uneven {
        class,
        what: what.into(),
        attribute,
        usual: usual.map(str::to_string),
        n_usual,
        n_known,
        n_nodes,
        others,
        sentence: String::new(),
    };
    out.sentence = sentence(&out);
    Some(out)
}

fn sentence(u: &Uneven) -> String {
    let named = |other: &OtherValue| {
        let shown = other.nodes.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = other.nodes.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} on {shown}{more}", other.value)
    };
    let others: Vec<String> = u.others.iter().map(named).collect();
    let what = match &u.attribute {
        Some(name) => format!("{} ({name})", u.what),
        None => u.what.clone(),
    };
    let unknown = u.n_nodes.saturating_sub(u.n_known);
    let unknown = if unknown > 0 { format!("; not known of {unknown}") } else { String::new() };
    match &u.usual {
        Some(usual) => {
            let (n, have) = (u.n_other(), if u.n_other() == 1 { "has" } else { "have" });
            format!(
                "{n} of {} nodes {have} another {what}: {}; the other {} have {usual}{unknown}",
                u.n_known,
                others.join("; "),
                u.n_usual
            )
        }
        None => format!(
            "{what} is mixed, no value has more than half of {} nodes: {}{unknown}",
            u.n_known,
            others.join("; ")
        ),
    }
}

impl Uneven {
    /// Nodes that have another value than the usual one.
    pub fn n_other(&self) -> usize {
        self.others.iter().map(|other| other.nodes.len()).sum()
    }
}

impl Firmware {
    /// What is said of the firmware of all.
    pub fn sentence(&self) -> String {
        let n_other: BTreeSet<&String> =
            self.uneven.iter().filter(|u| u.usual.is_some()).flat_map(|u| &u.others).flat_map(|o| &o.nodes).collect();
        let nodes = |n: usize| if n == 1 { "1 node".to_string() } else { format!("{n} nodes") };
        match (self.uneven.len(), n_other.len()) {
            (0, _) => format!("Firmware: nothing differs within a class ({} known).", nodes(self.n_nodes)),
            (n, 0) => format!("Firmware: {n} of its settings and versions are mixed within a class."),
            (n, odd) => format!(
                "Firmware: {} of {} have something else than most of their class, in {n} of its settings and versions.",
                odd,
                nodes(self.n_nodes)
            ),
        }
    }
}
