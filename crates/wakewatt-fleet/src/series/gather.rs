//! The table of a fleet, question by question: who is there, what they are, their numbers, and the work of the user's query.

use super::answer::Labels;
use super::ask::{Door, Refusal, Taker, ask};
use super::hardware;
use super::names::{Names, rejoin};
use super::promql::{About, Words};
use super::settings::{DEEPEST, IdleStates, told};
use crate::measure::Quantity;
use crate::table::{Node, Table, Window};
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;

/// What is wanted of a store.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The label that names a node: `instance`.
    pub label: String,
    /// Matchers for every question on nodes: `job="node"`.
    pub matchers: String,
    /// Windows of equal length.
    pub windows: Vec<Window>,
    /// PromQL: pieces of work per second by node.
    pub work: Option<String>,
    /// PromQL: seconds of latency by node, with `$quantile`.
    pub latency: Option<String>,
    /// PromQL: CPU seconds per second by node, in place of all that the node did.
    pub cpu: Option<String>,
    /// PromQL: watts by node, in place of RAPL.
    pub power: Option<String>,
    /// Settings that peers must have in common, by the name they are told under: `kernel`.
    pub peers_by: Vec<String>,
}

/// A table, and what must be known with it.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The fleet.
    pub table: Table,
    /// What must be known with the numbers.
    pub remarks: Vec<String>,
    /// What the agent on each node would add.
    pub agent_would_add: Vec<String>,
}

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// The store refused, or answered what it should not.
    #[error("{0}")]
    Refused(Refusal),
    /// No series of CPU time.
    #[error(
        "no node was found: neither node_cpu_seconds_total nor wakewatt_cpu_seconds_total{0} has a rate in this time; a window must hold two samples (--last, --windows), and label and matchers must fit (--node-label, --select)"
    )]
    NoNodes(String),
    /// The user's query names no node.
    #[error(
        "{query}: none of its {n_series} series names a node that was found; its labels are {labels}; group it by a label that does, such as sum by (instance) (…)"
    )]
    Unmatched {
        /// The query.
        query: String,
        /// Its series.
        n_series: usize,
        /// Labels of the first.
        labels: String,
    },
}

impl From<Refusal> for Nothing {
    fn from(refusal: Refusal) -> Nothing {
        Nothing::Refused(refusal)
    }
}

/// More nodes, or series of one question, are left out: a store may have, or invent, any number.
const MOST_SERIES: usize = 100_000;

/// Asks a store for all of it.
pub fn gather(door: &dyn Door, wanted: &Wanted) -> Result<Gathered, Nothing> {
    let window_s = wanted.windows.first().map_or(1, |w| (w.to_ms - w.from_ms) / 1000).max(1);
    let words = Words { label: &wanted.label, matchers: &wanted.matchers, window_s };
    let mut gathering = Gathering { door, wanted, words, table: Table::default(), remarks: Vec::new() };
    gathering.table.windows.clone_from(&wanted.windows);
    gathering.find_nodes()?;
    let found = gathering.describe()?;
    let names = Names::of(&gathering.table.nodes);
    for quantity in Quantity::ALL {
        gathering.numbers(quantity, &names)?;
    }
    let user = [(&wanted.work, Quantity::Work), (&wanted.cpu, Quantity::Busy), (&wanted.power, Quantity::Watts)];
    for (promql, quantity) in user {
        if let Some(promql) = promql {
            // The part of a node that does the work has no load average and no system time of its own.
            let others = [Quantity::System, Quantity::Load, Quantity::Cycles];
            let gone = others.into_iter().filter(|_| quantity == Quantity::Busy).chain([quantity]);
            gone.for_each(|q| gathering.table.nodes.iter_mut().for_each(|n| n.forget(q)));
            gathering.of_user(promql, quantity, &names)?;
        }
    }
    // Counted cycles and those of a clock that the kernel wishes for are not compared with each other.
    gathering.table.has_counted_cycles = gathering.table.has(Quantity::Cycles);
    if gathering.table.has_counted_cycles {
        gathering.table.nodes.iter_mut().for_each(|n| n.forget(Quantity::Clock));
    }
    if let Some(promql) = &wanted.latency {
        for (share, quantity) in [("0.9", Quantity::P90), ("0.99", Quantity::P99)] {
            gathering.of_user(&promql.replace("$quantile", share), quantity, &names)?;
        }
    }
    let agent_would_add = would_add(&gathering.table, &found);
    gathering.say_gaps();
    Ok(Gathered { table: gathering.table, remarks: gathering.remarks, agent_would_add })
}

struct Gathering<'a> {
    door: &'a dyn Door,
    wanted: &'a Wanted,
    words: Words<'a>,
    table: Table,
    remarks: Vec<String>,
}

/// The newest of what describing series said of a node, in the order it was asked.
type Described = Vec<(About, Labels, usize, f64)>;

impl Gathering<'_> {
    /// Who has used CPU time.
    fn find_nodes(&mut self) -> Result<(), Nothing> {
        let n_windows = self.table.windows.len();
        for promql in self.words.of_quantity(Quantity::Busy) {
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            let mut found: Vec<(usize, usize, f64)> = Vec::new();
            let mut whose = |labels: &Labels| {
                let name = labels.get(&self.wanted.label).filter(|name| !name.is_empty())?;
                let next = places.len();
                if next >= MOST_SERIES && !places.contains_key(name) {
                    return None;
                }
                Some(*places.entry(name.clone()).or_insert(next))
            };
            let mut taker = Taker { whose: &mut whose, take: &mut |n, w, value| found.push((n, w, value)) };
            // How many there are is not known yet: a thousand is a usual large fleet.
            ask(self.door, &promql, &self.table.windows, 1000, &mut taker)?;
            if places.is_empty() {
                continue;
            }
            let mut nodes: Vec<Node> = vec![Node::default(); places.len()];
            for (name, at) in places {
                nodes[at].name = name;
            }
            for (node, window, value) in found {
                nodes[node].set(Quantity::Busy, window, n_windows, value);
            }
            nodes.arrange_by(|a, b| a.name.cmp(&b.name));
            self.table.nodes = nodes;
            return Ok(());
        }
        let matchers = &self.wanted.matchers;
        Err(Nothing::NoNodes(if matchers.is_empty() { String::new() } else { format!(" with {matchers}") }))
    }

    /// Hardware, settings and names; how many described themselves by the agent.
    fn describe(&mut self) -> Result<Found, Nothing> {
        let n_nodes = self.table.nodes.len();
        let mut described: Vec<Described> = vec![Vec::new(); n_nodes];
        let mut names = Names::of(&self.table.nodes);
        let mut found = Found::default();
        for (about, promql) in self.words.described() {
            // The next ones speak by names that those before have told.
            if matches!(about, About::KubeNode | About::KubeLabels) {
                self.name(&described);
                names = Names::of(&self.table.nodes);
            }
            let mut all: Vec<(usize, Labels, usize, f64)> = Vec::new();
            let mut places: BTreeMap<Labels, usize> = BTreeMap::new();
            let mut kept: Vec<(usize, Labels)> = Vec::new();
            let mut whose = |labels: &Labels| {
                let keys: &[&str] = match about {
                    About::KubeNode | About::KubeLabels => &["internal_ip", "node"],
                    _ => &[self.wanted.label.as_str()],
                };
                let node = keys.iter().find_map(|key| names.find(labels.get(*key)?))?;
                let next = kept.len();
                if next >= MOST_SERIES && !places.contains_key(labels) {
                    return None;
                }
                let place = *places.entry(labels.clone()).or_insert(next);
                if place == next {
                    kept.push((node, labels.clone()));
                }
                Some(place)
            };
            let mut newest: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
            let mut take = |place: usize, window: usize, value: f64| {
                let known = newest.entry(place).or_insert((window, value));
                if window >= known.0 {
                    *known = (window, value);
                }
            };
            let n_series = n_nodes * if about == About::ExitLatency || about == About::Disabled { 6 } else { 1 };
            let asked = ask(
                self.door,
                &promql,
                &self.table.windows,
                n_series,
                &mut Taker { whose: &mut whose, take: &mut take },
            );
            match asked {
                Ok(_) => {}
                // A fleet can be compared without.
                Err(why) => self.remarks.push(format!("Not known, because the store refused: {why}")),
            }
            for (place, (window, value)) in newest {
                let (node, labels) = kept[place].clone();
                all.push((node, labels, window, value));
            }
            all.arrange_by_key(|(_, _, window, _)| *window);
            found.n_settings += usize::from(about == About::Settings && !all.is_empty());
            found.n_exits += usize::from(about == About::ExitLatency && !all.is_empty());
            for (node, labels, window, value) in all {
                described[node].push((about, labels, window, value));
            }
        }
        self.name(&described);
        self.learn(&described);
        Ok(found)
    }

    /// Other names, from labels that are names.
    fn name(&mut self, described: &[Described]) {
        for (node, described) in self.table.nodes.iter_mut().zip(described) {
            for (about, labels, _, _) in described {
                let key = match about {
                    About::Uname => "nodename",
                    About::KubeNode => "node",
                    _ => continue,
                };
                let name = labels.get(key).filter(|n| !n.is_empty() && **n != node.name);
                node.also.extend(name.filter(|n| !node.also.contains(n)).cloned());
            }
        }
    }

    fn learn(&mut self, described: &[Described]) {
        let mut host_names: Vec<Option<String>> = Vec::new();
        let n_windows = self.table.windows.len();
        let mut n_cpus: Vec<Option<u32>> = vec![None; self.table.nodes.len()];
        let names = Names::of(&self.table.nodes);
        let n_nodes = self.table.nodes.len();
        // How many CPUs there are makes cores into threads, and is asked again with the other numbers.
        for promql in self.words.of_quantity(Quantity::Cpus) {
            let mut whose = |labels: &Labels| names.find(labels.get(&self.wanted.label)?);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating, and negative becomes 0
            let mut take = |node: usize, _: usize, value: f64| n_cpus[node] = Some(value as u32);
            let mut taker = Taker { whose: &mut whose, take: &mut take };
            if ask(self.door, &promql, &self.table.windows, n_nodes, &mut taker).is_ok_and(|n| n > 0) {
                break;
            }
        }
        for ((node, described), n_cpus) in self.table.nodes.iter_mut().zip(described).zip(&n_cpus) {
            let mut states = IdleStates::default();
            let mut host_name = None;
            let mut hardware = crate::table::Hardware { n_cpus: *n_cpus, ..Default::default() };
            // Two values at one time are two ways to say it, not a change.
            let mut told_at: BTreeMap<&str, (About, usize)> = BTreeMap::new();
            for (about, labels, window, value) in described {
                hardware::learn(&mut hardware, *about, labels, *value, *n_cpus);
                states.learn(*about, labels, *value);
                if *about == About::Uname {
                    host_name = labels.get("nodename").cloned();
                }
                for (what, value) in told(*about, labels, *value) {
                    let before = node.settings.insert(what.into(), value.clone());
                    let is_later =
                        told_at.insert(what, (*about, *window)).is_some_and(|(a, w)| a == *about && w < *window);
                    if is_later && before.is_some_and(|b| b != value) && !node.changed.iter().any(|c| c == what) {
                        node.changed.push(what.into());
                    }
                }
            }
            node.settings.extend(states.deepest(*n_cpus).map(|words| (DEEPEST.to_string(), words)));
            let also = self.wanted.peers_by.iter();
            hardware.also = also.filter_map(|what| Some(format!("{what} {}", node.settings.get(what)?))).collect();
            node.hardware = hardware;
            host_names.push(host_name);
        }
        let said = rejoin(&mut self.table.nodes, &mut host_names, n_windows);
        self.remarks.extend(said.iter().take(8).map(|line| format!("Taken as one node: {line}.")));
    }

    fn numbers(&mut self, quantity: Quantity, names: &Names) -> Result<(), Nothing> {
        // Busy time is known since nodes were looked for.
        if quantity == Quantity::Busy {
            return Ok(());
        }
        let (n_windows, n_nodes) = (self.table.windows.len(), self.table.nodes.len());
        for promql in self.words.of_quantity(quantity) {
            let nodes = &mut self.table.nodes;
            let mut whose = |labels: &Labels| names.find(labels.get(&self.wanted.label)?);
            let mut take = |node: usize, window: usize, value: f64| nodes[node].set(quantity, window, n_windows, value);
            let mut taker = Taker { whose: &mut whose, take: &mut take };
            match ask(self.door, &promql, &self.table.windows, n_nodes, &mut taker) {
                Ok(0) => {}
                Ok(_) => break,
                Err(why) => self.remarks.push(format!("Not known, because the store refused: {why}")),
            }
        }
        Ok(())
    }

    /// The user's own numbers; series of one node are added up, of a latency the largest counts.
    fn of_user(&mut self, promql: &str, quantity: Quantity, names: &Names) -> Result<(), Nothing> {
        let (n_windows, n_nodes) = (self.table.windows.len(), self.table.nodes.len());
        let mut all: Vec<Labels> = Vec::new();
        let mut places: BTreeMap<Labels, usize> = BTreeMap::new();
        let mut found: Vec<(usize, usize, f64)> = Vec::new();
        let mut whose = |labels: &Labels| {
            let next = all.len();
            if next >= MOST_SERIES && !places.contains_key(labels) {
                return None;
            }
            let place = *places.entry(labels.clone()).or_insert(next);
            if place == next {
                all.push(labels.clone());
            }
            Some(place)
        };
        let mut taker = Taker { whose: &mut whose, take: &mut |p, w, value| found.push((p, w, value)) };
        ask(self.door, &self.words.of_user(promql), &self.table.windows, n_nodes, &mut taker)?;
        if all.len() >= MOST_SERIES {
            self.remarks.push(format!("{promql}: only its first {MOST_SERIES} series count; sum them by node."));
        }
        let label = names.best_label(&all, &self.wanted.label).ok_or_else(|| Nothing::Unmatched {
            query: promql.into(),
            n_series: all.len(),
            labels: all.first().map_or("none".into(), |l| format!("{l:?}")),
        })?;
        let node_of: Vec<Option<usize>> = all.iter().map(|l| names.find(l.get(&label)?)).collect();
        let n_foreign = node_of.iter().filter(|n| n.is_none()).count();
        if n_foreign > 0 {
            let remark =
                format!("{promql}: {n_foreign} of {} series name no node that was found (by {label}).", all.len());
            self.remarks.push(remark);
        }
        let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (place, window, value) in found {
            let Some(node) = node_of[place] else { continue };
            let sum = sums.entry((node, window)).or_default();
            *sum = if matches!(quantity, Quantity::P90 | Quantity::P99) { sum.max(value) } else { *sum + value };
        }
        for ((node, window), value) in sums {
            self.table.nodes[node].set(quantity, window, n_windows, value);
        }
        Ok(())
    }

    fn say_gaps(&mut self) {
        let n_windows = self.table.windows.len();
        let of_node = |n: &Node| n.counts(n_windows).iter().zip(n.seen(n_windows)).filter(|(c, s)| !**c && *s).count();
        let n_left: usize = self.table.nodes.iter().map(of_node).sum();
        if n_left > 0 {
            self.remarks
                .push(format!("Windows left out because the store has less than half of a node's samples: {n_left}."));
        }
        if self.table.has(Quantity::Watts) && self.wanted.power.is_none() {
            self.remarks.push("Energy is that of the processors (RAPL). A store takes the wrap of such a counter for a reset and loses what was counted since the sample before it.".into());
        }
        let n_changed = self.table.nodes.iter().filter(|n| !n.changed.is_empty()).count();
        if n_changed > 0 {
            self.remarks.push(format!(
                "Nodes on which a setting changed within the time: {n_changed}; the newest value is told."
            ));
        }
    }
}

/// Who described himself.
#[derive(Default)]
struct Found {
    n_settings: usize,
    n_exits: usize,
}

fn would_add(table: &Table, found: &Found) -> Vec<String> {
    let mut out: Vec<&str> = Vec::new();
    if found.n_settings == 0 {
        out.push("idle driver and governor, frequency driver and governor, turbo, SMT, microcode, BIOS: what is set otherwise on an odd node could be named");
    }
    if found.n_exits == 0 {
        out.push("the idle states each node may enter and who limits them: what a wake-up may cost could be predicted");
    }
    if !table.has(Quantity::Clock) && !table.has(Quantity::Cycles) {
        out.push("clocks: cycles per request, which tell a slow clock from more work");
    }
    if !table.has(Quantity::Watts) {
        out.push("watts of the processors, where they can be read: joules per request");
    }
    out.into_iter().map(String::from).collect()
}
