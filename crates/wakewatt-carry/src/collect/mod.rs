//! The same questions to many nodes at once, each answer a file of its own, whole or not there.
//!
//! A few threads take node after node; a node is asked one thing at a time, because what measures must not be measured beside.
//! An answer is read by its own reader before it is written, and written through host's `place`, so a folder never holds half
//! of one. A node that cannot be reached is asked once, not for each thing. What the index of an earlier try calls whole, and
//! what still has that length and checksum on disk, is not asked for again.
//!
//! In memory are at most as many answers as threads, each no longer than its order allows.

mod index;
mod what;

#[cfg(test)]
mod tests;

pub use index::{Answer, Collected, Index, Outcome, Reason};
pub use what::{SHOW, SLACK, What, together};

use crate::carrier::{Carrier, CarryError};
use crate::node::{Node, NodeName};
use index::checksum;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};
use wakewatt_core::visible;
use wakewatt_host::input;
use wakewatt_host::place::Folder;

/// The index, in the folder of the collection.
pub const INDEX_FILE: &str = "index.json";
/// What a carrier or wakewatt said, at most so many characters of it.
const MOST_SAID: usize = 400;

/// What a collection takes.
#[derive(Clone, Copy)]
pub struct Collection<'a> {
    /// The way to the nodes.
    pub carrier: &'a dyn Carrier,
    /// Where files go.
    pub folder: &'a Folder,
    /// What each node is asked, in this order.
    pub asked: &'a [What],
    /// Nodes at once.
    pub n_parallel: usize,
    /// How much longer an answer may take than what it measures.
    pub slack: Duration,
    /// Set from outside: nothing new is asked then.
    pub stop: &'a AtomicBool,
    /// The time, as the index has it.
    pub now: &'a (dyn Fn() -> String + Sync),
}

/// A node with the name that its files have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The node.
    pub node: Node,
    /// What it is called in the folder.
    pub name: String,
    /// Is that another name, and may nothing tell the true one?
    pub is_masked: bool,
}

/// Nodes by their own names, or by numbers that `known` has or that follow its last one.
pub fn called(nodes: Vec<Node>, is_masked: bool, known: &mut BTreeMap<NodeName, String>) -> Vec<Called> {
    let name = |node: Node| {
        let name = match is_masked {
            false => node.name.to_string(),
            true => {
                let next = format!("node-{:04}", known.len() + 1);
                known.entry(node.name.clone()).or_insert(next).clone()
            }
        };
        Called { node, name, is_masked }
    };
    nodes.into_iter().map(name).collect()
}

/// Asks every node for what `index` does not have yet. After each node `told` sees the index; an error of it ends the collection.
pub fn collect<E>(
    collection: Collection<'_>,
    nodes: &[Called],
    index: &mut Index,
    told: &mut dyn FnMut(&Index, &str) -> Result<(), E>,
) -> Result<(), E> {
    index.asked = collection.asked.to_vec();
    let kept: Vec<Vec<Option<Answer>>> = nodes
        .iter()
        .map(|n| collection.asked.iter().map(|what| kept(&collection, index, &n.name, *what)).collect())
        .collect();
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let (answered, answers) = sync_channel(collection.n_parallel.max(1));
    std::thread::scope(|scope| {
        for _ in 0..collection.n_parallel.clamp(1, nodes.len().max(1)) {
            let answered: SyncSender<(usize, Vec<Answer>)> = answered.clone();
            scope.spawn(|| {
                let answered = answered;
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(node), Some(kept)) = (nodes.get(at), kept.get(at)) else { return };
                    let _ = answered.send((at, one(&collection, node, kept, &is_over)));
                }
            });
        }
        drop(answered);
        let mut outcome = Ok(());
        for (at, answers) in answers {
            let Called { node, name, is_masked } = &nodes[at];
            let labels = if *is_masked { BTreeMap::new() } else { node.labels.clone() };
            index.nodes.insert(name.clone(), Collected { labels, answers });
            index.written_at = (collection.now)();
            let (n_whole, n_all) = index.n_whole_of();
            index.is_complete = n_whole == n_all && index.nodes.len() >= nodes.len();
            if outcome.is_ok() {
                outcome = told(index, name);
                is_over.store(outcome.is_err(), Ordering::Relaxed);
            }
        }
        outcome
    })
}

/// What an earlier try has of it, if that is on disk as it was.
fn kept(collection: &Collection<'_>, index: &Index, name: &str, what: What) -> Option<Answer> {
    let answer = index.answer(name, what)?;
    let Outcome::Whole { file, bytes, crc32 } = &answer.outcome else { return None };
    // The index may be somebody else's: it names no file but the one that this node's answer has.
    if *file != file_name(name, what) {
        return None;
    }
    let read = input::read(&collection.folder.path().join(file), input::KEPT).ok()?;
    (read.len() as u64 == *bytes && checksum(&read) == *crc32).then(|| answer.clone())
}

fn file_name(name: &str, what: What) -> String {
    format!("{name}.{}", what.ending())
}

/// One node, one thing after the other.
fn one(collection: &Collection<'_>, called: &Called, kept: &[Option<Answer>], is_over: &AtomicBool) -> Vec<Answer> {
    let mut is_silent = false;
    let mut answers = Vec::new();
    for (what, kept) in collection.asked.iter().zip(kept) {
        let start = Instant::now();
        let is_stopped = collection.stop.load(Ordering::Relaxed) || is_over.load(Ordering::Relaxed);
        let missing = |reason: Reason| Outcome::Missing { reason, why: reason.words().into() };
        let outcome = match kept {
            Some(kept) => {
                answers.push(kept.clone());
                continue;
            }
            None if is_stopped => missing(Reason::Interrupted),
            None if is_silent => missing(Reason::NotAsked),
            None => asked(collection, called, *what),
        };
        is_silent |= matches!(&outcome, Outcome::Missing { reason, .. } if reason.is_of_the_way());
        let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        answers.push(Answer { what: *what, at: (collection.now)(), took_ms, outcome });
    }
    if !is_silent {
        // It has answered; that something of ours could not be cleared away is no reason to doubt what it said.
        let _ = collection.carrier.leave(&called.node.name);
    }
    answers
}

fn asked(collection: &Collection<'_>, called: &Called, what: What) -> Outcome {
    let missing = |reason: Reason, why: String| {
        // What was said there may hold the node's name, or somebody's.
        let why = if called.is_masked { reason.words().into() } else { short(&why) };
        Outcome::Missing { reason, why }
    };
    let reply = match collection.carrier.run(&called.node.name, &what.order(collection.slack)) {
        Ok(reply) => reply,
        Err(error) => return missing(Reason::of(&error), words(&error)),
    };
    if reply.code != 0 {
        return missing(Reason::Failed, format!("wakewatt ended with {}: {}", reply.code, reply.said.trim()));
    }
    if let Err(why) = what.check(&reply.output) {
        return missing(Reason::NotWhole, format!("what came for {} is not whole: {why}", what.word()));
    }
    let file = file_name(&called.name, what);
    match collection.folder.place(&file).and_then(|place| place.write(&reply.output)) {
        Ok(()) => Outcome::Whole { file, bytes: reply.output.len() as u64, crc32: checksum(&reply.output) },
        Err(why) => missing(Reason::NotWritten, why.to_string()),
    }
}

/// Why, without the node's name, which stands beside it.
fn words(error: &CarryError) -> String {
    match error {
        CarryError::Unreachable { why, .. } | CarryError::Refused { why, .. } => {
            format!("{}: {}", Reason::of(error).words(), why.trim())
        }
        CarryError::TimedOut { within, .. } => format!("no answer within {} s", within.as_secs()),
        CarryError::TooLong { at_most, .. } => format!("the answer is longer than {at_most} bytes"),
        CarryError::Carrier { .. } => error.to_string(),
    }
}

/// Foreign words: one line, and not without end.
fn short(text: &str) -> String {
    visible::line(text).chars().take(MOST_SAID).collect()
}
