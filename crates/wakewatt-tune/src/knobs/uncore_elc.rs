//! Efficiency latency control (ELC): how the uncore clock falls on an idle host, and when it rises again.
//!
//! Below `elc_low_threshold_percent` of utilisation `elc_floor_freq_khz` takes the place of the hardware's own minimum;
//! above `elc_high_threshold_percent`, if `elc_high_threshold_enable`, the clock climbs in steps of 100MHz instead of
//! jumping to the top. This is the knob for rare memory accesses of an idle box; TPMI parts only (Xeon 6), kernels after
//! 6.12. The floor counts for nothing below `min_freq_khz`. Percents are stored in fewer steps than a hundred and some,
//! so that a value may read back one off. Source: admin-guide/pm/intel_uncore_frequency_scaling.rst.

use super::uncore_domains;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// `uncore.elc`.
pub struct UncoreElc;

const ABOUT: About = About {
    id: "uncore.elc",
    title: "uncore efficiency latency control",
    unit: "floor: frequency with its unit; thresholds: percent of utilisation; high_threshold_on: on, off",
    scope: Scope::Die,
    io_scope: Scope::Die,
    stage: Stage::Uncore,
    reversible: Reversible::Exactly,
    price: Price {
        up: "more watts while idle, quicker memory after a pause",
        down: "fewer watts while idle, slower memory after a pause",
    },
    risk: "a floor below the lowest uncore frequency has no effect",
    overlaps: &[],
    moves: &[],
    source: "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst (Efficiency vs. Latency Tradeoff)",
};

impl Knob for UncoreElc {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let mut sites = Vec::new();
        for domain in uncore_domains::writable(host)? {
            let folder = Folder::list(host.source, uncore_domains::folder(domain));
            let percent = || Valid::Number { min: 0, max: 100 };
            let top = domain.initial_max_khz.get().or(domain.max_khz.get()).copied();
            let clock = Valid::Khz { min: 0, max: top.unwrap_or(0) };
            for (name, file, valid) in [
                ("floor", "elc_floor_freq_khz", clock),
                ("low_threshold", "elc_low_threshold_percent", percent()),
                ("high_threshold", "elc_high_threshold_percent", percent()),
                ("high_threshold_on", "elc_high_threshold_enable", Valid::one_is_on()),
            ] {
                if folder.has(file) {
                    let (full, path) = (format!("{}.{name}", ABOUT.id), format!("{}/{file}", folder.path));
                    let cpus = uncore_domains::cpus(host, domain);
                    let site = Site::at(host.source, &full, domain.name.clone(), cpus, path, valid);
                    sites.push(site.of_kind(domain.kind().word()));
                }
            }
        }
        if sites.is_empty() {
            return Err(say!("intel_uncore_frequency: no elc_* files (Xeon 6 and later, kernels after 6.12)"));
        }
        Ok(sites)
    }
    fn rank(&self, name: &str, text: &str, _: &str) -> Option<u64> {
        // What lies above the high threshold acts the other way, and in bursts only.
        text.parse().ok().filter(|_| name.ends_with(".floor") || name.ends_with(".low_threshold"))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(asked), Ok(now)) if asked <= 100 && asked > 1 && asked.abs_diff(now) == 1 => {
                Kept::Legally(format!("rounded to {now}"))
            }
            (Ok(asked), Ok(now)) if asked > 100 && now == asked - asked % 100_000 => {
                Kept::Legally(say!("cut to a step of 100MHz"))
            }
            _ => Kept::Not,
        }
    }
    fn effective(&self, _: &Host<'_>, site: &Site) -> Option<String> {
        let floor: u64 = site.now.as_ref()?.parse().ok()?;
        let is_moot = site.name.ends_with(".floor") && floor == 0;
        is_moot.then(|| "the lowest uncore frequency".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::facts::cpus::ROOT;
    use wakewatt_core::source::Tree;

    #[test]
    fn four_settings_per_cluster_with_rounded_percents() {
        let at = format!("//- {ROOT}/intel_uncore_frequency/uncore00");
        let tree = Tree::from_text(&format!(
            "{at}/max_freq_khz\n2200000\n{at}/elc_floor_freq_khz\n800000\n{at}/elc_low_threshold_percent\n10\n{at}/elc_high_threshold_enable\n1\n"
        ));
        let host = Host::read(&tree);
        let sites = UncoreElc.sites(&host).unwrap();
        let names: Vec<&str> = sites.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["uncore.elc.floor", "uncore.elc.low_threshold", "uncore.elc.high_threshold_on"]);
        assert!(sites[0].is_called("uncore00") && sites[0].is_called("cluster") && !sites[0].is_called("io"));
        assert_eq!(UncoreElc.encode(&host, &sites[0], "1.2GHz").unwrap(), "1200000");
        assert!(UncoreElc.encode(&host, &sites[1], "101").is_err());
        assert!(matches!(UncoreElc.kept("50", "49"), Kept::Legally(_)));
        assert_eq!(UncoreElc.kept("1", "0"), Kept::Not);
    }
}
