//! Without a screen: text once, or JSON or CSV per interval, for scripts and for terminals that cannot draw.

use super::{csv, text};
use crate::cli::WatchArgs;
use crate::exit::Code;
use crate::gone;
use crate::interrupt::{Interrupt, Wait, Woken};
use crate::output;
use crate::tui::{filter::Filter, next_due_ns, rows, words};
use anyhow::Result;
use std::io::{ErrorKind, IsTerminal};
use wakewatt_core::watch::Rates;
use wakewatt_host::clock;
use wakewatt_lab::watch::{Feed, LatencyFeed};

/// Runs it.
pub(super) fn run(
    args: &WatchArgs,
    mut feed: Feed,
    latency: &mut dyn LatencyFeed,
    interrupt: &Interrupt,
) -> Result<Code> {
    let filter = Filter::parse(args.filter.as_deref().unwrap_or_default())
        .map_err(|why| crate::exit::Failure::error(Code::Usage, why))?;
    let limit = if args.once { Some(1) } else { args.count };
    let mut out = Printer { args, filter, n_printed: 0, head: None };
    let ended = match &mut feed {
        Feed::Play(player) => {
            let n = player.n_intervals();
            // Of a recording, --once is its last interval.
            let from = if args.once { n - 1 } else { 0 };
            let mut result = Ok(());
            for at in from..n {
                if interrupt.is_set() || limit.is_some_and(|limit| out.n_printed >= limit) {
                    break;
                }
                if let Some(rates) = player.rates(at) {
                    result = out.print(rates);
                }
                if result.is_err() {
                    break;
                }
            }
            result
        }
        Feed::Live(sampler) => {
            let mut due_ns = clock::monotonic_ns();
            let mut was_told = false;
            let wait = Wait::listen()?;
            // A terminal that has gone is none any more: asked now.
            let is_on_terminal = std::io::stdout().is_terminal();
            'watching: loop {
                if let Some(mut rates) = sampler.take() {
                    rates.wake_latency = latency
                        .rows()
                        .inspect_err(|why| {
                            if args.trace {
                                rates.notes.push(format!("wake-up latency: {why}"))
                            }
                        })
                        .ok();
                    if let Err(error) = out.print(rates) {
                        break Err(error);
                    }
                }
                if let Some(trouble) = sampler.recorder.as_ref().and_then(|r| r.trouble.clone()).filter(|_| !was_told) {
                    output::complain(&trouble);
                    was_told = true;
                }
                if sampler.is_still || limit.is_some_and(|limit| out.n_printed >= limit) {
                    break Ok(());
                }
                // Late by more than an interval (stopped, suspended): the missed ones are not made up for.
                due_ns = next_due_ns(due_ns, args.interval);
                let is_early = || clock::monotonic_ns() < due_ns && !interrupt.is_set();
                while is_early() {
                    let left_ns = due_ns.saturating_sub(clock::monotonic_ns());
                    if wait.wait_for(None, Some(rustix::stdio::stdout()), left_ns) == Woken::Gone {
                        // Nobody reads any more; not found out at the next interval only.
                        let is_interrupted = interrupt.is_set() || is_on_terminal;
                        let closed = || std::io::Error::from(ErrorKind::BrokenPipe).into();
                        break 'watching Err(if is_interrupted { gone::error() } else { closed() });
                    }
                }
                if interrupt.is_set() {
                    break Ok(());
                }
            }
        }
    };
    let why = match &ended {
        _ if interrupt.is_set() => "interrupted",
        Ok(()) => "done",
        Err(_) => "nobody reads what is printed",
    };
    let finished = feed.finish(why);
    // A recording that is not whole is told even where the reader of the lines has left.
    finished?;
    ended?;
    Ok(if interrupt.is_set() { Code::Interrupted } else { Code::Fine })
}

struct Printer<'a> {
    args: &'a WatchArgs,
    filter: Filter,
    n_printed: u64,
    /// The columns of the rows above.
    head: Option<String>,
}

impl Printer<'_> {
    fn print(&mut self, mut rates: Rates) -> Result<()> {
        if !self.filter.is_empty() {
            rates.cpus.retain(|cpu| self.filter.matches(cpu));
        }
        self.n_printed += 1;
        if self.args.json {
            return output::print(&output::json("watch", &rates)?);
        }
        if self.args.csv {
            // A history may hold another driver's states further on: other columns, under a head of their own.
            let head = csv::header(&rates, self.args.trace);
            let is_new = self.head.as_ref() != Some(&head);
            let rows = csv::rows(&rates, self.args.trace);
            let text = if is_new { format!("{head}{rows}") } else { rows };
            self.head = Some(head);
            return output::print(&text);
        }
        if self.args.play.is_some() {
            output::print(&format!("up to {}\n", words::moment(rates.wall_at_ns)))?;
        }
        let group = rows::GroupBy::start(self.args.group.as_deref(), rates.cpus.len());
        let sort = rows::Sort::parse(self.args.sort.as_deref());
        output::print(&text::page(&rates, group, sort, output::width()))
    }
}
