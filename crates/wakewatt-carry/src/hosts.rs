//! A list of machines to be reached by ssh: a name a line, with the groups it is in; or groups as an inventory has them.
//!
//! ```text
//! web-01 group=web,rack-4      # what ssh calls it; user, port and key belong into ssh's own configuration
//! [db]
//! db-01
//! ```

use crate::node::{Node, NodeName};
use std::collections::BTreeMap;

/// More is another file.
const MOST_HOSTS: usize = 100_000;

/// Reads a list; an error names the line.
pub fn parse(text: &str) -> Result<Vec<Node>, String> {
    parse_with(text, &mut |_, word| {
        Err(format!("{word:?}: only group=A,B may follow a name; what ssh needs belongs into ~/.ssh/config"))
    })
}

/// The same with other words behind a name, which are given away one by one.
pub(crate) fn parse_with(
    text: &str,
    other: &mut dyn FnMut(&NodeName, &str) -> Result<(), String>,
) -> Result<Vec<Node>, String> {
    let mut all: BTreeMap<NodeName, BTreeMap<String, String>> = BTreeMap::new();
    // In the order of the file: that is the order in which they are changed.
    let mut order: Vec<NodeName> = Vec::new();
    let mut section: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("line {}: {why}", at + 1);
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = Some(group(name).map_err(wrong)?);
            continue;
        }
        let mut words = line.split_whitespace();
        let name = NodeName::new(words.next().unwrap_or_default()).map_err(|e| wrong(e.to_string()))?;
        let mut groups: Vec<String> = section.iter().cloned().collect();
        for word in words {
            let Some(list) = word.strip_prefix("group=") else {
                other(&name, word).map_err(wrong)?;
                continue;
            };
            for name in list.split(',') {
                groups.push(group(name).map_err(wrong)?);
            }
        }
        if !all.contains_key(&name) {
            order.push(name.clone());
        }
        if order.len() > MOST_HOSTS {
            return Err(wrong(format!("more than {MOST_HOSTS} hosts")));
        }
        all.entry(name).or_default().extend(groups.into_iter().map(|g| (g, String::new())));
    }
    if order.is_empty() {
        return Err("names no host; write one a line".into());
    }
    let node = |name: NodeName| Node { labels: all.remove(&name).unwrap_or_default(), name, is_ready: None };
    Ok(order.into_iter().map(node).collect())
}

fn group(text: &str) -> Result<String, String> {
    let is_good =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if is_good {
        Ok(text.into())
    } else {
        Err(format!("{text:?} is no name of a group: letters, digits, '.', '-', '_'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_from_sections_and_words() {
        let nodes = parse("b group=x,y # why\n\n[db]\na\nb\n").unwrap();
        let told: Vec<(&str, Vec<&str>)> =
            nodes.iter().map(|n| (n.name.as_str(), n.labels.keys().map(String::as_str).collect())).collect();
        assert_eq!(told, [("b", vec!["db", "x", "y"]), ("a", vec!["db"])]);
    }

    #[test]
    fn a_line_that_ssh_could_misread_is_refused_with_its_number() {
        for bad in ["a\n-oProxyCommand=x", "a port=22", "[a b]\nc", "a group=", "", "# nothing"] {
            let why = parse(bad).unwrap_err();
            assert!(why.starts_with("line ") || why.contains("names no host"), "{bad}: {why}");
        }
    }
}
