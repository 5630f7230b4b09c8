//! Restarts a machine, because a person said so: the kind that its BMC lists, gentle before hard.

use crate::service::Change;
use crate::walk::Machine;
use serde_json::json;

/// Gentle first. `On` for a machine that is off.
const KINDS: &[&str] = &["GracefulRestart", "ForceRestart", "PowerCycle"];

/// Why it was not restarted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotRestarted {
    why: String,
}

/// Restarts it; the kind that was used.
pub fn restart(service: &mut dyn Change, machine: &Machine, kind: Option<&str>) -> Result<String, NotRestarted> {
    let no = |why: String| NotRestarted { why };
    let reset = machine.reset.as_ref().ok_or_else(|| no("this BMC offers no ComputerSystem.Reset".into()))?;
    let is_off = machine.power_state.eq_ignore_ascii_case("off");
    let has = |kind: &str| reset.kinds.is_empty() || reset.kinds.iter().any(|k| k == kind);
    let kind = match kind {
        Some(kind) if has(kind) => kind,
        Some(kind) => return Err(no(format!("there is no kind {kind:?}; there are {}", reset.kinds.join(", ")))),
        None if is_off && has("On") => "On",
        None => {
            let known = KINDS.iter().copied().find(|kind| has(kind));
            known.ok_or_else(|| no(format!("none of its kinds restarts: {}", reset.kinds.join(", "))))?
        }
    };
    let answer =
        service.post(&reset.target, &json!({ "ResetType": kind }).to_string()).map_err(|e| no(e.to_string()))?;
    match answer.is_yes() {
        true => Ok(kind.into()),
        false => Err(no(format!("{}: HTTP status {} {}", reset.target, answer.status, answer.said))),
    }
}
