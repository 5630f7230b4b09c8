//! Which differences between two hosts could explain that their numbers differ: suspects, never culprits.
//!
//! Settings and kernels differ together with the machine and the hour, so this only sorts what is worth turning first:
//! what the settings allow (the predictions, with their direction), a change of the kernel that is known to have moved
//! idle behaviour, and single settings of the areas that were the cause in the field.

use super::{Comparison, predict};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::rules::{Change, kernel_changes_between};
use serde::Serialize;
use wakewatt_words::{say, told, word};

/// Something that differs and is known to matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suspect {
    /// What differs between the runs and could explain it.
    pub what: String,
    /// Its value in the first and in the second run.
    pub values: [String; 2],
    /// What it could do.
    pub why: String,
    /// Nanoseconds it could add to the second run's wake-ups, by what the hosts claim; negative where it takes away. None
    /// where it is no latency or not known.
    pub claimed_ns: Option<f64>,
}

/// Single settings worth naming, by the front of their ids.
const SETTINGS: &[&str] = &[
    "idle.driver",
    "idle.governor",
    "idle.c1_demotion",
    "qos.",
    "freq.boost",
    "freq.epp",
    "freq.energy_perf_bias",
    "boot.cmdline",
    "kernel.preemption",
    "kernel.clocksource",
];
/// Single settings that end in one of these, whatever the state or the policy is called.
const ENDINGS: &[&str] = &[".disabled", ".governor", ".driver", ".exit_latency", ".target_residency"];
/// More than this is a list to read in the differences themselves.
const MAX_SETTINGS: usize = 12;

/// The suspects, predictions first.
pub fn of(a: &Evidence, b: &Evidence, facts: &Comparison) -> Vec<Suspect> {
    let mut all = Vec::new();
    for difference in facts.differences.iter() {
        let (Some(predicted), [x, y]) = (&difference.predicted, &difference.values[..]) else { continue };
        let claimed_ns = (difference.id == "predicted.deepest_idle").then(|| deeper_ns(&a.facts, &b.facts)).flatten();
        all.push(Suspect {
            what: difference.label.clone(),
            values: [x.clone(), y.clone()],
            why: predicted.text.clone(),
            claimed_ns,
        });
    }
    all.extend(kernel(&a.facts, &b.facts));
    let is_named = |id: &str| {
        SETTINGS.iter().any(|s| id.starts_with(s))
            || ((id.starts_with("idle.") || id.starts_with("freq.")) && ENDINGS.iter().any(|e| id.ends_with(e)))
    };
    let settings = facts.differences.iter().filter(|d| d.predicted.is_none() && is_named(&d.id));
    for difference in settings.take(MAX_SETTINGS) {
        let [x, y] = &difference.values[..] else { continue };
        all.push(Suspect {
            what: difference.label.clone(),
            values: [x.clone(), y.clone()],
            why: say!("a setting of the area \"{}\"; its size is not predicted", difference.topic),
            claimed_ns: None,
        });
    }
    all
}

/// How much longer the deepest allowed exit of the second host claims to be.
fn deeper_ns(a: &Snapshot, b: &Snapshot) -> Option<f64> {
    let exit = |host: &Snapshot| Some(predict::deepest_state(host)?.map_or(0.0, |(_, ns)| ns as f64));
    Some(exit(b)? - exit(a)?)
}

/// The kernels, where they differ, with what is known to lie between them.
fn kernel(a: &Snapshot, b: &Snapshot) -> Option<Suspect> {
    let (old, new) = (*a.kernel.version.get()?, *b.kernel.version.get()?);
    if old == new {
        return None;
    }
    // A vendor's number says little, so no list of changes is read off it.
    let of_vendor = [a, b].iter().find_map(|host| host.kernel.vendor());
    // Only what is in use on one of the hosts: the table of another processor moved nothing here.
    let between: Vec<&Change> = kernel_changes_between(old.min(new), old.max(new))
        .into_iter()
        .filter(|change| change.part.concerns(a) || change.part.concerns(b))
        .collect();
    if let Some(vendor) = of_vendor {
        let list: Vec<String> = between.iter().map(|c| format!("{} ({})", told(c.what), c.since)).collect();
        let mainline = match list.is_empty() {
            true => String::new(),
            false => {
                say!("; known changes of mainline between the two, some of which both may have: {}", list.join("; "))
            }
        };
        let why = say!(
            "{}: a vendor kernel, whose version does not say which idle changes it has; measure both{mainline}",
            vendor.name
        );
        return Some(Suspect {
            what: word!("kernel").into(),
            values: [old.to_string(), new.to_string()],
            why,
            claimed_ns: None,
        });
    }
    let is_upgrade = new > old;
    let list: Vec<String> = between.iter().map(|c| format!("{} ({}, {})", told(c.what), c.since, c.source)).collect();
    let why = if list.is_empty() {
        word!("no change of idle behaviour between them is in wakewatt's list; distributions backport").to_string()
    } else if is_upgrade {
        say!("known changes of idle behaviour that the newer one brought: {}", list.join("; "))
    } else {
        say!("known changes of idle behaviour that are taken away again: {}", list.join("; "))
    };
    Some(Suspect { what: word!("kernel").into(), values: [old.to_string(), new.to_string()], why, claimed_ns: None })
}

impl Suspect {
    /// One line; the letters of the runs are the caller's.
    pub fn line(&self) -> String {
        // How much is in the reason already; who is the slower one only the order of the runs tells.
        let claim = match self.claimed_ns {
            Some(ns) if ns >= 1.0 => word!(" (longer in B)"),
            Some(ns) if ns <= -1.0 => word!(" (longer in A)"),
            _ => "",
        };
        say!("{}: {} and {}; {}{claim}", self.what, self.values[0], self.values[1], self.why)
    }
}
