//! What every way to another machine has in common.

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

/// A way to other machines. Asked from several threads at once.
pub trait Carrier: Sync {
    /// Its word: ssh, kubernetes.
    fn word(&self) -> &'static str;

    /// All nodes it can reach, by name.
    fn nodes(&self) -> Result<Vec<Node>, CarryError>;

    /// Runs an order on a node and waits for its answer. An exit code other than 0 is a [`Reply`].
    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError>;

    /// Before the first change of a node: take it out of service where that is asked for and can be had (cordon). Nothing elsewhere.
    fn take_out(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }

    /// The same back.
    fn put_back(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }

    /// Nothing of ours is needed on the node any more: a copied binary goes. Nothing where nothing is left behind.
    fn leave(&self, _node: &NodeName) -> Result<(), CarryError> {
        Ok(())
    }
}
