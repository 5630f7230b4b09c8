//! Tunables of a frequency governor: `freq.tunable.ondemand.up_threshold`, and so on.
//!
//! They exist only while their governor is in use, in `cpufreq/GOVERNOR/` for all policies or in `policyN/GOVERNOR/`, as
//! the driver chose, and start from defaults each time it comes. Ranges are those the kernel checks. Traps: conservative
//! refuses (EINVAL) an up_threshold that is not above down_threshold, so of the two the one that makes room must be
//! written first: raise up before down, lower down before up. sampling_rate must be two ticks at least (2000us at HZ=1000,
//! 8000 at HZ=250), and its default grows with the driver's transition latency. Switches take any number and read back 1.
//! Old kernels want a down_threshold of 11 at least.
//! Sources: admin-guide/pm/cpufreq.rst, "Generic Scaling Governors".

use super::per_policy;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// `freq.tunable`.
pub struct FreqTunable;

const ABOUT: About = About {
    id: "freq.tunable",
    title: "tunable of a frequency governor",
    unit: "percent, microseconds, a factor, or on and off, as each name tells",
    scope: Scope::Policy,
    io_scope: Scope::Policy,
    stage: Stage::Tunables,
    reversible: Reversible::Exactly,
    price: Price {
        up: "thresholds and rates: clocks rise later, fewer watts at low load",
        down: "thresholds and rates: clocks rise sooner, more watts at low load; rates too low cost processor time",
    },
    risk: "gone with its governor; conservative's two thresholds must keep their order at every moment",
    overlaps: &["governor"],
    moves: &[],
    source: "Documentation/admin-guide/pm/cpufreq.rst (Generic Scaling Governors)",
};

/// Governors with tunables.
const GOVERNORS: [&str; 3] = ["ondemand", "conservative", "schedutil"];
/// Two ticks of the fastest tick there is.
const MIN_SAMPLING_US: u64 = 2000;

/// What a tunable takes; none for those that are only shown.
fn valid(governor: &str, name: &str) -> Option<Valid> {
    let number = |min, max| Some(Valid::Number { min, max });
    match (governor, name) {
        (_, "sampling_rate_min" | "sampling_rate_max") => None,
        (_, "ignore_nice_load" | "io_is_busy") => Some(Valid::one_is_on()),
        (_, "sampling_rate") => number(MIN_SAMPLING_US, u32::MAX.into()),
        ("ondemand", "sampling_down_factor") => number(1, 100_000),
        ("conservative", "sampling_down_factor") => number(1, 10),
        ("ondemand", "powersave_bias") => number(0, 1000),
        (_, "up_threshold" | "down_threshold") => number(1, 100),
        (_, "freq_step") => number(0, 100),
        _ => number(0, u32::MAX.into()),
    }
}

impl Knob for FreqTunable {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let root = Folder::list(host.source, per_policy::ROOT);
        let mut sites = Vec::new();
        let mut add = |folder: &Folder, governor: &str, place: &str, cpus: &wakewatt_core::cpuset::CpuSet| {
            for name in folder.names() {
                let Some(valid) = valid(governor, name) else { continue };
                let full = format!("{}.{governor}.{name}", ABOUT.id);
                sites.push(Site::at(host.source, &full, place, cpus.clone(), format!("{}/{name}", folder.path), valid));
            }
        };
        for governor in GOVERNORS {
            if root.has(governor) {
                let users = host.facts.freq.governors().cpus_where(|used| used == governor);
                add(&Folder::list(host.source, format!("{}/{governor}", root.path)), governor, "machine", &users);
            }
        }
        for policy in root.numbered("policy") {
            let folder = Folder::list(host.source, format!("{}/policy{policy}", root.path));
            for governor in GOVERNORS.iter().filter(|g| folder.has(g)) {
                let cpus = per_policy::cpus(host, &folder.path, policy);
                let own = Folder::list(host.source, format!("{}/{governor}", folder.path));
                add(&own, governor, &format!("policy{policy}"), &cpus);
            }
        }
        if sites.is_empty() {
            return Err(say!(
                "{}: no governor with tunables is in use (pstate drivers in active mode have none)",
                root.path
            ));
        }
        Ok(sites)
    }
    fn needs(&self, name: &str) -> Option<(&'static str, String)> {
        let governor = name.strip_prefix(ABOUT.id)?.strip_prefix('.')?.split('.').next()?;
        GOVERNORS.contains(&governor).then(|| ("freq.governor", governor.to_string()))
    }
    fn rank(&self, name: &str, text: &str, _: &str) -> Option<u64> {
        const SLOWER: [&str; 5] =
            ["up_threshold", "down_threshold", "sampling_rate", "rate_limit_us", "powersave_bias"];
        text.parse().ok().filter(|_| SLOWER.iter().any(|tunable| name.ends_with(tunable)))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(asked), Ok(now)) if asked >= MIN_SAMPLING_US && now > asked => {
                Kept::Legally(say!("the kernel made it {read_back}"))
            }
            _ => Kept::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn global_and_per_policy_with_the_kernels_ranges() {
        let at = per_policy::ROOT;
        let tree = Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0-3\n//- {at}/conservative/up_threshold\n80\n//- {at}/conservative/sampling_down_factor\n1\n
             //- {at}/ondemand/sampling_rate_min\n10000\n//- {at}/ondemand/io_is_busy\n0\n
             //- {at}/policy2/schedutil/rate_limit_us\n1000\n//- {at}/policy2/affected_cpus\n2 3\n"
        ));
        let host = Host::read(&tree);
        let sites = FreqTunable.sites(&host).unwrap();
        let shown: Vec<String> = sites.iter().map(|s| format!("{}@{} {}", s.name, s.place, s.valid)).collect();
        assert_eq!(
            shown,
            [
                "freq.tunable.ondemand.io_is_busy@machine on, off",
                "freq.tunable.conservative.sampling_down_factor@machine 1 to 10",
                "freq.tunable.conservative.up_threshold@machine 1 to 100",
                "freq.tunable.schedutil.rate_limit_us@policy2 0 to 4294967295"
            ]
        );
        assert_eq!(sites[3].cpus.to_string(), "2-3");
        assert!(FreqTunable.encode(&host, &sites[2], "101").is_err());
        assert_eq!(FreqTunable.needs("freq.tunable.ondemand.io_is_busy"), Some(("freq.governor", "ondemand".into())));
        assert_eq!(FreqTunable.needs("freq.tunable.nonsense.x"), None);
    }
}
