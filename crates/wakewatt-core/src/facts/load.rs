//! How busy the machine is and has been: load average, CPU time by kind, pressure.
//!
//! `/proc/stat` counts since boot in ticks of 1/100 s (USER_HZ, fixed by the ABI on x86 and arm64), so a share computed
//! from one reading is a mean over the uptime and hides today's trouble; two readings give a window. `guest` time is
//! already inside `user` and is not added again. Load average counts tasks that run, wait for a CPU or sleep in
//! uninterruptible I/O. Pressure (PSI, Documentation/accounting/psi.rst) is the share of time in which some or all
//! tasks waited; it may be off by default (`psi=1`).

use super::{Cpus, Domain};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use crate::units::Cpu;
use serde::Serialize;
use wakewatt_words::{say, word};

/// Nanoseconds per tick of /proc/stat.
const TICK_NS: u64 = 10_000_000;

/// Load, CPU time and pressure.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Load averages, from /proc/loadavg.
    pub average: Fact<LoadAverage>,
    /// How long the machine is up.
    pub uptime_ns: Fact<u64>,
    /// CPU time since boot, from /proc/stat.
    pub stat: Fact<Stat>,
    /// Waiting for a CPU.
    pub cpu_pressure: Fact<Pressure>,
    /// How long tasks waited for memory, from /proc/pressure.
    pub memory_pressure: Fact<Pressure>,
    /// How long tasks waited for input and output, from /proc/pressure.
    pub io_pressure: Fact<Pressure>,
}

/// Tasks that run or want to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadAverage {
    /// Tasks running or waiting, averaged over one minute.
    pub over_1min: f64,
    /// The same over five minutes.
    pub over_5min: f64,
    /// The same over fifteen minutes.
    pub over_15min: f64,
    /// Runnable at this instant.
    pub n_runnable: u64,
    /// How many tasks there are.
    pub n_tasks: u64,
}

/// What /proc/stat counts since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stat {
    /// Time of all CPUs added up.
    pub total: CpuTime,
    /// Each CPU that is online.
    pub cpus: Vec<CpuTime>,
    /// How many context switches there were since boot.
    pub n_context_switches: Option<u64>,
    /// Runnable at this instant.
    pub n_running: Option<u64>,
    /// Blocked in I/O at this instant.
    pub n_blocked: Option<u64>,
}

/// Time of one CPU (or of all) by kind, since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// Which CPU; none for the sum.
    pub cpu: Option<Cpu>,
    /// User mode, guests included.
    pub user_ns: u64,
    /// User mode at low priority.
    pub nice_ns: u64,
    /// Time in the kernel, interrupts apart.
    pub system_ns: u64,
    /// Time with nothing to do.
    pub idle_ns: u64,
    /// Idle while a task of this CPU waits for I/O; not reliable per CPU (proc(5)).
    pub iowait_ns: u64,
    /// Time in interrupt handlers.
    pub irq_ns: u64,
    /// Time in soft interrupts.
    pub softirq_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Running a guest (inside user and nice).
    pub guest_ns: u64,
}

impl CpuTime {
    /// Everything, guest counted once.
    pub fn total_ns(&self) -> u64 {
        [self.idle_ns, self.iowait_ns]
            .into_iter()
            .fold(self.busy_ns().saturating_add(self.steal_ns), u64::saturating_add)
    }
    /// Neither idle nor stolen.
    pub fn busy_ns(&self) -> u64 {
        let parts = [self.user_ns, self.nice_ns, self.system_ns, self.irq_ns, self.softirq_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }
    /// Kernel, interrupts and soft interrupts.
    pub fn kernel_ns(&self) -> u64 {
        self.system_ns.saturating_add(self.irq_ns).saturating_add(self.softirq_ns)
    }
    /// A part as a share of the total; none before any time has passed.
    pub fn ratio(&self, part_ns: u64) -> Option<f64> {
        let total = self.total_ns();
        (total > 0).then(|| part_ns as f64 / total as f64)
    }
    /// What passed since an earlier reading; a counter that ran backwards (CPU hotplug) counts as 0.
    pub fn since(&self, earlier: &CpuTime) -> CpuTime {
        CpuTime {
            cpu: self.cpu,
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            nice_ns: self.nice_ns.saturating_sub(earlier.nice_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            iowait_ns: self.iowait_ns.saturating_sub(earlier.iowait_ns),
            irq_ns: self.irq_ns.saturating_sub(earlier.irq_ns),
            softirq_ns: self.softirq_ns.saturating_sub(earlier.softirq_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            guest_ns: self.guest_ns.saturating_sub(earlier.guest_ns),
        }
    }
}

/// Pressure of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// At least one task waited.
    pub some: PressureLine,
    /// All tasks waited; older kernels have none for the CPU.
    pub full: Option<PressureLine>,
}

/// One line of a pressure file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressureLine {
    /// Share of the last 10 seconds.
    pub over_10s_ratio: f64,
    /// Share of the last minute.
    pub over_60s_ratio: f64,
    /// Share of the last five minutes.
    pub over_300s_ratio: f64,
    /// Time that was waited since boot, in nanoseconds.
    pub total_ns: u64,
}

impl Load {
    /// Pressure since boot as a share of the uptime.
    pub fn pressure_since_boot(&self, pressure: &Fact<Pressure>) -> Option<f64> {
        let uptime = *self.uptime_ns.get()?;
        (uptime > 0).then_some(())?;
        Some(pressure.get()?.some.total_ns as f64 / uptime as f64)
    }

    /// The share of CPU time the hypervisor took since boot.
    pub fn steal_ratio(&self) -> Option<f64> {
        let total = &self.stat.get()?.total;
        total.ratio(total.steal_ns)
    }
}

impl Domain for Load {
    const TITLE: &'static str = "Load";
    const HELP: &'static str = "load average, CPU time by kind since boot, pressure (PSI)";

    fn read(src: &dyn Source, _: &Cpus) -> Load {
        Load {
            average: fact(src, "/proc/loadavg", parse_average),
            uptime_ns: fact(src, "/proc/uptime", |text| seconds_ns(text.split_whitespace().next().unwrap_or_default())),
            stat: fact(src, "/proc/stat", parse_stat),
            cpu_pressure: fact(src, "/proc/pressure/cpu", parse_pressure),
            memory_pressure: fact(src, "/proc/pressure/memory", parse_pressure),
            io_pressure: fact(src, "/proc/pressure/io", parse_pressure),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        let first = sheet.rows.len();
        sheet.fact("load.average", word!("load average (1, 5, 15 min)"), &self.average, |v| {
            Cell::Text(format!("{:.2} {:.2} {:.2}", v.over_1min, v.over_5min, v.over_15min))
        });
        sheet.fact("load.uptime", word!("uptime"), &self.uptime_ns, |v| Cell::Ns(*v));
        match &self.stat {
            Fact::Gap(_) => sheet.fact("load.cpu", word!("CPU time"), &self.stat, |_| Cell::Count(0)),
            Fact::Known(stat) => {
                let t = &stat.total;
                for (id, label, part) in [
                    ("user", word!("user"), t.user_ns.saturating_add(t.nice_ns)),
                    ("system", word!("system"), t.system_ns),
                    ("irq", word!("interrupts"), t.irq_ns.saturating_add(t.softirq_ns)),
                    ("idle", word!("idle"), t.idle_ns),
                    ("iowait", word!("idle, waiting for I/O"), t.iowait_ns),
                    ("steal", word!("stolen by the hypervisor"), t.steal_ns),
                    ("guest", word!("running guests"), t.guest_ns),
                ] {
                    if let Some(ratio) = t.ratio(part) {
                        sheet.say(format!("load.{id}"), say!("{label} (since boot)"), Cell::Ratio(ratio));
                    }
                }
                for (id, label, n) in [
                    ("context_switches", word!("context switches"), stat.n_context_switches),
                    ("running", word!("runnable now"), stat.n_running),
                    ("blocked", word!("blocked in I/O now"), stat.n_blocked),
                ] {
                    n.into_iter().for_each(|n| sheet.say(format!("load.{id}"), label, Cell::Count(n)));
                }
            }
        }
        for (name, pressure) in
            [("cpu", &self.cpu_pressure), ("memory", &self.memory_pressure), ("io", &self.io_pressure)]
        {
            let id = format!("load.pressure.{name}");
            sheet.fact(&id, say!("{name} pressure (last minute)"), pressure, |v| Cell::Ratio(v.some.over_60s_ratio));
            if let Some(ratio) = self.pressure_since_boot(pressure) {
                sheet.say(format!("{id}.boot"), say!("{name} pressure (since boot)"), Cell::Ratio(ratio));
            }
        }
        sheet.rows.iter_mut().skip(first).for_each(|row| row.is_counter = true);
    }
}

/// Decimal seconds without going through a float: `12345.67`.
fn seconds_ns(text: &str) -> Result<u64, String> {
    let wrong = || "expected seconds".to_string();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
    let part = parse::number(&digits)?;
    parse::number(whole)?.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(part)).ok_or_else(wrong)
}

/// Parses /proc/loadavg.
pub fn parse_average(text: &str) -> Result<LoadAverage, String> {
    let wrong = || "expected five fields of a load average".to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let [one, five, fifteen, tasks, ..] = words[..] else { return Err(wrong()) };
    let float = |w: &str| w.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(wrong);
    let (runnable, all) = tasks.split_once('/').ok_or_else(wrong)?;
    Ok(LoadAverage {
        over_1min: float(one)?,
        over_5min: float(five)?,
        over_15min: float(fifteen)?,
        n_runnable: parse::number(runnable)?,
        n_tasks: parse::number(all)?,
    })
}

/// Parses /proc/stat; lines it does not know are passed over.
pub fn parse_stat(text: &str) -> Result<Stat, String> {
    let mut stat = Stat::default();
    let mut has_total = false;
    for (key, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        match key {
            "ctxt" => stat.n_context_switches = rest.trim().parse().ok(),
            "procs_running" => stat.n_running = rest.trim().parse().ok(),
            "procs_blocked" => stat.n_blocked = rest.trim().parse().ok(),
            _ => match cpu_line(key, rest).transpose()? {
                Some(total) if total.cpu.is_none() => (stat.total, has_total) = (total, true),
                Some(one) => stat.cpus.push(one),
                None => {}
            },
        }
    }
    if has_total { Ok(stat) } else { Err("no line for all CPUs".into()) }
}

/// The times of these CPUs now, for a difference to a later reading. A CPU that is offline has no line; what cannot be read
/// stays out, and a line that makes no sense takes no other with it.
pub fn cpu_times(src: &dyn Source, cpus: &CpuSet) -> Vec<CpuTime> {
    let bytes = src.read("/proc/stat").unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let time = |line: &str| line.split_once(' ').and_then(|(key, rest)| cpu_line(key, rest)?.ok());
    let is_asked = |time: &CpuTime| time.cpu.is_some_and(|cpu| cpus.contains(cpu));
    text.lines().filter_map(time).filter(is_asked).collect()
}

/// What passed on every CPU that is in both readings: one that came or went in between has no difference.
pub fn between(now: &[CpuTime], before: &[CpuTime]) -> Vec<CpuTime> {
    let then = |now: &CpuTime| before.iter().find(|then| then.cpu == now.cpu);
    now.iter().filter_map(|now| Some(now.since(then(now)?))).collect()
}

/// A line of /proc/stat about one CPU or all of them; none where it is about something else.
fn cpu_line(key: &str, rest: &str) -> Option<Result<CpuTime, String>> {
    let number = key.strip_prefix("cpu")?;
    let cpu = if number.is_empty() { None } else { Some(number.parse().ok()?) };
    Some(cpu_time(cpu, rest))
}

fn cpu_time(cpu: Option<Cpu>, text: &str) -> Result<CpuTime, String> {
    let ticks: Result<Vec<u64>, String> = text.split_whitespace().map(parse::number).collect();
    let ticks = ticks?;
    if ticks.len() < 4 {
        return Err("expected at least four times per CPU".into());
    }
    // Kernels before 2.6.33 have fewer columns: that kind of time was not told apart, so nothing is in it.
    let ns = |i: usize| ticks.get(i).map_or(0, |t| t.saturating_mul(TICK_NS));
    Ok(CpuTime {
        cpu,
        user_ns: ns(0),
        nice_ns: ns(1),
        system_ns: ns(2),
        idle_ns: ns(3),
        iowait_ns: ns(4),
        irq_ns: ns(5),
        softirq_ns: ns(6),
        steal_ns: ns(7),
        guest_ns: ns(8).saturating_add(ns(9)),
    })
}

/// Reads a file of /proc/pressure.
pub fn parse_pressure(text: &str) -> Result<Pressure, String> {
    let line = |kind: &str| text.lines().find_map(|l| l.strip_prefix(kind)).map(pressure_line).transpose();
    let some = line("some ")?.ok_or_else(|| "no line \"some\"".to_string())?;
    Ok(Pressure { some, full: line("full ")? })
}

fn pressure_line(text: &str) -> Result<PressureLine, String> {
    let field = |key: &str| {
        let found = text.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        found.ok_or_else(|| format!("no {key}"))
    };
    let ratio = |key: &str| match field(key)?.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent / 100.0),
        _ => Err(format!("{key} is not a percentage")),
    };
    Ok(PressureLine {
        over_10s_ratio: ratio("avg10")?,
        over_60s_ratio: ratio("avg60")?,
        over_300s_ratio: ratio("avg300")?,
        total_ns: parse::us_to_ns(field("total")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::load::CpuUse;
    use crate::source::Tree;

    #[test]
    fn shares_since_boot() {
        let tree = Tree::from_text(
            "//- /proc/stat\ncpu  100 0 50 700 50 0 0 100 40 0\ncpu0 100 0 50 700 50 0 0 100 40 0\nintr 1 2 3\nctxt 77\nprocs_running 2\n
             //- /proc/loadavg\n0.05 1.50 0.03 1/83 10345\n//- /proc/uptime\n10.50 9.00\n
             //- /proc/pressure/cpu\nsome avg10=0.00 avg60=12.50 avg300=0.32 total=5250000\n",
        );
        let load = Load::read(&tree, &Cpus::default());
        assert_eq!(load.steal_ratio(), Some(0.1));
        let stat = load.stat.get().unwrap();
        assert_eq!((stat.cpus.len(), stat.n_context_switches, stat.n_blocked), (1, Some(77), None));
        assert_eq!(stat.total.total_ns(), 1000 * TICK_NS, "guest is inside user");
        assert_eq!(stat.total.since(&stat.total).ratio(0), None);
        assert_eq!(load.uptime_ns.get(), Some(&10_500_000_000));
        assert_eq!(load.cpu_pressure.get().unwrap().some.over_60s_ratio, 0.125);
        assert_eq!(load.pressure_since_boot(&load.cpu_pressure), Some(0.5));
        assert!(load.io_pressure.gap().is_some());
    }

    #[test]
    fn a_cpu_that_comes_or_goes_has_no_difference_and_junk_takes_no_other_with_it() {
        let asked = CpuSet::parse("0-2").unwrap();
        let read = |text: &str| cpu_times(&Tree::from_text(&format!("//- /proc/stat\n{text}")), &asked);
        let before = read("cpu0 10 0 0 0\ncpu1 5 5 5 5\ncpu3 1 1 1 1\n");
        assert_eq!(before.len(), 2, "CPU 3 was not asked for");
        let after = read("cpu0 60 0 20 0 0 5\ncpu1 x\ncpu2 1 0 0 0\ncpu9999999999 1 1 1 1\n");
        let passed = between(&after, &before);
        assert_eq!((passed.len(), passed[0].busy_ns(), passed[0].kernel_ns()), (1, 75 * TICK_NS, 25 * TICK_NS));
        let used = CpuUse::of(&passed[0], 1_000_000_000).unwrap();
        let off = (used.user_ratio - 0.5).abs() + (used.system_ratio - 0.25).abs();
        assert!(after.len() == 2 && off < 1e-9, "{used:?}");
        assert!((CpuUse::of(&passed[0], 0).unwrap().busy_ratio() - 1.0).abs() < 1e-9, "a window shorter than a tick");
        assert_eq!(CpuUse::of(&between(&before, &after)[0], 1).unwrap().busy_ratio(), 0.0, "backwards is no time");
        assert_eq!(CpuUse::of(&CpuTime::default(), 1), None);
    }

    #[test]
    fn junk_is_a_gap() {
        for text in ["", "cpu", "cpu  1 2", "cpu  a b c d", "cpu0 1 2 3 4"] {
            assert!(parse_stat(text).is_err(), "{text}");
        }
        assert!(parse_average("nan 1 2 3/4 5").is_err() && parse_average("1 2").is_err());
        assert!(parse_pressure("full avg10=1").is_err());
    }
}
