//! What every way to another machine has in common.

use crate::firmware::Firmware;
use crate::node::{Node, NodeName};
use std::time::Duration;

/// What an order needs on the far side. A carrier gives no more than that: in a cluster, only [`Privilege::Changes`] gets a
/// privileged container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Reads files of the kernel.
    Reads,
    /// Measures or traces: BPF, PERFMON, real-time priority.
    Measures,
    /// Changes settings.
    Changes,
}

/// What to run on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Arguments of wakewatt, one by one; never a secret.
    pub arguments: Vec<String>,
    /// For its standard input; empty for none.
    pub input: Vec<u8>,
    /// What it needs.
    pub privilege: Privilege,
    /// Longest that it may take, the way there and back included.
    pub within: Duration,
    /// How much of its standard output is taken, in bytes; more is [`CarryError::TooLong`].
    pub at_most: usize,
    /// For how long something of it must go on living after it has answered (the guard of `--confirm-within`); zero for nothing.
    /// A carrier whose processes end with their container keeps the container that long.
    pub lives_on: Duration,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// wakewatt's exit code there.
    pub code: i32,
    /// Its standard output.
    pub output: Vec<u8>,
    /// The last of its standard error, for people; never decided on.
    pub said: String,
}

/// Why there is no answer. All of them count as a failed gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CarryError {
    /// Nothing can be reached: the program that carries is not here, or the inventory cannot be asked.
    #[error("{carrier}: {why}")]
    Carrier {
        /// ssh, kubectl.
        carrier: &'static str,
        /// What is wrong, and what to try.
        why: String,
    },
    /// This node cannot be reached.
    #[error("{node}: cannot be reached: {why}")]
    Unreachable {
        /// Which.
        node: NodeName,
        /// The carrier's words, shown safely.
        why: String,
    },
    /// No answer in time. What was ordered may have happened or not.
    #[error("{node}: no answer within {} s; it may have been done or not", within.as_secs())]
    TimedOut {
        /// Which.
        node: NodeName,
        /// The limit.
        within: Duration,
    },
    /// Refused on the way: no permission, host key unknown.
    #[error("{node}: refused: {why}")]
    Refused {
        /// Which.
        node: NodeName,
        /// The carrier's words, shown safely.
        why: String,
    },
    /// Longer than what is taken.
    #[error("{node}: the answer is longer than {at_most} bytes")]
    TooLong {
        /// Which.
        node: NodeName,
        /// The limit.
        at_most: usize,
    },
}

/// Who else sets on a node what a rollout would set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What kind it is, which decides whether it is in the way.
    pub kind: HolderKind,
    /// What it sets: an annotation with its value, a profile's name.
    pub name: String,
    /// Where: a pod with its namespace, the node.
    pub place: String,
}

/// Kinds of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderKind {
    /// A pod asks CRI-O for idle states or a governor.
    CrioAnnotation,
    /// The Node Tuning Operator keeps a tuned profile there.
    NodeTuningOperator,
    /// The kubelet gives whole CPUs to pods.
    CpuManager,
}

impl Holder {
    /// Would it write over what a rollout sets, or put it back?
    pub fn is_in_the_way(&self) -> bool {
        self.kind != HolderKind::CpuManager
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Holder { kind, name, place } = self;
        match kind {
            HolderKind::CrioAnnotation => {
                write!(
                    f,
                    "pod {place} asks CRI-O for {name}, which puts back what it found when the pod ends; take the annotation off, or leave this node out"
                )
            }
            HolderKind::NodeTuningOperator => {
                write!(
                    f,
                    "the Node Tuning Operator keeps the profile {name} on {place} and writes it again; put the settings into that profile"
                )
            }
            HolderKind::CpuManager => {
                write!(f, "the kubelet of {place} gives whole CPUs to pods (CPU manager policy {name})")
            }
        }
    }
}

/// A way to other machines. Asked from several threads at once.
pub trait Carrier: Sync {
    /// Its word: ssh, kubernetes.
    fn word(&self) -> &'static str;

    /// All nodes it can reach, by name.
    fn nodes(&self) -> Result<Vec<Node>, CarryError>;

    /// Runs an order on a node and waits for its answer. An exit code other than 0 is a [`Reply`].
    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError>;

    /// Does a process that an order leaves behind go on living once nothing waits for it? Not where it ends with its pod: what
    /// holds only while a process holds it cannot be set there.
    fn keeps_processes(&self) -> bool {
        true
    }

    /// Before the first change of a node: take it out of service where that is asked for and can be had (cordon). Nothing elsewhere.
    fn take_out(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }

    /// The same back.
    fn put_back(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }

    /// Who else sets there what a rollout would set; to be asked before the first change of a node. Nobody where the carrier
    /// has no way of knowing.
    fn holders(&self, _node: &NodeName) -> Result<Vec<Holder>, CarryError> {
        Ok(Vec::new())
    }

    /// The way to what the nodes' firmware holds, where this is one; it runs no orders then.
    fn firmware(&self) -> Option<&dyn Firmware> {
        None
    }

    /// Nothing of ours is needed on the node any more: a copied binary goes. Nothing where nothing is left behind.
    fn leave(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }
}
