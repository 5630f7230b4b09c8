//! What a rollout asks of firmware, node by node: a plan, the change staged, what became of it, and the old values back.
//!
//! Another thing than an order to a machine: nothing runs there, nothing undoes itself, what is set waits for a boot, and the old values lie on
//! the operator's side. So this has words of its own, and the conductor treats its answers as it does a machine's.

use crate::node::NodeName;
use serde_json::Value;
use wakewatt_fleet::rollout::machine::{Found, Outcome};
use wakewatt_fleet::rollout::plan::Change;

/// A way to the firmware of nodes. An answer that is missing is never taken for success.
pub trait Firmware: Sync {
    /// The node's own plan, as `bios plan --json` has it. Changes nothing.
    fn planned(&self, node: &NodeName, change: &Change) -> Result<Value, String>;

    /// What the node has of the rollout with this id; none where it is as before.
    fn found(&self, node: &NodeName, id: &str) -> Result<Option<Found>, String>;

    /// Old values written down, then the change staged for the next boot; restarted only if the change says so.
    fn stage(&self, node: &NodeName, id: &str, change: &Change) -> Outcome;

    /// Cancels what waits and stages the old values.
    fn take_back(&self, node: &NodeName, id: &str, change: &Change) -> Outcome;
}
