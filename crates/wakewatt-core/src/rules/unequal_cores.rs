//! Are some CPUs faster than others, and which are they?
//!
//! Latency-critical work belongs on the fast ones, and nothing in its logs says that it ran on the slow ones. Kinds of core
//! on hybrid parts (`/sys/devices/cpu_{core,atom}/cpus`, `cpu_capacity`). Base frequencies that differ: Intel's SST-BF
//! guarantees some cores more at the expense of the rest (`base_frequency`). Highest frequencies or CPPC levels that differ:
//! favoured cores (Turbo Boost Max 3.0, AMD's preferred cores) and the priority cores (PCT) of Xeon 6. Buckets of SST-TF show
//! in none of these files; intel-speed-select asks the hardware for them. The firmware's ranking is a claim. Sources:
//! Documentation/admin-guide/pm/{intel-speed-select,amd-pstate,intel_pstate}.rst.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::PerCpu;
use crate::facts::Snapshot;
use crate::facts::cpus::ROOT;
use crate::units::show_khz;
use wakewatt_words::{say, word};

pub(super) struct UnequalCores;

/// Who is fast, why that is believed, and where it is written.
struct Ranking {
    fast: CpuSet,
    title: String,
    path: String,
    says: String,
    confidence: Confidence,
}

/// The CPUs by value, the highest first; none where all that tell are alike.
fn ranked(column: &PerCpu<u64>) -> Option<Vec<(u64, CpuSet)>> {
    let mut groups: Vec<(u64, CpuSet)> = Vec::new();
    for (cpus, value) in column.known().filter(|(_, value)| **value > 0) {
        match groups.iter_mut().find(|(known, _)| known == value) {
            Some((_, set)) => *set = set.union(cpus),
            None => groups.push((*value, cpus.clone())),
        }
    }
    groups.arrange_by_key(|(value, _)| std::cmp::Reverse(*value));
    (groups.len() > 1).then_some(groups)
}

fn list(groups: &[(u64, CpuSet)], show: impl Fn(u64) -> String) -> String {
    groups
        .iter()
        .map(|(value, cpus)| say!("{} on {cpus}", show(*value), cpus = cpus.named()))
        .collect::<Vec<_>>()
        .join(", ")
}

fn kinds(facts: &Snapshot) -> Option<Ranking> {
    let kinds = &facts.topology.kinds;
    let fast = kinds.iter().find(|kind| kind.name == "core")?;
    let others: Vec<String> =
        kinds.iter().filter(|k| k.name != fast.name).map(|k| format!("{} {}", k.name, k.cpus)).collect();
    (!others.is_empty()).then(|| Ranking {
        fast: fast.cpus.clone(),
        title: say!("Two kinds of core: for performance {} (others: {})", fast.cpus.named(), others.join(", ")),
        path: "/sys/devices/cpu_core/cpus".into(),
        says: fast.cpus.to_string(),
        confidence: Confidence::High,
    })
}

fn capacities(facts: &Snapshot) -> Option<Ranking> {
    let groups = ranked(&facts.topology.capacity)?;
    let fast = groups.first()?.1.clone();
    let says = list(&groups, |v| v.to_string());
    Some(Ranking {
        title: say!("Fastest by the kernel's capacity: {fast} ({says})", fast = fast.named()),
        fast,
        path: format!("{ROOT}/cpu*/cpu_capacity"),
        says,
        confidence: Confidence::High,
    })
}

fn guaranteed(facts: &Snapshot) -> Option<Ranking> {
    let policies = &facts.freq.policies;
    let groups = ranked(&policies.by_cpu(&policies.base_khz))?;
    let fast = groups.first()?.1.clone();
    let says = list(&groups, show_khz);
    Some(Ranking {
        title: say!("A higher base frequency (SST-BF) is guaranteed to {fast}: {says}", fast = fast.named()),
        fast,
        path: format!("{ROOT}/cpufreq/policy*/base_frequency"),
        says,
        confidence: Confidence::High,
    })
}

fn favoured(facts: &Snapshot) -> Option<Ranking> {
    let policies = &facts.freq.policies;
    let (prefcore, highest) =
        (policies.by_cpu(&policies.amd_prefcore_ranking), policies.by_cpu(&policies.hardware_max_khz));
    let (groups, path, is_khz) = [
        (ranked(&prefcore), format!("{ROOT}/cpufreq/policy*/amd_pstate_prefcore_ranking"), false),
        (ranked(&facts.freq.cppc.highest_perf), format!("{ROOT}/cpu*/acpi_cppc/highest_perf"), false),
        (ranked(&highest), format!("{ROOT}/cpufreq/policy*/cpuinfo_max_freq"), true),
    ]
    .into_iter()
    .find_map(|(groups, path, is_khz)| Some((groups?, path, is_khz)))?;
    let fast = groups.first()?.1.clone();
    let says = if is_khz { list(&groups, show_khz) } else { list(&groups, |v| say!("level {v}")) };
    Some(Ranking {
        title: say!("{fast} may clock highest (favoured or priority cores): {says}", fast = fast.named()),
        fast,
        path,
        says,
        confidence: Confidence::Medium,
    })
}

impl Rule for UnequalCores {
    fn id(&self) -> &'static str {
        "rule.unequal-cores"
    }
    fn question(&self) -> &'static str {
        word!("are some CPUs faster than others, and which are they?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let Some(ranking) =
            kinds(facts).or_else(|| capacities(facts)).or_else(|| guaranteed(facts)).or_else(|| favoured(facts))
        else {
            let policies = &facts.freq.policies;
            let told = [&policies.base_khz, &policies.hardware_max_khz, &facts.freq.cppc.highest_perf];
            if told.iter().all(|column| column.is_unknown()) && facts.topology.capacity.is_unknown() {
                return Answer::cannot_tell(
                    word!("no file tells how fast each CPU may be"),
                    word!("wakewatt inspect freq; wakewatt measure frequency on several CPUs"),
                );
            }
            return Answer::no(word!("all CPUs are alike in what the files tell; SST-TF would not show in them"));
        };
        let cost = Cost::unknown(word!(
            "work on one of the others may run slower: cores of another kind always do, guaranteed clocks bind only where power or heat does; not measured"
        ));
        Finding::new(self, Weight::Note, ranking.confidence, ranking.title, cost)
            .on(ranking.path, ranking.says)
            .remedy(
                say!(
                    "Place latency-critical work on {} (taskset, cpuset, the orchestrator's CPU manager), and keep \
                        interrupts and batch work off there.",
                    ranking.fast.named()
                ),
                word!("The other CPUs get the rest of the work."),
                word!("wakewatt measure frequency and wakewatt measure wakeup on a CPU of each group"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    fn policies(attribute: &str, values: [&str; 2]) -> String {
        let one = |n: usize| {
            let at = format!("//- {ROOT}/cpufreq/policy{n}");
            format!("{at}/affected_cpus\n{n}\n{at}/related_cpus\n{n}\n{at}/{attribute}\n{}\n", values[n])
        };
        format!("//- {ROOT}/present\n0-1\n//- {ROOT}/online\n0-1\n") + &one(0) + &one(1)
    }

    #[test]
    fn the_fast_ones_are_named() {
        let hybrid = "//- /sys/devices/cpu_core/cpus\n0\n//- /sys/devices/cpu_atom/cpus\n1\n";
        let base = policies("base_frequency", ["2100000", "2700000"]);
        assert!(
            ask(&UnequalCores, &base)
                .contains("a higher base frequency (sst-bf) is guaranteed to cpu 1: 2.7ghz on cpu 1")
        );
        assert!(ask(&UnequalCores, &(base + hybrid)).contains("two kinds of core: for performance cpu 0"));
        let turbo = policies("cpuinfo_max_freq", ["5000000", "4800000"]);
        assert!(ask(&UnequalCores, &turbo).contains("cpu 0 may clock highest"));
        assert!(ask(&UnequalCores, &policies("cpuinfo_max_freq", ["5", "5"])).starts_with("no: all CPUs are alike"));
        let arm =
            format!("//- {ROOT}/online\n0-1\n//- {ROOT}/cpu0/cpu_capacity\n400\n//- {ROOT}/cpu1/cpu_capacity\n1024\n");
        assert!(ask(&UnequalCores, &arm).contains("fastest by the kernel's capacity: cpu 1"));
        assert!(ask(&UnequalCores, "").starts_with("cannot tell"));
    }
}
