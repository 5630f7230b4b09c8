//! How long a cache line takes between every two CPUs.

use super::{Found, allowed_cpus};
use crate::context::Lab;
use crate::core_pairs::{self, MAX_PAIRS, Pairs};
use crate::refusal::Refusal;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::cores::{CoresSample, Neighbourhood};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Source;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct CoresPlan {
    /// Between these CPUs; all that are allowed when none.
    pub cpus: Option<CpuSet>,
    /// So many ordered pairs at most.
    pub n_pairs: Option<usize>,
    /// Of their order and choice.
    pub seed: u64,
}

/// Measures the pairs, in random order.
pub fn cores(lab: Lab<'_>, plan: &CoresPlan) -> Result<Found<CoresSample>, Refusal> {
    let allowed = allowed_cpus()?;
    let cpus = plan.cpus.clone().unwrap_or_else(|| allowed.clone());
    let strangers = cpus.minus(&allowed);
    if !strangers.is_empty() {
        let why = format!("CPUs {strangers} are not available to this process (it may use {allowed})");
        return Err(Refusal::Unavailable(why + "; choose among those with --cpu, or widen taskset or cpuset"));
    }
    if cpus.len() < 2 {
        let why = format!("a line needs two CPUs to travel between, and there is only CPU {cpus}");
        return Err(Refusal::Unavailable(why + "; name two or more with --cpu, or give this process more than one"));
    }
    let pairs = Pairs::choose(&cpus, &neighbourhood(lab.src, &cpus), plan.n_pairs.unwrap_or(MAX_PAIRS), plan.seed);
    let mut found = Found::default();
    let (n, n_all) = pairs.count();
    if n < n_all {
        let why = format!(
            "{} of {n_all} ordered pairs were left out, chosen at random within each class; raise --pairs or name CPUs with --cpu",
            n_all - n
        );
        found.not_done.push(NotDone::new(Step::Unnamed, why));
    }
    let told = |share: f64, words: &str| lab.tell.progress(share, words);
    match core_pairs::cores(&cpus, &pairs, lab.stop, &mut found.not_done, &told) {
        Ok(sample) => found.samples.push(sample),
        Err(why) if found.not_done.is_empty() => found.not_done.push(NotDone::new(Step::Unnamed, why.to_string())),
        Err(_) => {}
    }
    Ok(found)
}

/// Which of these CPUs share a core, a cache, a package.
pub fn neighbourhood(src: &dyn Source, cpus: &CpuSet) -> Neighbourhood {
    let facts = Snapshot::read(src, |topic| ["topology", "cache"].contains(&topic));
    Neighbourhood::of(&facts.topology, &facts.cache, cpus)
}
