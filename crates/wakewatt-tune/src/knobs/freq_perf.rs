//! intel_pstate's limits for the whole machine, in percent of the highest turbo: `intel_pstate/{min,max}_perf_pct`.
//!
//! They count beside each policy's own limits; the tighter wins. The kernel never refuses a number, it clamps: a maximum
//! to the minimum, a minimum to the maximum and to the lowest ratio of the hardware. So of two that move together the one
//! that makes room goes first. With the boot parameter `intel_pstate=per_cpu_perf_limits` they are absent; turning turbo
//! off lowers the minimum for good. Source: admin-guide/pm/intel_pstate.rst.

use super::one_file;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::Then;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::{say, word};

/// One of the two.
pub struct FreqPerf {
    about: &'static About,
    file: &'static str,
}

const COMMON: About = About {
    id: "freq.perf.max",
    title: "highest performance, of all CPUs",
    unit: "percent of the highest turbo frequency",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Limits,
    reversible: Reversible::Exactly,
    price: Price { up: "more watts under load", down: "less speed, fewer watts" },
    risk: "the kernel clamps it to the other limit without a word",
    overlaps: &["frequency limits"],
    moves: &["freq.min", "freq.max"],
    source: "Documentation/admin-guide/pm/intel_pstate.rst (Global Attributes)",
};

/// `freq.perf.max`.
pub static MAX: FreqPerf = FreqPerf { about: &COMMON, file: "max_perf_pct" };

/// `freq.perf.min`.
pub static MIN: FreqPerf = FreqPerf {
    about: &About {
        id: "freq.perf.min",
        title: "lowest performance, of all CPUs",
        price: Price { up: "more watts at low load, no slow start", down: "fewer watts at low load, a slow start" },
        ..COMMON
    },
    file: "min_perf_pct",
};

impl Knob for FreqPerf {
    fn about(&self) -> &'static About {
        self.about
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let because = word!("intel_pstate does not run, or has intel_pstate=per_cpu_perf_limits");
        let path = format!("{ROOT}/intel_pstate/{}", self.file);
        one_file::machine(host, self.about.id, &path, Valid::Number { min: 1, max: 100 }, because)
    }
    fn refusal(&self, _: &Host<'_>, then: &Then<'_>, site: &Site, to: &str) -> Option<String> {
        let folder = site.path.rsplit_once('/')?.0;
        let asked: u64 = to.parse().ok()?;
        let is_max = self.file == MAX.file;
        let other = if is_max { &MIN } else { &MAX };
        let number = then.number(&format!("{folder}/{}", other.file))?;
        let is_crossed = if is_max { asked < number } else { asked > number };
        is_crossed.then(|| say!("the kernel cuts it to {} ({number})", other.about.id))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(_), Ok(percent)) => Kept::Legally(say!("the kernel clamped it to {percent}")),
            _ => Kept::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn percent_from_one_to_a_hundred_clamped_legally() {
        let tree = Tree::from_text(&format!("//- {ROOT}/intel_pstate/max_perf_pct\n100\n"));
        let host = Host::read(&tree);
        let site = MAX.sites(&host).unwrap().remove(0);
        assert_eq!(MAX.encode(&host, &site, "60").unwrap(), "60");
        assert!(MAX.encode(&host, &site, "101").is_err());
        assert!(MIN.sites(&host).unwrap_err().contains("per_cpu_perf_limits"));
        assert_eq!(MIN.kept("60", "50"), Kept::Legally("the kernel clamped it to 50".into()));
    }
}
