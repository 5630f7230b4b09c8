//! How far a rollout has come: the document `wakewatt/fleet-rollout/v1`, which is also what is kept between two runs.
//!
//! A node's step is written down before it is ordered (`applying`) and again when it is known what came of it (`applied`). In
//! between, and after a crash in between, the node itself is asked. The document holds the plan's text, so that going on needs
//! nothing but the book it lies in.

use super::gate::Verdict;
use super::kind::Kind;
use super::plan::Plan;
use serde::{Deserialize, Serialize};

/// The word of the way that reaches firmware, among carriers.
pub const FIRMWARE: &str = "bmc";
/// Its name.
pub const SCHEMA: &str = "wakewatt/fleet-rollout/v1";

/// A rollout with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rollout {
    /// The plan's name and a random number: what transactions on the nodes are marked with.
    pub id: String,
    /// The plan's name.
    pub name: String,
    /// The plan file, whole.
    pub plan: String,
    /// How nodes are reached: ssh, kubernetes, bmc.
    pub carrier: String,
    /// Who began it: user and machine.
    pub by: String,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// What is being done.
    pub phase: Phase,
    /// The stage that it is in.
    pub stage: usize,
    /// The canary's kind of plan, which all must have.
    pub kind: Option<Kind>,
    /// Each stage of the plan, in order.
    pub stages: Vec<StageState>,
    /// Each node, in the order in which they are changed.
    pub nodes: Vec<NodeState>,
    /// How it ended.
    pub end: Option<End>,
    /// Why it did not go on.
    pub why: Option<String>,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The stage's nodes are asked whether they answer, and for their plans.
    Checking,
    /// They are changed.
    Changing,
    /// Nothing is done before this moment.
    Pausing {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
    /// They are asked whether the change still holds.
    Looking,
    /// Gates are asked.
    Gating {
        /// Which of the plan's gates comes next.
        gate: usize,
        /// When it is asked (again), in milliseconds since 1970.
        at_ms: u64,
        /// Until when it may say that it cannot tell, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The stage is kept.
    Confirming,
    /// Nodes are put back.
    Undoing {
        /// All, not only this stage's.
        is_all: bool,
    },
    /// Nothing more is done.
    Ended,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Every stage has passed.
    Done,
    /// A stage has failed; its nodes are as before, earlier stages stay.
    StageUndone,
    /// All nodes are as before.
    AllUndone,
    /// A stage has failed and nothing was ordered: what is not confirmed undoes itself.
    Stopped,
    /// Some node could not be put back, or nobody knows.
    NotUndone,
}

/// A stage and its moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageState {
    /// The stage's name in the plan.
    pub name: String,
    /// When its first node was ordered to change, in milliseconds since 1970.
    pub began_ms: Option<u64>,
    /// When its last node had been changed, in milliseconds since 1970.
    pub changed_ms: Option<u64>,
    /// When it was kept, in milliseconds since 1970.
    pub passed_ms: Option<u64>,
    /// What its gates said, the latest of each.
    pub gates: Vec<GateState>,
}

/// What a gate said in a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateState {
    /// The gate's name.
    pub name: String,
    /// When it was asked, in milliseconds since 1970.
    pub at_ms: u64,
    /// What it said.
    pub verdict: Verdict,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Is {
    /// Nothing was ordered.
    Waiting,
    /// The change was ordered.
    Applying,
    /// It has it, and undoes itself unless confirmed.
    Applied,
    /// Confirmation was ordered.
    Confirming,
    /// It keeps it.
    Confirmed,
    /// Undoing was ordered.
    Undoing,
    /// It is as before.
    Undone,
    /// Its old values are staged and come back at its next boot.
    UndoWaits,
    /// It was so already; nothing was changed.
    Unchanged,
    /// Left out: it does not answer, its plan is of another kind, or it refused. Nothing stays changed.
    Refused,
    /// It does not answer, and may be changed.
    Lost,
}

/// A node and what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeState {
    /// The node's name as its carrier has it.
    pub name: String,
    /// The stage that it belongs to; none where no stage reaches it.
    pub stage: Option<usize>,
    /// What it is.
    pub is: Is,
    /// Since when, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its transaction, as `tune status` names it there.
    pub id: Option<String>,
    /// When it undoes itself at the latest, unless confirmed; in milliseconds since 1970 by the operator's clock.
    pub undone_by_ms: Option<u64>,
    /// Was it told to keep it?
    pub is_confirmed: bool,
    /// Its plan was looked at in this stage, and is of the canary's kind.
    pub is_checked: bool,
    /// What came of the last order is not known: it must be asked, not before this moment in milliseconds since 1970.
    pub ask_at_ms: Option<u64>,
    /// What was last staged there waits for its next boot.
    #[serde(default)]
    pub waits_for_boot: bool,
    /// Orders of one sort that had no good answer.
    pub n_tries: u32,
    /// Why it is so.
    pub why: Option<String>,
}

impl NodeState {
    fn new(name: String, stage: Option<usize>, at_ms: u64) -> NodeState {
        NodeState {
            name,
            stage,
            is: Is::Waiting,
            at_ms,
            id: None,
            undone_by_ms: None,
            is_confirmed: false,
            is_checked: false,
            ask_at_ms: None,
            waits_for_boot: false,
            n_tries: 0,
            why: None,
        }
    }

    /// May it have the change now?
    pub fn may_be_changed(&self) -> bool {
        matches!(self.is, Is::Applying | Is::Applied | Is::Confirming | Is::Confirmed | Is::Undoing | Is::Lost)
    }

    /// From now on it is this.
    pub(super) fn becomes(&mut self, is: Is, now_ms: u64) {
        (self.is, self.at_ms, self.ask_at_ms, self.n_tries) = (is, now_ms, None, 0);
    }
}

/// Who begins what.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// The plan's name and a random number.
    pub id: String,
    /// How nodes are reached.
    pub carrier: String,
    /// User and machine.
    pub by: String,
    /// In milliseconds since 1970.
    pub now_ms: u64,
}

impl Rollout {
    /// A new one on these nodes, in the order in which they are to be changed.
    pub fn new(plan: &Plan, text: &str, nodes: Vec<String>, beginning: Beginning) -> Rollout {
        let of = plan.stages_of(nodes.len());
        let node = |(name, stage)| NodeState::new(name, stage, beginning.now_ms);
        let stage = |s: &super::plan::Stage| StageState { name: s.name.clone(), ..StageState::default() };
        Rollout {
            id: beginning.id,
            name: plan.name.clone(),
            plan: text.into(),
            carrier: beginning.carrier,
            by: beginning.by,
            began_ms: beginning.now_ms,
            ended_ms: None,
            phase: Phase::Checking,
            stage: 0,
            kind: None,
            stages: plan.stages.iter().map(stage).collect(),
            nodes: nodes.into_iter().zip(of).map(node).collect(),
            end: None,
            why: None,
        }
    }

    /// As bytes for a book.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut value = serde_json::to_value(self).map_err(|e| e.to_string())?;
        value["schema"] = SCHEMA.into();
        serde_json::to_vec(&value).map_err(|e| e.to_string())
    }

    /// From a book. What is of another version, or does not hang together, is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Rollout, String> {
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if value.get("schema").and_then(serde_json::Value::as_str) != Some(SCHEMA) {
            return Err(format!("is no {SCHEMA}"));
        }
        let rollout: Rollout = serde_json::from_value(value).map_err(|e| e.to_string())?;
        let n_stages = rollout.stages.len();
        let is_whole = rollout.stage < n_stages && rollout.nodes.iter().all(|n| n.stage.is_none_or(|s| s < n_stages));
        if is_whole { Ok(rollout) } else { Err("names a stage that is not there".into()) }
    }

    /// The nodes of a stage, by their place.
    pub fn of_stage(&self, stage: usize) -> impl Iterator<Item = (usize, &NodeState)> {
        self.nodes.iter().enumerate().filter(move |(_, n)| n.stage == Some(stage))
    }
}
