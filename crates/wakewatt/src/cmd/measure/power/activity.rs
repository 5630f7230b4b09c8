//! What the CPUs did while watts were recorded: the inputs of the power model, from what `watch` reads without waking anybody.

use wakewatt_core::samples::power_model::Activity;
use wakewatt_core::watch::{Layout, Rates, Sources};

use crate::cli::From;
use crate::cmd::watch::sampler::Sampler;

/// A state that wakes within this is shallow: C1 and C1E are, C6 is not.
const SHALLOW_NS: u64 = 20_000;

/// Counts from now on; none where the counters cannot be read.
pub(super) fn start() -> Option<Sampler> {
    let mut sampler = Sampler::open(&From::default(), Sources::Quiet).ok()?;
    sampler.take();
    Some(sampler)
}

/// What was done since.
pub(super) fn since(mut sampler: Sampler) -> Option<Activity> {
    let rates = sampler.take()?;
    of(&sampler.layout, &rates)
}

fn of(layout: &Layout, rates: &Rates) -> Option<Activity> {
    let mut out = Activity::default();
    let most_khz = rates.cpus.iter().filter_map(|c| c.freq_khz.get()).max();
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
        let ratio = match (cpu.freq_khz.get(), most_khz) {
            (Some(now), Some(most)) if most > 0 => now as f64 / most as f64,
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
