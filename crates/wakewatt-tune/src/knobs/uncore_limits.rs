//! Lowest and highest uncore frequency: `intel_uncore_frequency/*/{min,max}_freq_khz`.
//!
//! The clock of mesh, L3 and memory path. An idle host lets it drop, and the first packet pays. Steps are 100MHz; the
//! kernel cuts the rest off, so such a value is refused here. The register path does not check that min is at most max,
//! so of two that move together the one that makes room goes first. `initial_*` is what firmware chose: the range offered
//! and the way back to it. EPERM where firmware keeps the register for itself. Not the same as EPB or ELC, which sway the
//! clock between these limits. Source: admin-guide/pm/intel_uncore_frequency_scaling.rst.

use super::uncore_domains;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::Then;
use crate::words::encode;
use wakewatt_core::units::show_khz;
use wakewatt_words::say;

/// One of the two.
pub struct UncoreLimit {
    about: &'static About,
    file: &'static str,
}

/// The step of the hardware.
const STEP_KHZ: u64 = 100_000;

const COMMON: About = About {
    id: "uncore.max",
    title: "highest uncore frequency",
    unit: "frequency with its unit in steps of 100MHz (1.8GHz), or min, max (of firmware)",
    scope: Scope::Die,
    io_scope: Scope::Die,
    stage: Stage::Uncore,
    reversible: Reversible::Exactly,
    price: Price {
        up: "more watts, faster memory",
        down: "fewer watts, slower memory and cores' talk with each other",
    },
    risk: "EPERM where firmware keeps it; the kernel does not check that min stays at most max",
    overlaps: &[],
    moves: &[],
    source: "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
};

/// `uncore.max`.
pub static MAX: UncoreLimit = UncoreLimit { about: &COMMON, file: "max_freq_khz" };

/// `uncore.min`.
pub static MIN: UncoreLimit = UncoreLimit {
    about: &About {
        id: "uncore.min",
        title: "lowest uncore frequency",
        price: Price {
            up: "more watts on an idle host, no slow first memory access",
            down: "fewer watts on an idle host, a slow first memory access",
        },
        ..COMMON
    },
    file: "min_freq_khz",
};

impl Knob for UncoreLimit {
    fn about(&self) -> &'static About {
        self.about
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let site = |domain: &_| {
            let domain: &wakewatt_core::facts::uncore::UncoreDomain = domain;
            let initial = (domain.initial_min_khz.get(), domain.initial_max_khz.get());
            let now = (domain.min_khz.get(), domain.max_khz.get());
            let (min, max) = (initial.0.or(now.0).copied()?, initial.1.or(now.1).copied()?);
            let path = format!("{}/{}", uncore_domains::folder(domain), self.file);
            let cpus = uncore_domains::cpus(host, domain);
            let valid = Valid::Khz { min, max };
            let site = Site::at(host.source, self.about.id, domain.name.clone(), cpus, path, valid);
            Some(site.of_kind(domain.kind().word()))
        };
        let sites: Vec<Site> = uncore_domains::writable(host)?.into_iter().filter_map(site).collect();
        if sites.is_empty() { Err(say!("intel_uncore_frequency: its limits cannot be read")) } else { Ok(sites) }
    }
    fn encode(&self, _: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let text = encode(site, word)?;
        match text.parse::<u64>() {
            Ok(khz) if khz % STEP_KHZ != 0 => {
                let low = khz - khz % STEP_KHZ;
                let steps = (show_khz(low), show_khz(low.saturating_add(STEP_KHZ)));
                Err(say!("{}: steps are 100MHz: {} or {}", site.name, steps.0, steps.1))
            }
            _ => Ok(text),
        }
    }
    fn refusal(&self, _: &Host<'_>, then: &Then<'_>, site: &Site, to: &str) -> Option<String> {
        let folder = site.path.rsplit_once('/')?.0;
        let asked: u64 = to.parse().ok()?;
        let is_max = self.file == MAX.file;
        let other = if is_max { &MIN } else { &MAX };
        let khz = then.number(&format!("{folder}/{}", other.file))?;
        let is_crossed = if is_max { asked < khz } else { asked > khz };
        is_crossed.then(|| say!("{} would cross {} ({})", show_khz(asked), other.about.id, show_khz(khz)))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(asked), Ok(now)) if now == asked - asked % STEP_KHZ => {
                Kept::Legally(say!("cut to a step of 100MHz: {}", show_khz(now)))
            }
            _ => Kept::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::facts::cpus::ROOT;
    use wakewatt_core::source::Tree;

    fn domain(name: &str, more: &str) -> String {
        let at = format!("//- {ROOT}/intel_uncore_frequency/{name}");
        format!(
            "{at}/min_freq_khz\n800000\n{at}/max_freq_khz\n2200000\n{at}/initial_min_freq_khz\n800000\n{at}/initial_max_freq_khz\n2400000\n"
        ) + &more.replace("AT", &at)
    }

    #[test]
    fn clusters_are_written_where_there_are_any() {
        let cluster = |n| domain(n, "AT/package_id\n0\nAT/domain_id\n1\n");
        let text = domain("package_00_die_00", "")
            + &domain("package_01_die_00", "")
            + &cluster("uncore00")
            + &domain("uncore01", "AT/package_id\n0\nAT/agent_types\nio\n");
        let tree = Tree::from_text(&text);
        let host = Host::read(&tree);
        let sites = MAX.sites(&host).unwrap();
        let places: Vec<&str> = sites.iter().map(|s| s.place.as_str()).collect();
        assert_eq!(places, ["package_01_die_00", "uncore00", "uncore01"]);
        assert_eq!(sites.iter().map(|s| s.kind.as_deref().unwrap()).collect::<Vec<_>>(), ["die", "cluster", "io"]);
        assert_eq!(MAX.encode(&host, &sites[0], "max").unwrap(), "2400000");
        assert!(MAX.encode(&host, &sites[0], "1.85GHz").unwrap_err().contains("1.8GHz or 1.9GHz"));
        assert!(MIN.encode(&host, &sites[0], "700MHz").is_err());
        assert!(MIN.sites(&Host::read(&Tree::default())).unwrap_err().contains("Intel only"));
    }
}
