//! A command that is run inside an emulated machine, and what is expected of it.

use serde_json::Value;

/// One of a list, run in order.
pub(super) struct Step {
    /// Arguments of wakewatt, as a shell reads them; in the folder above.
    pub words: &'static str,
    /// The exit code.
    pub code: u8,
    /// What standard output or error must hold.
    pub says: &'static [&'static str],
    /// Whether every idle state has to be named.
    pub names_states: bool,
    /// What is wrong with the document on standard output.
    pub json: Option<fn(&Value) -> Vec<String>>,
}
