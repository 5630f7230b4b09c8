//! What may have disturbed a measurement: steal by the hypervisor, load from others, throttling.
//!
//! Counters are read before and after; the note says what happened on the measured CPUs in that time. It discards nothing
//! by itself: random order spreads disturbances over the variants, and the reader sees them. A plan may declare limits.

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::load::{CpuTime, between, cpu_times};
use wakewatt_core::samples::rejection::Rejection;
use wakewatt_core::samples::taken::{FOREIGN_RATIO, STEAL_RATIO, Taken};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;

/// Above which noise a block does not count. A limit is declared before the run, never chosen after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Share of the time that the hypervisor may take.
    pub steal_ratio: f64,
    /// Share that other processes may use. Where the workload keeps the CPUs busy itself only its own count of them can
    /// tell: that of each level of graduated load and of the shop. For a command there is none.
    pub foreign_ratio: f64,
    /// Does thermal throttling spoil a block? Where an arm throttles by its own doing, that is its cost and no noise.
    pub is_throttling_spoilt: bool,
}

impl Default for Limits {
    /// None: noise widens intervals and discards nothing.
    fn default() -> Self {
        Limits { steal_ratio: f64::INFINITY, foreign_ratio: f64::INFINITY, is_throttling_spoilt: false }
    }
}

/// What happened in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Share of the time that the hypervisor took.
    pub steal_ratio: f64,
    /// Share that other processes used.
    pub foreign_ratio: f64,
    /// Is that share told by somebody else?
    is_without_others: bool,
    /// Times it was throttled.
    pub n_throttles: u64,
}

impl Noise {
    /// Without others' work, for whoever judges and tells that by itself.
    pub fn without_others(mut self) -> Noise {
        self.is_without_others = true;
        self
    }

    /// Of several stretches with their lengths: shares by length, counts added.
    pub fn together(stretches: &[(Noise, u64)]) -> Noise {
        let all_ns = stretches.iter().map(|(_, ns)| *ns as f64).sum::<f64>().max(1.0);
        let mean =
            |of: fn(&Noise) -> f64| stretches.iter().map(|(noise, ns)| of(noise) * *ns as f64).sum::<f64>() / all_ns;
        Noise {
            steal_ratio: mean(|n| n.steal_ratio),
            foreign_ratio: mean(|n| n.foreign_ratio),
            is_without_others: !stretches.is_empty() && stretches.iter().all(|(n, _)| n.is_without_others),
            n_throttles: stretches.iter().map(|(n, _)| n.n_throttles).fold(0, u64::saturating_add),
        }
    }

    /// What is worth a note, in words, one line each.
    pub fn notes(&self) -> Vec<String> {
        let of_cpus = |who: &str, share: String| format!("{who} {share} % of the measured CPUs' time");
        let percent = |ratio: f64| ratio * 100.0;
        let steal = (self.steal_ratio > STEAL_RATIO)
            .then(|| of_cpus("the hypervisor took", format!("{:.1}", percent(self.steal_ratio))));
        let others = (!self.is_without_others && self.foreign_ratio > FOREIGN_RATIO)
            .then(|| of_cpus("other processes used", format!("{:.0}", percent(self.foreign_ratio))));
        let throttles = (self.n_throttles > 0).then(|| format!("thermal throttling, {} times", self.n_throttles));
        [steal, others, throttles].into_iter().flatten().collect()
    }

    /// As numbers.
    pub fn taken(&self) -> Taken {
        let foreign_ratio = (!self.is_without_others).then_some(self.foreign_ratio.max(0.0));
        Taken { steal_ratio: self.steal_ratio, foreign_ratio }
    }

    /// Why the window does not count, if so. Where the workload itself keeps the CPUs busy, busy ones say nothing.
    pub fn spoilt(&self, limits: &Limits, is_busy: bool) -> Option<Rejection> {
        if !is_busy && self.foreign_ratio > limits.foreign_ratio {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share above the limit")]
            let percent = (self.foreign_ratio * 100.0).round() as u32;
            Some(Rejection::Busy { percent })
        } else if self.steal_ratio > limits.steal_ratio {
            Some(format!("the hypervisor took {:.1} % of the measured CPUs' time", self.steal_ratio * 100.0).into())
        } else if limits.is_throttling_spoilt && self.n_throttles > 0 {
            Some(format!("thermal throttling, {} times", self.n_throttles).into())
        } else {
            None
        }
    }
}

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct NoiseCounters {
    cpus: Vec<CpuTime>,
    /// CPU time of this process so far.
    own_ns: u64,
    n_throttles: u64,
}

impl NoiseCounters {
    /// Reads them for these CPUs; what cannot be read stays out.
    pub fn read(src: &dyn Source, cpus: &CpuSet, own_ns: u64) -> NoiseCounters {
        let files = ["core_throttle_count", "package_throttle_count"];
        let paths = cpus
            .iter()
            .flat_map(|cpu| files.map(|file| format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{file}")));
        let count = |path: String| {
            let bytes = src.read(&path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).trim().parse::<u64>().unwrap_or(0)
        };
        let n_throttles = paths.map(count).fold(0, u64::saturating_add);
        NoiseCounters { cpus: cpu_times(src, cpus), own_ns, n_throttles }
    }

    /// Does the kernel count the CPUs' time here?
    pub fn is_known(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Leaves interrupts and soft interrupts out of the busy time. Timers and the network that the load itself uses cause
    /// them, and they are in no process's time, so they would count as others' work; what is left is the least others had.
    pub fn without_interrupts(mut self) -> NoiseCounters {
        self.cpus.iter_mut().for_each(|cpu| (cpu.irq_ns, cpu.softirq_ns) = (0, 0));
        self
    }

    /// The share of its time in which a CPU had nothing to do, polling included; none where it is not counted.
    pub fn idle_ratio(&self, before: &NoiseCounters, cpu: Cpu) -> Option<f64> {
        let passed = between(&self.cpus, &before.cpus);
        let passed = passed.iter().find(|passed| passed.cpu == Some(cpu))?;
        passed.ratio(passed.idle_ns.saturating_add(passed.iowait_ns))
    }

    /// Steal of one CPU; none where it is not counted.
    pub fn steal_ns(&self, before: &NoiseCounters, cpu: Cpu) -> Option<u64> {
        between(&self.cpus, &before.cpus)
            .into_iter()
            .find(|passed| passed.cpu == Some(cpu))
            .map(|passed| passed.steal_ns)
    }

    /// What happened since `before`; `window_ns` is the time between.
    pub fn since(&self, before: &NoiseCounters, window_ns: u64) -> Noise {
        let passed = between(&self.cpus, &before.cpus);
        let window = window_ns.max(1) as f64 * passed.len().max(1) as f64;
        let sum = |of: fn(&CpuTime) -> u64| passed.iter().map(of).fold(0, u64::saturating_add) as f64;
        let own = self.own_ns.saturating_sub(before.own_ns) as f64;
        Noise {
            steal_ratio: sum(|cpu| cpu.steal_ns) / window,
            foreign_ratio: (sum(CpuTime::busy_ns) - own) / window,
            is_without_others: false,
            n_throttles: self.n_throttles.saturating_sub(before.n_throttles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn steal_foreign_load_and_throttling_are_named() {
        let cpus = CpuSet::parse("0-1").unwrap();
        let read = |text: &str| NoiseCounters::read(&Tree::from_text(text), &cpus, 0);
        let throttle = "//- /sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count\n";
        let before = read(&format!(
            "//- /proc/stat\ncpu  1 1 1 1 1 1 1 1\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n{throttle}3\n"
        ));
        let after =
            read(&format!("//- /proc/stat\ncpu0 150 0 0 0 0 0 0 5 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n{throttle}5\n"));
        let noise = after.since(&before, 1_000_000_000);
        let notes = noise.notes();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("2.5 %") && notes[1].contains("25 %") && notes[2].contains("2 times"));
        let limits = Limits::default();
        assert_eq!(noise.spoilt(&limits, false), None);
        let taken = noise.taken();
        assert!((taken.steal_ratio - 0.025).abs() < 1e-9 && taken.is_disturbing(), "{taken:?}");
        let without = noise.clone().without_others();
        assert_eq!((without.taken().foreign_ratio, without.notes().len()), (None, 2));
        assert!(without.notes().iter().all(|note| !note.contains("25 %")), "{:?}", without.notes());
        let strict = Limits { steal_ratio: 0.01, is_throttling_spoilt: true, ..limits };
        assert!(noise.spoilt(&strict, false).unwrap().to_string().contains("hypervisor took 2.5 %"));
        assert!(
            noise.spoilt(&Limits { steal_ratio: 1.0, ..strict }, false).unwrap().to_string().contains("throttling, 2")
        );
        assert_eq!(before.since(&before, 1_000_000_000), Noise::default());
        let busy = read("//- /proc/stat\ncpu0 200 0 0 0 0 0 0 0 0 0\ncpu1 90 0 0 0 0 0 0 0 0 0\n");
        let busy = busy.since(&before, 1_000_000_000);
        assert_eq!(busy.spoilt(&Limits::default(), false), None, "a neighbour discards nothing unless a plan says so");
        let half = Limits { foreign_ratio: 0.5, ..limits };
        assert!(busy.spoilt(&half, false).unwrap().to_string().contains("95 % busy"));
        assert_eq!(busy.spoilt(&half, true), None);
        let later = read("//- /proc/stat\ncpu0 100 0 0 30 0 0 0 10 0 0\ncpu1 9 0 0 0 0 0 0 0 0 0\n");
        assert_eq!((later.idle_ratio(&before, 0), later.idle_ratio(&before, 1)), (Some(0.75), Some(0.0)));
        assert_eq!(later.idle_ratio(&before, 2), None);
    }

    #[test]
    fn a_cpu_that_came_back_does_not_dilute_and_interrupts_can_be_left_out() {
        let cpus = CpuSet::parse("0-1").unwrap();
        let read = |text: &str| NoiseCounters::read(&Tree::from_text(text), &cpus, 0);
        let before = read("//- /proc/stat\ncpu0 0 0 0 0 0 0 0 0\n");
        let after = read("//- /proc/stat\ncpu0 20 0 0 70 0 3 7 0\ncpu1 18446744073709551615 9 9 9 9 9 9 9\n");
        assert!((after.since(&before, 1_000_000_000).foreign_ratio - 0.3).abs() < 1e-9, "of one CPU's time");
        let rest = after.clone().without_interrupts().since(&before.clone().without_interrupts(), 1_000_000_000);
        assert!((rest.foreign_ratio - 0.2).abs() < 1e-9, "{rest:?}");
        assert!(after.since(&before, 0).foreign_ratio.is_finite(), "no window is no division by 0");
    }
}
