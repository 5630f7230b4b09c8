//! What changing settings works with: where facts are read, what writes, what keeps the journal, what runs commands. All
//! traits, so that everything above works on a machine in memory too.

use wakewatt_core::source::Source;
use wakewatt_host::exec::Runner;
use wakewatt_host::sink::Sink;
use wakewatt_host::store::Store;

/// See the essay above.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Reads facts.
    pub source: &'a dyn Source,
    /// Writes settings.
    pub sink: &'a dyn Sink,
    /// Keeps the journal.
    pub store: &'a dyn Store,
    /// Runs commands.
    pub runner: &'a dyn Runner,
}
