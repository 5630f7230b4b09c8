//! What can be collected: the order it is on the far side, the file it becomes here, and whether what came is that, and whole.
//!
//! Only wakewatt's own documents are taken, and each is read by its own reader before it becomes a file: an answer that was cut
//! off, a page of a proxy, a document of another version is told as such, and not found out weeks later.

use crate::carrier::{Order, Privilege};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wakewatt_core::record::host_file;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::record::wtrace::{Ending, Reader};
use wakewatt_fleet::firmware;

/// Longest `.host` text: 60 KiB for 576 CPUs.
const MOST_HOST: usize = 16 << 20;
/// Longest run file.
const MOST_RUN: usize = 64 << 20;
/// How much longer an answer may take than what it measures, where nobody said.
pub const SLACK: Duration = Duration::from_secs(60);

/// Something to be collected from every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Facts of the host: `capture`.
    Capture,
    /// A run of `measure wakeup`.
    Wakeup,
    /// A run of `doctor --quick --read-only`.
    Doctor,
    /// A recording of idle intervals.
    Trace {
        /// How long it records, in nanoseconds.
        for_ns: u64,
        /// Largest recording, in MiB; there it ends, whole.
        most_mib: u64,
    },
    /// Everything that its firmware is set to, as its BMC tells: `bios show`.
    Firmware,
}

/// What a way to BMCs is asked; it runs nothing there and answers by itself.
pub const SHOW: &[&str] = &["bios", "show", "--all", "--json"];

impl What {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            What::Capture => "capture",
            What::Wakeup => "measure wakeup",
            What::Doctor => "doctor",
            What::Trace { .. } => "trace",
            What::Firmware => "bios show",
        }
    }

    /// How its file ends: as `fleet compare --files` and `fleet tables` look for it.
    pub fn ending(self) -> &'static str {
        match self {
            What::Capture => "host",
            What::Wakeup | What::Doctor => "run",
            What::Trace { .. } => "wtrace",
            What::Firmware => "bios.json",
        }
    }

    /// The arguments that wakewatt gets there.
    pub fn arguments(self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        match self {
            What::Capture => words(&["capture", "-o", "-"]),
            What::Wakeup => words(&["measure", "wakeup", "--save", "-"]),
            What::Doctor => words(&["doctor", "--quick", "--read-only", "--no-report", "--save", "-"]),
            What::Firmware => words(SHOW),
            What::Trace { for_ns, most_mib } => words(&[
                "trace",
                "--for",
                &format!("{for_ns}ns"),
                "--record",
                "-",
                "--record-mib",
                &most_mib.to_string(),
            ]),
        }
    }

    /// The order; `slack` is how much longer it may take than what it measures.
    pub fn order(self, slack: Duration) -> Order {
        let (privilege, measures, at_most) = match self {
            What::Capture => (Privilege::Reads, Duration::ZERO, MOST_HOST),
            // Every kind of wake-up on some CPUs, a few seconds each.
            What::Wakeup => (Privilege::Measures, Duration::from_secs(120), MOST_RUN),
            What::Doctor => (Privilege::Measures, Duration::from_secs(60), MOST_RUN),
            // A registry is some megabytes, and a BMC takes its time.
            What::Firmware => (Privilege::Reads, Duration::from_secs(120), MOST_HOST),
            What::Trace { for_ns, most_mib } => {
                // The last block may go beyond what is allowed for the recording.
                let most = usize::try_from((most_mib + 1).saturating_mul(1 << 20)).unwrap_or(usize::MAX);
                (Privilege::Measures, Duration::from_nanos(for_ns), most)
            }
        };
        Order {
            arguments: self.arguments(),
            input: Vec::new(),
            privilege,
            within: measures + slack,
            at_most,
            lives_on: Duration::ZERO,
        }
    }

    /// Is this what was asked for, and whole? If not, why.
    pub fn check(self, bytes: &[u8]) -> Result<(), String> {
        if let What::Trace { .. } = self {
            let mut reader = Reader::new(bytes).map_err(|e| e.to_string())?;
            reader.by_ref().for_each(drop);
            return match reader.ending() {
                Some(Ending::Complete) => Ok(()),
                _ => Err(format!("a recording that ends too early, after {} good bytes", reader.good_bytes())),
            };
        }
        if self == What::Firmware {
            return firmware::parse(bytes).map(drop);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_string())?;
        match self {
            What::Capture if host_file::has_end(text) => host_file::read(text, "").map(drop).map_err(|e| e.to_string()),
            What::Capture => Err("a .host file without its end".into()),
            _ => RunFile::read(text).map(drop).map_err(|e| e.to_string()),
        }
    }
}

/// What is asked now, and what was asked before and goes into another file: a collection that goes on stays one of everything.
pub fn together(before: &[What], now: &[What]) -> Vec<What> {
    let is_other = |what: &&What| now.iter().all(|n| n.ending() != what.ending());
    before.iter().filter(is_other).chain(now).copied().collect()
}
