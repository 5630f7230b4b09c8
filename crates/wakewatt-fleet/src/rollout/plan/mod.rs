//! A plan of a rollout: what is changed, on which nodes, in which stages, and what must hold before it goes on.
//!
//! What decides whether it goes on is declared before anything is changed. Unknown keys are refused with the nearest known
//! one: a gate that is misspelt and silently left out is worse than none. The time within which a node undoes itself unless
//! confirmed is computed from the stages; one that people give is refused when it cannot cover pause and gates.

mod file;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::parse;

use crate::measure::Measure;
use std::collections::BTreeMap;

/// A plan to begin with, every key explained.
pub const EXAMPLE: &str = include_str!("../../../plans/example.toml");

/// A plan, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Short; part of the name of the rollout.
    pub name: String,
    /// What is changed.
    pub change: Change,
    /// On which nodes.
    pub targets: Targets,
    /// In which order; the first is the canary.
    pub stages: Vec<Stage>,
    /// What must hold.
    pub gates: Vec<Gate>,
    /// What becomes of a stage that fails.
    pub on_failure: OnFailure,
    /// Nodes that may be left out (no answer before the change, a plan of another kind, refused) before a stage fails.
    pub max_left_out: usize,
    /// Nodes that are spoken to at once.
    pub parallel: usize,
    /// Longest that one order to a node may take, in milliseconds.
    pub order_ms: u64,
    /// Within which a node undoes itself unless confirmed, in milliseconds; `None`: computed for each stage.
    pub confirm_ms: Option<u64>,
}

/// What is changed: the words of `tune plan` and `tune apply`, or those of `bios plan`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// A shipped profile.
    pub profile: Option<String>,
    /// The latency budget.
    pub max_latency: Option<String>,
    /// Settings, each `KNOB[@PLACE]=VALUE`.
    pub set: Vec<String>,
    /// Settings of firmware instead, in words of `bios plan`; staged through the nodes' BMCs for the next boot.
    pub bios: Vec<String>,
    /// Restart a node after staging: an empty word for gently, else the BMC's kind. Without it nobody is restarted.
    pub reboot: Option<String>,
    /// How long a boot may take until the node's BIOS shows the change, in milliseconds.
    pub boot_ms: u64,
}

impl Change {
    /// Is it what firmware holds? Then a BMC is asked, nothing undoes itself, and what is set waits for a boot.
    pub fn is_firmware(&self) -> bool {
        !self.bios.is_empty()
    }

    /// Does it come into force at a boot that this rollout does not bring about? Then no gate says anything of it.
    pub fn waits_for_others(&self) -> bool {
        self.is_firmware() && self.reboot.is_none()
    }

    /// As arguments.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.profile.iter().cloned().collect();
        words.extend(self.max_latency.iter().map(|t| format!("--max-latency={t}")));
        words.extend(self.set.iter().map(|s| format!("--set={s}")));
        words.extend(self.bios.iter().cloned());
        words
    }
}

/// Which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// All that the inventory has.
    pub is_all: bool,
    /// By name.
    pub hosts: Vec<String>,
    /// In any of these groups.
    pub groups: Vec<String>,
    /// With all of these labels: `key=value`, or `key` for any value.
    pub labels: Vec<String>,
    /// Never these.
    pub except: Vec<String>,
}

impl Targets {
    /// Is this node meant?
    pub fn has(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let is_labelled = |wanted: &String| match wanted.split_once('=') {
            Some((key, value)) => labels.get(key).is_some_and(|v| v == value),
            None => labels.contains_key(wanted),
        };
        let is_grouped = self.groups.iter().any(|g| labels.contains_key(g));
        let is_named = self.hosts.iter().any(|h| h == name);
        let is_meant = self.is_all || is_grouped || (!self.labels.is_empty() && self.labels.iter().all(is_labelled));
        (is_named || is_meant) && !self.except.iter().any(|e| e == name)
    }
}

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// For people.
    pub name: String,
    /// How many nodes.
    pub size: Size,
    /// Between the change and its gates, in milliseconds.
    pub pause_ms: u64,
    /// Its gates, by their place in the plan.
    pub gates: Vec<usize>,
    /// What becomes of it when it fails.
    pub on_failure: OnFailure,
}

/// How many nodes of those that are meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many.
    Count(usize),
    /// So many of a hundred, rounded up.
    Percent(f64),
}

impl Size {
    /// In nodes.
    pub fn of(self, n_nodes: usize) -> usize {
        match self {
            Size::Count(n) => n,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the nodes
            Size::Percent(percent) => (n_nodes as f64 * percent / 100.0).ceil() as usize,
        }
    }
}

/// What becomes of a stage that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Its nodes are undone, earlier ones stay.
    UndoStage,
    /// Everything is undone.
    #[default]
    UndoAll,
    /// Nothing is ordered any more. What is not confirmed undoes itself.
    Stop,
}

/// What must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As stages name it.
    pub name: String,
    /// What is asked.
    pub kind: GateKind,
    /// What "cannot tell" means.
    pub cannot_tell: CannotTell,
    /// How long it is asked again while it cannot tell, in milliseconds.
    pub hold_ms: u64,
    /// Longest that one look may take, in milliseconds.
    pub within_ms: u64,
}

/// What "cannot tell" means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CannotTell {
    /// It is asked again for a while, and then has failed.
    #[default]
    Hold,
    /// It has failed.
    Fail,
    /// It has passed, which is said.
    Pass,
}

/// The kinds of gates.
#[derive(Clone, Debug, PartialEq)]
pub enum GateKind {
    /// Every value of a query lies below, above, or between.
    Promql {
        /// With `$changed` and `$unchanged` for the names of nodes, as a regular expression.
        query: String,
        /// Below this.
        below: Option<f64>,
        /// Above this.
        above: Option<f64>,
    },
    /// What the changed nodes did beside the unchanged ones of their hardware.
    Compare(Compare),
    /// A command of the operator's: 0 has passed, 3 cannot tell, anything else has failed.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// An experiment on one of the stage's nodes.
    Experiment {
        /// A shipped plan of `wakewatt experiment`.
        plan: String,
        /// The arm that is held against the baseline.
        arm: String,
        /// The metric.
        metric: String,
        /// The arm over the baseline must be shown to be at most this.
        at_most_ratio: f64,
    },
}

/// What is compared, and from where.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// What is compared.
    pub measure: Measure,
    /// Changed over unchanged, after over before, must be shown to be at most this.
    pub at_most_ratio: f64,
    /// How far back before the change, in milliseconds.
    pub before_ms: u64,
    /// Length of a window, in milliseconds.
    pub window_ms: u64,
    /// Queries, as of `fleet compare`: work per second.
    pub work: Option<String>,
    /// Latency, with `$quantile`.
    pub latency: Option<String>,
    /// CPU seconds per second of the work alone.
    pub cpu: Option<String>,
    /// Watts.
    pub power: Option<String>,
    /// Matchers of the nodes.
    pub select: String,
    /// The label that names a node.
    pub node_label: String,
}

impl Plan {
    /// The gates of a stage, with their places.
    pub fn gates_of(&self, stage: usize) -> impl Iterator<Item = (usize, &Gate)> {
        let all = self.stages.get(stage).map_or(&[][..], |s| &s.gates);
        all.iter().filter_map(|at| Some((*at, self.gates.get(*at)?)))
    }

    /// What a node of this stage needs to wait for its confirmation, in milliseconds, with everything as slow as it may be:
    /// orders to all of the stage in turns (applied, asked, looked at, confirmed, asked), pause, gates, and a minute.
    pub fn needed_ms(&self, stage: usize, n_nodes: usize) -> u64 {
        let turns = n_nodes.div_ceil(self.parallel.max(1)) as u64;
        // A look may begin when the time to hold is just up, and a store answer its last question late.
        let gates: u64 = self.gates_of(stage).map(|(_, g)| g.hold_ms.saturating_add(2 * g.within_ms)).sum();
        let pause_ms = self.stages.get(stage).map_or(0, |s| s.pause_ms);
        let orders = turns.saturating_mul(5).saturating_mul(self.order_ms);
        orders.saturating_add(pause_ms).saturating_add(gates).saturating_add(60_000)
    }

    /// Within which a node of this stage undoes itself unless confirmed, in milliseconds.
    pub fn window_ms(&self, stage: usize, n_nodes: usize) -> u64 {
        self.confirm_ms.unwrap_or_else(|| self.needed_ms(stage, n_nodes))
    }

    /// Which stage each of so many nodes belongs to; `None` for those that no stage reaches.
    pub fn stages_of(&self, n_nodes: usize) -> Vec<Option<usize>> {
        let mut of: Vec<Option<usize>> = Vec::with_capacity(n_nodes);
        for (at, stage) in self.stages.iter().enumerate() {
            let n = stage.size.of(n_nodes).min(n_nodes - of.len());
            of.extend(std::iter::repeat_n(Some(at), n));
        }
        of.resize(n_nodes, None);
        of
    }

    /// Why these stages cannot be carried out with so many nodes.
    pub fn unfit(&self, n_nodes: usize) -> Option<String> {
        // Here and not where a plan is read: one that was begun before this was asked for must still be ended, or taken back.
        let compares = |at: usize| self.gates_of(at).find(|(_, g)| matches!(g.kind, GateKind::Compare(_)));
        if let Some((_, gate)) = (0..self.stages.len()).find_map(compares).filter(|_| self.change.waits_for_others()) {
            return Some(format!(
                "gate {}: it would compare nodes that this plan does not boot, so nothing need be in force yet; add reboot = \"gently\", or compare after the boot",
                gate.name
            ));
        }
        let of = self.stages_of(n_nodes);
        let n_of = |at: usize| of.iter().filter(|s| **s == Some(at)).count();
        if let Some((_, stage)) = self.stages.iter().enumerate().find(|(at, _)| n_of(*at) == 0) {
            return Some(format!("stage {}: no node is left for it; {n_nodes} are meant", stage.name));
        }
        let mut n_before = 0;
        for (at, stage) in self.stages.iter().enumerate() {
            let n = n_of(at);
            let (given, needed) = (self.window_ms(at, n), self.needed_ms(at, n));
            if given < needed {
                let (given_s, needed_s) = (given / 1000, needed / 1000);
                return Some(format!(
                    "confirm_within = {given_s}s: stage {} with {n} nodes may take {needed_s} s from the first change to the last confirmation; give that, or leave it out",
                    stage.name
                ));
            }
            n_before += n;
            let n_unchanged = n_nodes - n_before;
            let compares = compares(at);
            let is_told = compares.is_some_and(|(_, g)| g.cannot_tell != CannotTell::Pass);
            if let (true, Some((_, gate))) = (is_told && n_unchanged < super::did::LEAST_UNCHANGED, compares) {
                return Some(format!(
                    "stage {}: only {n_unchanged} nodes stay unchanged beside it, and gate {} needs {}; leave it out of this stage (gates = [...]), or give it cannot_tell = \"pass\"",
                    stage.name,
                    gate.name,
                    super::did::LEAST_UNCHANGED
                ));
            }
        }
        None
    }
}
