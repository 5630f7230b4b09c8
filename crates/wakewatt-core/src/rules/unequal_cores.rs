//! Are some CPUs faster than others, and which are they?
//!
//! Latency-critical work belongs on the fast ones, and nothing in its logs says that it ran on the slow ones. Kinds of core
//! on hybrid parts are named where the kernel lists them (`/sys/devices/cpu_{core,atom,lowpower}/cpus`); cores of the smallest
//! kind that lie outside the L3 have only their own L2 and are a kind apart. Elsewhere `cpu_capacity`, base frequencies,
//! highest frequencies or CPPC levels that differ are said as what they are: SST-BF, favoured cores (Turbo Boost Max 3.0) and
//! priority cores of Xeon 6 all look so, hybrid parts whose kinds are not listed as well, and none of these files says which. AMD's
//! preferred cores have a witness of their own (`amd_pstate_prefcore_ranking`). SST-TF shows in none of them. The firmware's
//! ranking is a claim. Sources: Documentation/admin-guide/pm/{intel-speed-select,amd-pstate,intel_pstate}.rst.

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
    let with_l3 = facts.cache.sharing("L3").into_iter().fold(CpuSet::new(), |all, cpus| all.union(cpus));
    let mut others: Vec<String> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.name != fast.name) {
        let (near, apart) = match with_l3.is_empty() {
            true => (kind.cpus.clone(), CpuSet::new()),
            false => (kind.cpus.and(&with_l3), kind.cpus.minus(&with_l3)),
        };
        for (cpus, what) in [(near, ""), (apart, word!(" without L3"))] {
            if !cpus.is_empty() {
                others.push(format!("{}{what} {cpus}", kind.name));
            }
        }
    }
    let fast_cpus = fast.cpus.named();
    let title = match &others[..] {
        [] => return None,
        [one] => say!("Two kinds of core: for performance {fast_cpus} (others: {one})"),
        all => say!(
            "{n} kinds of core: for performance {fast_cpus} (others: {all})",
            n = all.len() + 1,
            all = all.join(", ")
        ),
    };
    Some(Ranking {
        fast: fast.cpus.clone(),
        title,
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
        title: say!(
            "The CPUs' capacity differs, by the kernel, and is highest on {fast}",
            fast = facts.cpus.extent(&fast)
        ),
        fast,
        path: format!("{ROOT}/cpu*/cpu_capacity"),
        says,
        confidence: Confidence::High,
    })
}

fn base(facts: &Snapshot) -> Option<Ranking> {
    let policies = &facts.freq.policies;
    let groups = ranked(&policies.by_cpu(&policies.base_khz))?;
    let fast = groups.first()?.1.clone();
    let says = list(&groups, show_khz);
    Some(Ranking {
        title: say!(
            "The base frequency differs between CPUs, and is highest on {fast}",
            fast = facts.cpus.extent(&fast)
        ),
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
    let extent = facts.cpus.extent(&fast);
    Some(Ranking {
        title: match path.ends_with("prefcore_ranking") {
            true => say!("The processor prefers some cores, first of all {extent}"),
            false => say!("The highest frequency differs between CPUs, and is highest on {extent}"),
        },
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
        // Where turbo is on in some policies only, the frequencies say that, and rule.turbo-off has the finding.
        let boost = &facts.freq.policies.is_boost_on;
        if boost.known().any(|(_, on)| *on) && boost.known().any(|(_, on)| !*on) && facts.topology.kinds.is_empty() {
            return Answer::no(word!("turbo is off in some policies, and frequencies differ with it"));
        }
        let Some(ranking) =
            kinds(facts).or_else(|| capacities(facts)).or_else(|| base(facts)).or_else(|| favoured(facts))
        else {
            let policies = &facts.freq.policies;
            let told = [&policies.base_khz, &policies.hardware_max_khz, &facts.freq.cppc.highest_perf];
            if told.iter().all(|column| column.is_unknown()) && facts.topology.capacity.is_unknown() {
                return Answer::cannot_tell(
                    word!("no file tells how fast each CPU may be"),
                    word!("wakewatt inspect freq; wakewatt measure frequency on several CPUs"),
                );
            }
            return Answer::no(word!("all CPUs are alike in what the files tell"));
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
                .ends_with("the base frequency differs between cpus, and is highest on cpu 1 only")
        );
        assert!(ask(&UnequalCores, &(base + hybrid)).contains("two kinds of core: for performance cpu 0"));
        let turbo = policies("cpuinfo_max_freq", ["5000000", "4800000"]);
        assert!(ask(&UnequalCores, &turbo).ends_with("and is highest on cpu 0 only"));
        assert!(ask(&UnequalCores, &policies("cpuinfo_max_freq", ["5", "5"])).starts_with("no: all CPUs are alike"));
        let arm =
            format!("//- {ROOT}/online\n0-1\n//- {ROOT}/cpu0/cpu_capacity\n400\n//- {ROOT}/cpu1/cpu_capacity\n1024\n");
        assert!(ask(&UnequalCores, &arm).ends_with("by the kernel, and is highest on cpu 1 only"));
        assert!(ask(&UnequalCores, "").starts_with("cannot tell"));
        // Small cores outside the L3 are a third kind.
        let cache = |cpu: u32| {
            let at = format!("//- {ROOT}/cpu{cpu}/cache/index3");
            format!("{at}/level\n3\n{at}/type\nUnified\n{at}/shared_cpu_list\n0-1\n")
        };
        let three = format!("//- {ROOT}/present\n0-2\n//- {ROOT}/online\n0-2\n")
            + &cache(0)
            + &cache(1)
            + "//- /sys/devices/cpu_core/cpus\n0\n//- /sys/devices/cpu_atom/cpus\n1-2\n";
        assert!(
            ask(&UnequalCores, &three)
                .ends_with("3 kinds of core: for performance cpu 0 (others: atom 1, atom without l3 2)"),
            "{}",
            ask(&UnequalCores, &three)
        );
    }
}
