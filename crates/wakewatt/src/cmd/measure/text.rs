//! What `measure` found, as text: one table after the other, then how the threads ran and what is missing.

use super::columns::columns;
use super::{Measured, cores, disk_text, frequency, idle, memory_text, power_text};
use crate::icmp_text;
use std::fmt::Write as _;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::network::NetworkSample;
use wakewatt_core::samples::wakeup::WakeupSample;
use wakewatt_core::source::Source;
use wakewatt_core::units::show_ns;

/// All of it.
pub(super) fn text(measured: &Measured, src: &dyn Source) -> String {
    let mut out = String::new();
    wakeups(&mut out, &measured.wakeups);
    network(&mut out, &measured.network);
    measured.icmp.iter().for_each(|sample| icmp_text::text(&mut out, sample));
    if let Some(sample) = &measured.memory {
        memory_text::text(&mut out, sample);
    }
    disk_text::samples(&mut out, &measured.disk);
    measured.disk_experiment.iter().for_each(|run| disk_text::experiment(&mut out, run));
    measured.cores.iter().for_each(|sample| cores::text(&mut out, sample, src));
    measured.speed.iter().for_each(|sample| frequency::text(&mut out, sample));
    measured.idle_states.iter().for_each(|costs| idle::text(&mut out, costs));
    measured.power.iter().for_each(|sample| power_text::text(&mut out, sample));
    let scheduling = measured
        .wakeups
        .first()
        .map(|s| &s.scheduling)
        .or(measured.network.first().map(|s| &s.scheduling))
        .or(measured.icmp.first().map(|s| &s.scheduling))
        .or(measured.disk.first().map(|s| &s.scheduling));
    let _ = match scheduling {
        Some(Scheduling::Fifo(priority)) => {
            writeln!(out, "\nThreads pinned, SCHED_FIFO {priority}; nothing on this machine was changed.")
        }
        Some(Scheduling::Other(why)) => {
            writeln!(out, "\nThreads pinned, SCHED_OTHER ({why}): run-queue delay is included. Nothing was changed.")
        }
        None => Ok(()),
    };
    for line in &measured.not_done {
        let _ = writeln!(out, "not measured: {line}");
    }
    out
}

fn wakeups(out: &mut String, samples: &[WakeupSample]) {
    if !samples.is_empty() {
        let _ = writeln!(out, "Wake-up latency, measured (95 % interval of the median in brackets)\n");
        let _ = writeln!(
            out,
            "{:<8} {:>4} {:>5}  {:>8} {:<19} {:>8} {:>8} {:>8} {:>8}  asleep in",
            "kind", "CPU", "from", "p50", "", "p90", "p99", "p99.9", "n"
        );
    }
    for sample in samples {
        let from = sample.from_cpu.map_or("-".to_string(), |c| c.to_string());
        let states = sample.idle.iter().flat_map(|d| &d.states).filter(|s| s.n_usage > 0);
        let states: Vec<String> = states.map(|s| format!("{} {}x", s.name, s.n_usage)).collect();
        let _ = writeln!(
            out,
            "{:<8} {:>4} {from:>5}  {}  {}",
            sample.kind.word(),
            sample.cpu,
            columns(&sample.latency),
            states.join(", ")
        );
    }
}

fn network(out: &mut String, samples: &[NetworkSample]) {
    if !samples.is_empty() {
        let _ = writeln!(out, "Round trips, measured (95 % interval of the median in brackets)\n");
        let _ = writeln!(out, "{:<20} {:>8} {:<19} {:>8} {:>8} {:>8} {:>8}", "", "p50", "", "p90", "p99", "p99.9", "n");
    }
    for sample in samples {
        let _ = writeln!(
            out,
            "{:<20} {}",
            format!("{} {}", sample.transport.word(), sample.peer),
            columns(&sample.round_trip)
        );
        match &sample.split {
            Ok(split) => {
                for (name, part) in [
                    ("  requester", &split.requester),
                    ("  responder", &split.responder),
                    ("  wire and stacks", &split.wire),
                ] {
                    let _ = writeln!(out, "{name:<20} {}", columns(part));
                }
            }
            Err(why) => {
                let _ = writeln!(out, "  no split: {why}");
            }
        }
        if sample.n_lost > 0 {
            let _ = writeln!(out, "  {} of {} requests were not answered", sample.n_lost, sample.n_sent);
        }
        if let Some(why) = behind_plan(sample.n_late_starts, sample.n_sent, sample.gap_ns) {
            let _ = writeln!(out, "  {why}");
        }
    }
}

/// A round trip longer than the gap makes each request later than the one before: then the wait in that queue is most of
/// the number, and nothing in the table tells.
fn behind_plan(n_late: u64, n_sent: u64, gap_ns: u64) -> Option<String> {
    (n_late * 10 > n_sent).then(|| {
        format!(
            "{n_late} of {n_sent} requests could not be sent as planned, every {}: their waiting is in the round trip, \
             not in its parts; to measure single round trips give a longer --gap",
            show_ns(gap_ns)
        )
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_plan_that_was_not_kept_is_told() {
        assert_eq!(super::behind_plan(10, 100, 1_000_000), None);
        let said = super::behind_plan(1990, 2044, 1_000_000).unwrap();
        assert!(said.starts_with("1990 of 2044 requests could not be sent as planned, every 1ms"), "{said}");
        assert_eq!(super::behind_plan(0, 0, 1), None, "nothing was sent");
    }
}
