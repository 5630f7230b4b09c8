//! What `measure` found, as text: the sections of the page, with what only this command knows, then how the threads ran and
//! what is missing.

use super::{Measured, cores, disk_text, power_text};
use crate::report::terminal;
use std::fmt::Write as _;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

/// All of it.
pub(super) fn text(measured: &Measured, src: &dyn Source, width: usize, is_coloured: bool) -> String {
    let mut out = String::new();
    measured.power.iter().for_each(|sample| power_text::text(&mut out, sample, width));
    measured.disk_experiment.iter().for_each(|run| disk_text::text(&mut out, run, width));
    measured.cores.iter().for_each(|sample| cores::text(&mut out, sample, src, width));
    out += &terminal::samples(&measured.evidence(), width, is_coloured);
    let _ = match scheduling(measured) {
        Some(Scheduling::Fifo(priority)) => {
            writeln!(out, "\n{}", say!("Threads pinned, SCHED_FIFO {priority}; nothing on this machine was changed."))
        }
        Some(Scheduling::Ordinary) => {
            writeln!(
                out,
                "\n{}",
                word!("Threads pinned, SCHED_OTHER as asked for: run-queue delay is included. Nothing was changed.")
            )
        }
        Some(Scheduling::Other(why)) => {
            let said = say!("Threads pinned, SCHED_OTHER ({why}): run-queue delay is included. Nothing was changed.");
            writeln!(out, "\n{said}")
        }
        None if measured.memory.is_some() || !measured.speed.is_empty() => {
            writeln!(out, "\n{}", word!("Threads pinned, SCHED_OTHER; nothing on this machine was changed."))
        }
        None => Ok(()),
    };
    for line in &measured.not_done {
        let _ = writeln!(out, "{}", say!("not measured: {line}"));
    }
    out
}

/// Of the first sample that says.
fn scheduling(measured: &Measured) -> Option<&Scheduling> {
    let Measured { wakeups, network, icmp, disk, cores, .. } = measured;
    let first = wakeups.first().map(|s| &s.scheduling).or(network.first().map(|s| &s.scheduling));
    let first = first.or(icmp.first().map(|s| &s.scheduling)).or(disk.first().map(|s| &s.scheduling));
    first.or(cores.first().map(|s| &s.scheduling))
}
