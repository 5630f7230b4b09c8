//! What a trace of wake-ups says: who was woken out of which idle state, by what, and what it cost.
//!
//! Made from the kernel's counters ([`super::wakes`]) and the names of the idle states. States are joined by name, because
//! an index means different states on different CPU types. The state is the one *requested*; `entered` (sysfs usage) and
//! the hardware's own residency stand beside it where they can be had, and a difference is said.
//!
//! "Lost" is the whole time from being made runnable to running. What of it is the idle state's fault is only known
//! against a CPU that need not leave one, so the part above the polling (or, without it, the lightest) wake-up of this
//! same trace is given as *modelled*.

use super::chains::Chains;
use super::kernel_histogram::KernelHistogram;
use super::traced_whose::TracedWhose;
use super::wakes::{Counted, WakeClass, WakeCounters};
use super::{Label, Window};
use crate::arrange::Arrange as _;
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use super::presence::Presence;

/// Wake-ups out of one idle state by one class of waker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeRow {
    /// The CPU; none for all together.
    pub cpu: Option<u32>,
    /// The state requested, by name; none where the CPU was not idle.
    pub state: Option<String>,
    /// How the tasks were woken, which decides whether the exit is inside.
    pub class: WakeClass,
    /// Does the latency contain leaving the state? Else the truth is longer.
    pub contains_exit: bool,
    /// How many wake-ups there were, timed or not.
    pub n: u64,
    /// Made runnable to running. Of a busy CPU's wake-ups one in eight was timed, chosen at random.
    pub latency: Distribution,
    /// Share of all wake-ups, 0 to 1.
    pub share_ratio: f64,
    /// Sum of the latencies; of a busy CPU estimated from those that were timed, none where none was.
    pub total_ns: Option<u64>,
    /// Measured, or modelled where it is estimated.
    pub total_label: Label,
    /// What leaving the state adds, modelled; none for busy CPUs and where nothing lighter was seen to compare with.
    pub exit_cost: Option<ExitCost>,
    /// What the numbers above are worth.
    pub label: Label,
}

/// What the idle state adds to one wake-up, by comparison within the same trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitCost {
    /// Mean difference for one wake-up.
    pub each_ns: u64,
    /// Times the number of wake-ups.
    pub total_ns: u64,
    /// What was compared with: the wake-ups without this exit.
    pub against: String,
    /// Always modelled: it is a difference of two distributions.
    pub label: Label,
}

/// How late timers fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerRow {
    /// The state the CPU was in or had just left.
    pub state: String,
    /// The handler ran after the exit event (states entered with interrupts off).
    pub is_after_exit: bool,
    /// Expiry to handler; the exit latency is inside in both cases.
    pub lateness: Distribution,
    /// What the numbers are worth: measured, or not the whole truth.
    pub label: Label,
}

/// One idle state over the whole trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateRow {
    /// Name of the idle state.
    pub state: String,
    /// Times requested, from the trace.
    pub n_requested: u64,
    /// Times entered, from sysfs usage; none where it cannot be read.
    pub n_entered: Option<u64>,
    /// Time in it by the trace.
    pub time_ns: u64,
    /// Time in it by sysfs.
    pub entered_time_ns: Option<u64>,
    /// What the hardware's own residency counter says, where there is one.
    pub hardware: Hardware,
    /// How long the stays in the state were.
    pub length: Distribution,
    /// What the trace's own numbers are worth; the hardware's have their own.
    pub label: Label,
}

/// What the hardware says about a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hardware {
    /// Measured, unavailable, or present but dead.
    pub label: Label,
    /// Share of the window all cores together were in it.
    pub residency_ratio: Option<f64>,
    /// Which counter, or why there is none.
    pub source: String,
}

impl Hardware {
    /// There is none, because.
    pub fn unavailable(why: impl Into<String>) -> Hardware {
        Hardware { label: Label::Unavailable, residency_ratio: None, source: why.into() }
    }
}

/// Who was woken out of idle, and what it cost them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRow {
    /// The process: its thread group's number.
    pub tgid: u32,
    /// The process's name, from one of its wake-ups.
    pub name: String,
    /// Name of the idle state its CPU was leaving.
    pub state: String,
    /// How many wake-ups of this process left this state.
    pub n: u64,
    /// Latency of these wake-ups added up.
    pub total_ns: u64,
    /// What the numbers are worth: measured, or not the whole truth.
    pub label: Label,
    /// Was it there over the whole trace?
    #[serde(default)]
    pub presence: Presence,
}

/// One window of a longer trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceWindow {
    /// From when to when it was counted.
    pub window: Window,
    /// The rows, over all CPUs.
    pub rows: Vec<WakeRow>,
}

/// The observer's own wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnWakes {
    /// How many wake-ups were the observer's own.
    pub n: u64,
    /// Those that took a CPU out of idle.
    pub n_from_idle: u64,
    /// Interrupts of other CPUs to read their residency registers; only with --hardware.
    pub n_register_interrupts: u64,
    /// CPU time of this process meanwhile.
    pub cpu_ns: u64,
    /// Time the eBPF programs themselves took, if the kernel was asked to count it.
    pub programs_ns: Option<u64>,
}

/// What is missing from the counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missed {
    /// Wake-ups the kernel had no memory to remember.
    pub n_unclassed: u64,
    /// Records that did not fit the ring buffer.
    pub n_lost: u64,
    /// Events skipped because a program was already running on that CPU; none where the kernel does not say.
    pub n_recursion: Option<u64>,
    /// Timers that fired early within their slack (not lost, but not in the lateness).
    pub n_early_timers: u64,
}

/// What was traced in a time: wake-ups by idle state, timers, idle intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traced {
    /// From when to when it was traced.
    pub window: Window,
    /// How many CPUs were counted.
    pub n_cpus: u32,
    /// Whose wake-ups: the whole machine, a process, a cgroup, a command.
    pub scope: TracedWhose,
    /// Rows over all CPUs, most time lost first.
    pub rows: Vec<WakeRow>,
    /// The same rows, CPU by CPU.
    pub by_cpu: Vec<WakeRow>,
    /// Timer lateness by state: always of the whole machine.
    pub timers: Vec<TimerRow>,
    /// The idle states: always of the whole machine.
    pub states: Vec<StateRow>,
    /// Processes, most time lost first.
    pub processes: Vec<ProcessRow>,
    /// Who pays, by cgroup, pod or container; none where that was not asked.
    #[serde(default)]
    pub payers: Option<super::payers::Payers>,
    /// Who woke whom; none where that was not asked.
    #[serde(default)]
    pub chains: Option<Chains>,
    /// Windows, when there were several.
    pub windows: Vec<TraceWindow>,
    /// Why it was shorter than asked for; none when it was not.
    pub ended_early: Option<String>,
    /// Wake-ups of the observer itself, kept out of the rows.
    pub own: OwnWakes,
    /// What could not be counted, and how much of it.
    pub missed: Missed,
    /// What could not be done or must be known, in words.
    pub remarks: Vec<String>,
}

type Cells = BTreeMap<(Option<String>, Counted), KernelHistogram>;

/// Joins the counters of the CPUs by state name.
fn joined(counters: &WakeCounters, name_of: &dyn Fn(u32, u32) -> String, only: Option<u32>) -> Cells {
    let mut cells = Cells::new();
    for cpu in counters.cpus.iter().filter(|c| only.is_none_or(|o| o == c.cpu)) {
        for ((state, counted), hist) in &cpu.cells {
            cells.entry((state.map(|s| name_of(cpu.cpu, s)), *counted)).or_default().merge(hist);
        }
    }
    cells
}

/// Rows of one scope (all CPUs or one), most time lost first; busy last.
pub fn rows(counters: &WakeCounters, name_of: &dyn Fn(u32, u32) -> String, cpu: Option<u32>) -> Vec<WakeRow> {
    let mut cells = joined(counters, name_of, cpu);
    let n_busy: u64 = counters.cpus.iter().filter(|c| cpu.is_none_or(|o| o == c.cpu)).map(|c| c.n_busy).sum();
    if n_busy > 0 {
        cells.entry((None, Counted::Wake(WakeClass::Busy))).or_default(); // counted, perhaps none of them timed
    }
    let wakes = || {
        cells.iter().filter_map(|((state, counted), hist)| match counted {
            Counted::Wake(class) => Some((state, *class, hist)),
            _ => None,
        })
    };
    let count = |class: WakeClass, hist: &KernelHistogram| if class == WakeClass::Busy { n_busy } else { hist.n };
    let n_all: u64 = wakes().map(|(_, class, h)| count(class, h)).sum();
    // The lightest wake-up from another CPU: out of a polling state it is the bare cost of waking.
    let base = wakes()
        .filter(|(_, class, hist)| *class == WakeClass::Remote && hist.n >= 10)
        .filter_map(|(state, _, hist)| Some((state.clone()?, hist.mean_ns()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let mean_remote = |name: &Option<String>| {
        cells.get(&(name.clone(), Counted::Wake(WakeClass::Remote))).filter(|h| h.n >= 10)?.mean_ns()
    };
    let mut rows: Vec<WakeRow> = wakes()
        .map(|(state, class, hist)| {
            let exit_cost = base.as_ref().filter(|(name, _)| state.as_ref().is_some_and(|s| s != name)).and_then(
                |(name, base_ns)| {
                    let mean = if class == WakeClass::Remote { hist.mean_ns() } else { mean_remote(state) };
                    exit_cost(mean?, *base_ns, name, hist.n)
                },
            );
            WakeRow {
                cpu,
                state: state.clone(),
                class,
                contains_exit: class.contains_exit(),
                n: count(class, hist),
                latency: hist.distribution(),
                share_ratio: count(class, hist) as f64 / n_all.max(1) as f64,
                total_ns: scaled(hist.sum_ns, count(class, hist), hist.n),
                total_label: if class == WakeClass::Busy { Label::Modelled } else { Label::Measured },
                exit_cost,
                label: Label::Measured,
            }
        })
        .collect();
    rows.arrange_by_key(|r| (r.class == WakeClass::Busy, std::cmp::Reverse(r.total_ns)));
    rows
}

/// A sum over some of the values, for all of them.
fn scaled(sum_ns: u64, n_all: u64, n_timed: u64) -> Option<u64> {
    let whole = (u128::from(sum_ns) * u128::from(n_all)).checked_div(u128::from(n_timed))?;
    Some(u64::try_from(whole).unwrap_or(u64::MAX))
}

/// Mean of wake-ups from another CPU out of this state, less the lightest.
fn exit_cost(mean_ns: f64, base_ns: f64, base: &str, n: u64) -> Option<ExitCost> {
    let each = (mean_ns - base_ns).max(0.0);
    // Below an hour by construction of the histogram.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let each_ns = each.round() as u64;
    Some(ExitCost {
        each_ns,
        total_ns: each_ns.saturating_mul(n),
        against: format!("waking from {base} in this trace"),
        label: Label::Modelled,
    })
}

/// Timer lateness by state.
pub fn timers(counters: &WakeCounters, name_of: &dyn Fn(u32, u32) -> String) -> Vec<TimerRow> {
    let cells = joined(counters, name_of, None);
    cells
        .into_iter()
        .filter_map(|((state, counted), hist)| {
            let is_after_exit = match counted {
                Counted::TimerInside => false,
                Counted::TimerAfter => true,
                _ => return None,
            };
            Some(TimerRow { state: state?, is_after_exit, lateness: hist.distribution(), label: Label::Measured })
        })
        .collect()
}

/// The states as requested; what sysfs and the hardware say is filled in by the caller.
pub fn states(counters: &WakeCounters, name_of: &dyn Fn(u32, u32) -> String) -> Vec<StateRow> {
    let cells = joined(counters, name_of, None);
    cells
        .into_iter()
        .filter(|((_, counted), _)| *counted == Counted::IdleLength)
        .filter_map(|((state, _), hist)| {
            Some(StateRow {
                state: state?,
                n_requested: hist.n,
                n_entered: None,
                time_ns: hist.sum_ns,
                entered_time_ns: None,
                hardware: Hardware::unavailable("not read"),
                length: hist.distribution(),
                label: Label::Measured,
            })
        })
        .collect()
}

/// Processes, most time lost first.
pub fn processes(counters: &WakeCounters, name_of: &dyn Fn(u32, u32) -> String) -> Vec<ProcessRow> {
    let mut joined: BTreeMap<(u32, String), ProcessRow> = BTreeMap::new();
    for p in &counters.processes {
        // Where tables differ between CPUs the process does not say which one it ran on: take the first CPU's.
        let first = counters.cpus.first().map_or(0, |c| c.cpu);
        let state = p.state.map_or("?".to_string(), |s| name_of(first, s));
        let row = joined.entry((p.tgid, state.clone())).or_insert_with(|| ProcessRow {
            tgid: p.tgid,
            name: p.name.clone(),
            state,
            n: 0,
            total_ns: 0,
            label: Label::Measured,
            presence: Presence::Unknown,
        });
        row.n += p.n;
        row.total_ns += p.sum_ns;
    }
    let mut rows: Vec<ProcessRow> = joined.into_values().collect();
    rows.arrange_by_key(|r| std::cmp::Reverse(r.total_ns));
    rows
}

impl Traced {
    /// Makes sense of the counts of one trace.
    pub fn of(
        counters: &WakeCounters,
        name_of: &dyn Fn(u32, u32) -> String,
        window: Window,
        scope: TracedWhose,
    ) -> Traced {
        let sum = |count: fn(&super::wakes::CpuCounters) -> u64| counters.cpus.iter().map(count).sum();
        Traced {
            window,
            n_cpus: u32::try_from(counters.cpus.len()).unwrap_or(u32::MAX),
            scope,
            rows: rows(counters, name_of, None),
            by_cpu: counters.cpus.iter().flat_map(|c| rows(counters, name_of, Some(c.cpu))).collect(),
            timers: timers(counters, name_of),
            states: states(counters, name_of),
            processes: processes(counters, name_of),
            payers: None,
            chains: None,
            windows: Vec::new(),
            ended_early: None,
            own: OwnWakes { n: sum(|c| c.n_own), n_from_idle: sum(|c| c.n_own_from_idle), ..OwnWakes::default() },
            missed: Missed {
                n_unclassed: sum(|c| c.n_unclassed),
                n_lost: sum(|c| c.n_lost),
                n_recursion: None,
                n_early_timers: sum(|c| c.n_early),
            },
            remarks: Vec::new(),
        }
    }

    /// Wake-ups in all.
    pub fn n_wakes(&self) -> u64 {
        self.rows.iter().map(|r| r.n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wakes::{CpuCounters, ProcessCounters};
    use super::*;

    fn hist(values: impl IntoIterator<Item = u64>) -> KernelHistogram {
        let mut hist = KernelHistogram::default();
        values.into_iter().for_each(|v| hist.add(v));
        hist
    }

    /// Two kinds of CPU: index 2 is C6 on CPU 0 and C10 on CPU 1.
    fn name_of(cpu: u32, state: u32) -> String {
        ["POLL", "C1", if cpu == 0 { "C6" } else { "C10" }][state as usize].into()
    }

    fn counters() -> WakeCounters {
        let wake = |state, class| (state, Counted::Wake(class));
        let cpu = |cpu, cells: Vec<((Option<u32>, Counted), KernelHistogram)>| CpuCounters {
            cpu,
            cells: cells.into_iter().collect(),
            n_own: 3,
            n_busy: if cpu == 0 { 320 } else { 0 },
            n_early: 2,
            ..CpuCounters::default()
        };
        WakeCounters {
            at_ns: 5,
            cpus: vec![
                cpu(
                    0,
                    vec![
                        (wake(Some(0), WakeClass::Remote), hist(vec![2_000; 20])),
                        (wake(Some(2), WakeClass::Remote), hist(vec![42_000; 20])),
                        (wake(Some(2), WakeClass::InterruptAfterExit), hist(vec![3_000; 5])),
                        (wake(None, WakeClass::Busy), hist(vec![1_000; 40])),
                        ((Some(2), Counted::IdleLength), hist(vec![900_000; 25])),
                        ((Some(2), Counted::TimerAfter), hist(vec![50_000; 12])),
                    ],
                ),
                cpu(1, vec![(wake(Some(2), WakeClass::Remote), hist(vec![80_000; 15]))]),
            ],
            processes: vec![
                ProcessCounters { tgid: 7, name: "db".into(), state: Some(2), n: 20, sum_ns: 840_000 },
                ProcessCounters { tgid: 9, name: "web".into(), state: Some(2), n: 15, sum_ns: 1_200_000 },
            ],
            ..WakeCounters::default()
        }
    }

    #[test]
    fn rows_are_joined_by_name_ranked_by_loss_and_compared_with_polling() {
        let traced = Traced::of(&counters(), &name_of, Window::default(), TracedWhose::Machine);
        let said: Vec<String> = traced
            .rows
            .iter()
            .map(|r| {
                let cost = r.exit_cost.as_ref().map_or("-".into(), |c| (c.each_ns / 1000).to_string());
                format!(
                    "{} {} n{} {}us +{cost}",
                    r.state.as_deref().unwrap_or("busy"),
                    r.class.words(),
                    r.n,
                    r.total_ns.unwrap() / 1000
                )
            })
            .collect();
        let want = [
            "C10 another CPU n15 1200us +78",
            "C6 another CPU n20 840us +40",
            "POLL another CPU n20 40us +-",
            "C6 interrupt after exit n5 15us +40",
            "busy - n320 320us +-",
        ];
        assert_eq!(said, want);
        assert!((traced.rows.iter().map(|r| r.share_ratio).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(!traced.rows[3].contains_exit && traced.rows[0].contains_exit);
        assert_eq!((traced.own.n, traced.missed.n_early_timers, traced.n_wakes()), (6, 4, 380));
        assert_eq!(traced.by_cpu.iter().filter(|r| r.cpu == Some(1)).count(), 1);
        assert_eq!(traced.processes[0].name, "web");
        assert_eq!((traced.states[0].n_requested, traced.states[0].time_ns), (25, 22_500_000));
        assert!(traced.timers[0].is_after_exit && traced.timers[0].lateness.n == 12);
    }

    #[test]
    fn a_window_holds_only_what_came_in_it() {
        let early = counters();
        assert!(early.since(&early).cpus.iter().all(|c| c.cells.is_empty()));
        assert!(early.since(&early).processes.is_empty());
        let mut late = early.clone();
        late.cpus[0].cells.get_mut(&(Some(0), Counted::Wake(WakeClass::Remote))).unwrap().add(9_000);
        late.processes[0].n = 3; // evicted and counted anew
        let window = late.since(&early);
        assert_eq!(window.cpus[0].cells.len(), 1);
        assert_eq!((window.processes.len(), window.processes[0].n), (1, 3));
        let rows = rows(&window, &name_of, None);
        assert_eq!((rows.len(), rows[0].latency.n, rows[0].total_ns), (1, 1, Some(9_000)));
        assert!(rows[0].exit_cost.is_none(), "nothing to compare with");
    }
}
