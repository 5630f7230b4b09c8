//! Power meters: one file per kind, behind one trait, in the order in which they are chosen.
//!
//! The order (docs/methods/power.md): RAPL through powercap, RAPL through perf, hwmon, IPMI DCMI, Redfish, NVML, a
//! Prometheus query, a command of the user. What a user names goes before what is found. A meter only says values with
//! the time at which they were true ([`Say`]); what they come to is `wakewatt_core::samples::energy`'s business, and
//! who reads when is [`recorder`]'s. Finding a meter loads no module, writes no file and sends nothing to a network
//! that was not named.
//!
//! A meter that cannot be used is not an error but a row that says why. Presence is no proof: only the readings tell
//! whether a counter moves.
//!
//! A new kind: a file here, a `pub mod`, a line in [`METERS`].

pub mod powercap;
pub mod perf;
pub mod hwmon;
pub mod ipmi;
pub mod redfish;
pub mod nvml;
pub mod prometheus;
pub mod command;
pub mod recorder;
pub mod witnesses;
pub(crate) mod http;
mod subprocess;

pub use http::{Exposed, Trust};
pub use recorder::Recorder;

use crate::clock::monotonic_ns;
use std::sync::Arc;
use wakewatt_core::samples::energy::{Averaging, Channel, MeterGap};
use wakewatt_core::source::Source;

/// Takes one value of a channel (by index): when it was true (CLOCK_MONOTONIC), and microwatts, or a counter's microjoules.
pub type Say<'a> = dyn FnMut(usize, u64, Result<i64, String>) + 'a;

/// A machine whose files any thread may read.
pub type Machine = Arc<dyn Source + Send + Sync>;

/// A power meter.
pub trait Meter: Send {
    /// Its word on the command line and in every output.
    fn name(&self) -> &'static str;
    /// What one reading disturbs.
    fn reach(&self) -> &'static str;
    /// What it measures: the same, in the same order, as long as it lives.
    fn channels(&self) -> Vec<Channel>;
    /// Over what time a reading averages, where its channels do not tell (a counter has no memory). Unknown unless somebody
    /// who knows says so: an experiment then claims of no two settings that they draw the same.
    fn averaging(&self) -> Averaging {
        Averaging::Unknown
    }
    /// Readings farther apart lose something.
    fn longest_interval_ns(&self) -> u64 {
        u64::MAX
    }
    /// Reads every channel once.
    fn read(&mut self, say: &mut Say<'_>);
}

/// Where to look.
#[derive(Clone, Default)]
pub struct MetersWanted {
    /// The machine; none: no meter in files is looked for.
    pub machine: Option<Machine>,
    /// A command that prints watts.
    pub command: Option<String>,
    /// May device files of this machine (a BMC's) be asked?
    pub has_devices: bool,
    /// BMCs behind the network.
    pub redfish: redfish::Account,
    /// A query.
    pub prometheus: Option<prometheus::Query>,
    /// Whom to believe on the network.
    pub trust: Trust,
    /// Another nvidia-smi than the one on PATH.
    pub nvidia_smi: Option<String>,
}

/// A kind of meter.
pub struct Kind {
    pub name: &'static str,
    /// Finds it, or says why there is none.
    pub find: fn(&MetersWanted) -> Result<Box<dyn Meter>, MeterGap>,
}

/// Every kind, in the order in which they are chosen.
pub const METERS: &[Kind] = &[
    Kind { name: powercap::NAME, find: powercap::find },
    Kind { name: perf::NAME, find: perf::find },
    Kind { name: hwmon::NAME, find: hwmon::find },
    Kind { name: ipmi::NAME, find: ipmi::find },
    Kind { name: redfish::NAME, find: redfish::find },
    Kind { name: nvml::NAME, find: nvml::find },
    Kind { name: prometheus::NAME, find: prometheus::find },
    Kind { name: command::NAME, find: command::find },
];

/// A kind, and what was found of it.
pub type Found = (&'static str, Result<Box<dyn Meter>, MeterGap>);

/// Looks for all kinds, or only for those named.
pub fn find(wanted: &MetersWanted, only: &[String]) -> Vec<Found> {
    let is_asked = |kind: &&Kind| only.is_empty() || only.iter().any(|name| name == kind.name);
    METERS.iter().filter(is_asked).map(|kind| (kind.name, (kind.find)(wanted))).collect()
}

fn machine(wanted: &MetersWanted) -> Result<Machine, String> {
    wanted.machine.clone().ok_or_else(|| "this is not a live machine".into())
}

/// Does something that takes a moment; the middle of that moment is when its answer was true.
fn stamped<T>(what: impl FnOnce() -> T) -> (u64, T) {
    let start = monotonic_ns();
    let out = what();
    (start + (monotonic_ns() - start) / 2, out)
}

/// A number in a file of the machine.
fn number_in(machine: &dyn Source, path: &str) -> Result<i64, String> {
    let bytes = machine.read(path).map_err(|e| format!("{path}: {e}"))?;
    let text = String::from_utf8_lossy(&bytes);
    text.trim().parse().map_err(|_| format!("{path}: holds no number"))
}

#[cfg(test)]
mod tests;
