//! Where output goes: results to standard output, everything else to standard error, files whole or not at all.

use anyhow::{Context, Result};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Prints a result.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints an error for people.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "wakewatt: {text}");
}

/// Prints a remark for people; not a result.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
    Ok(serde_json::to_string(&envelope)? + "\n")
}

/// Writes a file whole or not at all: beside it, then renamed. `-` is standard output. A device or pipe is written to as
/// it is, never replaced: renaming over /dev/null would take it from the whole machine. A link stays a link.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

/// The same for what is no text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        return Ok(());
    }
    let written = match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => {
            std::fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes))
        }
        Ok(meta) if meta.is_file() => std::fs::canonicalize(path).and_then(|target| replace(&target, bytes)),
        _ => replace(path, bytes),
    };
    written.with_context(|| format!("{}: could not be written; name another file with -o", path.display()))
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(std::fs::remove_file(&beside)))
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
