//! What was not looked at, and why: "disk: not with --quick; wakewatt measure disk does it alone".
//!
//! Every step that could not be done becomes one of these, and the steps after it go on. The steps of `doctor` have names
//! of their own, because the verdict looks for the experiment among them; what `measure` could not do is named by the CPU,
//! peer or engine concerned.

use super::taken::Taken;
use super::worded::{between, worded};
use crate::kept_words;
use std::fmt;
use wakewatt_words::{say, told, word};

/// A step that was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDone {
    /// Which.
    pub step: Step,
    /// Why not.
    pub why: Why,
}

/// What was to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything that is measured.
    Measurements,
    /// The experiment.
    Experiment,
    /// Waiting for a quiet spell.
    QuietWait,
    /// The machine's own wake-ups, traced.
    Trace,
    /// Instructions per cycle of the machine's own work.
    OwnWork,
    /// Round trips.
    Network,
    /// Memory latency and bandwidth.
    Memory,
    /// Disk reads.
    Disk,
    /// Disk reads with and without sleep.
    DiskExperiment,
    /// From idle to full speed.
    SpeedAfterIdle,
    /// What leaving each idle state costs.
    IdleStateCosts,
    /// All that would have followed.
    Rest,
    /// One that is named by what it was about: "udp round trip to peer-1".
    Named(String),
    /// The reason says itself what it is about: "only CPUs 0-7 of 0-63 were measured".
    Unnamed,
}

/// The steps with words of their own.
const STEPS: &[(Step, &str)] = &[
    (Step::Measurements, "measurements"),
    (Step::Experiment, "experiment"),
    (Step::QuietWait, "waiting for a quiet spell"),
    (Step::Trace, "wake-ups by idle state"),
    (Step::OwnWork, "instructions per cycle"),
    (Step::Network, "network"),
    (Step::Memory, "memory"),
    (Step::Disk, "disk"),
    (Step::DiskExperiment, "disk experiment"),
    (Step::SpeedAfterIdle, "speed after idle"),
    (Step::IdleStateCosts, "cost of each idle state"),
    (Step::Rest, "the rest"),
];

/// The words of steps, looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|(_, words)| *words).chain(REASONS.iter().copied())
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is only a recording of the host.
    RecordedHost,
    /// Somebody ended it.
    Interrupted,
    /// `--read-only` forbids it; what it forbids: "loads no eBPF program".
    ReadOnly(String),
    /// `--quick` has no time for it; what to do instead, if there is something.
    Quick(String),
    /// Other work kept every CPU busy.
    TooBusy(TooBusy),
    /// Anything that nobody decides on: what the kernel or a probe said.
    Said(String),
}

/// Foreign load and steal, in percent of the CPUs' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBusy {
    /// Other processes.
    pub others: u32,
    /// The hypervisor.
    pub steal: u32,
}

impl TooBusy {
    /// From shares.
    pub fn of(taken: Taken) -> TooBusy {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a percentage")]
        let percent = |ratio: f64| (ratio * 100.0).round().clamp(0.0, 100.0) as u32;
        TooBusy { others: percent(taken.foreign_ratio.unwrap_or(0.0)), steal: percent(taken.steal_ratio) }
    }

    fn read(text: &str) -> Option<TooBusy> {
        let (others, steal) = between(text, BUSY[0], BUSY[2])?.split_once(BUSY[1])?;
        Some(TooBusy { others: others.parse().ok()?, steal: steal.parse().ok()? })
    }
}

/// What whoever leaves a step out says, where it is the same words each time; any other is shown as it was said.
const REASONS: &[&str] = &[
    "loads no eBPF program",
    "writes no file to read from",
    "changes nothing; without it doctor proves or disproves the cost",
    "wakewatt measure disk does it alone",
    "wakewatt measure memory does it alone",
    "this process may use no CPU",
    "/proc/stat does not say how busy the CPUs are",
];

const RECORDED: &str = "this is a recorded host";
const INTERRUPTED: &str = "interrupted";
const READ_ONLY: &str = "--read-only ";
const QUICK: &str = "not with --quick; ";
const BUSY: [&str; 3] = ["this machine was too busy to measure (other processes ", " %, steal ", " %)"];

impl NotDone {
    /// This step, for that reason.
    pub fn new(step: Step, why: impl Into<Why>) -> NotDone {
        NotDone { step, why: why.into() }
    }

    /// One named by what it was about.
    pub fn named(step: impl Into<String>, why: impl Into<Why>) -> NotDone {
        NotDone::new(Step::Named(step.into()), why)
    }

    /// From a document.
    pub fn read(text: &str) -> NotDone {
        let Some((step, why)) = text.split_once(": ") else { return NotDone::new(Step::Unnamed, Why::read(text)) };
        let known = STEPS.iter().find(|(_, word)| *word == step).map(|(step, _)| step.clone());
        NotDone::new(known.unwrap_or_else(|| Step::Named(step.into())), Why::read(why))
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = &self.why;
        match &self.step {
            Step::Unnamed => write!(f, "{why}"),
            Step::Named(name) => write!(f, "{}: {why}", kept_words::shown(name)),
            step => {
                let words = STEPS.iter().find(|(one, _)| one == step).map_or("", |(_, words)| words);
                write!(f, "{}: {why}", told(words))
            }
        }
    }
}

impl Why {
    fn read(text: &str) -> Why {
        match text {
            RECORDED => Why::RecordedHost,
            INTERRUPTED => Why::Interrupted,
            _ => match (text.strip_prefix(READ_ONLY), text.strip_prefix(QUICK)) {
                (Some(rest), _) => Why::ReadOnly(rest.into()),
                (_, Some(rest)) => Why::Quick(rest.into()),
                _ => TooBusy::read(text).map_or_else(|| Why::Said(text.into()), Why::TooBusy),
            },
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::RecordedHost => f.write_str(word!("this is a recorded host")),
            Why::Interrupted => f.write_str(word!("interrupted")),
            Why::ReadOnly(what) => f.write_str(&say!("--read-only {what}", what = told(what))),
            Why::Quick(instead) => f.write_str(&say!("not with --quick; {instead}", instead = told(instead))),
            Why::TooBusy(TooBusy { others, steal }) => {
                f.write_str(&say!("this machine was too busy to measure (other processes {others} %, steal {steal} %)"))
            }
            Why::Said(text) => f.write_str(&kept_words::shown(told(text))),
        }
    }
}

impl From<String> for Why {
    fn from(text: String) -> Why {
        Why::Said(text)
    }
}

impl From<&str> for Why {
    fn from(text: &str) -> Why {
        Why::Said(text.into())
    }
}

worded!(NotDone);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let all = [
            NotDone::new(Step::Measurements, Why::RecordedHost),
            NotDone::new(Step::Experiment, "needs root"),
            NotDone::new(Step::Disk, Why::ReadOnly("writes no file to read from".into())),
            NotDone::new(Step::Memory, Why::Quick("wakewatt measure memory".into())),
            NotDone::new(Step::Rest, Why::Interrupted),
            NotDone::new(Step::Experiment, Why::TooBusy(TooBusy { others: 97, steal: 12 })),
            NotDone::named("udp round trip to peer-1", "refused"),
            NotDone::new(Step::Unnamed, "only CPUs 0-7 of 0-63 were measured"),
        ];
        for one in all {
            let text = serde_json::to_string(&one).unwrap();
            assert_eq!(serde_json::from_str::<NotDone>(&text).unwrap(), one, "{text}");
        }
    }

    #[test]
    fn every_text_of_an_earlier_version_stays_as_it_is() {
        for text in ["experiment: needs root", "", ": ", "a: b: c", "interrupted", "the rest: interrupted", "x:y"] {
            assert_eq!(NotDone::read(text).to_string(), text);
        }
        assert_eq!(NotDone::read("experiment: needs root").step, Step::Experiment);
    }

    #[test]
    fn every_step_with_words_has_one_of_its_own() {
        for (step, word) in STEPS {
            assert_eq!(NotDone::read(&format!("{word}: x")).step, *step);
        }
    }
}
