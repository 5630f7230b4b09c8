//! Frequency driver, governor and energy preference, over all policies.
//!
//! The mode of intel_pstate and amd_pstate shows in the name of the driver: `intel_pstate` is active, `intel_cpufreq` is
//! passive; `amd-pstate-epp` is active, `amd-pstate` is passive or guided. No boot parameter sets the preference
//! (EPP); it is only looked at for CPUs that differ.

use super::{BootWanted, Check, text};
use std::collections::BTreeMap;
use wakewatt_core::source::Source;

const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

/// The three attributes.
pub(super) fn policies(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let names = source.list(ROOT).unwrap_or_default();
    let policies: Vec<&String> = names.iter().filter(|n| n.starts_with("policy")).collect();
    let driver = driver(wanted);
    if policies.is_empty() {
        if let Some((should, _)) = driver {
            let check = Check::new("frequency driver", ROOT, should);
            checks.push(check.cannot_tell("no policy", "no frequency driver has registered a policy"));
        }
        return;
    }
    for (what, file) in [
        ("frequency driver", "scaling_driver"),
        ("frequency governor", "scaling_governor"),
        ("energy preference", "energy_performance_preference"),
    ] {
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for policy in &policies {
            if let Ok(value) = text(source, &format!("{ROOT}/{policy}/{file}")) {
                found.entry(value).or_default().push(policy);
            }
        }
        let path = format!("{ROOT}/policy*/{file}");
        let shown = match found.len() {
            1 => found.keys().cloned().collect(),
            _ => found.iter().map(|(v, p)| format!("{}: {v}", p.join(" "))).collect::<Vec<_>>().join("; "),
        };
        match (file, driver) {
            (_, _) if found.is_empty() => {}
            ("scaling_driver", Some((should, holds))) => {
                let is_so = found.keys().all(|d| holds(d));
                checks.push(Check::new(what, path, should).found(shown, is_so));
            }
            _ if found.len() == 1 => checks.push(Check::new(what, path, "the same everywhere").found(shown, true)),
            _ => checks.push(
                Check::new(what, path, "the same everywhere")
                    .cannot_tell(shown, "policies differ; no boot parameter does that"),
            ),
        }
    }
}

type Test = fn(&str) -> bool;

/// The driver that the parameters imply.
fn driver(wanted: &BootWanted) -> Option<(&'static str, Test)> {
    Some(match (wanted.value("intel_pstate"), wanted.value("amd_pstate")) {
        (Some("active"), _) => ("intel_pstate", |d| d == "intel_pstate"),
        (Some("passive"), _) => ("intel_cpufreq", |d| d == "intel_cpufreq"),
        (Some("disable"), _) => {
            ("neither intel_pstate nor intel_cpufreq", |d| d != "intel_pstate" && d != "intel_cpufreq")
        }
        (_, Some("active")) => ("amd-pstate-epp", |d| d == "amd-pstate-epp"),
        (_, Some("passive" | "guided")) => ("amd-pstate", |d| d == "amd-pstate"),
        (_, Some("disable")) => ("not amd-pstate", |d| !d.starts_with("amd-pstate")),
        _ => return None,
    })
}
