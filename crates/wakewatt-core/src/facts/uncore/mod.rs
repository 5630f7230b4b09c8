//! Uncore frequency: the clock of the mesh, the L3 and the memory path. An idle host that lets it drop answers slowly.
//!
//! `/sys/devices/system/cpu/intel_uncore_frequency` (Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst):
//! `package_PP_die_DD` for the whole die, and on TPMI parts (Xeon 6) `uncoreNN` per cluster, where the die's folder
//! writes through to all of them. `initial_*` is what firmware chose, the way back. `current_freq_khz` is root's. `elc_*`
//! is efficiency latency control: below the low utilisation threshold the clock falls to the floor. `agent_types` says what
//! a cluster clocks: on Xeon 6 the compute dies have cores, L3 and memory, and the I/O dies of the same package none of
//! them, with limits of their own. Which number a die gets says nothing.

mod kinds;

pub use kinds::DomainKind;

use super::{Cpus, Domain, cpus::ROOT};
use crate::fact::{Fact, Gap, parse};
use crate::folder::Folder;
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::{say, word};

/// All uncore domains.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uncore {
    /// The domains by the name of their folder.
    pub domains: Vec<UncoreDomain>,
    /// Why there is none, when there is none.
    pub none_because: Option<Gap>,
}

/// One die or cluster.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncoreDomain {
    /// Its folder: `package_00_die_00`, `uncore03`.
    pub name: String,
    /// Number of the package (socket).
    pub package_id: Fact<u32>,
    /// Die or TPMI power domain.
    pub domain_id: Fact<u32>,
    /// Number of the cluster within the die.
    pub fabric_cluster_id: Fact<u32>,
    /// What the cluster clocks: core, cache, memory, io.
    pub agent_types: Fact<Vec<String>>,
    /// Lower limit in force.
    pub min_khz: Fact<u64>,
    /// Upper limit in force.
    pub max_khz: Fact<u64>,
    /// Lower limit at boot.
    pub initial_min_khz: Fact<u64>,
    /// Upper limit at boot.
    pub initial_max_khz: Fact<u64>,
    /// Present frequency; only root may read it.
    pub current_khz: Fact<u64>,
    /// Efficiency latency control: the clock below the low threshold.
    pub elc_floor_khz: Fact<u64>,
    /// Utilisation below which the floor holds.
    pub elc_low_threshold_ratio: Fact<f64>,
    /// Utilisation above which the clock rises at once.
    pub elc_high_threshold_ratio: Fact<f64>,
    /// Is the high threshold in use?
    pub is_elc_high_threshold_on: Fact<bool>,
}

fn small(text: &str) -> Result<u32, String> {
    u32::try_from(parse::number(text)?).map_err(|_| "too large for an id".to_string())
}

/// `package_01_die_00` carries both ids in its name.
fn from_name(name: &str) -> Option<(u32, u32)> {
    let (package, die) = name.strip_prefix("package_")?.split_once("_die_")?;
    Some((package.parse().ok()?, die.parse().ok()?))
}

impl Domain for Uncore {
    const TITLE: &'static str = "Uncore frequency";
    const HELP: &'static str = "limits and current clock of mesh, L3 and memory path; efficiency latency control";

    fn read(src: &dyn Source, _: &Cpus) -> Uncore {
        let root = Folder::list(src, format!("{ROOT}/intel_uncore_frequency"));
        let names = root.names().iter().filter(|n| from_name(n).is_some() || n.starts_with("uncore"));
        let read = |name: &String| {
            let folder = Folder::list(src, format!("{}/{name}", root.path));
            let khz = |file: &str| folder.fact(src, file, parse::number);
            let named = from_name(name);
            UncoreDomain {
                name: name.clone(),
                package_id: named.map_or_else(|| folder.fact(src, "package_id", small), |n| Fact::Known(n.0)),
                domain_id: named.map_or_else(|| folder.fact(src, "domain_id", small), |n| Fact::Known(n.1)),
                fabric_cluster_id: folder.fact(src, "fabric_cluster_id", small),
                agent_types: folder.fact(src, "agent_types", parse::words),
                min_khz: khz("min_freq_khz"),
                max_khz: khz("max_freq_khz"),
                initial_min_khz: khz("initial_min_freq_khz"),
                initial_max_khz: khz("initial_max_freq_khz"),
                current_khz: khz("current_freq_khz"),
                elc_floor_khz: khz("elc_floor_freq_khz"),
                elc_low_threshold_ratio: folder.fact(src, "elc_low_threshold_percent", parse::percent),
                elc_high_threshold_ratio: folder.fact(src, "elc_high_threshold_percent", parse::percent),
                is_elc_high_threshold_on: folder.fact(src, "elc_high_threshold_enable", parse::flag),
            }
        };
        Uncore { domains: names.map(read).collect(), none_because: root.gap() }
    }

    fn show(&self, sheet: &mut Sheet) {
        if let Some(gap) = &self.none_because {
            sheet
                .fact("uncore", word!("uncore frequency control"), &Fact::<u64>::Gap(gap.clone()), |v| Cell::Count(*v));
        }
        for d in &self.domains {
            let name = &d.name;
            let id = |what: &str| format!("uncore.{name}.{what}");
            sheet.fact(id("agents"), say!("{name} clocks"), &d.agent_types, |v| Cell::text(v.join(" ")));
            for (what, label, fact) in [
                ("min", word!("lower limit"), &d.min_khz),
                ("max", word!("upper limit"), &d.max_khz),
                ("initial_min", word!("lower limit at boot"), &d.initial_min_khz),
                ("initial_max", word!("upper limit at boot"), &d.initial_max_khz),
                ("elc_floor", word!("efficiency floor"), &d.elc_floor_khz),
            ] {
                sheet.fact(id(what), format!("{name} {label}"), fact, |v| Cell::Khz(*v));
            }
            sheet.reading(id("current"), say!("{name} now"), &d.current_khz, |v| Cell::Khz(*v));
            for (what, label, fact) in [
                ("elc_low_threshold", word!("efficiency floor below"), &d.elc_low_threshold_ratio),
                ("elc_high_threshold", word!("full speed above"), &d.elc_high_threshold_ratio),
            ] {
                sheet.fact(id(what), format!("{name} {label}"), fact, |v| Cell::Ratio(*v));
            }
            sheet.fact(
                id("elc_high_threshold_on"),
                say!("{name} high threshold in use"),
                &d.is_elc_high_threshold_on,
                |v| Cell::Flag(*v),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::GapKind;
    use crate::source::Tree;

    #[test]
    fn die_and_cluster() {
        let tree = Tree::from_text(&format!(
            "//- {ROOT}/intel_uncore_frequency/package_01_die_00/min_freq_khz\n800000\n
             //- {ROOT}/intel_uncore_frequency/package_01_die_00/current_freq_khz!denied\n
             //- {ROOT}/intel_uncore_frequency/uncore03/package_id\n1\n
             //- {ROOT}/intel_uncore_frequency/uncore03/elc_low_threshold_percent\n10\n
             //- {ROOT}/intel_uncore_frequency/uncore03/min_freq_khz\n-\n"
        ));
        let uncore = Uncore::read(&tree, &Cpus::default());
        let [die, cluster] = &uncore.domains[..] else { panic!("two domains") };
        assert_eq!((die.package_id.get(), die.min_khz.get(), die.is_whole_die()), (Some(&1), Some(&800_000), true));
        assert_eq!(die.current_khz.gap().unwrap().kind, GapKind::Denied);
        assert_eq!((cluster.package_id.get(), cluster.elc_low_threshold_ratio.get()), (Some(&1), Some(&0.1)));
        assert_eq!(cluster.min_khz.gap().unwrap().kind, GapKind::Malformed);
        assert!(Uncore::read(&Tree::default(), &Cpus::default()).none_because.is_some());
    }
}
