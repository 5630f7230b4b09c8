//! Work on few packages or cores, so that the others sleep deeply: what `sched_mc_power_savings` did until kernel 3.4.
//!
//! The word says where work stays: `packages:1` (the lowest numbers), `half` (half of the cores, whole cores, package by
//! package) or `cpus:0-7`; the rest is put into an isolated cpuset partition that nobody is in, so no group may use it and
//! nothing is balanced onto it. Gained: whole packages may reach their deep states. Lost: half the caches, half the memory
//! channels near by, turbo headroom per busy core; queues grow. What stays on the emptied CPUs: per-CPU kernel threads,
//! timers set there, interrupts (see `irq.affinity`). Needs cgroup 2 with the cpuset controller and kernel 6.1. A group
//! beside it that names an emptied CPU in its own `cpuset.cpus` (AllowedCPUs=, kubepods) makes the partition invalid on most
//! kernels; then nothing stays changed and the kernel's words are shown. Source: admin-guide/cgroup-v2.rst, Cpuset.

use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_host::sink::partition;
use wakewatt_words::{say, word};

/// `place.consolidate`.
pub struct PlaceConsolidate;

const ROOT: &str = "/sys/fs/cgroup";
const GROUP: &str = "wakewatt-parked";
const WORDS: &str = "off, packages:1, half, or cpus:0-7 (the CPUs that keep working)";

const ABOUT: About = About {
    id: "place.consolidate",
    title: "work on few packages or cores",
    unit: WORDS,
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Placement,
    reversible: Reversible::Exactly,
    price: Price {
        up: "the emptied packages sleep; the busy ones queue more, clock lower and reach far memory",
        down: "work spreads again: more watts, shorter queues",
    },
    risk: "affinities of tasks are narrowed and some programs size their thread pools by it; a group beside it with a cpuset of its own may prevent it",
    overlaps: &["CPU affinity", "CPU quotas"],
    moves: &[],
    source: "Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.partition)",
};

/// The CPUs where work stays.
fn stays(host: &Host<'_>, word: &str) -> Result<CpuSet, String> {
    let online = host.online();
    let packages: Vec<CpuSet> = host.facts.topology.packages().into_iter().map(|(_, cpus)| cpus.and(&online)).collect();
    if let Some(list) = word.strip_prefix("cpus:") {
        let cpus = CpuSet::parse(list)?;
        let strange = cpus.minus(&online);
        return if strange.is_empty() { Ok(cpus) } else { Err(say!("CPUs {strange} do not run")) };
    }
    if let Some(n) = word.strip_prefix("packages:") {
        return match n.parse::<usize>() {
            Ok(n) if (1..packages.len()).contains(&n) => Ok(packages.iter().take(n).flat_map(CpuSet::iter).collect()),
            _ if packages.len() < 2 => Err(say!("this host has one package; half takes half of its cores")),
            _ => Err(say!("{n:?} is no number from 1 to {}", packages.len() - 1)),
        };
    }
    if word == "half" {
        let mut cores: Vec<CpuSet> = host.facts.topology.cores().iter().map(|core| core.and(&online)).collect();
        cores.retain(|core| !core.is_empty());
        let package_of = |core: &CpuSet| packages.iter().position(|p| !p.and(core).is_empty());
        cores.arrange_by_key(|core| (package_of(core), core.first()));
        let n = cores.len().div_ceil(2);
        return Ok(cores.iter().take(n).flat_map(CpuSet::iter).collect());
    }
    Err(say!("{word:?} is none of {WORDS}"))
}

/// As the sink reads it: the parked CPUs, nothing, or what is wrong with them.
fn now(host: &Host<'_>) -> String {
    let group = format!("{ROOT}/{GROUP}");
    let [cpus, state] = ["cpuset.cpus", "cpuset.cpus.partition"].map(|file| host.text(&format!("{group}/{file}")));
    // Every group has this file, whether its parent hands the controller on or not.
    let is_there = cpus.is_some() || state.is_some() || host.has(&format!("{group}/cgroup.procs"));
    if is_there { partition::value(cpus.as_deref(), state.as_deref()) } else { String::new() }
}

impl Knob for PlaceConsolidate {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let controllers = host.text(&format!("{ROOT}/cgroup.controllers"));
        if !controllers.is_some_and(|text| text.split_whitespace().any(|word| word == "cpuset")) {
            return Err(super::one_file::missing(
                host,
                &format!("{ROOT}/cgroup.controllers"),
                word!("needs cgroup 2 with the cpuset controller; cgroup 1 may hold it instead"),
            ));
        }
        Ok(vec![Site {
            name: ABOUT.id.into(),
            place: "machine".into(),
            cpus: host.online(),
            path: format!("partition:{ROOT}/{GROUP}"),
            now: Some(now(host)),
            unread: None,
            valid: Valid::Text(WORDS.into()),
            refusal: None,
            kind: None,
        }])
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let word = word.trim();
        if word == "off" {
            return Ok(String::new());
        }
        let stays = stays(host, word).map_err(|why| format!("{}: {why}", site.name))?;
        let parked = host.online().minus(&stays);
        match (stays.is_empty(), parked.is_empty()) {
            (true, _) => Err(say!("{}: {word} leaves no CPU to work on", site.name)),
            (_, true) => Err(say!("{}: {word} empties no CPU; say off to end it", site.name)),
            _ => Ok(parked.to_string()),
        }
    }
    fn decode(&self, site: &Site, text: &str) -> String {
        let (list, state) = text.split_once(' ').map_or((text, None), |(list, state)| (list, Some(state)));
        match (CpuSet::parse(list), state) {
            (Ok(parked), None) if parked.is_empty() => "off".into(),
            (Ok(parked), None) => format!("cpus:{}", site.cpus.minus(&parked)),
            (Ok(parked), Some(state)) => format!("cpus:{} ({state}: empties nothing)", site.cpus.minus(&parked)),
            (Err(_), _) if text == "empty" => "off (an empty group is left)".into(),
            (Err(_), _) => text.into(),
        }
    }
    fn rank(&self, _: &str, text: &str, _: &str) -> Option<u64> {
        Some(u64::from(!text.is_empty()))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (CpuSet::parse(requested), CpuSet::parse(read_back)) {
            (Ok(asked), Ok(now)) if asked == now => Kept::Exactly,
            _ => Kept::Not,
        }
    }
    fn is_ours(&self, ours: &str, now: &str) -> bool {
        // The group is ours by its name: cut short while it was made, or made useless by others, it is still to go.
        let is_of = |ours: &str| now.split_once(' ').is_some_and(|(cpus, _)| self.kept(ours, cpus) == Kept::Exactly);
        now == "empty" || is_of(ours)
    }
    fn effective(&self, host: &Host<'_>, _: &Site) -> Option<String> {
        let state = host.text(&format!("{ROOT}/{GROUP}/cpuset.cpus.partition"))?;
        (state != "isolated").then(|| say!("the kernel calls the partition {state}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    /// Two packages of two cores with two siblings each, numbered as most firmware does: siblings are 4 apart.
    fn tree(more: &str) -> Tree {
        let cpu = |n: u32| {
            let at = format!("//- /sys/devices/system/cpu/cpu{n}/topology");
            let core = n % 4;
            format!("{at}/physical_package_id\n{}\n{at}/core_cpus_list\n{core},{}\n", core / 2, core + 4)
        };
        let cpus: String = (0..8).map(cpu).collect();
        Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0-7\n//- /sys/devices/system/cpu/present\n0-7\n//- {ROOT}/cgroup.controllers\ncpuset cpu io\n{cpus}{more}"
        ))
    }

    #[test]
    fn the_word_says_where_work_stays_the_text_what_is_emptied() {
        let tree = tree("");
        let host = Host::read(&tree);
        let site = PlaceConsolidate.sites(&host).unwrap().remove(0);
        assert_eq!((site.now.as_deref(), site.path.as_str()), (Some(""), "partition:/sys/fs/cgroup/wakewatt-parked"));
        let said = |word: &str| PlaceConsolidate.encode(&host, &site, word);
        assert_eq!(said("packages:1").unwrap(), "2-3,6-7");
        assert_eq!(said("half").unwrap(), "2-3,6-7");
        assert_eq!(said("cpus:0-6").unwrap(), "7");
        assert_eq!(said("off").unwrap(), "");
        for wrong in ["packages:2", "packages:0", "cpus:", "cpus:0-7", "cpus:9", "all"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
        assert_eq!(PlaceConsolidate.decode(&site, "2-3,6-7"), "cpus:0-1,4-5");
        assert_eq!(PlaceConsolidate.decode(&site, ""), "off");
        assert_eq!(PlaceConsolidate.decode(&site, "2-3 invalid"), "cpus:0-1,4-7 (invalid: empties nothing)");
        assert_eq!(PlaceConsolidate.decode(&site, "empty"), "off (an empty group is left)");
    }

    #[test]
    fn a_partition_the_kernel_calls_invalid_is_shown() {
        let at = format!("//- {ROOT}/{GROUP}");
        let tree = tree(&format!(
            "{at}/cpuset.cpus\n6-7\n{at}/cpuset.cpus.partition\nisolated invalid (Cpu list not exclusive)\n"
        ));
        let host = Host::read(&tree);
        let site = PlaceConsolidate.sites(&host).unwrap().remove(0);
        assert_eq!(site.now.as_deref(), Some("6-7 invalid"));
        // It does not hold, and undo may take it away all the same.
        assert_eq!(PlaceConsolidate.kept("6-7", "6-7 invalid"), Kept::Not);
        let is_ours = |now| PlaceConsolidate.is_ours("6-7", now);
        assert!(is_ours("6-7 invalid") && is_ours("6-7 member") && is_ours("empty") && !is_ours("4-5"));
        assert!(PlaceConsolidate.effective(&host, &site).unwrap().contains("not exclusive"));
        assert!(PlaceConsolidate.sites(&Host::read(&Tree::default())).unwrap_err().contains("cgroup 2"));
    }
}
