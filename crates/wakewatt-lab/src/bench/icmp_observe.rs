//! The responder's half of a ping, watched on the responder: the kernel answers, this only looks.
//!
//! Counts every echo its network namespace answers, whoever asked; nothing is sent and nothing is changed. Counting
//! happens in the kernel, so a flood of pings costs this process nothing.

use super::icmp_parts::States;
use super::respond::STOP_LOOK;
use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::icmp::{HiddenExit, IcmpAnswers, IcmpPart, Stretch};
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::{Label, Window};
use wakewatt_core::source::Source;
use wakewatt_host::clock;
use wakewatt_probes::icmp::{Answered, IcmpProbe};

/// Watches until stopped; says first that it does.
pub fn observe(stop: &AtomicBool, src: &dyn Source, on_ready: impl FnOnce()) -> Result<IcmpAnswers, BenchError> {
    let states = States::read(src);
    let unavailable = |e: wakewatt_probes::ProbeError| BenchError::Unavailable(e.to_string());
    let probe = IcmpProbe::respond(states.n()).map_err(unavailable)?;
    on_ready();
    let start_at_ns = clock::monotonic_ns();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_LOOK);
    }
    let window = Window { start_at_ns, end_at_ns: clock::monotonic_ns() };
    let cells = probe.answered().map_err(unavailable)?;
    Ok(answers(&cells, &states, window, probe.n_recursion()))
}

fn answers(cells: &[Answered], states: &States, window: Window, n_missed: Option<u64>) -> IcmpAnswers {
    let part = |stretch, of: fn(&Answered) -> &KernelHistogram, is_waiting: bool| {
        let mut all = KernelHistogram::default();
        let mut by_cell: BTreeMap<(Cpu, Option<u32>), KernelHistogram> = BTreeMap::new();
        for cell in cells {
            all.merge(of(cell));
            by_cell.entry((cell.cpu, cell.state)).or_default().merge(of(cell));
        }
        let cells = by_cell.into_iter().map(|((cpu, state), hist)| (cpu, state, hist));
        IcmpPart {
            stretch,
            label: Label::Measured,
            remark: None,
            time: all.distribution(),
            share_ratio: None,
            by_state: if is_waiting { states.rows(cells) } else { Vec::new() },
        }
    };
    let parts = vec![
        part(Stretch::ResponderWake, |c| &c.to_processing, true),
        part(Stretch::ResponderWork, |c| &c.to_reply, false),
    ];
    let hidden: Vec<HiddenExit> = cells
        .iter()
        .filter(|c| c.n_woken_by_interrupt > 0)
        .filter_map(|c| Some(states.hidden("responder", c.cpu, c.state?, c.n_woken_by_interrupt)))
        .collect();
    IcmpAnswers { n_answered: parts[0].time.n, parts, hidden, n_missed, window }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn cells_become_parts_with_their_states() {
        let mut slow = KernelHistogram::default();
        (0..20).for_each(|_| slow.add(38_000));
        let mut fast = KernelHistogram::default();
        (0..10).for_each(|_| fast.add(2_000));
        let cell = |cpu, state, to_processing: &KernelHistogram, n_woken_by_interrupt| Answered {
            cpu,
            state,
            to_processing: to_processing.clone(),
            to_reply: fast.clone(),
            n_woken_by_interrupt,
        };
        let cells = [cell(0, None, &fast, 0), cell(1, Some(1), &slow, 3)];
        let states = States::read(&Tree::from_text("//- /sys/devices/system/cpu/present\n0-1\n"));
        let answers = answers(&cells, &states, Window::default(), Some(0));
        assert_eq!((answers.n_answered, answers.parts[0].by_state.len()), (30, 2));
        assert_eq!(answers.parts[0].by_state[0].state.as_deref(), Some("state1"));
        assert!(answers.parts[1].by_state.is_empty());
        assert_eq!((answers.hidden.len(), answers.hidden[0].n), (1, 3));
    }
}
