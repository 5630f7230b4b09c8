//! Several CPUs as one row: a core, a package, a node, the machine.
//!
//! Shares are means over the CPUs that know theirs, counts are sums, the limit is the tightest, the frequency is the
//! mean weighted by how busy each CPU was (a sleeping CPU's frequency is stale).

use super::document::{CpuRate, StateRate, Summary};
use super::layout::StateInfo;
use super::reading::{Reading, mean, sum};

/// Below this a CPU's frequency is whatever it was when it last ran.
pub const STALE_BELOW_BUSY: f64 = 0.005;

impl Summary {
    /// Of these CPUs; offline ones are left out unless all are.
    pub fn of<'a>(cpus: impl Iterator<Item = &'a CpuRate>, states: &[StateInfo]) -> Summary {
        let all: Vec<&CpuRate> = cpus.collect();
        let running: Vec<&CpuRate> = all.iter().copied().filter(|c| c.is_online).collect();
        let n_cpus = running.len();
        let cpus = if running.is_empty() { all } else { running };
        let idle: Vec<StateRate> = states
            .iter()
            .filter_map(|info| {
                let rows: Vec<&StateRate> =
                    cpus.iter().filter_map(|c| c.states.iter().find(|s| s.index == info.index)).collect();
                // A state that only some CPUs have is 0 on the others, not unknown.
                let have = rows.len() as f64 / cpus.len().max(1) as f64;
                let total = |f: fn(&StateRate) -> Reading<f64>| sum(rows.iter().map(|s| f(s)));
                (!rows.is_empty()).then(|| StateRate {
                    index: info.index,
                    name: info.name.clone(),
                    share_ratio: mean(rows.iter().map(|s| s.share_ratio)).map(|r| r * have),
                    wakeups_per_s: total(|s| s.wakeups_per_s),
                    above_per_s: total(|s| s.above_per_s),
                    below_per_s: total(|s| s.below_per_s),
                    rejected_per_s: total(|s| s.rejected_per_s),
                })
            })
            .collect();
        let is_fresh = |c: &CpuRate| c.busy_ratio.get().is_none_or(|b| b >= STALE_BELOW_BUSY);
        let weighted: Vec<(f64, f64)> = cpus
            .iter()
            .filter(|c| is_fresh(c))
            .filter_map(|c| Some((c.freq_khz.get()? as f64, c.busy_ratio.get().unwrap_or(1.0).max(1e-6))))
            .collect();
        let weight: f64 = weighted.iter().map(|(_, w)| w).sum();
        let freq_khz = if weighted.is_empty() {
            mean(cpus.iter().map(|c| c.freq_khz.map(|khz| khz as f64)))
        } else {
            Reading::Known(weighted.iter().map(|(khz, w)| khz * w).sum::<f64>() / weight)
        };
        let limits = cpus.iter().filter_map(|c| c.limit.get());
        Summary {
            n_cpus,
            busy_ratio: mean(cpus.iter().map(|c| c.busy_ratio)),
            steal_ratio: mean(cpus.iter().map(|c| c.steal_ratio)),
            freq_khz,
            is_freq_stale: weighted.is_empty(),
            wakeups_per_s: sum(cpus.iter().map(|c| c.wakeups_per_s)),
            asleep_ratio: mean(cpus.iter().map(|c| c.asleep_ratio)),
            n_asleep_throughout: cpus.iter().filter(|c| c.is_asleep_throughout()).count(),
            above_per_s: sum(idle.iter().map(|s| s.above_per_s)),
            below_per_s: sum(idle.iter().map(|s| s.below_per_s)),
            throttles_per_s: sum(cpus.iter().map(|c| c.throttles_per_s)),
            cpu_limit: limits
                .min()
                .map_or_else(|| cpus.first().map_or(Reading::default(), |c| c.limit), Reading::Known),
            idle,
        }
    }
}
