//! What the CPUs did while watts were recorded: the inputs of the power model, from what `watch` reads without waking anybody.

use crate::watch::{Sampler, WatchedMachine};
use std::collections::BTreeMap;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::power_model::Activity;
use wakewatt_core::units::Cpu;
use wakewatt_core::watch::{Layout, Rates, Sources};
use wakewatt_host::live::Live;

/// A state that wakes within this is shallow: C1 and C1E are, C6 is not.
const SHALLOW_NS: u64 = 20_000;

/// Counts from now on; none where the counters cannot be read.
pub(super) fn start() -> Option<Sampler> {
    let mut sampler = Sampler::open(WatchedMachine::Here, Sources::Quiet).ok()?;
    sampler.take();
    Some(sampler)
}

/// What was done since.
pub(super) fn since(mut sampler: Sampler) -> Option<Activity> {
    let rates = sampler.take()?;
    of(&sampler.layout, &rates, &hardware_max_khz())
}

/// Each CPU's own highest frequency (`cpuinfo_max_freq`): what runs now says nothing of it where all are slow.
fn hardware_max_khz() -> BTreeMap<Cpu, u64> {
    let policies = Snapshot::read(&Live::this_machine(), |topic| topic == "freq").freq.policies;
    let column = policies.by_cpu(&policies.hardware_max_khz);
    column.known().flat_map(|(cpus, khz)| cpus.iter().map(|cpu| (cpu, *khz))).collect()
}

fn of(layout: &Layout, rates: &Rates, max_khz: &BTreeMap<Cpu, u64>) -> Option<Activity> {
    let mut out = Activity::default();
    for cpu in rates.cpus.iter().filter(|c| c.is_online) {
        let busy = cpu.busy_ratio.get()?;
        let share = |is_wanted: &dyn Fn(&str, u64) -> bool| -> f64 {
            let wanted = cpu.states.iter().filter(|s| {
                let info = layout.states.iter().find(|i| i.index == s.index);
                is_wanted(&s.name, info.and_then(|i| i.exit_latency_ns).unwrap_or(0))
            });
            wanted.filter_map(|s| s.share_ratio.get()).sum()
        };
        let is_polling = |name: &str| name.eq_ignore_ascii_case("poll");
        let awake = (busy + share(&|name, _| is_polling(name))).min(1.0);
        let ratio = match (cpu.freq_khz.get(), max_khz.get(&cpu.cpu)) {
            (Some(now), Some(&most)) if most > 0 => now as f64 / most as f64,
            _ => 1.0,
        };
        out.n_cpus += 1.0;
        out.awake += awake;
        out.awake_cubed += awake * ratio.powi(3);
        // Without idle states nobody knows how deep it sleeps; the architecture's own halt is shallow.
        out.shallow += match cpu.states.is_empty() {
            true => 1.0 - awake,
            false => share(&|name, latency_ns| !is_polling(name) && latency_ns <= SHALLOW_NS),
        };
    }
    (out.n_cpus > 0.0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::watch::Reading;
    use wakewatt_core::watch::document::CpuRate;

    #[test]
    fn a_clock_is_compared_with_what_the_cpu_can_do_and_not_with_its_neighbours() {
        let slow = |cpu| CpuRate {
            cpu,
            is_online: true,
            busy_ratio: Reading::Known(1.0),
            freq_khz: Reading::Known(1_500_000),
            ..CpuRate::default()
        };
        let rates = Rates { cpus: vec![slow(0), slow(1)], ..Rates::default() };
        let cubed = |max: &[(Cpu, u64)]| {
            let max_khz = max.iter().copied().collect();
            of(&Layout::default(), &rates, &max_khz).map(|a| a.awake_cubed)
        };
        assert_eq!(cubed(&[(0, 3_000_000), (1, 3_000_000)]), Some(0.25));
        // The hybrid's small core runs at its best.
        assert_eq!(cubed(&[(0, 3_000_000), (1, 1_500_000)]), Some(1.125));
        assert_eq!(cubed(&[]), Some(2.0));
    }
}
