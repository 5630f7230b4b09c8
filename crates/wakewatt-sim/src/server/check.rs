//! What no machine could be, or no computer could simulate, is refused with its field and why.

use super::{
    ArrivalKind, Arrivals, Clock, ClockGovernor, Hop, Idle, IdleGovernor, Machine, Power, Server, Workload, table,
};
use super::{Queues, TABLES};
use crate::law::Law;
use crate::span::Span;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_models::kernel::Kernel;
use wakewatt_models::table::MOST_STATES;
use wakewatt_models::tick::Tick;

/// A field that cannot be so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct Refused {
    /// Where it stands: `machine[0].idle.state[2].exit_latency`.
    pub field: String,
    /// What is wrong with it, and what is right.
    pub why: String,
}

type Checked = Result<(), Refused>;

/// More CPUs are no machine.
const MOST_CPUS: u64 = 8192;
/// More requests than this would take hours.
const MOST_REQUESTS: f64 = 2e10;
/// Likewise.
const MOST_EVENTS: f64 = 2e11;
/// More clients than this would not fit in memory.
const MOST_CLIENTS: u64 = 5_000_000;

fn refuse<T>(field: &str, why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { field: field.into(), why: why.into() })
}

fn within(field: &str, value: f64, low: f64, high: f64) -> Checked {
    if (low..=high).contains(&value) { Ok(()) } else { refuse(field, format!("{value} given; give {low} to {high}")) }
}

fn law(field: &str, law: &Law) -> Checked {
    law.check().map_err(|why| Refused { field: field.into(), why })
}

/// CPUs of a list, all below `n`.
pub(crate) fn cpus(field: &str, text: &str, n: u64) -> Result<Vec<usize>, Refused> {
    let end = u32::try_from(n).unwrap_or(u32::MAX);
    let shown: String = text.chars().take(80).collect();
    let set = CpuSet::parse_below(text, end).map_err(|e| Refused {
        field: field.into(),
        why: format!("{shown:?}: {e}; the machine has CPUs 0 to {}", n.saturating_sub(1)),
    })?;
    let cpus: Vec<usize> = set.iter().map(|cpu| usize::try_from(cpu).unwrap_or(usize::MAX)).collect();
    if cpus.is_empty() { refuse(field, "no CPU in it") } else { Ok(cpus) }
}

impl Server {
    /// Could this be, and be simulated?
    pub fn check(&self) -> Checked {
        if self.format != 1 {
            return refuse("format", format!("{} given; this wakewatt reads format 1", self.format));
        }
        if self.machine.is_empty() {
            return refuse("machine", "there is none; give one [[machine]]");
        }
        for (i, machine) in self.machine.iter().enumerate() {
            let field = format!("machine[{i}]");
            if self.machine.iter().take(i).any(|m| m.name == machine.name) {
                return refuse(&format!("{field}.name"), format!("there are two of {:?}", machine.name));
            }
            check_machine(machine, &field)?;
        }
        if self.n_cpus() > MOST_CPUS {
            return refuse("machine", format!("{} CPUs in all; {MOST_CPUS} at most", self.n_cpus()));
        }
        check_workload(&self.workload, &self.machine)?;
        self.check_run()?;
        for (i, setting) in self.setting.iter().enumerate() {
            if setting.name.is_empty() || self.setting.iter().take(i).any(|s| s.name == setting.name) {
                return refuse(&format!("setting[{i}].name"), "empty, or there are two of it");
            }
        }
        for (i, published) in self.published.iter().enumerate() {
            let named = published.setting.iter().chain(&published.than);
            if let Some(name) = named.into_iter().find(|name| !self.setting.iter().any(|s| s.name == **name)) {
                return refuse(&format!("published[{i}].setting"), format!("there is no [[setting]] named {name:?}"));
            }
            if !published.value.is_finite() {
                return refuse(&format!("published[{i}].value"), "it is no number");
            }
        }
        if let Some(change) = &self.change {
            if !self.setting.iter().any(|s| s.name == change.setting) {
                return refuse("change.setting", format!("there is no [[setting]] named {:?}", change.setting));
            }
            let end = self.run.counted();
            if change.at >= end {
                return refuse("change.at", format!("{} is not before the end, {end}", change.at));
            }
        }
        Ok(())
    }

    fn check_run(&self) -> Checked {
        let run = &self.run;
        let (counted, before) = (run.counted(), run.before());
        if counted.ns() < 1000 || counted > Span(100_000_000_000_000) {
            return refuse("run.duration", format!("{counted} given; give 1us to 100000s"));
        }
        if before > Span(100_000_000_000_000) {
            return refuse("run.warmup", format!("{before} given; give up to 100000s"));
        }
        within("run.replications", f64::from(run.replications), 1.0, 10_000.0)?;
        within("run.bins", f64::from(run.bins), 1.0, 10_000.0)?;
        let seconds = (counted.seconds() + before.seconds()) * f64::from(run.replications);
        let requests = self.workload.most_per_s() * seconds;
        let events = self.most_events_per_s() * seconds;
        if events > MOST_EVENTS {
            return refuse(
                "run.duration",
                format!("{events:.1e} hops, ticks and timers in all; at most {MOST_EVENTS:.0e}"),
            );
        }
        if requests > MOST_REQUESTS {
            return refuse(
                "run.duration",
                format!(
                    "{requests:.1e} requests in all; at most {MOST_REQUESTS:.0e}: shorten it, or take fewer replications"
                ),
            );
        }
        Ok(())
    }

    /// An upper bound of hops, ticks and timers per second.
    pub(crate) fn most_events_per_s(&self) -> f64 {
        let hops = self.workload.hop.len() as f64 * f64::from(self.workload.rounds.unwrap_or(1));
        let own = |m: &Machine| {
            let timers = m.timers.as_ref().map_or(0.0, |t| 1.0 / t.every.seconds());
            m.n_cpus() as f64 * (f64::from(m.hz) + timers)
        };
        self.workload.most_per_s() * hops + self.machine.iter().map(own).sum::<f64>()
    }
}

fn check_machine(m: &Machine, at: &str) -> Checked {
    let field = |name: &str| format!("{at}.{name}");
    within(&field("packages"), f64::from(m.packages), 1.0, 64.0)?;
    within(&field("cores"), f64::from(m.cores), 1.0, 4096.0)?;
    within(&field("threads"), f64::from(m.threads), 1.0, 2.0)?;
    within(&field("caches"), f64::from(m.caches), 1.0, f64::from(m.cores))?;
    if m.hz != 0 && Tick::of_hz(m.hz).is_none_or(|t| t.ns() < 100_000) {
        return refuse(&field("hz"), format!("{} given; give 0 (no tick) to 10000", m.hz));
    }
    if m.hz == 0 && m.idle.governor != IdleGovernor::Fixed {
        return refuse(
            &field("hz"),
            "0 given: an idle governor needs a tick; give 100 to 1000, or idle.governor = \"fixed\"",
        );
    }
    if let Err(e) = Kernel::parse(&m.kernel) {
        return refuse(&field("kernel"), e.to_string());
    }
    for (name, span) in [("tick_cost", m.tick_cost), ("wake_cost", m.wake_cost)] {
        if span > Span::ms(10) {
            return refuse(&field(name), format!("{span} given; give at most 10ms"));
        }
    }
    within(&field("smt_share"), m.smt_share, 0.1, 1.0)?;
    within(&field("numa_penalty"), m.numa_penalty, 0.0, 10.0)?;
    if m.slice.is_some_and(|s| s.ns() < 10_000) {
        return refuse(&field("slice"), "give at least 10us");
    }
    if let Some(text) = &m.cpus {
        cpus(&field("cpus"), text, m.n_cpus())?;
        if m.queues != Queues::PerCpu {
            return refuse(&field("cpus"), "a shared queue asks no CPU; take queues = \"per-cpu\"");
        }
    }
    if m.timers.as_ref().is_some_and(|t| t.every.ns() < 100_000 || t.work > Span::ms(100)) {
        return refuse(&field("timers"), "give every at least 100us, work at most 100ms");
    }
    check_idle(&m.idle, &field("idle"))?;
    check_clock(&m.clock, &field("clock"))?;
    check_power(&m.power, &field("power"))
}

fn check_idle(idle: &Idle, at: &str) -> Checked {
    let field = |name: &str| format!("{at}.{name}");
    let states = match (&idle.table, idle.state.is_empty()) {
        (Some(_), false) => return refuse(&field("table"), "there are states one by one as well; give one of them"),
        (Some(name), true) => match table(name) {
            Some(states) => states,
            None => {
                let known: Vec<_> = TABLES.iter().map(|t| t.name).collect();
                return refuse(&field("table"), format!("there is no {name:?}; there are {}", known.join(", ")));
            }
        },
        (None, true) => {
            return refuse(&field("table"), "no idle states; give a table, such as \"SKX\", or [[machine.idle.state]]");
        }
        (None, false) => idle.state.clone(),
    };
    if states.len() > MOST_STATES {
        return refuse(&field("state"), format!("{} states; a kernel has room for {MOST_STATES}", states.len()));
    }
    for (i, state) in states.iter().enumerate() {
        let at = format!("{at}.state[{i}]");
        let before = i.checked_sub(1).and_then(|b| states.get(b));
        if state.polling && i > 0 {
            return refuse(&format!("{at}.polling"), "only the first state can poll");
        }
        if state.exit_latency > Span::ms(100)
            || state.target_residency > Span::ms(10_000)
            || state.cold.max(state.send) > Span::ms(10)
        {
            return refuse(&at, "give at most 100ms of exit latency, 10s of residency, 10ms of cold work or sending");
        }
        if before.is_some_and(|b| b.exit_latency > state.exit_latency || b.target_residency > state.target_residency) {
            return refuse(&format!("{at}.exit_latency"), "states stand shallow first: it is below the one before");
        }
        if let Some(exit) = &state.exit {
            law(&format!("{at}.exit"), exit)?;
        }
        let by_length = [
            ("after", &state.after),
            ("after_ipi", &state.after_ipi),
            ("cold_after", &state.cold_after),
            ("overhead", &state.overhead),
            ("overhead_ipi", &state.overhead_ipi),
        ];
        for (field, rows) in by_length {
            let is_rising = rows.windows(2).all(|w| w[0].asleep < w[1].asleep);
            if rows.len() > 100 || !is_rising || rows.iter().any(|a| a.exit > Span::ms(100)) {
                return refuse(
                    &format!("{at}.{field}"),
                    "at most 100 rows, sleeps rising, each exit or work at most 100ms",
                );
            }
        }
        if let Some(w) = state.core_w {
            within(&format!("{at}.core_w"), w, 0.0, 10_000.0)?;
        }
    }
    let names = idle.disable.iter().chain(&idle.max_state).chain(&idle.package_state);
    for name in names {
        if !states.iter().any(|s| s.name.eq_ignore_ascii_case(name)) {
            let known: Vec<_> = states.iter().map(|s| s.name.as_str()).collect();
            return refuse(at, format!("there is no idle state {name:?}; there are {}", known.join(", ")));
        }
    }
    within(&field("exit_share"), idle.exit_share, 0.0, 1.0)?;
    within(&field("entry_share"), idle.entry_share, 0.0, 1.0)?;
    if idle.exit_share + idle.entry_share > 1.0 {
        return refuse(
            &field("entry_share"),
            "entry and exit together are more than the claimed latency, which is the worst of both",
        );
    }
    if idle.halt_poll.is_some_and(|most| most > Span::ms(1_000)) {
        return refuse(&field("halt_poll"), "give at most 1s");
    }
    if idle.package_exit > Span::ms(100) {
        return refuse(&field("package_exit"), format!("{} given; give at most 100ms", idle.package_exit));
    }
    Ok(())
}

fn check_clock(c: &Clock, at: &str) -> Checked {
    let field = |name: &str| format!("{at}.{name}");
    if c.mhz.is_empty() || c.mhz.len() > 100 {
        return refuse(&field("mhz"), format!("{} clocks; give 1 to 100", c.mhz.len()));
    }
    if c.mhz.windows(2).any(|w| w[0] <= w[1]) {
        return refuse(&field("mhz"), "clocks stand in falling order, each once");
    }
    let all = c.mhz.iter().chain(&c.min_mhz).chain(&c.max_mhz).chain(&c.reference_mhz).chain(&c.set_mhz);
    for mhz in all {
        within(&field("mhz"), f64::from(*mhz), 10.0, 20_000.0)?;
    }
    let (least, most) = (c.mhz.last().copied().unwrap_or(1), c.mhz.first().copied().unwrap_or(1));
    let (low, high) = (c.min_mhz.unwrap_or(least), c.max_mhz.unwrap_or(most));
    if low > high || !c.mhz.iter().any(|f| (low..=high).contains(f)) {
        return refuse(&field("min_mhz"), format!("no clock lies from {low} to {high}"));
    }
    if c.governor == ClockGovernor::Userspace && c.set_mhz.is_none() {
        return refuse(&field("set_mhz"), "userspace needs one");
    }
    if c.ramp > Span::ms(100) {
        return refuse(&field("ramp"), format!("{} given; give at most 100ms", c.ramp));
    }
    if c.sampling.is_some_and(|s| s.ns() < 100_000 || s > Span::ms(60_000)) {
        return refuse(&field("sampling"), "give 100us to 60s");
    }
    for (name, percent) in [("up_threshold", c.up_threshold), ("down_threshold", c.down_threshold)] {
        within(&field(name), f64::from(percent.unwrap_or(50)), 1.0, 100.0)?;
    }
    if c.up_threshold.zip(c.down_threshold).is_some_and(|(up, down)| down >= up) {
        return refuse(&field("down_threshold"), "it is not below up_threshold");
    }
    let is_step = |w: &[super::Turbo]| w[0].cores < w[1].cores && w[0].mhz > w[1].mhz;
    if c.turbo.len() > 100 || c.turbo.first().is_some_and(|t| t.cores == 0) || !c.turbo.windows(2).all(is_step) {
        return refuse(&field("turbo"), "cores rise from 1, clocks fall, in at most 100 steps");
    }
    if let Some(step) = c.turbo.iter().find(|t| !c.mhz.contains(&t.mhz)) {
        return refuse(&field("turbo"), format!("{} is none of the clocks of mhz", step.mhz));
    }
    within(&field("freq_step"), f64::from(c.freq_step), 0.0, 100.0)?;
    within(&field("epp"), f64::from(c.epp), 0.0, 255.0)?;
    within(&field("epp_strength"), c.epp_strength, 0.0, 1.0)?;
    within(&field("sampling_down_factor"), f64::from(c.sampling_down_factor), 1.0, 100_000.0)?;
    within(&field("powersave_bias"), f64::from(c.powersave_bias), 0.0, 1000.0)
}

fn check_power(p: &Power, at: &str) -> Checked {
    let watts = [
        ("platform_w", p.platform_w),
        ("memory_w", p.memory_w),
        ("memory_sleep_w", p.memory_sleep_w),
        ("uncore_w", p.uncore_w),
        ("uncore_sleep_w", p.uncore_sleep_w),
        ("core_dynamic_w", p.core_dynamic_w),
        ("core_leakage_w", p.core_leakage_w),
        ("deep_from_us", p.deep_from_us),
    ];
    for (name, value) in watts {
        within(&format!("{at}.{name}"), value, 0.0, 100_000.0)?;
    }
    for (name, value) in
        [("memory_sleep_w", p.memory_w - p.memory_sleep_w), ("uncore_sleep_w", p.uncore_w - p.uncore_sleep_w)]
    {
        if value < 0.0 {
            return refuse(&format!("{at}.{name}"), "it takes more asleep than awake");
        }
    }
    for (name, value) in [("volt_base", p.volt_base), ("volt_per_ghz", p.volt_per_ghz), ("volt_least", p.volt_least)] {
        within(&format!("{at}.{name}"), value, 0.0, 10.0)?;
    }
    if p.volt_base + p.volt_per_ghz + p.volt_least <= 0.0 {
        return refuse(&format!("{at}.volt_least"), "there is no voltage at all");
    }
    let shares = [
        ("activity", p.activity),
        ("poll_activity", p.poll_activity),
        ("gated_share", p.gated_share),
        ("deep_share", p.deep_share),
        ("one_thread_share", p.one_thread_share),
    ];
    for (name, value) in shares {
        within(&format!("{at}.{name}"), value, 0.0, 1.0)?;
    }
    for point in &p.psu {
        within(&format!("{at}.psu.efficiency"), point.efficiency, 0.05, 1.0)?;
        within(&format!("{at}.psu.watts"), point.watts, 0.0, 1e6)?;
    }
    if p.psu.windows(2).any(|w| w[0].watts >= w[1].watts) {
        return refuse(&format!("{at}.psu"), "points stand in rising order of watts");
    }
    Ok(())
}

fn check_workload(w: &Workload, machines: &[Machine]) -> Checked {
    check_arrivals(&w.arrivals)?;
    if w.hop.is_empty() || w.hop.len() > 200 {
        return refuse("workload.hop", format!("{} hops; give 1 to 200", w.hop.len()));
    }
    within("workload.rounds", f64::from(w.rounds.unwrap_or(1)), 1.0, 10_000.0)?;
    if w.limit == Some(0) {
        return refuse("workload.limit", "0 lets nobody in");
    }
    if w.arrivals.kind == ArrivalKind::Closed && w.cycle_ns() < 100.0 {
        return refuse(
            "workload.arrivals.think",
            "a request and its thinking take less than 100ns: it would never end",
        );
    }
    w.hop.iter().enumerate().try_for_each(|(i, hop)| check_hop(hop, &format!("workload.hop[{i}]"), machines))
}

fn check_hop(hop: &Hop, at: &str, machines: &[Machine]) -> Checked {
    let field = |name: &str| format!("{at}.{name}");
    law(&field("service"), &hop.service)?;
    if let Some(wait) = &hop.wait {
        law(&field("wait"), wait)?;
    }
    within(&field("cpu_bound"), hop.cpu_bound, 0.0, 1.0)?;
    within(&field("system"), hop.system, 0.0, 1.0)?;
    let machine = match &hop.machine {
        None => machines.first(),
        Some(name) => machines.iter().find(|m| m.name == *name),
    };
    let Some(machine) = machine else {
        let known: Vec<_> = machines.iter().map(|m| m.name.as_str()).collect();
        return refuse(&field("machine"), format!("there is no such machine; there are {}", known.join(", ")));
    };
    let list = hop.cpus.as_ref().map(|text| (field("cpus"), text));
    let irq = hop.interrupt.as_ref().and_then(|i| i.cpus.as_ref()).map(|text| (field("interrupt.cpus"), text));
    for (field, text) in list.into_iter().chain(irq) {
        cpus(&field, text, machine.n_cpus())?;
    }
    if hop.cpus.is_some() && machine.queues != Queues::PerCpu {
        return refuse(&field("cpus"), "a shared queue asks no CPU; take queues = \"per-cpu\"");
    }
    if let (Some(own), Some(hop_cpus)) = (&machine.cpus, &hop.cpus) {
        let own = cpus("machine.cpus", own, machine.n_cpus())?;
        if !cpus(&field("cpus"), hop_cpus, machine.n_cpus())?.iter().any(|c| own.contains(c)) {
            return refuse(&field("cpus"), "none of them may work (machine.cpus)");
        }
    }
    if hop.pinned && hop.cpus.is_none() {
        return refuse(&field("pinned"), "say to which cpus");
    }
    if hop.interrupt.as_ref().is_some_and(|i| i.work > Span::ms(10)) {
        return refuse(&field("interrupt.work"), "give at most 10ms");
    }
    Ok(())
}

fn check_arrivals(a: &Arrivals) -> Checked {
    let at = "workload.arrivals";
    let need =
        |name: &str, there: bool| if there { Ok(()) } else { refuse(&format!("{at}.{name}"), "this kind needs it") };
    let taken: &[&str] = match a.kind {
        ArrivalKind::Poisson => &["per_s"],
        ArrivalKind::Bursts => &["per_s", "burst_per_s", "burst", "quiet"],
        ArrivalKind::Closed => &["clients", "think"],
        ArrivalKind::Gaps => &["think"],
        ArrivalKind::Recorded => &["at_us"],
        ArrivalKind::Steps => &["per_s", "percent"],
    };
    let given = [
        ("per_s", a.per_s.is_some()),
        ("burst_per_s", a.burst_per_s.is_some()),
        ("burst", a.burst.is_some()),
        ("quiet", a.quiet.is_some()),
        ("clients", a.clients.is_some()),
        ("think", a.think.is_some()),
        ("at_us", !a.at_us.is_empty()),
        ("percent", !a.percent.is_empty()),
    ];
    for (name, there) in given {
        let is_needed = taken.contains(&name) && !(a.kind == ArrivalKind::Steps && name == "per_s");
        if is_needed {
            need(name, there)?;
        } else if there && !taken.contains(&name) {
            return refuse(&format!("{at}.{name}"), "this kind takes none");
        }
    }
    for (name, rate) in [("per_s", a.per_s), ("burst_per_s", a.burst_per_s)] {
        if let Some(rate) = rate {
            within(&format!("{at}.{name}"), rate, 0.0, 1e9)?;
        }
    }
    for (name, span) in [("burst", a.burst), ("quiet", a.quiet)] {
        if span.is_some_and(|s| s < Span::us(100) || s > Span::ms(1_000_000)) {
            return refuse(&format!("{at}.{name}"), "give 100us to 1000s");
        }
    }
    if a.clients.is_some_and(|n| n == 0 || n > MOST_CLIENTS) {
        return refuse(&format!("{at}.clients"), format!("{} given; give 1 to {MOST_CLIENTS}", a.clients.unwrap_or(0)));
    }
    if let Some(think) = &a.think {
        law(&format!("{at}.think"), think)?;
        if a.kind == ArrivalKind::Gaps && think.mean_ns() < 1.0 {
            return refuse(&format!("{at}.think"), "gaps of no length never end");
        }
    }
    if a.at_us.windows(2).any(|w| w[0].is_nan() || w[1].is_nan() || w[1] < w[0])
        || a.at_us.iter().any(|t| !(0.0..=1e11).contains(t))
        || (a.kind == ArrivalKind::Recorded && a.at_us.last().is_none_or(|t| *t <= 0.0))
    {
        return refuse(&format!("{at}.at_us"), "times are 0 to 1e11 us, rise, and the last is above 0");
    }
    if a.percent.len() > 100 {
        return refuse(&format!("{at}.percent"), format!("{} levels; 100 at most", a.percent.len()));
    }
    a.percent.iter().try_for_each(|percent| within(&format!("{at}.percent"), *percent, 0.0, 1000.0))
}

impl Workload {
    /// Time that a request takes at least on average, with thinking, in nanoseconds.
    fn cycle_ns(&self) -> f64 {
        let hop = |h: &Hop| h.service.mean_ns() + h.wait.as_ref().map_or(0.0, Law::mean_ns);
        let hops: f64 = self.hop.iter().map(hop).sum();
        self.arrivals.think.as_ref().map_or(0.0, Law::mean_ns) + hops * f64::from(self.rounds.unwrap_or(1))
    }

    /// An upper bound of requests per second.
    fn most_per_s(&self) -> f64 {
        let a = &self.arrivals;
        match a.kind {
            ArrivalKind::Poisson | ArrivalKind::Steps => a.per_s.unwrap_or(0.0),
            ArrivalKind::Bursts => a.per_s.unwrap_or(0.0).max(a.burst_per_s.unwrap_or(0.0)),
            ArrivalKind::Gaps => 1e9 / a.think.as_ref().map_or(1e9, |t| t.mean_ns().max(1.0)),
            ArrivalKind::Recorded => a.at_us.len() as f64 * 1e6 / a.at_us.last().copied().unwrap_or(1.0).max(1e-3),
            ArrivalKind::Closed => a.clients.unwrap_or(0) as f64 * 1e9 / self.cycle_ns().max(1.0),
        }
    }
}
