//! A list of nodes and their BMCs: a node a line, the BMC's address behind it, and the groups it is in.
//!
//! ```text
//! web-01 bmc=https://web-01-bmc.example group=web
//! [db]
//! db-01  bmc=https://10.0.7.11 user=operator password-file=/root/db-bmc system=System.Embedded.1
//! ```
//!
//! No password stands in it: a file of the owner's own has it, or the environment.

use crate::hosts::parse_with;
use crate::node::{Node, NodeName};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Longest address that is taken.
const LONGEST: usize = 1000;

/// How a node's BMC is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Such as `https://web-01-bmc.example`.
    pub url: String,
    /// Its user, where it is not everybody's.
    pub user: Option<String>,
    /// The file with that user's password.
    pub password_file: Option<PathBuf>,
    /// Which system of the BMC.
    pub system: Option<String>,
}

/// Nodes in the order of the list, and the BMC of each.
pub type Listed = (Vec<Node>, BTreeMap<NodeName, Place>);

/// Reads a list; an error names the line.
pub fn parse(text: &str) -> Result<Listed, String> {
    let mut places: BTreeMap<NodeName, Place> = BTreeMap::new();
    let mut other = |node: &NodeName, word: &str| {
        let place = places.entry(node.clone()).or_default();
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_text = !value.is_empty() && value.len() <= LONGEST && !value.chars().any(char::is_control);
        match key {
            "password" => return Err("no password in a list: password-file=FILE, or the environment".into()),
            "bmc" | "user" | "password-file" | "system" if !is_text => return Err(format!("{key}=: say what")),
            "bmc" if !place.url.is_empty() && place.url != value => return Err(format!("{node} has two BMCs")),
            "bmc" => place.url = value.trim_end_matches('/').into(),
            "user" => place.user = Some(value.into()),
            "password-file" => place.password_file = Some(value.into()),
            "system" => place.system = Some(value.into()),
            _ => return Err(format!("{word:?}: bmc=URL, user=, password-file=, system= or group= may follow a name")),
        }
        Ok(())
    };
    let nodes = parse_with(text, &mut other)?;
    if let Some(node) = nodes.iter().find(|node| places.get(&node.name).is_none_or(|place| place.url.is_empty())) {
        return Err(format!("{}: names no BMC; write bmc=https://… behind it", node.name));
    }
    let mut seen: BTreeMap<String, Vec<(Option<&str>, &NodeName)>> = BTreeMap::new();
    for (node, place) in &places {
        let url = place.url.to_ascii_lowercase();
        let url = url.trim_end_matches('/').trim_end_matches(":443");
        let others = seen.entry(url.to_string()).or_default();
        let system = place.system.as_deref();
        // Whoever names no system means the only one.
        let same = others.iter().find(|(other, _)| other.is_none() || system.is_none() || *other == system);
        let first = same.map(|(_, first)| *first);
        others.push((system, node));
        if let Some(first) = first {
            return Err(format!(
                "{first} and {node} have one BMC, {}; where it has several systems, give each system=ID",
                place.url
            ));
        }
    }
    Ok((nodes, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_its_bmc_and_no_password_is_taken() {
        let (nodes, places) = parse(
            "a bmc=https://a.example/ group=web,x # why\n[db]\nb user=op bmc=http://127.0.0.1:8000 password-file=/k system=2\n",
        )
        .unwrap();
        let told: Vec<(&str, usize)> = nodes.iter().map(|n| (n.name.as_str(), n.labels.len())).collect();
        assert_eq!(told, [("a", 2), ("b", 1)]);
        let place = |name: &str| places[&NodeName::new(name).unwrap()].clone();
        assert_eq!(place("a"), Place { url: "https://a.example".into(), ..Place::default() });
        assert_eq!((place("b").user.as_deref(), place("b").system.as_deref()), (Some("op"), Some("2")));
        for (bad, words) in [
            ("a", "names no BMC"),
            ("a bmc=", "bmc=: say what"),
            ("a bmc=http://x password=secret", "no password in a list"),
            ("a bmc=http://x port=2", "line 1"),
            ("a bmc=http://x\nb bmc=http://x", "have one BMC"),
            ("a bmc=http://x\na bmc=http://y", "two BMCs"),
            ("-o bmc=http://x", "no name of a node"),
            ("", "names no host"),
        ] {
            let why = parse(bad).unwrap_err();
            assert!(why.contains(words) && !why.contains("secret"), "{bad}: {why}");
        }
        assert!(parse("a bmc=http://x system=1\nb bmc=http://x system=2").is_ok());
    }
}
