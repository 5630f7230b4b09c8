//! `wakewatt watch`: the machine as it runs, on a screen, as text, or as a stream for scripts.
//!
//! Four sources of moments (this machine, a tree or another host's one moment, a recording of `--record`, the history of an agent) and three ways to show
//! them (screen, text, JSON or CSV). The default reads only what lies in memory, through files kept open, and wakes no
//! other CPU; see `wakewatt_core::watch::layout`.

mod cells;
pub mod csv;
mod latency;
pub mod text;
mod stream;

use crate::cli::WatchArgs;
use crate::cli::from::Machine;
use crate::exit::{Code, Failure};
use crate::importing;
use crate::interrupt::Interrupt;
use crate::output::Colour;
use crate::progress::Progress;
use crate::tui;
use anyhow::Result;
use std::io::IsTerminal;
use std::path::Path;
#[cfg(feature = "agent")]
use wakewatt_agent::history::HistoryPlayer;
use wakewatt_core::watch::{LatencyRow, Sources};
use wakewatt_lab::trace::WakeFeed;
use wakewatt_lab::watch::{Feed, LatencyFeed, Part, Played, Player, Sampler, WatchedMachine};

/// Nothing traces.
#[derive(Debug)]
struct NoTracing;

impl LatencyFeed for NoTracing {
    fn rows(&mut self) -> Result<Vec<LatencyRow>, String> {
        Err("start with --trace, as root".into())
    }
}

/// Runs it.
pub fn run(args: &WatchArgs, colour: Colour) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    let is_stream = args.once || args.json || args.csv;
    if !is_stream {
        screen_or_explain()?;
    }
    // Asked for, because it loads eBPF programs: watching alone loads nothing.
    let mut latency: Box<dyn LatencyFeed> = match args.trace {
        true => Box::new(WakeFeed::attach(&wakewatt_host::live::Live::this_machine())?),
        false => Box::new(NoTracing),
    };
    let mut feed = open(args)?;
    if is_stream {
        return stream::run(args, feed, latency.as_mut(), &interrupt);
    }
    let outcome = tui::run(args, colour, &mut feed, &mut *latency, &interrupt);
    // Whatever ended the screen, the recording gets its end.
    let finished = feed.finish(match &outcome {
        _ if interrupt.is_set() => "interrupted",
        Ok(_) => "ended by its user",
        Err(_) => "the screen was lost",
    });
    let code = outcome?;
    finished?;
    Ok(code)
}

/// The moments the user named.
fn open(args: &WatchArgs) -> Result<Feed> {
    if let Some(folder) = &args.play {
        let whole = played(folder, args.since)?;
        return Ok(Feed::Play(Box::new(Part::of(whole, args.since, args.until)?)));
    }
    let sources = match args.sources.as_str() {
        "package" => Sources::Package,
        "all" => Sources::All,
        _ => Sources::Quiet,
    };
    let told;
    let place = match args.from.machine() {
        Machine::Here => WatchedMachine::Here,
        Machine::Recorded(file) => WatchedMachine::Recorded(file),
        Machine::Tree(folder) => WatchedMachine::Tree(folder),
        Machine::Texts { files, host } => {
            told = importing::read(files, host)?.facts.tree;
            WatchedMachine::Told(&told)
        }
    };
    let mut sampler = Sampler::open(place, sources)?;
    if sampler.layout.cpus.is_empty() {
        let why = "no CPU could be found: /sys and /proc are both masked, or the recording holds neither";
        return Err(Failure::error(Code::CouldNotMeasure, why));
    }
    if let Some(folder) = &args.record {
        sampler.record(folder, args.record_limit)?;
    }
    Ok(Feed::Live(Box::new(sampler)))
}

/// A recording of this command, or what an agent kept.
fn played(folder: &Path, since_ms: Option<u64>) -> Result<Box<dyn Played>> {
    #[cfg(feature = "agent")]
    if HistoryPlayer::is_history(folder) {
        if let Some(why) = wakewatt_agent::history::others_write(folder) {
            crate::output::remark(&why);
        }
        let mut remark = |line: &str| crate::output::remark(line);
        return Ok(Box::new(HistoryPlayer::open(folder, since_ms.unwrap_or(0), &mut remark)?));
    }
    let _ = since_ms;
    Ok(Box::new(Player::open(folder, &Progress::start("watch"))?))
}

/// A screen needs a terminal that can move its cursor.
fn screen_or_explain() -> Result<()> {
    let why = if !std::io::stdout().is_terminal() {
        "standard output is not a terminal"
    } else if std::env::var_os("TERM").is_none_or(|t| t.is_empty() || t == "dumb") {
        "this terminal cannot move its cursor (TERM is dumb or not set)"
    } else {
        return Ok(());
    };
    let hint = "try: wakewatt watch --once (text), --json or --csv (a stream)";
    Err(Failure::error(Code::Usage, format!("{why}, so there is no screen to draw on; {hint}")))
}
