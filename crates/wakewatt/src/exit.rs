//! Exit codes. They are a promise: scripts branch on them.

use std::process::ExitCode;
use wakewatt_lab::refusal::Refusal;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All went well; findings do not change this unless `--fail-on` says so.
    Fine = 0,
    /// `--fail-on` was given and there are findings of that weight, or something is worse than it allows; or a machine is
    /// less fit for measuring than `--require` asks.
    Findings = 1,
    /// The command line was wrong.
    Usage = 2,
    /// Something could not be measured here at all.
    CouldNotMeasure = 3,
    /// An input could not be read, or an output not written.
    BadFile = 4,
    /// A setting could not be put back; what is left is printed and journaled.
    NotRestored = 5,
    /// A setting does not hold: `tune status`, `tune verify`, `bios verify` and `bios apply` say which.
    Drift = 6,
    /// A setting is not possible here or was refused; what was changed was put back, unless told to keep going.
    Refused = 7,
    /// Another wakewatt is changing settings.
    Busy = 8,
    /// Some settings were refused and left out, as `--keep-going` asks; or some nodes of a collection did not answer.
    Partial = 9,
    /// Too little of the input can be used for a conclusion: nothing of it, then nothing is printed; or less than the stated bound, then
    /// there is no verdict.
    NoSample = 10,
    /// Interrupted, or the terminal closed; settings were put back and what was known was printed.
    Interrupted = 130,
}

/// How the program ends: by its own code, or by that of the command it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// wakewatt's.
    Own(Code),
    /// The command's: its exit code, or 128 and its signal.
    Command(u8),
}

impl From<Code> for End {
    fn from(code: Code) -> End {
        End::Own(code)
    }
}

impl From<End> for ExitCode {
    fn from(end: End) -> ExitCode {
        match end {
            End::Own(code) => code.into(),
            End::Command(code) => ExitCode::from(code),
        }
    }
}

/// The table for help and man page.
pub const TABLE: &str = "\
Exit codes:
  0    fine (findings alone do not change it)
  1    --fail-on was given and there is such a finding (`compare`: something is worse than allowed, beyond doubt),
       or the machine is not as fit as `doctor --preflight --require` asks
  2    wrong command line
  3    could not measure
  4    an input could not be read or an output not written
  5    a setting could not be put back (the message says which)
  6    a setting does not hold (`tune status`, `tune verify`, `bios verify`), or the BMC does not show what
       `bios apply` sent
  7    a setting is not possible here or was refused; nothing stays changed, unless --keep-going
  8    another wakewatt is changing settings
  9    some settings were refused and left out (`tune apply --keep-going`), or some nodes did not answer (`fleet collect`)
  10   too little of a recording can be followed for a verdict (`replay`)
  130  interrupted, or the terminal closed; settings were put back
  With a command of yours (`trace -- CMD`, `run -- CMD`): the command's own code";

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// An error that knows its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    /// With a code other than the default.
    pub fn error(code: Code, message: impl Into<String>) -> anyhow::Error {
        Failure { code, message: message.into() }.into()
    }
}

/// The code of an error: its own, or "bad file", which is what remains once arguments parsed.
pub fn code_of(error: &anyhow::Error) -> Code {
    let of = |c: &(dyn std::error::Error + 'static)| match c.downcast_ref::<Failure>() {
        Some(failure) => Some(failure.code),
        None => c.downcast_ref::<Refusal>().map(code_of_refusal),
    };
    error.chain().find_map(of).unwrap_or(Code::BadFile)
}

fn code_of_refusal(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Asked(_) => Code::Usage,
        Refusal::Unavailable(_) => Code::CouldNotMeasure,
        Refusal::Barred(_) => Code::Refused,
        Refusal::File(_) => Code::BadFile,
        Refusal::Busy(_) => Code::Busy,
        Refusal::Stopped(_) => Code::Interrupted,
    }
}
