//! The cluster as a carrier: nodes as the API server knows them, orders as Jobs, a cordon where one is asked for.
//!
//! An order is one Job with a name of its own (`job.rs`); its answer is read from the log of its pod while that still runs
//! (`answer.rs`), because the guard of `tune apply --confirm-within` lives in it and must go on living. What went wrong on the
//! way is told apart by the fields of objects, never by wording. Who is not waited for any longer is taken away, so that
//! nothing begins on a node after it was given up; and a pod that starts too late all the same refuses by its own clock.

pub mod answer;
mod api;
mod door;
mod holders;
mod http;
mod job;
mod node;
mod pod;

pub use api::{Api, ApiError, Body, Right, is_name};
pub use door::Kubectl;
pub use job::{INPUT, LONGEST_INPUT, Terms};
pub use node::PREFIX;

use crate::{Carrier, CarryError, Holder, Node, NodeName, Order, Privilege, Reply};
use answer::{Reader, Spoilt};
use pod::Stage;
use serde_json::json;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant, SystemTime};

/// How often a pod is looked at that has not started.
const LOOK: Duration = Duration::from_millis(300);
/// How long an image may not be had before that is an answer.
const NO_IMAGE: Duration = Duration::from_secs(30);
/// After which the cluster is asked why there is no pod yet.
const NO_POD: Duration = Duration::from_secs(5);
/// For what is done to tidy up, and for the questions around an order.
const SHORT: Duration = Duration::from_secs(15);

/// The carrier.
#[derive(Debug)]
pub struct Kubernetes {
    api: Api,
    terms: Terms,
}

impl Kubernetes {
    /// Nothing is started or asked yet.
    pub fn new(kubectl: Kubectl, terms: Terms) -> Kubernetes {
        Kubernetes { api: Api::new(kubectl), terms }
    }

    fn right(&self, verb: &'static str, resource: &'static str) -> Right<'_> {
        Right { verb, resource, namespace: Some(&self.terms.namespace) }
    }

    fn jobs(&self) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs", self.terms.namespace)
    }

    /// The way of a Job that was made, to its answer.
    fn answered(&self, node: &NodeName, order: &Order, name: &str, until: Instant) -> Result<Reply, CarryError> {
        let pods = format!("/api/v1/namespaces/{}/pods", self.terms.namespace);
        let list = format!("{pods}?labelSelector=job-name%3D{name}");
        let late = || CarryError::TimedOut { node: node.clone(), within: order.within };
        let (began, mut no_image_since) = (Instant::now(), None);
        loop {
            let found = self.api.ask(self.right("list", "pods"), &list, Body::None, until);
            let found = found.map_err(|e| after(e, node, order))?;
            let pod = &found["items"][0];
            let why = match pod::stage(pod) {
                Stage::Started | Stage::Ended => break,
                Stage::Failed(why) => return Err(CarryError::Unreachable { node: node.clone(), why }),
                Stage::Stuck(why) => return Err(not_begun(node, order, why)),
                Stage::Pending(why) => why,
            };
            if pod.is_null()
                && began.elapsed() > NO_POD
                && let Some(why) = self.why_no_pod(name)
            {
                return Err(not_begun(node, order, why));
            }
            no_image_since = pod::is_without_image(pod).then(|| no_image_since.unwrap_or_else(Instant::now));
            if no_image_since.is_some_and(|since: Instant| since.elapsed() > NO_IMAGE) {
                return Err(not_begun(node, order, why));
            }
            if Instant::now() + LOOK >= until {
                // It may start at the very moment; then a change may have been made.
                let is_sure = order.privilege != Privilege::Changes;
                let why = format!("its pod has not started within {} s: {why}", order.within.as_secs());
                return Err(if is_sure { CarryError::Unreachable { node: node.clone(), why } } else { late() });
            }
            std::thread::sleep(LOOK);
        }
        loop {
            let found = self.api.ask(self.right("list", "pods"), &list, Body::None, until);
            let found = found.map_err(|e| after(e, node, order))?;
            let pod = &found["items"][0];
            let was_ended = !matches!(pod::stage(pod), Stage::Started);
            let Some(pod_name) = pod["metadata"]["name"].as_str() else { return Err(late()) };
            match self.read_log(node, order, &format!("{pods}/{pod_name}"), until)? {
                Log::Answer(reply) => return Ok(reply),
                // Read to its end after it had ended: no more will come.
                Log::NoAnswer if was_ended => {
                    let state = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
                    let reason = state["reason"].as_str().unwrap_or("it was taken away");
                    let why = format!("its pod ended without an answer: {reason} (exit code {})", state["exitCode"]);
                    return Err(CarryError::Unreachable { node: node.clone(), why });
                }
                Log::NoAnswer | Log::Broken => {}
            }
            if Instant::now() + LOOK >= until {
                return Err(late());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The answer, if the log holds it; it is followed while it grows. A log that breaks off is read again from its beginning.
    fn read_log(&self, node: &NodeName, order: &Order, pod: &str, until: Instant) -> Result<Log, CarryError> {
        let path = format!(
            "{pod}/log?container=wakewatt&follow=true&limitBytes={}",
            order.at_most.saturating_mul(2) + (1 << 20)
        );
        let log = match self.api.follow(self.right("get", "pods/log"), &path, until) {
            Ok(log) => log,
            // Not there yet or no more, or nobody to ask: looked at again by the caller.
            Err(ApiError::Away(_) | ApiError::Missing(_) | ApiError::Refused { .. } | ApiError::Conflict(_)) => {
                return Ok(Log::Broken);
            }
            Err(error) => return Err(after(error, node, order)),
        };
        let (mut log, mut reader, mut line) = (BufReader::new(log), Reader::new(order.at_most), Vec::new());
        loop {
            line.clear();
            match log.by_ref().take(answer::LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => return Ok(Log::NoAnswer),
                Err(_) => return Ok(Log::Broken),
                Ok(_) => {}
            }
            match reader.line(&String::from_utf8_lossy(&line)) {
                Ok(None) => {}
                Ok(Some(answer)) if answer.is_late => {
                    return Err(CarryError::TimedOut { node: node.clone(), within: order.within });
                }
                Ok(Some(answer)) => {
                    return Ok(Log::Answer(Reply { code: answer.code, output: answer.output, said: answer.said }));
                }
                Err(Spoilt::TooLong) => {
                    return Err(CarryError::TooLong { node: node.clone(), at_most: order.at_most });
                }
                Err(Spoilt::Torn) => {
                    let why =
                        "its log lost a part of the answer; a larger containerLogMaxSize of the kubelet keeps it whole"
                            .into();
                    return Err(CarryError::Unreachable { node: node.clone(), why });
                }
            }
        }
    }

    /// What the cluster says of a Job that gets no pod: Pod Security, a quota, no such service account.
    fn why_no_pod(&self, name: &str) -> Option<String> {
        let path = format!(
            "/api/v1/namespaces/{}/events?fieldSelector=involvedObject.name%3D{name}%2Creason%3DFailedCreate",
            self.terms.namespace
        );
        let until = Instant::now() + SHORT;
        let events = self.api.ask_once(self.right("list", "events"), &path, Body::None, until).ok()?;
        let said = events["items"][0]["message"].as_str()?;
        Some(wakewatt_core::visible::line(said).chars().take(500).collect())
    }

    /// Takes a Job away, with its pod. Best effort: what has ended goes by itself.
    fn remove(&self, name: &str) -> Removed {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        let path = format!("{}/{name}", self.jobs());
        let until = Instant::now() + SHORT;
        match self.api.ask(self.right("delete", "jobs.batch"), &path, Body::Object(&options), until) {
            Err(ApiError::Missing(_)) => Removed::NeverWas,
            _ => Removed::Perhaps,
        }
    }
}

/// What taking a Job away came to.
#[derive(PartialEq, Eq)]
enum Removed {
    /// There was none of this name, which nobody else chooses.
    NeverWas,
    /// It goes, or nobody knows.
    Perhaps,
}

/// What a log came to.
enum Log {
    /// It holds the answer.
    Answer(Reply),
    /// It was read to its end, and holds none.
    NoAnswer,
    /// It broke off, or nobody could be asked.
    Broken,
}

/// What an error of the API is to a node's order that may have been made.
fn after(error: ApiError, node: &NodeName, order: &Order) -> CarryError {
    match error {
        ApiError::NoWay(why) => CarryError::Carrier { carrier: "kubectl", why },
        ApiError::Away(_) => CarryError::TimedOut { node: node.clone(), within: order.within },
        other => not_begun(node, order, other.to_string()),
    }
}

/// An order that has not begun as far as can be seen. The cluster may try again while its Job is there, so a change that could have been made is
/// never called refused.
fn not_begun(node: &NodeName, order: &Order, why: String) -> CarryError {
    let node = node.clone();
    match order.privilege {
        Privilege::Changes => CarryError::Unreachable { node, why },
        Privilege::Reads | Privilege::Measures => CarryError::Refused { node, why },
    }
}

/// What it is where nothing was ordered yet.
fn before(error: ApiError, node: &NodeName) -> CarryError {
    match error {
        ApiError::Missing(why) => CarryError::Unreachable { node: node.clone(), why: format!("no such node: {why}") },
        ApiError::Forbidden { .. } => CarryError::Refused { node: node.clone(), why: error.to_string() },
        other => CarryError::Carrier { carrier: "kubectl", why: other.to_string() },
    }
}

impl Carrier for Kubernetes {
    fn word(&self) -> &'static str {
        "kubernetes"
    }

    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        node::all(&self.api)
    }

    fn keeps_processes(&self) -> bool {
        false
    }

    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        let (until, start_before) = (Instant::now() + order.within, SystemTime::now() + order.within);
        let refused = |why: String| CarryError::Refused { node: node.clone(), why };
        if !is_name(&self.terms.namespace) {
            return Err(refused(format!("{:?} is no name of a namespace", self.terms.namespace)));
        }
        let input =
            std::str::from_utf8(&order.input).ok().filter(|text| !text.contains('\0') && text.len() <= LONGEST_INPUT);
        let input = input.ok_or_else(|| refused(format!("its input is no text of at most {LONGEST_INPUT} bytes")))?;
        let found = node::one(&self.api, node, until).map_err(|e| before(e, node))?;
        if !node::is_ready(&found) {
            return Err(CarryError::Unreachable {
                node: node.clone(),
                why: "the cluster says that it is not ready".into(),
            });
        }
        let name = format!("wakewatt-{:016x}", RandomState::new().build_hasher().finish());
        let job = job::manifest(&self.terms, &name, node, order, input, start_before);
        let path = format!("{}?fieldValidation=Strict", self.jobs());
        match self.api.ask(self.right("create", "jobs.batch"), &path, Body::Object(&job), until) {
            // There already: by an earlier try, whose answer was lost; the name is nobody else's.
            Ok(_) | Err(ApiError::Conflict(_)) => {}
            Err(error) => {
                // Refused with nothing there: no earlier try, whose answer was lost, has made it either.
                let is_refusal = matches!(error, ApiError::Refused { .. } | ApiError::Forbidden { .. });
                let may_be_there = matches!(error, ApiError::Away(_)) || order.privilege == Privilege::Changes;
                if may_be_there && self.remove(&name) == Removed::NeverWas && is_refusal {
                    return Err(refused(error.to_string()));
                }
                return Err(after(error, node, order));
            }
        }
        let reply = self.answered(node, order, &name, until);
        // What lives on is left alone; it goes by itself.
        if order.lives_on.is_zero() || reply.is_err() {
            self.remove(&name);
        }
        reply
    }

    fn take_out(&self, node: &NodeName) -> Result<(), CarryError> {
        if self.terms.is_cordoning { node::cordon(&self.api, node).map_err(|e| before(e, node)) } else { Ok(()) }
    }

    fn put_back(&self, node: &NodeName) -> Result<(), CarryError> {
        // Also where this call was not told to cordon: another one, which was killed, may have been. Only our own cordon is taken back.
        node::uncordon(&self.api, node).map_err(|e| before(e, node))
    }

    fn holders(&self, node: &NodeName) -> Result<Vec<Holder>, CarryError> {
        holders::of(&self.api, node).map_err(|e| before(e, node))
    }
}

#[cfg(test)]
mod tests;
