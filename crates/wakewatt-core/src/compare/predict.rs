//! Predictions: what a host's settings together allow, as one number per host.
//!
//! Each is computed from claims and limits only, so it is a model. A prediction is made only where every host gives
//! the facts for it.

use super::reach::{self, Reach};
use super::{Difference, Predicted};
use crate::cpuset::CpuSet;
use crate::enterable::{self, Enterable};
use crate::facts::Snapshot;
use crate::facts::freq::policies::is_autonomous;
use crate::facts::idle::source::TableSource;
use crate::facts::msr::package_limit::PackageLimit;
use crate::units::{show_ns, three_digits};
use wakewatt_words::{say, told, word};

/// One prediction.
pub struct Prediction {
    /// Id behind `predicted.`.
    pub id: &'static str,
    /// Topic it belongs to.
    pub topic: &'static str,
    /// For people.
    pub label: &'static str,
    /// Computes it: all hosts, or none.
    pub predict: fn(&[Snapshot]) -> Option<Answer>,
}

/// The value on each host, and the effect.
type Answer = (Vec<String>, Predicted);

/// The list.
pub const PREDICTIONS: &[Prediction] = &[
    Prediction {
        id: "deepest_idle",
        topic: "idle",
        label: "deepest idle state the settings allow",
        predict: deepest_idle,
    },
    Prediction { id: "frequency_limit", topic: "freq", label: "upper frequency limit", predict: frequency_limit },
    Prediction { id: "governor", topic: "freq", label: "frequency governor", predict: governor },
    Prediction {
        id: "memory_nodes",
        topic: "memory",
        label: "share of remote memory with random placement",
        predict: remote_share,
    },
    Prediction {
        id: "random_placement",
        topic: "memory",
        label: "random memory placement against local",
        predict: random_placement,
    },
    Prediction { id: "memory_speed", topic: "dimms", label: "configured memory speed", predict: memory_speed },
    Prediction { id: "coalescing", topic: "network", label: "longest receive interrupt delay", predict: coalescing },
];

/// What is predicted, in words that are looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    PREDICTIONS.iter().map(|p| p.label)
}

/// All predictions in which the hosts differ.
pub(super) fn all(hosts: &[Snapshot]) -> Vec<Difference> {
    let one = |p: &Prediction| {
        let (values, predicted) = (p.predict)(hosts)?;
        let is_same = values.windows(2).all(|w| w[0] == w[1]);
        (!is_same).then(|| Difference {
            id: format!("predicted.{}", p.id),
            topic: p.topic.into(),
            label: told(p.label).into(),
            values,
            predicted: Some(predicted),
        })
    };
    PREDICTIONS.iter().filter_map(one).collect()
}

/// The deepest state some CPU can enter; none in it where every CPU spins.
pub fn deepest_state(host: &Snapshot) -> Option<Option<(String, u64)>> {
    let all = enterable::of(host);
    let is_told = |group: &Enterable| !group.states.is_empty() || group.spins().is_some();
    all.iter().any(is_told).then(|| enterable::deepest(&all).map(|claim| (claim.name, claim.exit_latency_ns)))
}

/// What a host's CPUs go down to: the deepest state, the CPUs whose cores enter it where not all do, and what the
/// shallowest of them go down to.
struct Depth {
    deepest: Option<(String, u64)>,
    only_on: Option<CpuSet>,
    least_ns: u64,
}

impl Depth {
    fn of(host: &Snapshot) -> Option<Depth> {
        let deepest = deepest_state(host)?;
        let all = enterable::of(host);
        let ns = |group: &Enterable| group.deepest_of_core().and_then(|row| row.exit_latency_ns).unwrap_or(0);
        let most = deepest.as_ref().map_or(0, |(_, ns)| *ns);
        let reaching = all.iter().filter(|group| ns(group) == most);
        let reaching = reaching.fold(CpuSet::new(), |set, group| set.union(&group.cpus));
        let is_all = all.iter().all(|group| ns(group) == most);
        let least_ns = all.iter().map(ns).min().unwrap_or(most);
        Some(Depth { deepest, only_on: (!is_all).then_some(reaching), least_ns })
    }
    fn shown(&self, host: &Snapshot) -> String {
        let state =
            self.deepest.as_ref().map_or(word!("none").into(), |(name, ns)| format!("{name}, {}", show_ns(*ns)));
        match &self.only_on {
            Some(cpus) => say!("{state} on {}", host.cpus.extent(cpus)),
            None => state,
        }
    }
}

fn deepest_idle(hosts: &[Snapshot]) -> Option<Answer> {
    let depths: Vec<Depth> = hosts.iter().map(Depth::of).collect::<Option<_>>()?;
    let ns: Vec<u64> = depths.iter().map(|depth| depth.deepest.as_ref().map_or(0, |(_, ns)| *ns)).collect();
    let spread = ns.iter().max()? - ns.iter().min()?;
    // The same state, on more CPUs here than there.
    let is_one_depth = spread == 0;
    let spread = if is_one_depth { ns[0] - depths.iter().map(|depth| depth.least_ns).min()? } else { spread };
    let values = depths.iter().zip(hosts).map(|(depth, host)| depth.shown(host)).collect();
    // A number that somebody measured and a number that a kernel made up differ, and nothing follows from that. One and
    // the same table, limited on one host, is compared: whatever a state costs, one host may pay it.
    let claims = |h: &Snapshot| -> Vec<(String, Option<u64>)> {
        let tables = h.idle.tables();
        tables.iter().flat_map(|(_, rows)| rows).map(|row| (row.name.clone(), row.exit_latency_ns)).collect()
    };
    let is_one_table = hosts.windows(2).all(|pair| claims(&pair[0]) == claims(&pair[1]));
    let sources: Vec<_> = hosts.iter().map(|h| h.idle.source.clone()).collect();
    let is_placeholder = |s: &Option<TableSource>| s.as_ref().is_some_and(|s| !s.is_believable());
    if !is_one_table && sources.iter().any(is_placeholder) {
        let words =
            |s: &Option<TableSource>| s.as_ref().map_or(word!("not known where from").into(), TableSource::words);
        let mut all: Vec<String> = sources.iter().map(words).collect();
        all.dedup();
        let text = say!(
            "no size: claims of different worth or placeholders ({}); wakewatt measure idle on each tells",
            all.join("; ")
        );
        return Some((values, Predicted { latency_ns: None, speed_ratio: None, text }));
    }
    let mut text = match is_one_depth {
        true => say!(
            "a wake-up may take up to {} longer on the CPUs that enter the deepest state (claimed exit latency)",
            show_ns(spread)
        ),
        false => say!("a wake-up may take up to {} longer (claimed exit latency)", show_ns(spread)),
    };
    let limits: Vec<Option<PackageLimit>> = hosts.iter().map(|h| h.msr.package_limit.uniform().copied()).collect();
    let allows: Option<Vec<bool>> = limits.iter().map(|limit| limit.and_then(PackageLimit::allows_pc6)).collect();
    if allows.is_some_and(|allows| allows.windows(2).any(|pair| pair[0] != pair[1])) {
        let words: Vec<String> = limits.iter().flatten().map(ToString::to_string).collect();
        text +=
            &say!("; the package C-state limit differs ({}), and the driver's claim can follow it", words.join(", "));
    }
    Some((values, Predicted { latency_ns: Some(spread), speed_ratio: None, text }))
}

fn frequency_limit(hosts: &[Snapshot]) -> Option<Answer> {
    let limits: Vec<(Reach, Reach)> = hosts.iter().map(reach::of).collect::<Option<_>>()?;
    let shown = |(low, high): &(Reach, Reach)| if low == high { high.to_string() } else { say!("{low} to {high}") };
    let values = limits.iter().map(shown).collect();
    // Where the fastest CPUs are alike, the slowest differ.
    let is_one_top = limits.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let own = |(low, high): &(Reach, Reach)| if is_one_top { low.khz() } else { high.khz() };
    let Some(khz) = limits.iter().map(own).collect::<Option<Vec<u64>>>() else {
        let text =
            word!("no size: the limit of acpi-cpufreq leaves boost out, and nothing here says how far boost goes");
        return Some((values, Predicted { latency_ns: None, speed_ratio: None, text: text.into() }));
    };
    let as_float: Vec<f64> = khz.iter().map(|khz| *khz as f64).collect();
    let what = match is_one_top {
        true => word!("clock of the slowest CPUs, where work waits for the core and not for memory"),
        false => word!("clock of few busy cores, where work waits for the core and not for memory"),
    };
    let (_, predicted) = speed(&as_float, |_| String::new(), true, what)?;
    Some((values, predicted))
}

/// A software governor against the hardware or a clock that is kept up; one software governor against another is a setting
/// like others.
fn governor(hosts: &[Snapshot]) -> Option<Answer> {
    let of = |host: &Snapshot| {
        let (governors, policies) = (host.freq.governors(), &host.freq.policies);
        let driver = policies.driver.uniform()?;
        governors.uniform().map(|governor| (governor.clone(), driver.clone()))
    };
    let all: Vec<(String, String)> = hosts.iter().map(of).collect::<Option<_>>()?;
    let is_late = |(governor, driver): &(String, String)| !is_autonomous(driver) && governor != "performance";
    let n_late = all.iter().filter(|host| is_late(host)).count();
    if n_late == 0 || n_late == all.len() {
        return None;
    }
    let mut late: Vec<&str> = all.iter().filter(|host| is_late(host)).map(|(governor, _)| governor.as_str()).collect();
    late.dedup();
    let text = match late == ["powersave"] {
        true => word!("powersave holds the lowest frequency under this driver").to_string(),
        false => say!(
            "no size: {} raises the clock after the load has come; wakewatt doctor turns the governor and measures",
            late.join(", ")
        ),
    };
    let values = all.iter().map(|(governor, driver)| format!("{governor} ({driver})")).collect();
    Some((values, Predicted { latency_ns: None, speed_ratio: None, text }))
}

/// With distances unknown, the number of nodes alone says how much lands elsewhere; where sockets are divided (SNC, NPS)
/// part of that is another part of the same socket, which is next door.
fn remote_share(hosts: &[Snapshot]) -> Option<Answer> {
    let shares: Vec<f64> = hosts.iter().map(|h| h.memory.random_remote_ratio()).collect::<Option<_>>()?;
    let afar: Option<Vec<f64>> = hosts.iter().map(other_socket_share).collect();
    let percent = |ratio: f64| format!("{} %", three_digits(ratio * 100.0));
    let spread = |all: &[f64]| {
        let (low, high) = (all.iter().copied().fold(1.0, f64::min), all.iter().copied().fold(0.0, f64::max));
        high - low
    };
    let value = |(at, share): (usize, &f64)| match afar.as_ref().map(|afar| afar[at]) {
        Some(afar) if share - afar > 0.001 => {
            say!("{}, {} of it within the same socket", percent(*share), percent(share - afar))
        }
        _ => percent(*share),
    };
    let values = shares.iter().enumerate().map(value).collect();
    let text = match &afar {
        Some(afar) if spread(afar) < 0.001 => {
            word!("sockets are divided into memory nodes differently: the share on another socket is the same")
                .to_string()
        }
        Some(afar) => say!("{} more of randomly placed memory is on another socket", percent(spread(afar))),
        None => say!("{} more of randomly placed memory is on another node", percent(spread(&shares))),
    };
    // Its cost in time needs the distances or a measured matrix: no size is claimed.
    Some((values, Predicted { latency_ns: None, speed_ratio: None, text }))
}

/// The share of randomly placed memory that lies on another socket, mean over nodes with memory and CPUs; none unless each
/// of them has CPUs of one package. Nodes without CPUs hold nothing that nobody put there.
fn other_socket_share(host: &Snapshot) -> Option<f64> {
    let packages = host.topology.packages();
    let of_node = |cpus: &CpuSet| {
        let first = cpus.first()?;
        let (id, all) = packages.iter().find(|(_, all)| all.contains(first))?;
        cpus.minus(all).is_empty().then_some(*id)
    };
    let nodes = host.memory.nodes.iter().filter(|node| host.memory.is_careless_home(node));
    let homes: Vec<u32> = nodes.map(|node| of_node(node.cpus.get()?)).collect::<Option<_>>()?;
    let n = homes.len() as f64;
    let afar = homes.iter().map(|a| homes.iter().filter(|b| *b != a).count() as f64 / n);
    (!homes.is_empty()).then(|| afar.sum::<f64>() / n)
}

fn random_placement(hosts: &[Snapshot]) -> Option<Answer> {
    let costs: Vec<f64> = hosts.iter().map(|h| h.memory.random_placement_cost()).collect::<Option<_>>()?;
    speed(
        &costs,
        |c| format!("{}x", three_digits(c)),
        false,
        word!("memory access with random placement, from the node distances"),
    )
}

fn memory_speed(hosts: &[Snapshot]) -> Option<Answer> {
    let slowest = |h: &Snapshot| h.dimms.populated().filter_map(|d| d.configured_mts).min();
    let speeds: Vec<f64> = hosts.iter().map(|h| slowest(h).map(|s| s as f64)).collect::<Option<_>>()?;
    speed(&speeds, |s| format!("{s} MT/s"), true, word!("peak memory bandwidth per channel"))
}

fn coalescing(hosts: &[Snapshot]) -> Option<Answer> {
    let longest = |h: &Snapshot| h.network.interfaces.iter().filter_map(|i| i.coalesce.get()?.rx_ns).max();
    let ns: Vec<u64> = hosts.iter().map(longest).collect::<Option<_>>()?;
    let spread = ns.iter().max()? - ns.iter().min()?;
    let text = say!("a packet may wait up to {} longer for its interrupt", show_ns(spread));
    Some((ns.iter().map(|n| show_ns(*n)).collect(), Predicted { latency_ns: Some(spread), speed_ratio: None, text }))
}

/// A quantity that speeds up or slows down in proportion.
fn speed(values: &[f64], show: impl Fn(f64) -> String, is_more_better: bool, what: &str) -> Option<Answer> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    if !(low > 0.0 && high.is_finite()) {
        return None;
    }
    let ratio = high / low - 1.0;
    let percent = three_digits(ratio * 100.0);
    let text = match is_more_better {
        true => say!("{what}: the better host has {percent} % more"),
        false => say!("{what}: the better host has {percent} % less"),
    };
    Some((values.iter().map(|v| show(*v)).collect(), Predicted { latency_ns: None, speed_ratio: Some(ratio), text }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    /// Two packages of four CPUs, with this many memory nodes each.
    fn host(nodes_per_package: u32) -> Snapshot {
        let (cpu, node) = ("//- /sys/devices/system/cpu", "//- /sys/devices/system/node");
        let mut text = format!("{cpu}/online\n0-7\n{node}/online\n0-{}\n", 2 * nodes_per_package - 1);
        for n in 0..8 {
            text += &format!("{cpu}/cpu{n}/topology/physical_package_id\n{}\n", n / 4);
        }
        let width = 4 / nodes_per_package;
        for n in 0..2 * nodes_per_package {
            text += &format!("{node}/node{n}/cpulist\n{}-{}\n", n * width, n * width + width - 1);
        }
        Snapshot::read(&Tree::from_text(&text), |topic| topic == "topology" || topic == "memory")
    }

    /// The recorded host with these files besides.
    fn recorded(more: &str) -> Snapshot {
        let text = include_str!("../../../../fixtures/hosts/icx2s0.host");
        let mut tree = crate::record::host_file::read(text, "icx2s0").unwrap();
        tree.files.extend(Tree::from_text(more).files);
        Snapshot::read(&tree, |topic| ["cpus", "topology", "idle", "qos", "freq"].contains(&topic))
    }

    #[test]
    fn uneven_values_have_an_effect_too() {
        let cpu = "//- /sys/devices/system/cpu";
        // Both threads of a core are on one list there; CPUs 0 to 3 and their siblings may not enter C6.
        let host = recorded("");
        let few: Vec<u32> =
            (0..4).flat_map(|cpu| host.topology.siblings_of(cpu).unwrap().iter().collect::<Vec<_>>()).collect();
        let off: String = few.iter().map(|n| format!("{cpu}/cpu{n}/cpuidle/state3/disable\n1\n")).collect();
        let (values, predicted) = deepest_idle(&[recorded(""), recorded(&off)]).unwrap();
        assert!(!values[0].contains(" of ") && values[1].contains(" of "), "{values:?}");
        assert!(predicted.latency_ns.unwrap() > 100_000 && predicted.text.contains("on the CPUs that enter"));
        let low: String = few.iter().map(|n| format!("{cpu}/cpufreq/policy{n}/scaling_max_freq\n1200000\n")).collect();
        let (values, predicted) = frequency_limit(&[recorded(""), recorded(&low)]).unwrap();
        assert!(
            values[1].starts_with("1.2GHz to ") && predicted.text.starts_with("clock of the slowest"),
            "{values:?}"
        );
        assert!(predicted.speed_ratio.unwrap() > 1.0);
    }

    #[test]
    fn memory_without_cpus_is_nobodys_share() {
        let mut text = String::new();
        for n in 0..8 {
            text += &format!("//- /sys/devices/system/cpu/cpu{n}/topology/physical_package_id\n{}\n", n / 4);
        }
        let node = "//- /sys/devices/system/node";
        let of = |more: &str, online: &str| {
            let text = format!(
                "//- /sys/devices/system/cpu/online\n0-7\n{text}{node}/online\n{online}\n{node}/node0/cpulist\n0-3\n{node}/node1/cpulist\n4-7\n{more}"
            );
            Snapshot::read(&Tree::from_text(&text), |topic| topic == "topology" || topic == "memory")
        };
        let with_cxl = of(&format!("{node}/node2/cpulist\n\n{node}/has_memory\n0-2\n"), "0-2");
        assert_eq!(with_cxl.memory.random_remote_ratio(), Some(0.5));
        let (values, predicted) = remote_share(&[of("", "0-1"), with_cxl]).unwrap();
        assert_eq!(values, ["50 %", "50 %"], "{}", predicted.text);
        let knl = crate::record::host_file::read(include_str!("../../../../fixtures/hosts/knl0.host"), "knl0").unwrap();
        let knl = Snapshot::read(&knl, |topic| topic == "topology" || topic == "memory");
        assert_eq!(knl.memory.random_remote_ratio(), Some(0.0), "its second node is MCDRAM");
    }

    #[test]
    fn the_other_half_of_a_socket_is_not_another_socket() {
        let (values, predicted) = remote_share(&[host(1), host(2)]).unwrap();
        assert_eq!(values, ["50 %", "75 %, 25 % of it within the same socket"]);
        assert!(predicted.text.contains("the share on another socket is the same"), "{}", predicted.text);
        let mut alone = host(1);
        alone.topology = Default::default();
        let (_, predicted) = remote_share(&[alone, host(2)]).unwrap();
        assert_eq!(predicted.text, "25 % more of randomly placed memory is on another node", "packages not known");
    }
}
