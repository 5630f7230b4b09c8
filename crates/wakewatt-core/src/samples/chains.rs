//! Who woke whom out of idle, and what it cost: chains of a waker, the cgroup and process it woke, and the state that was left.
//!
//! A chain is one waker deep: the process, timer or interrupt in whose name the waking happened, not who had woken that before. What is
//! added up is what processes and payers are charged: latency of wake-ups that contain the exit. The kernel's table may be full, and a
//! document keeps the heaviest chains only; the rest is in rows of its own, so that the sum is always all the time lost.
//!
//! Folded stacks are the common text of flame graphs: frames from the waker to the state joined by `;`, a blank, a whole number (here
//! nanoseconds lost). A name may hold any byte, so what would end a frame or a line, or command a terminal, is written as its number, and a
//! blank as `_`.

use super::Label;
use super::wakes::{ChainCounters, Counted, WakeCounters, WakerKind};
use crate::arrange::Arrange as _;
use crate::visible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows that are kept.
pub const MOST_ROWS: usize = 2_000;

/// One chain: who woke whom out of which state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chain {
    /// What kind of waker it was.
    pub kind: WakerKind,
    /// The waker: a process's name, a timer's function, an interrupt's name; none where it is not known.
    pub waker: Option<String>,
    /// Path of the woken process's cgroup; none where it is not known, or not of one cgroup.
    pub cgroup: Option<String>,
    /// Name of the woken process; none of several.
    pub process: Option<String>,
    /// Name of the idle state that the CPU was leaving.
    pub state: String,
    /// How many wake-ups.
    pub n: u64,
    /// Latency of these wake-ups added up, in nanoseconds.
    pub total_ns: u64,
    /// Joined from chains that are not told one by one?
    pub is_rest: bool,
}

/// Who woke whom in a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chains {
    /// Most time lost first, 2000 at most; then, state by state, what is not among them.
    pub rows: Vec<Chain>,
    /// What the numbers are worth.
    pub label: Label,
}

/// What counters do not say.
pub struct ChainNames<'a> {
    /// Of idle states, by index.
    pub state_of: &'a dyn Fn(u32) -> String,
    /// Of cgroups, by number: their paths.
    pub path_of: &'a dyn Fn(u64) -> Option<String>,
    /// Of the kernel's functions, by address.
    pub function_of: &'a dyn Fn(u64) -> Option<String>,
}

/// Names in the order of `include/linux/interrupt.h`, as /proc/softirqs shows them.
const SOFTIRQS: [&str; 10] =
    ["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

impl Chains {
    /// Adds up by name.
    pub fn of(counters: &WakeCounters, names: &ChainNames<'_>) -> Chains {
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let mut left = lost(counters);
        for chain in &counters.chains {
            let key = (
                chain.key.kind,
                waker(chain, names),
                (names.path_of)(chain.key.cgroup),
                Some(chain.name.clone()).filter(|name| !name.is_empty()),
                chain.key.state,
            );
            let sum = sums.entry(key).or_default();
            (sum.0, sum.1) = (sum.0 + chain.n, sum.1 + chain.sum_ns);
            if let Some(left) = left.get_mut(&chain.key.state) {
                *left = (left.0.saturating_sub(chain.n), left.1.saturating_sub(chain.sum_ns));
            }
        }
        let mut all: Vec<_> = sums.into_iter().collect();
        all.arrange_by_key(|(_, (_, total_ns))| std::cmp::Reverse(*total_ns));
        for ((.., state), (n, total_ns)) in all.split_off(all.len().min(MOST_ROWS)) {
            let left = left.entry(state).or_default();
            (left.0, left.1) = (left.0 + n, left.1 + total_ns);
        }
        let state_of = |state: Option<u32>| state.map_or("?".to_string(), names.state_of);
        let told = all.into_iter().map(|((kind, waker, cgroup, process, state), (n, total_ns))| Chain {
            kind,
            waker,
            cgroup,
            process,
            state: state_of(state),
            n,
            total_ns,
            is_rest: false,
        });
        let rest =
            left.into_iter().filter(|(_, (n, total_ns))| *n > 0 && *total_ns > 0).map(|(state, (n, total_ns))| {
                let (kind, waker, cgroup, process) = (WakerKind::Unknown, None, None, None);
                Chain { kind, waker, cgroup, process, state: state_of(state), n, total_ns, is_rest: true }
            });
        Chains { rows: told.chain(rest).collect(), label: Label::Measured }
    }

    /// Folded stacks, in nanoseconds lost: a line for each row that lost any.
    pub fn folded(&self) -> String {
        let lines = self.rows.iter().filter(|row| row.total_ns > 0);
        lines.map(|row| format!("{} {}\n", row.frames().map(|frame| folded(&frame)).join(";"), row.total_ns)).collect()
    }
}

impl Chain {
    /// Waker, cgroup, process, state, for people; foreign text as it is.
    pub fn frames(&self) -> [String; 4] {
        let unknown = |name: &Option<String>, what: &str| name.clone().unwrap_or_else(|| format!("({what} not known)"));
        let kind = match self.kind {
            _ if self.is_rest => "(other wakers)",
            WakerKind::Task => return self.with(unknown(&self.waker, "process")),
            WakerKind::Timer => "timer",
            WakerKind::Interrupt => "interrupt",
            WakerKind::Softirq => "soft interrupt",
            WakerKind::Unknown => "(interrupt not known)",
        };
        self.with(self.waker.as_ref().map_or(kind.into(), |name| format!("{kind} {name}")))
    }

    fn with(&self, waker: String) -> [String; 4] {
        let other = |name: &Option<String>, many: &str, one: &str| match name {
            Some(name) => name.clone(),
            None if self.is_rest => many.into(),
            None => one.into(),
        };
        let cgroup = other(&self.cgroup, "(all cgroups)", "(cgroup not known)");
        let process = other(&self.process, "(all processes)", "(process not known)");
        [waker, cgroup, process, self.state.clone()]
    }
}

/// A frame of a folded stack.
fn folded(name: &str) -> String {
    visible::line(name).replace(';', "\\x3b").replace(char::is_whitespace, "_")
}

/// What was lost by state to wake-ups that contain the exit, whoever was woken.
fn lost(counters: &WakeCounters) -> BTreeMap<Option<u32>, (u64, u64)> {
    let mut lost: BTreeMap<Option<u32>, (u64, u64)> = BTreeMap::new();
    for ((state, counted), hist) in counters.cpus.iter().flat_map(|cpu| &cpu.cells) {
        if matches!(counted, Counted::Wake(class) if class.contains_exit()) {
            let sum = lost.entry(*state).or_default();
            (sum.0, sum.1) = (sum.0 + hist.n, sum.1 + hist.sum_ns);
        }
    }
    lost
}

fn waker(chain: &ChainCounters, names: &ChainNames<'_>) -> Option<String> {
    match chain.key.kind {
        WakerKind::Task | WakerKind::Interrupt => Some(chain.waker_name.clone()).filter(|name| !name.is_empty()),
        WakerKind::Timer => (names.function_of)(chain.key.waker),
        WakerKind::Softirq => {
            usize::try_from(chain.key.waker).ok().and_then(|at| SOFTIRQS.get(at)).map(ToString::to_string)
        }
        WakerKind::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel_histogram::KernelHistogram;
    use super::super::wakes::{ChainKey, CpuCounters, WakeClass};
    use super::*;

    fn counters(chains: Vec<ChainCounters>, lost_ns: &[u64]) -> WakeCounters {
        let mut hist = KernelHistogram::default();
        lost_ns.iter().for_each(|ns| hist.add(*ns));
        let cells = [((Some(1), Counted::Wake(WakeClass::Remote)), hist)].into_iter().collect();
        WakeCounters { cpus: vec![CpuCounters { cells, ..CpuCounters::default() }], chains, ..WakeCounters::default() }
    }

    fn chain(kind: WakerKind, waker: u64, names: (&str, &str), n: u64, sum_ns: u64) -> ChainCounters {
        let key = ChainKey { kind, waker, cgroup: 7, tgid: 9, state: Some(1) };
        ChainCounters { key, waker_name: names.0.into(), name: names.1.into(), n, sum_ns }
    }

    fn of(counters: &WakeCounters) -> Chains {
        let names = ChainNames {
            state_of: &|state| format!("C{state} deep"),
            path_of: &|id| (id == 7).then(|| "/a b;c/\u{1b}[31m\n".to_string()),
            function_of: &|at| (at == 0xf2).then(|| "hrtimer_wakeup".to_string()),
        };
        Chains::of(counters, &names)
    }

    #[test]
    fn a_line_is_frames_and_a_whole_number_whatever_names_hold() {
        let chains = vec![
            chain(WakerKind::Task, 5, ("ngi;nx 1\n2", "php"), 2, 900),
            chain(WakerKind::Timer, 0xf2, ("", "db"), 1, 80),
            chain(WakerKind::Timer, 0xf3, ("", "db"), 1, 70),
            chain(WakerKind::Softirq, 3, ("", "db"), 1, 60),
            chain(WakerKind::Unknown, 0, ("", ""), 1, 50),
            chain(WakerKind::Interrupt, 11, ("eth0", "db"), 1, 0),
        ];
        let text = of(&counters(chains, &[1_000, 200])).folded();
        let path = "/a_b\\x3bc/\\x1b[31m\\n";
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                format!("ngi\\x3bnx_1\\n2;{path};php;C1_deep 900"),
                format!("timer_hrtimer_wakeup;{path};db;C1_deep 80"),
                format!("timer;{path};db;C1_deep 70"),
                format!("soft_interrupt_net_rx;{path};db;C1_deep 60"),
                format!("(interrupt_not_known);{path};(process_not_known);C1_deep 50"),
            ]
        );
        for line in text.lines() {
            let (frames, weight) = line.rsplit_once(' ').unwrap();
            assert!(frames.split(';').count() == 4 && !frames.contains(' ') && weight.parse::<u64>().is_ok(), "{line}");
            assert!(!line.contains(visible::is_hidden), "{line}");
        }
    }

    #[test]
    fn what_does_not_fit_is_in_the_rest_and_none_is_lost() {
        let many = (0..5_000u64).map(|at| {
            let name = format!("p{at}");
            chain(WakerKind::Task, at, (&name, "x"), 1, at + 1)
        });
        // Another 1000 ns that the kernel had no room for.
        let all_ns: u64 = (1..=5_000).sum();
        let chains = of(&counters(many.collect(), &[all_ns, 1_000]));
        assert_eq!(chains.rows.len(), MOST_ROWS + 1);
        assert!(chains.rows[0].total_ns == 5_000 && chains.rows.last().is_some_and(|row| row.is_rest));
        assert_eq!(chains.rows.iter().map(|row| row.total_ns).sum::<u64>(), all_ns + 1_000);
        let text = chains.folded();
        assert!(text.contains("(other_wakers);(all_cgroups);(all_processes);C1_deep "), "{text}");
        let two = vec![chain(WakerKind::Task, 1, ("a", "x"), 1, 10), chain(WakerKind::Task, 2, ("a", "x"), 2, 5)];
        let joined = of(&counters(two, &[15]));
        assert_eq!((joined.rows.len(), joined.rows[0].n, joined.rows[0].total_ns), (1, 3, 15), "processes of one name");
    }
}
