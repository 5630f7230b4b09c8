//! Which pairs of CPUs to measure, and what they come to: the matrix of `measure cores`.
//!
//! A pair costs some 50 ms, so 64 CPUs with their 4032 ordered pairs take three and a half minutes, and 512 would take
//! nearly four hours. Above a limit each nearness keeps an equal share of it, chosen by a seeded shuffle: the rare near pairs
//! all stay, the many far ones are sampled, and the summary says how many of how many.
//!
//! Pairs are measured in random order by the same seed (docs/methods/cores-and-clock.md), so that what drifts, the
//! clock above all, does not look like structure of the matrix. Between two pairs all sleep: the kernel lets real-time
//! threads have 0.95 s of each second of a CPU and takes it away after that, in the middle of a batch.

use crate::bench::{BenchError, hand_over};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::cores::{CoresSample, HandOver, Nearness, NearnessSummary, Neighbourhood};
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::stats::middle::middle;
use wakewatt_core::stats::random::Random;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::monotonic_ns;

/// Ordered pairs measured at most, unless the caller says otherwise.
pub const MAX_PAIRS: usize = 4096;
/// After a pair all sleep for this part of the time it took: a tenth, where a twentieth is asked for.
const PAUSE_PART: u64 = 10;
/// A pair that nobody answered took a second.
const MAX_PAUSE_NS: u64 = 10_000_000;

/// Pairs by nearness: those to measure, and how many there are.
pub struct Pairs {
    /// In the order of measuring.
    chosen: Vec<(Cpu, Cpu, Nearness)>,
    n_all: BTreeMap<Nearness, u64>,
    seed: u64,
}

impl Pairs {
    /// All ordered pairs, or at most `max` of them.
    pub fn choose(cpus: &CpuSet, near: &Neighbourhood, max: usize, seed: u64) -> Pairs {
        let mut by: BTreeMap<Nearness, Vec<(Cpu, Cpu)>> = BTreeMap::new();
        for a in cpus.iter() {
            for b in cpus.iter().filter(|b| *b != a) {
                by.entry(near.nearness(a, b)).or_default().push((a, b));
            }
        }
        let n_all: BTreeMap<Nearness, u64> = by.iter().map(|(k, v)| (*k, v.len() as u64)).collect();
        let mut chosen = Vec::new();
        let (mut left, mut random) = (max, Random::new(seed));
        let mut classes: Vec<(Nearness, Vec<(Cpu, Cpu)>)> = by.into_iter().collect();
        // The small classes first: what they leave of their share goes to the larger ones.
        classes.arrange_by_key(|(_, pairs)| pairs.len());
        let n_classes = classes.len();
        for (at, (nearness, mut pairs)) in classes.into_iter().enumerate() {
            let share = left / (n_classes - at);
            if pairs.len() > share {
                random.shuffle(&mut pairs);
                pairs.truncate(share);
            }
            left -= pairs.len();
            chosen.extend(pairs.into_iter().map(|(a, b)| (a, b, nearness)));
        }
        random.shuffle(&mut chosen);
        Pairs { chosen, n_all, seed }
    }

    /// How many will be measured, of how many.
    pub fn count(&self) -> (u64, u64) {
        (self.chosen.len() as u64, self.n_all.values().sum())
    }
}

/// Measures the pairs; a pair that fails is a line in `not_done`. An error when none worked.
pub fn cores(
    cpus: &CpuSet,
    pairs: &Pairs,
    stop: &AtomicBool,
    not_done: &mut Vec<NotDone>,
    progress: &dyn Fn(f64, &str),
) -> Result<CoresSample, BenchError> {
    let start_at_ns = monotonic_ns();
    let mut done = Vec::with_capacity(pairs.chosen.len());
    let mut scheduling: Option<Scheduling> = None;
    let mut last_error = None;
    for (at, &(from_cpu, to_cpu, nearness)) in pairs.chosen.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        progress(at as f64 / pairs.chosen.len() as f64, &format!("CPU {from_cpu} and CPU {to_cpu}"));
        let pair_at_ns = monotonic_ns();
        match hand_over::hand_over(from_cpu, to_cpu, stop) {
            Ok(slice) => {
                let m = slice.one_way_ns;
                done.push(HandOver {
                    covers: wakewatt_core::covers::Covers::Window,
                    from_cpu,
                    to_cpu,
                    nearness,
                    best_ns: m.least,
                    median_ns: m.median,
                    low_ns: m.low,
                    high_ns: m.high,
                    n_batches: slice.n_batches,
                    line_node: slice.line_node,
                });
                scheduling.get_or_insert(slice.scheduling);
            }
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(why) => {
                // A CPU that cannot be used fails in every pair; ten lines say enough.
                if not_done.len() < 10 {
                    not_done.push(NotDone::named(format!("CPU {from_cpu} and CPU {to_cpu}"), why.to_string()));
                }
                last_error = Some(why);
            }
        }
        let pause_ns = (monotonic_ns().saturating_sub(pair_at_ns) / PAUSE_PART).min(MAX_PAUSE_NS);
        std::thread::sleep(Duration::from_nanos(pause_ns));
    }
    done.arrange_by_key(|pair| (pair.from_cpu, pair.to_cpu));
    let Some(scheduling) = scheduling else { return Err(last_error.unwrap_or(BenchError::NoSamples)) };
    let by_nearness = summaries(&done, &pairs.n_all);
    Ok(CoresSample {
        cpus: cpus.clone(),
        pairs: done,
        by_nearness,
        hand_overs_per_batch: 2 * hand_over::ROUND_TRIPS - 1,
        seed: Some(pairs.seed),
        scheduling,
        window: Window { start_at_ns, end_at_ns: monotonic_ns() },
    })
}

fn summaries(pairs: &[HandOver], n_all: &BTreeMap<Nearness, u64>) -> Vec<NearnessSummary> {
    let of = |nearness: Nearness| {
        let mut medians: Vec<f64> = pairs.iter().filter(|p| p.nearness == nearness).map(|p| p.median_ns).collect();
        let m = middle(&mut medians)?;
        Some(NearnessSummary {
            nearness,
            n_pairs: medians.len() as u64,
            n_pairs_all: n_all.get(&nearness).copied().unwrap_or(0),
            median_ns: m.median,
            least_ns: m.least,
            most_ns: medians.last().copied().unwrap_or(m.median),
        })
    };
    Nearness::ALL.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::facts::cache::Caches;
    use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
    use wakewatt_core::source::Tree;

    #[test]
    fn a_big_machine_keeps_its_rare_near_pairs() {
        let root = "/sys/devices/system/cpu";
        let n = 64;
        let mut text = format!("//- {root}/online\n0-{}\n//- {root}/present\n0-{}\n", n - 1, n - 1);
        for cpu in 0..n {
            let first = cpu / 2 * 2;
            text += &format!("//- {root}/cpu{cpu}/topology/core_cpus_list\n{first}-{}\n", first + 1);
            text += &format!("//- {root}/cpu{cpu}/topology/physical_package_id\n{}\n", cpu / 32);
        }
        let tree = Tree::from_text(&text);
        let cpus = CpuSet::parse("0-63").unwrap();
        let (list, none) = (Cpus::read(&tree), Caches::default());
        let near = Neighbourhood::of(&Topology::read(&tree, &list), &none, &cpus);
        let all = Pairs::choose(&cpus, &near, MAX_PAIRS, 1);
        assert_eq!(all.count(), (4032, 4032));
        assert!(!all.chosen.is_sorted(), "measured in random order");
        let some = Pairs::choose(&cpus, &near, 300, 1);
        assert_eq!(some.count(), (300, 4032));
        let siblings = some.chosen.iter().filter(|p| p.2 == Nearness::SameCore).count();
        assert_eq!(siblings, 64);
        assert_eq!(some.chosen, Pairs::choose(&cpus, &near, 300, 1).chosen);
        assert_ne!(some.chosen, Pairs::choose(&cpus, &near, 300, 2).chosen);
    }
}
