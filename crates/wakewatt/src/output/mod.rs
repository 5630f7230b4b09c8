//! Where output goes: results to standard output, everything else to standard error, files whole or not at all.
//!
//! All text for people passes a guard against what foreign names could do to a terminal. A file is looked at before a
//! command begins ([`Outlet`]): minutes of measuring must not end in "permission denied".

mod guard;

pub use guard::allow_colour;

use crate::exit::{Code, Failure};
use anyhow::Result;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cost::Rates;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::visible;
use wakewatt_host::place::{FilePlace, PlaceError};
use wakewatt_words::{spoken, word};

/// Set where standard output is for a file (`--save -`, `--record -`).
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// From now on standard output is left to a file, and results go to standard error.
pub fn leave_standard_output() {
    IS_LEFT.store(true, Ordering::Relaxed);
}

/// Is it left to a file?
pub fn is_standard_output_left() -> bool {
    IS_LEFT.load(Ordering::Relaxed)
}

/// Prints a result.
pub fn print(text: &str) -> Result<()> {
    if is_standard_output_left() {
        remark(text.trim_end_matches('\n'));
        return Ok(());
    }
    pass_on(guard::text(text).as_bytes())
}

/// What a command of the user's printed, unchanged: it would have come to the same place without us.
pub fn pass_on(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// The same, to standard error.
pub fn pass_on_error(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// Prints an error for people; it has no colours.
pub fn complain(text: &str) {
    let text = spoken(|| kept_words::shown(text));
    let _ = writeln!(std::io::stderr().lock(), "wakewatt: {}", visible::text(&text));
}

/// Prints a remark for people; not a result.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", guard::text(text));
}

/// What the parser of the command line says, which may quote it; `fit` has the last word on how.
pub fn usage(error: &clap::Error, fit: impl Fn(&str) -> String) -> Result<()> {
    let text = error.render();
    let is_free = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if !error.use_stderr() {
        allow_colour(Colour::Auto.is_on());
        return print(&fit(&if Colour::Auto.is_on() { text.ansi().to_string() } else { text.to_string() }));
    }
    let text = match is_free && std::io::stderr().is_terminal() {
        true => guard::coloured(&fit(&text.ansi().to_string())).into_owned(),
        false => visible::text(&fit(&text.to_string())).into_owned(),
    };
    pass_on_error(text.as_bytes());
    Ok(())
}

/// Has the reader of standard output left? That was its decision, and no error of ours.
pub fn is_reader_gone(error: &anyhow::Error) -> bool {
    let is_gone = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(is_gone))
}

/// The code of a command whose result may not have been written: its own where that says more than "fine".
pub fn settled(shown: Result<()>, own: Code) -> Code {
    match shown {
        Err(error) if !is_reader_gone(&error) => {
            complain(&format!("{error:#}"));
            if own == Code::Fine { Code::BadFile } else { own }
        }
        _ => own,
    }
}

/// What the measured watts cost, behind a result for people. Nothing where nothing was asked for.
pub fn costs(rates: &Rates, evidence: &Evidence) -> Result<()> {
    match spoken(|| costs_in_words(rates, evidence)) {
        text if text.is_empty() => Ok(()),
        text => print(&text),
    }
}

fn costs_in_words(rates: &Rates, evidence: &Evidence) -> String {
    match &rates.sentences(evidence)[..] {
        [] => String::new(),
        lines => {
            let lines: String = lines.iter().map(|line| format!("  - {line}\n")).collect();
            format!("\n{}\n{lines}", word!("What it costs"))
        }
    }
}

/// One JSON document with its schema's name first.
pub fn json(schema: &str, body: &impl serde::Serialize) -> Result<String> {
    #[derive(serde::Serialize)]
    struct Envelope<'a, T> {
        schema: &'a str,
        wakewatt: &'a str,
        #[serde(flatten)]
        body: &'a T,
    }
    let envelope = Envelope { schema: &format!("wakewatt/{schema}/v1"), wakewatt: env!("CARGO_PKG_VERSION"), body };
    Ok(visible::json(&serde_json::to_string(&envelope)?).into_owned() + "\n")
}

/// A file to be written at the end of a command; `-` is standard output. See [`wakewatt_host::place`].
#[derive(Debug)]
pub struct Outlet {
    path: PathBuf,
    option: &'static str,
    place: Option<FilePlace>,
}

impl Outlet {
    /// Looks whether it can be written, and keeps its folder open. `option` names another one, in errors.
    pub fn open(path: &Path, option: &'static str) -> Result<Outlet> {
        let place = (path != Path::new("-")).then(|| FilePlace::of(path)).transpose();
        Ok(Outlet { path: path.into(), option, place: place.map_err(|why| refused(&why, option))? })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes text; what could hide in it is made visible.
    pub fn write(&self, text: &str) -> Result<()> {
        self.write_bytes(visible::text(text).as_bytes())
    }

    /// Writes data as it is.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        match &self.place {
            Some(place) => place.write(bytes).map_err(|why| refused(&why, self.option)),
            None => pass_on(bytes),
        }
    }
}

fn refused(why: &PlaceError, option: &str) -> anyhow::Error {
    Failure::error(Code::BadFile, format!("{why} with {option}"))
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    Outlet::open(path, "-o")?.write(text)
}

/// The same for what is no text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    Outlet::open(path, "-o")?.write_bytes(bytes)
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Should standard output be coloured?
    pub fn is_on(self) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                    && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        }
    }
}

/// Columns to fit text into.
pub fn width() -> usize {
    let from_terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|w| usize::from(w.ws_col));
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    from_terminal().or_else(from_environment).filter(|w| *w >= 40).unwrap_or(100).min(140)
}
