//! A node that never was, reading by reading, for tests and for `cargo xtask bench history`: what a week of a large server takes, and how long asking it takes.
//!
//! Numbers are drawn per CPU and go the way of an agent's: counters to totals to a page. Load follows the hour of the day, with noise on every counter, so that
//! differences are as long as a busy server's. Two packages with a memory node each, four idle states, RAPL and temperatures, wake-ups traced.

use crate::families::{Described, Known, Latencies, Own, Pressures, page};
use crate::metric::Page;
use crate::totals::Totals;
use wakewatt_core::samples::kernel_histogram::{KernelHistogram, N_BUCKETS, bucket_of, edges_ns};
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::counters::{CpuCounters, StateCounters};
use wakewatt_core::watch::layout::{CpuInfo, PackageInfo, SensorInfo, SensorKind, StateInfo, ZoneInfo};
use wakewatt_core::watch::{Counters, Layout, Reading};

/// From reading to reading, in milliseconds: as often as an agent reads where no other interval is asked for.
pub const INTERVAL_MS: u64 = 10_000;
/// Readings of a week.
pub const N_READINGS: u64 = 7 * 24 * 3_600_000 / INTERVAL_MS;

const INTERVAL_NS: u64 = INTERVAL_MS * 1_000_000;
/// Name, claimed exit latency and mean stay of each state, in nanoseconds; its share of the idle time in percent.
const STATES: [(&str, u64, u64, u64); 4] =
    [("POLL", 0, 4_000, 1), ("C1", 2_000, 60_000, 14), ("C1E", 10_000, 300_000, 25), ("C6", 133_000, 2_000_000, 60)];
/// Wake-ups that fall into one bucket each, per interval, state and class.
const WAKES: u64 = 40;

/// Such a node.
pub struct Week {
    /// The idle governor that its pages name.
    pub governor: &'static str,
    layout: Layout,
    now: Counters,
    totals: Totals,
    latencies: Latencies,
    own: Own,
    n_readings: u64,
    seed: u64,
}

impl Week {
    /// With so many CPUs.
    pub fn of(n_cpus: u32) -> Week {
        let layout = layout(n_cpus);
        let zero = Reading::Known(0);
        let state = StateCounters { n_usage: zero, time_ns: zero, n_above: zero, n_below: zero, n_rejected: zero };
        let cpu = CpuCounters {
            is_online: true,
            busy_ns: zero,
            idle_ns: zero,
            steal_ns: zero,
            n_throttles: zero,
            states: vec![state; STATES.len()],
            ..CpuCounters::default()
        };
        let now = Counters {
            global_limit: Reading::Known(LatencyLimit::None),
            n_interrupts: zero,
            n_context_switches: zero,
            cpus: vec![cpu; layout.cpus.len()],
            energies_uj: vec![zero; layout.zones.len()],
            n_package_throttles: vec![zero; layout.packages.len()],
            ..Counters::default()
        };
        let own = Own { version: "0", resident_bytes: Some(12_000_000), ..Own::default() };
        let (totals, latencies) = (Totals::of(&layout), Latencies::new());
        Week { governor: "menu", layout, now, totals, latencies, own, n_readings: 0, seed: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The page of the next reading.
    pub fn next_page(&mut self) -> Page {
        self.read();
        let described = Described {
            settings: vec![("idle_governor", self.governor.into()), ("kernel", "6.12.0".into())],
            ..Described::default()
        };
        page(&Known {
            layout: &self.layout,
            now: &self.now,
            totals: &self.totals,
            pressures: &Pressures::default(),
            described: &described,
            measured: None,
            latencies: &self.latencies,
            payers: None,
            own: &self.own,
            is_per_cpu: false,
        })
    }

    /// Below `n`; xorshift64*.
    fn draw(&mut self, n: u64) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }

    fn read(&mut self) {
        self.n_readings += 1;
        // Least at midnight, three times as much at noon.
        let of_day = self.n_readings % (24 * 360);
        let percent = 10 + 20 * of_day.min(24 * 360 - of_day) / (12 * 360);
        let mut now = std::mem::take(&mut self.now);
        for cpu in &mut now.cpus {
            let busy_ns = INTERVAL_NS / 100 * (percent / 2 + self.draw(percent));
            let idle_ns = INTERVAL_NS - busy_ns;
            cpu.busy_ns = more(cpu.busy_ns, busy_ns);
            cpu.idle_ns = more(cpu.idle_ns, idle_ns);
            cpu.freq_khz = Reading::Known(1_500_000 + 1_000 * self.draw(2_000));
            let mut left_ns = idle_ns;
            for (state, (_, _, stay_ns, share)) in cpu.states.iter_mut().zip(STATES).rev() {
                let wanted_ns = idle_ns / 100 * share / 100 * (80 + self.draw(40));
                let spent_ns = if stay_ns == STATES[0].2 { left_ns } else { wanted_ns.min(left_ns) };
                left_ns -= spent_ns;
                let n = spent_ns / (stay_ns / 2 + self.draw(stay_ns)).max(1);
                state.time_ns = more(state.time_ns, spent_ns);
                state.n_usage = more(state.n_usage, n);
                state.n_above = more(state.n_above, n / 8);
                state.n_below = more(state.n_below, n / 11);
            }
        }
        for i in 0..now.energies_uj.len() {
            now.energies_uj[i] = more(now.energies_uj[i], 10_000_000 * (60 + self.draw(120)));
        }
        now.sensors = (0..self.layout.sensors.len())
            .map(|_| Reading::Known(45_000 + 1_000 * self.draw(20).cast_signed()))
            .collect();
        now.n_interrupts = more(now.n_interrupts, 3_000_000 + self.draw(1_000_000));
        now.n_context_switches = more(now.n_context_switches, 5_000_000 + self.draw(2_000_000));
        now.took_ns = 2_000_000 + self.draw(900_000);
        now.clocks.own_cpu_ns += 3_000_000 + self.draw(1_000_000);
        now.clocks.n_own_wakeups += 1;
        self.totals.advance(&self.layout, &now);
        self.now = now;
        self.wake();
    }

    /// Wake-ups of the interval, around what each state claims.
    fn wake(&mut self) {
        for (index, (name, exit_ns, ..)) in (0..).zip(STATES) {
            for class in
                [WakeClass::Remote, WakeClass::InterruptBeforeExit, WakeClass::InterruptAfterExit, WakeClass::Busy]
            {
                let first = bucket_of(exit_ns + 2_000);
                let drawn: Vec<u64> = (0..24).map(|_| self.draw(WAKES)).collect();
                let counted: &mut KernelHistogram = self.latencies.entry((name.into(), index, class)).or_default();
                counted.buckets.resize(N_BUCKETS, 0);
                for (bucket, n) in (first..).zip(drawn) {
                    counted.buckets[bucket] += n;
                    counted.n += n;
                    counted.sum_ns += n * edges_ns(bucket).0;
                }
                counted.max_ns = edges_ns(first + 24).0;
            }
        }
    }
}

fn more(counter: Reading<u64>, by: u64) -> Reading<u64> {
    counter.map(|n| n.saturating_add(by))
}

fn layout(n_cpus: u32) -> Layout {
    let place = |cpu: u32| Some(u32::from(cpu >= n_cpus / 2));
    let cpu = |cpu: u32| CpuInfo {
        cpu,
        package: place(cpu),
        node: place(cpu),
        core: Some(cpu),
        states: (0..STATES.len()).collect(),
        ..CpuInfo::default()
    };
    let state = |(index, (name, exit_ns, stay_ns, _)): (u32, (&str, u64, u64, u64))| StateInfo {
        index,
        name: name.into(),
        exit_latency_ns: Some(exit_ns),
        target_residency_ns: Some(stay_ns / 2),
        lets_package: None,
    };
    let zone = |package: u32, name: String, id: String| ZoneInfo {
        id,
        name,
        package: Some(package),
        max_energy_range_uj: Reading::Known(262_143_328_850),
        ..ZoneInfo::default()
    };
    let zones = |package: u32| {
        let id = format!("intel-rapl:{package}");
        [zone(package, format!("package-{package}"), id.clone()), zone(package, "dram".into(), format!("{id}:0"))]
    };
    let sensor = |package: u32| SensorInfo {
        chip: "coretemp".into(),
        label: format!("Package id {package}"),
        kind: SensorKind::Temperature,
        package: Some(package),
        ..SensorInfo::default()
    };
    Layout {
        cpus: (0..n_cpus).map(cpu).collect(),
        states: (0..).zip(STATES).map(state).collect(),
        packages: (0..2).map(|package| PackageInfo { package, ..PackageInfo::default() }).collect(),
        zones: (0..2).flat_map(zones).collect(),
        sensors: (0..2).map(sensor).collect(),
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::{Query, ask, percentile};
    use super::super::{Limits, MOST_GAP_MS, Ring, segments};
    use super::*;

    /// Half an hour stands for the week: every interval costs what the one before cost.
    #[test]
    fn a_week_of_128_cpus_takes_a_few_tens_of_megabytes() {
        const N: u64 = 180;
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(dir.path(), Limits { most_bytes: 64 << 20, free_share: 0.0 }).unwrap();
        let (mut small, mut large) = (Week::of(2), Week::of(128));
        assert_eq!(small.next_page().n_series(), large.next_page().n_series(), "sums, however many CPUs");
        for n in 0..N {
            ring.push(1_700_000_000_000 + n * INTERVAL_MS, &large.next_page()).unwrap();
        }
        ring.finish().unwrap();
        let bytes = std::fs::read(segments(dir.path()).remove(0)).unwrap();
        let per_week = bytes.len() as u64 * N_READINGS / N;
        assert!((20_000_000..56_000_000).contains(&per_week), "{per_week} bytes a week");
        let query = |metric: &str, is_rate| Query {
            names: vec![metric.into()],
            labels: Vec::new(),
            from_ms: 0,
            to_ms: u64::MAX,
            step_ms: 600_000,
            is_rate,
        };
        let shares = ask(&query("wakewatt_cpu_seconds_total", true), [(0, &bytes)], MOST_GAP_MS);
        let per_node: f64 =
            shares.series.iter().filter(|(n, _)| n.contains("node=\"0\"")).map(|(_, p)| p[0].value).sum();
        assert!((per_node - 64.0).abs() < 1e-6, "64 CPUs have 64 seconds a second: {per_node}");
        let woken = ask(&query("wakewatt_wakeup_latency_seconds_in", true), [(0, &bytes)], MOST_GAP_MS);
        let p99 = percentile(&woken, 0.99);
        assert!(p99.iter().any(|(name, points)| name.contains("C6") && points[0].value > 133e-6), "{p99:?}");
    }
}
