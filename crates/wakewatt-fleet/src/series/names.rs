//! Which node a series speaks of: addresses with and without a port, host names long and short, names that Kubernetes gives.
//!
//! A name that two nodes could mean is nobody's: a wrong join would accuse the wrong machine. A node that went on under
//! another name within the time (a new address, a renamed host) is one node where host name and hardware are equal and no
//! window has both.

use super::answer::Labels;
use crate::table::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// From names to nodes.
#[derive(Debug, Default)]
pub(super) struct Names {
    of: BTreeMap<String, Option<usize>>,
}

impl Names {
    /// Of these nodes and what else they are called.
    pub(super) fn of(nodes: &[Node]) -> Names {
        let mut names = Names::default();
        for (at, node) in nodes.iter().enumerate() {
            for name in std::iter::once(&node.name).chain(&node.also) {
                for form in forms(name) {
                    names.add(form, at);
                }
            }
        }
        // As the store writes it, whatever else it may look like.
        for (at, node) in nodes.iter().enumerate() {
            names.of.insert(node.name.clone(), Some(at));
        }
        names
    }

    fn add(&mut self, name: String, node: usize) {
        if name.is_empty() {
            return;
        }
        let known = self.of.entry(name).or_insert(Some(node));
        if *known != Some(node) {
            *known = None;
        }
    }

    /// The node of a name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        match self.of.get(name) {
            Some(found) => *found,
            None => forms(name).iter().find_map(|form| self.of.get(form).copied().flatten()),
        }
    }

    /// The label by which most of these series are somebody's; `first` wins where it is as good as another.
    pub(super) fn best_label(&self, all: &[Labels], first: &str) -> Option<String> {
        let keys: BTreeSet<&String> = all.iter().flat_map(|l| l.keys()).collect();
        let n_found = |key: &str| all.iter().filter(|l| l.get(key).is_some_and(|v| self.find(v).is_some())).count();
        let place = |key: &str| [first, "node", "instance"].iter().position(|k| *k == key).unwrap_or(9);
        let best = keys.into_iter().max_by(|a, b| n_found(a).cmp(&n_found(b)).then(place(b).cmp(&place(a))))?;
        (n_found(best) > 0).then(|| best.clone())
    }
}

/// The name, without its port, and its first part where it is no address.
fn forms(name: &str) -> Vec<String> {
    let mut all = vec![name.to_string()];
    let host = without_port(name);
    if host != name {
        all.push(host.to_string());
    }
    let first = host.split('.').next().unwrap_or(host);
    if host.parse::<IpAddr>().is_err() && first != host {
        all.push(first.to_string());
    }
    all
}

fn without_port(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.contains(':') => host,
        _ => name,
    }
}

/// Puts nodes together that are one under several names: by `host_name`, as far as that is known of each. Says who.
pub(super) fn rejoin(nodes: &mut Vec<Node>, host_names: &mut Vec<Option<String>>, n_windows: usize) -> Vec<String> {
    let mut groups: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (at, name) in host_names.iter().enumerate() {
        if let Some(name) = name {
            groups.entry(name).or_default().push(at);
        }
    }
    let mut gone: BTreeMap<usize, usize> = BTreeMap::new();
    for members in groups.values().filter(|m| m.len() > 1) {
        let seen: Vec<Vec<bool>> = members.iter().map(|at| nodes[*at].seen(n_windows)).collect();
        let is_apart = (0..n_windows).all(|w| seen.iter().filter(|s| s[w]).count() <= 1);
        let is_equal = members.windows(2).all(|w| nodes[w[0]].hardware == nodes[w[1]].hardware);
        let last = |at: &usize| nodes[*at].seen(n_windows).iter().rposition(|s| *s);
        let Some(keep) = members.iter().max_by_key(|at| last(at)).filter(|_| is_apart && is_equal) else { continue };
        gone.extend(members.iter().filter(|at| *at != keep).map(|at| (*at, *keep)));
    }
    let said = gone.iter().map(|(from, to)| format!("{} was {} before", nodes[*to].name, nodes[*from].name)).collect();
    for (from, to) in &gone {
        let other = std::mem::take(&mut nodes[*from]);
        nodes[*to].join(other);
    }
    let mut at = 0;
    nodes.retain(|_| {
        at += 1;
        !gone.contains_key(&(at - 1))
    });
    let mut at = 0;
    host_names.retain(|_| {
        at += 1;
        !gone.contains_key(&(at - 1))
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Quantity;

    #[test]
    fn a_name_that_two_could_mean_is_nobodys() {
        let mut second = Node::named("10.0.0.2:9100");
        second.also.push("db7.example".into());
        let names = Names::of(&[
            Node::named("10.0.0.1:9100"),
            second,
            Node::named("127.0.0.1:9101"),
            Node::named("127.0.0.1:9102"),
            Node::named("[fe80::1]:9100"),
        ]);
        assert_eq!((names.find("10.0.0.1"), names.find("10.0.0.1:8080")), (Some(0), Some(0)));
        assert_eq!(
            (names.find("db7"), names.find("db7.example:80"), names.find("db7.other")),
            (Some(1), Some(1), Some(1))
        );
        assert_eq!((names.find("127.0.0.1"), names.find("127.0.0.1:9102")), (None, Some(3)));
        assert_eq!((names.find("fe80::1"), names.find("10"), names.find("")), (Some(4), None, None));
    }

    #[test]
    fn the_label_that_names_nodes_is_found() {
        let names = Names::of(&[Node::named("a:9100"), Node::named("b:9100")]);
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect()
        };
        let all = [labels(&[("pod", "web-1"), ("node", "a")]), labels(&[("pod", "web-2"), ("node", "b")])];
        assert_eq!(names.best_label(&all, "instance").as_deref(), Some("node"));
        assert_eq!(names.best_label(&[labels(&[("pod", "x")])], "instance"), None);
    }

    #[test]
    fn a_node_that_was_renamed_is_one_and_clones_are_not() {
        let seen = |name: &str, windows: &[usize]| {
            let mut node = Node::named(name);
            windows.iter().for_each(|w| node.set(Quantity::Busy, *w, 4, 1.0));
            node
        };
        let mut nodes = vec![seen("old", &[0, 1]), seen("new", &[2, 3]), seen("x", &[0, 1]), seen("y", &[1, 2])];
        let host = |name: &str| Some(name.to_string());
        let mut hosts = vec![host("h"), host("h"), host("clone"), host("clone")];
        let said = rejoin(&mut nodes, &mut hosts, 4);
        assert_eq!(said, ["new was old before"]);
        assert_eq!(nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["new", "x", "y"]);
        assert_eq!((nodes[0].seen(4), nodes[0].also.clone(), hosts.len()), (vec![true; 4], vec!["old".to_string()], 3));
    }
}
