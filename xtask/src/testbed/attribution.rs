//! `cargo xtask testbed attribution`: does `trace` count what happened, and blame the right idle state?
//!
//! Three witnesses of the same seconds: wakewatt's eBPF probe, the kernel's own event log (tracefs, which shares nothing
//! with the probe but the tracepoints), and the usage counters of sysfs. The log is read here by a second reader that
//! follows every task and CPU event by event, with the definitions of `wakes.rs` in core and none of its code. Compared
//! are counts, since time inside an emulator means nothing: entries of each state, and wake-ups by state and class.
//!
//! Not part of `make test`: at both ends of the window a few events belong to one witness only, and a busy host makes
//! that time longer. Timers handled outside idle and the observer's own wake-ups are not compared.

use super::machine::Machine;
use super::run::{self, Ending, Job};
use super::{check, wakewatt};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(200);
/// `mono` is the clock of wakewatt's windows. Short and long sleeps, forks among them.
const SCRIPT: &str = "
cd /sys/kernel/tracing; echo mono >trace_clock; echo 20000 >buffer_size_kb
for event in power/cpu_idle sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new sched/sched_switch sched/sched_migrate_task
do echo 1 >events/$event/enable; done
sh -c 'while :; do usleep 5000; usleep 300; usleep 40000; done' &
load=$!
wakewatt trace --for 8s --json >/tmp/trace.json; code=$?
echo 0 >tracing_on; kill $load
cat trace >/tmp/events; cat per_cpu/cpu*/stats >/tmp/stats; exit $code";

/// Runs and compares; says whether the witnesses agree.
pub(super) fn attribution(file: &Path, binary: Option<&Path>) -> Result<bool> {
    let machine = Machine::read(file)?;
    if let Some(why) = check::unavailable(&machine, binary) {
        bail!("{}: {why}", machine.name);
    }
    let wakewatt = wakewatt::made(machine.arch, binary)?;
    let out = super::out_folder(&machine, Some(&super::cache()?.join("out").join("attribution")))?;
    let ran = run::run(&Job {
        machine: &machine,
        wakewatt: Some(&wakewatt),
        command: &["sh".into(), "-c".into(), SCRIPT.into()],
        files: &[],
        fetch: &["/tmp/trace.json".into(), "/tmp/events".into(), "/tmp/stats".into()],
        out: &out,
        timeout: LIMIT,
        is_echoed: false,
    })?;
    if ran.ending != Ending::Exited(0) {
        bail!("{}: ended with {:?}; see {}", machine.name, ran.ending, out.display());
    }
    let read = |name: &str| std::fs::read_to_string(out.join("files/tmp").join(name)).with_context(|| name.to_string());
    let is_lossy = |line: &str| line.starts_with("overrun: ") && line != "overrun: 0";
    if read("stats")?.lines().any(is_lossy) {
        bail!("the kernel's log ran over, so there is nothing to compare with");
    }
    let traced: Value = serde_json::from_str(&read("trace.json")?)?;
    let names: Vec<&str> = std::iter::once("WFI").chain(machine.idle.iter().map(|s| s.name.as_str())).collect();
    let window = ["start_at_ns", "end_at_ns"].map(|key| traced["window"][key].as_u64().unwrap_or_default());
    let log = Log::read(&read("events")?, window[0]..=window[1]);
    Ok(compare(&traced, &log, &names))
}

/// Prints both tables.
fn compare(traced: &Value, log: &Log, names: &[&str]) -> bool {
    let rows = |key: &str| traced[key].as_array().cloned().unwrap_or_default();
    let mut is_right = true;
    let mut row = |what: &str, counts: &[u64]| {
        let (most, least) = (counts.iter().max().copied().unwrap_or(0), counts.iter().min().copied().unwrap_or(0));
        // A few at both ends of the window, and one in fifty.
        let is_same = most - least <= 20 + most / 50;
        is_right &= is_same;
        let text: String = counts.iter().map(|n| format!("{n:>10}")).collect();
        println!("{what:<32}{text}{}", if is_same { "" } else { "   DIFFER" });
    };
    println!("{:<32}{:>10}{:>10}{:>10}", "entries of", "trace", "log", "sysfs");
    for (index, name) in names.iter().enumerate() {
        let state = rows("states").into_iter().find(|s| s["state"] == **name).unwrap_or_default();
        let said = |key: &str| state[key].as_u64().unwrap_or_default();
        row(name, &[said("n_requested"), log.entries.get(&index).copied().unwrap_or(0), said("n_entered")]);
    }
    println!("{:<32}{:>10}{:>10}", "wake-ups out of", "trace", "log");
    for (index, name) in names.iter().enumerate() {
        for class in ["remote", "interrupt_before_exit", "interrupt_after_exit"] {
            let found = rows("rows").into_iter().find(|r| r["state"] == **name && r["class"] == class);
            let said = found.map_or(0, |r| r["n"].as_u64().unwrap_or_default());
            let logged = log.wakes.get(&(index, class)).copied().unwrap_or(0);
            if said + logged > 0 {
                row(&format!("{name}, {class}"), &[said, logged]);
            }
        }
    }
    is_right
}

/// What the kernel's log says of a window.
#[derive(Debug, Default)]
struct Log {
    /// Left by index of the state.
    entries: BTreeMap<usize, u64>,
    /// By state and class.
    wakes: BTreeMap<(usize, &'static str), u64>,
}

/// The last idle state of a CPU.
#[derive(Clone, Copy, Default)]
struct Idle {
    state: usize,
    enter_ns: u64,
    /// 0 while inside.
    exit_ns: u64,
    /// Entered since the CPU last ran a task.
    is_fresh: bool,
}

/// A task that was woken and has not run yet.
struct Woken {
    at_ns: u64,
    by_cpu: u64,
    is_queued: bool,
    is_moved: bool,
}

impl Log {
    fn read(text: &str, window: std::ops::RangeInclusive<u64>) -> Log {
        let mut log = Log::default();
        let mut cpus: HashMap<u64, Idle> = HashMap::new();
        let mut woken: HashMap<u64, Woken> = HashMap::new();
        // Whether a task is on a run queue, as far as its switches and wake-ups told.
        let mut is_ready: HashMap<u64, bool> = HashMap::new();
        let mut events: Vec<Event> = text.lines().filter_map(Event::parse).collect();
        events.sort_by_key(|event| event.at_ns);
        for event in &events {
            let idle = cpus.entry(event.cpu).or_default();
            let pid = event.number(" pid=").unwrap_or(0);
            match event.name {
                "cpu_idle" => match event.number("state=") {
                    Some(state) if state < 1000 => {
                        let state = usize::try_from(state).unwrap_or(usize::MAX);
                        *idle = Idle { state, enter_ns: event.at_ns, exit_ns: 0, is_fresh: true };
                    }
                    _ if idle.enter_ns > 0 && idle.exit_ns == 0 => {
                        idle.exit_ns = event.at_ns;
                        *log.entries.entry(idle.state).or_default() += u64::from(window.contains(&event.at_ns));
                    }
                    _ => {}
                },
                "sched_waking" | "sched_wakeup_new" if is_ready.get(&pid) != Some(&true) => {
                    let is_queued = event.name == "sched_wakeup_new";
                    woken.insert(pid, Woken { at_ns: event.at_ns, by_cpu: event.cpu, is_queued, is_moved: false });
                    is_ready.insert(pid, true);
                }
                "sched_wakeup" => {
                    woken.entry(pid).and_modify(|task| task.is_queued = true);
                }
                "sched_migrate_task" => {
                    if let Some(task) = woken.get_mut(&pid).filter(|task| task.is_queued) {
                        task.is_moved = true;
                    }
                }
                "sched_switch" => {
                    let (prev, next) = (event.number("prev_pid=").unwrap_or(0), event.number("next_pid=").unwrap_or(0));
                    is_ready.insert(prev, event.body.contains("prev_state=R"));
                    is_ready.insert(next, true);
                    if next == 0 {
                        idle.is_fresh = false;
                        continue;
                    }
                    let Some(task) = woken.remove(&next) else { continue };
                    let is_own = event.body.contains("next_comm=wakewatt");
                    if prev != 0 || !idle.is_fresh || task.is_moved || is_own || !window.contains(&event.at_ns) {
                        continue;
                    }
                    if let Some(class) = class(idle, &task, event.cpu) {
                        *log.wakes.entry((idle.state, class)).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        log
    }
}

/// When was the task woken, seen from the CPU that ran it?
fn class(idle: &Idle, task: &Woken, cpu: u64) -> Option<&'static str> {
    let is_from_here = task.by_cpu == cpu;
    if idle.exit_ns > 0 && task.at_ns > idle.exit_ns {
        return is_from_here.then_some("interrupt_after_exit");
    }
    if !is_from_here {
        return Some("remote");
    }
    (task.at_ns >= idle.enter_ns).then_some("interrupt_before_exit")
}

/// `  comm-12  [001] d....  1.587430: cpu_idle: state=8 cpu_id=1`
struct Event<'a> {
    at_ns: u64,
    cpu: u64,
    name: &'a str,
    body: &'a str,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Event<'a>> {
        let (cpu, rest) = line.split_once(" [")?.1.split_once(']')?;
        let (before, rest) = rest.split_once(": ")?;
        let (name, body) = rest.split_once(": ")?;
        let (seconds, micros) = before.split_whitespace().next_back()?.split_once('.')?;
        let at_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        Some(Event { at_ns: at_us * 1000, cpu: cpu.parse().ok()?, name, body })
    }

    fn number(&self, key: &str) -> Option<u64> {
        let at = self.body.find(key)? + key.len();
        let digits = self.body[at..].split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&str, u32, &str)]) -> Log {
        let text = lines.iter().map(|(cpu, us, what)| format!("  x-1  [00{cpu}] d..2.  0.{us:06}: {what}\n"));
        Log::read(&text.collect::<String>(), 0..=1_000_000_000)
    }

    #[test]
    fn a_wake_up_belongs_to_the_state_its_cpu_was_leaving() {
        let enter = ("1", 10, "cpu_idle: state=2 cpu_id=1");
        let exit = ("1", 50, "cpu_idle: state=4294967295 cpu_id=1");
        let waking = |cpu, us| (cpu, us, "sched_waking: comm=a pid=7 prio=120 target_cpu=001");
        let run = (
            "1",
            60,
            "sched_switch: prev_comm=s prev_pid=0 prev_prio=1 prev_state=R ==> next_comm=a next_pid=7 next_prio=1",
        );
        let wakes = |log: Log| log.wakes.into_iter().map(|(k, n)| (k.0, k.1, n)).collect::<Vec<_>>();
        assert_eq!(wakes(read(&[enter, waking("0", 30), exit, run])), [(2, "remote", 1)]);
        assert_eq!(wakes(read(&[enter, exit, waking("1", 55), run])), [(2, "interrupt_after_exit", 1)]);
        assert_eq!(wakes(read(&[enter, waking("1", 40), exit, run])), [(2, "interrupt_before_exit", 1)]);
        let moved = [
            waking("0", 5),
            ("0", 6, "sched_wakeup: comm=a pid=7 prio=120 target_cpu=000"),
            enter,
            ("1", 20, "sched_migrate_task: comm=a pid=7 prio=120 orig_cpu=0 dest_cpu=1"),
            exit,
            run,
        ];
        assert!(wakes(read(&moved)).is_empty(), "it waited in another CPU's queue");
        assert_eq!(read(&[enter, exit, enter, exit]).entries, BTreeMap::from([(2, 1)]), "sorted by time: one pair");
    }
}
