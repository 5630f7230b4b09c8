//! What a task is on a node, in words of `wakewatt tune`, and what came of it.
//!
//! A transaction is known by its note: the rollout's name and random number stand in its purpose, whoever asks. An answer that
//! is missing, cut short or not understood is never taken for success: it means that nobody knows, and the node is asked.

use crate::carrier::{Carrier, CarryError, Order, Privilege, Reply};
use crate::node::NodeName;
use serde_json::Value;
use std::time::Duration;
use wakewatt_core::visible;
use wakewatt_fleet::rollout::kind::kind_of;
use wakewatt_fleet::rollout::machine::{Found, How, Outcome, Waits};
use wakewatt_fleet::rollout::plan::Plan;

/// A plan for a machine with hundreds of CPUs is some megabytes.
const MOST_BYTES: usize = 64 << 20;
/// `tune`'s exit codes: fine, refused with nothing changed, busy, wrong words; and those of `tune status` that still come with a document.
const FINE: i32 = 0;
const USAGE: i32 = 2;
const REFUSED: i32 = 7;
const BUSY: i32 = 8;
const STATUS: &[i32] = &[0, 5, 6];

/// Orders of one rollout.
pub(super) struct Orders<'a> {
    pub(super) carrier: &'a dyn Carrier,
    pub(super) plan: &'a Plan,
    /// The rollout's id, which transactions are marked with.
    pub(super) id: &'a str,
}

impl Orders<'_> {
    fn run(
        &self,
        node: &NodeName,
        words: &[&str],
        more: Vec<String>,
        privilege: Privilege,
        lives_on: Duration,
    ) -> Result<Reply, CarryError> {
        let arguments = words.iter().map(ToString::to_string).chain(more).collect();
        let within = Duration::from_millis(self.plan.order_ms);
        let order = Order { arguments, input: Vec::new(), privilege, within, at_most: MOST_BYTES, lives_on };
        self.carrier.run(node, &order)
    }

    /// A node's own plan, as `tune plan --json` has it, or `bios plan --json`.
    pub(super) fn planned(&self, node: &NodeName) -> Result<Value, String> {
        if let Some(firmware) = self.carrier.firmware() {
            return firmware.planned(node, &self.plan.change);
        }
        let holders = self.carrier.holders(node).map_err(|e| e.to_string())?;
        if let Some(holder) = holders.iter().find(|holder| holder.is_in_the_way()) {
            return Err(holder.to_string());
        }
        let words = self.plan.change.words();
        let reply = self.run(node, &["tune", "plan", "--json"], words, Privilege::Reads, Duration::ZERO);
        let reply = reply.map_err(|e| why(node, &e))?;
        match reply.code {
            FINE | REFUSED => {
                let plan = document(&reply, "wakewatt/tune-plan/v1")?;
                match held(&plan).filter(|_| !self.carrier.keeps_processes()) {
                    Some(what) => Err(format!(
                        "{what} is in force only while a process holds it, which here ends with its pod; limit idle states one by one (idle.state) or CPU by CPU (qos.cpu), or roll out over ssh"
                    )),
                    None => Ok(plan),
                }
            }
            _ => Err(said(&reply)),
        }
    }

    /// Does it answer, has it our change, may it be changed, and how?
    pub(super) fn check(&self, node: &NodeName) -> Outcome {
        if let Some(firmware) = self.carrier.firmware() {
            return match firmware.found(node, self.id) {
                Ok(Some(found)) => Outcome::Has(found),
                Ok(None) => self.fits(node),
                Err(why) => Outcome::Refused(why),
            };
        }
        let transactions = match self.transactions(node) {
            Ok(all) => all,
            Err(why) => return Outcome::Refused(why),
        };
        if let Some(found) = self.ours(&transactions) {
            return Outcome::Has(found);
        }
        let is_pending = |t: &&Value| matches!(text(t, "phase"), "open" | "unconfirmed");
        if let Some(other) = transactions.iter().find(is_pending) {
            let (id, purpose) = (text(other, "id"), visible::line(text(other, "purpose")).into_owned());
            return Outcome::Refused(format!("somebody else's change is under way there: {id}, {purpose}"));
        }
        self.fits(node)
    }

    fn fits(&self, node: &NodeName) -> Outcome {
        match self.planned(node).and_then(|plan| kind_of(&plan)) {
            Ok(kind) => Outcome::Fits(kind),
            Err(why) => Outcome::Refused(why),
        }
    }

    /// Changes it, to be undone by the node itself within the window.
    pub(super) fn apply(&self, node: &NodeName, window_ms: u64) -> Outcome {
        if let Some(firmware) = self.carrier.firmware() {
            return firmware.stage(node, self.id, &self.plan.change);
        }
        if let Err(error) = self.carrier.take_out(node) {
            return Outcome::Refused(why(node, &error));
        }
        let mut words = self.plan.change.words();
        words.push(format!("--confirm-within={}s", window_ms.div_ceil(1000)));
        words.push(format!("--note={}", self.id));
        let window = Duration::from_millis(window_ms);
        let reply = match self.run(node, &["tune", "apply", "--json"], words, Privilege::Changes, window) {
            Ok(reply) => reply,
            Err(CarryError::Refused { why, .. }) => return Outcome::Refused(why),
            Err(error) => return Outcome::Unsure(why(node, &error)),
        };
        let told = document(&reply, "wakewatt/tune-apply/v1");
        match (reply.code, told) {
            (FINE, Ok(told)) => match told.get("id").and_then(Value::as_str) {
                Some(id) if is_name(id) => Outcome::Changed(id.into()),
                Some(_) => Outcome::Unsure("the transaction has no name that could be one".into()),
                None => Outcome::WasSo,
            },
            (REFUSED, Ok(told)) => {
                match told.get("not_restored").and_then(Value::as_array).is_some_and(Vec::is_empty) {
                    true => Outcome::Refused(shown(text(&told, "failed"))),
                    false => Outcome::Unsure(shown(text(&told, "failed"))),
                }
            }
            // Refused before anything began.
            (REFUSED | BUSY | USAGE, Err(_)) => Outcome::Refused(said(&reply)),
            (_, _) => Outcome::Unsure(said(&reply)),
        }
    }

    /// What has it?
    pub(super) fn ask(&self, node: &NodeName) -> Outcome {
        if let Some(firmware) = self.carrier.firmware() {
            return firmware
                .found(node, self.id)
                .map_or_else(Outcome::Unsure, |f| f.map_or(Outcome::HasNone, Outcome::Has));
        }
        match self.transactions(node) {
            Err(why) => Outcome::Unsure(why),
            Ok(all) => self.ours(&all).map_or(Outcome::HasNone, Outcome::Has),
        }
    }

    /// Keeps it, or puts it back: `tune confirm`, `tune undo`.
    pub(super) fn end(&self, node: &NodeName, verb: &str, id: Option<&str>) -> Outcome {
        match (self.carrier.firmware(), verb) {
            // Nothing there undoes itself, so there is nothing to confirm: the book says that it is kept.
            (Some(_), "confirm") => return Outcome::Done,
            (Some(firmware), _) => return firmware.take_back(node, self.id, &self.plan.change),
            (None, _) => {}
        }
        let Some(id) = id.filter(|id| is_name(id)) else {
            return Outcome::Unsure("its transaction has no name yet".into());
        };
        match self.run(node, &["tune", verb, id], Vec::new(), Privilege::Changes, Duration::ZERO) {
            Ok(reply) if reply.code == FINE => Outcome::Done,
            Ok(reply) => Outcome::Unsure(said(&reply)),
            Err(error) => Outcome::Unsure(why(node, &error)),
        }
    }

    fn transactions(&self, node: &NodeName) -> Result<Vec<Value>, String> {
        let asked = self.run(node, &["tune", "status", "--json"], Vec::new(), Privilege::Reads, Duration::ZERO);
        let reply = asked.map_err(|e| why(node, &e))?;
        if !STATUS.contains(&reply.code) {
            return Err(said(&reply));
        }
        let mut told = document(&reply, "wakewatt/tune-status/v1")?;
        match told.get_mut("transactions").map(Value::take) {
            Some(Value::Array(all)) => Ok(all),
            _ => Err("its status has no transactions".into()),
        }
    }

    /// The transaction that bears our note.
    fn ours(&self, all: &[Value]) -> Option<Found> {
        let note = format!("[{}]", self.id);
        let own = all.iter().rev().find(|t| text(t, "purpose").ends_with(&note) && is_name(text(t, "id")))?;
        let is_of_this_boot = own.get("is_of_this_boot").and_then(Value::as_bool).unwrap_or(true);
        let how = match text(own, "phase") {
            "applied" => How::Kept,
            "unconfirmed" => How::Unconfirmed,
            _ => How::Open,
        };
        let settings = own.get("settings").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_bad = |s: &&Value| match s.get("verdict") {
            Some(Value::String(word)) => word != "holds",
            Some(Value::Object(word)) => !word.contains_key("clamped") && !word.contains_key("unknown"),
            _ => true,
        };
        let broken = match settings.iter().find(is_bad) {
            Some(setting) => Some(format!("{} at {}", text(setting, "name"), text(setting, "path"))),
            None if !is_of_this_boot => Some("the machine has booted since".into()),
            None => None,
        };
        Some(Found {
            id: text(own, "id").into(),
            how,
            undone_in_ms: own.get("undone_in_s").and_then(Value::as_u64).map(|s| s.saturating_mul(1000)),
            broken: broken.map(|what| visible::line(&what).into_owned()),
            waits: Waits::Nothing,
        })
    }
}

/// The first setting of a plan that only a living process keeps.
fn held(plan: &Value) -> Option<&str> {
    let is_held = |step: &&Value| {
        let changes = step.get("changes").and_then(Value::as_array);
        changes.into_iter().flatten().any(|change| text(change, "path").starts_with("hold:"))
    };
    plan.get("steps")?.as_array()?.iter().find(is_held).map(|step| text(step, "knob"))
}

/// `tune-12`: it goes back as an argument.
fn is_name(id: &str) -> bool {
    id.strip_prefix("tune-").is_some_and(|n| (1..=20).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whoever tells it names the node already.
fn why(node: &NodeName, error: &CarryError) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{node}: ")).unwrap_or(&text).to_string()
}

fn shown(text: &str) -> String {
    visible::line(text).into_owned()
}

fn document(reply: &Reply, schema: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(&reply.output).map_err(|_| said(reply))?;
    match text(&value, "schema") == schema {
        true => Ok(value),
        false => Err(format!("what came is no {schema}; is another version of wakewatt there?")),
    }
}

fn said(reply: &Reply) -> String {
    match reply.said.is_empty() {
        true => format!("wakewatt there ended with {} and said nothing", reply.code),
        false => format!("{} (exit code {})", shown(&reply.said), reply.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_process_keeps_is_told_from_what_stays() {
        let plan = |path: &str| serde_json::json!({"steps": [{"knob": "qos.global", "changes": [{"path": path}]}]});
        assert_eq!(held(&plan("hold:cpu_dma_latency")), Some("qos.global"));
        assert_eq!(held(&plan("/sys/devices/system/cpu/cpuidle/current_governor")), None);
        assert_eq!(held(&Value::Null), None);
    }
}
