//! A setting that changed: from what to what, when that was seen, who held it.
//!
//! Two moments are compared by the names of their series, so the same code looks at the page that is being kept and at the last moment that an agent before
//! this one kept: a kernel or a microcode that came with a boot is a change too, and says between which two moments it must lie. Who turned a setting the
//! kernel does not tell. A latency limit has holders; of other settings only the daemons are known that ran then and are known to change such ones.

use super::series::Series;
use crate::metric::names;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::facts::holders::DAEMONS;
use wakewatt_core::units::LatencyLimit;

/// The latency limit among the settings.
pub(crate) const LIMIT: &str = "latency_limit";
/// Who holds it, where the limit stays as it is.
const HELD_BY: &str = "latency_limit_held_by";
/// Known daemons that run, in one text.
const DAEMONS_NAME: &str = "daemons";
/// Begin of the name of a state that is switched off somewhere.
const OFF: &str = "idle_state_off ";

/// One setting that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// When it was seen, in milliseconds since 1970.
    pub wall_ms: u64,
    /// When it was last seen as it had been, in milliseconds since 1970; none in histories that do not tell.
    pub was_ms: Option<u64>,
    /// Which setting, as the labels of `wakewatt_settings_info` call it.
    pub what: String,
    /// What it was; empty where it was not known.
    pub from: String,
    /// What it is; empty where it is no longer known.
    pub to: String,
    /// Programs that held the latency limit then, or before where it was lifted, as far as could be seen.
    pub held_by: Vec<String>,
    /// Daemons that ran then and are known to change such a setting; whether one of them did is not known.
    pub may_be_by: Vec<String>,
}

impl Change {
    /// The same in words, without its moment.
    pub fn sentence(&self) -> String {
        let known = |text: &str| if text.is_empty() { "not known".to_string() } else { text.to_string() };
        let mut out = format!("{}: {} -> {}", self.what, known(&self.from), known(&self.to));
        if !self.held_by.is_empty() {
            let held = if self.to == LatencyLimit::None.to_string() { "had been held by" } else { "held by" };
            out += &format!(", {held} {}", self.held_by.join(", "));
        }
        if !self.may_be_by.is_empty() {
            out += &format!("; {} ran then and may change it", self.may_be_by.join(", "));
        }
        out
    }
}

/// What was set at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// When, in milliseconds since 1970.
    pub wall_ms: u64,
    /// By name.
    pub is: BTreeMap<String, String>,
    /// Programs that hold the latency limit.
    pub holders: Vec<String>,
}

impl Settings {
    /// From the series that were known at a moment, with their values.
    pub(crate) fn of<'a>(wall_ms: u64, series: impl IntoIterator<Item = (&'a str, f64)>) -> Settings {
        let mut found = Settings { wall_ms, ..Settings::default() };
        let named =
            [&names::SETTINGS, &names::LATENCY_LIMIT, &names::LIMIT_HOLDER, &names::DAEMON, &names::IDLE_DISABLED];
        let named = named.map(|metric| metric.sample_name());
        // Series come in the order in which they were first seen.
        let mut daemons: BTreeSet<String> = BTreeSet::new();
        for (text, value) in series {
            let name = text.split('{').next().unwrap_or_default();
            let Some(which) = named.iter().position(|own| own == name) else { continue };
            let series = Series::parse(text);
            match which {
                0 => found.is.extend(series.labels().map(|(what, is)| (what.to_string(), is.to_string()))),
                1 => drop(found.is.insert(LIMIT.into(), limit(value).to_string())),
                2 => found.holders.extend(series.label("holder").map(str::to_string)),
                3 => daemons.extend(series.label("daemon").map(str::to_string)),
                _ => {
                    let state = format!("{OFF}{}", series.label("state").unwrap_or_default());
                    found.is.insert(state, format!("on {value:.0} CPUs"));
                }
            }
        }
        found.holders.sort();
        if !daemons.is_empty() {
            let daemons: Vec<String> = daemons.into_iter().collect();
            found.is.insert(DAEMONS_NAME.into(), daemons.join(", "));
        }
        found
    }

    /// What is not as it was. Between two agents only what both knew is compared: the one before may have looked at less.
    pub(crate) fn since(&self, then: &Settings, is_same_agent: bool) -> Vec<Change> {
        let all: BTreeSet<&String> = then.is.keys().chain(self.is.keys()).collect();
        let missing = |what: &str| if what.starts_with(OFF) { "on no CPU" } else { "" };
        let of = |side: &Settings, what: &str| side.is.get(what).map_or(missing(what), String::as_str).to_string();
        let change = |what: &str, from: String, to: String| Change {
            wall_ms: self.wall_ms,
            was_ms: Some(then.wall_ms),
            may_be_by: self.may_change(what),
            held_by: Vec::new(),
            what: what.into(),
            from,
            to,
        };
        let mut found: Vec<Change> = all
            .into_iter()
            .map(|what| change(what, of(then, what), of(self, what)))
            .filter(|c| c.from != c.to && (is_same_agent || !(c.from.is_empty() || c.to.is_empty())))
            .collect();
        if let Some(change) = found.iter_mut().find(|c| c.what == LIMIT) {
            let is_lifted = change.to == LatencyLimit::None.to_string();
            change.held_by.clone_from(if is_lifted { &then.holders } else { &self.holders });
        } else if self.holders != then.holders
            && (is_same_agent || !(self.holders.is_empty() || then.holders.is_empty()))
        {
            // Another agent may have been allowed to see less.
            let told = |side: &Settings| match side.holders.is_empty() {
                true => "nobody who could be seen".to_string(),
                false => side.holders.join(", "),
            };
            found.push(change(HELD_BY, told(then), told(self)));
        }
        found
    }

    /// Daemons that run and are known to change this.
    fn may_change(&self, what: &str) -> Vec<String> {
        let knob = match what {
            "frequency_governor" => "governor",
            "energy_preference" => "EPP",
            "turbo" => "turbo",
            "cmdline" => "command line",
            LIMIT => "latency limit",
            _ if what.starts_with(OFF) => "idle states",
            _ => return Vec::new(),
        };
        let running = self.is.get(DAEMONS_NAME).map(String::as_str).unwrap_or_default();
        let runs = |name: &str| running.split(", ").any(|own| own == name);
        DAEMONS.iter().filter(|d| d.overlaps.contains(&knob) && runs(d.name)).map(|d| d.name.to_string()).collect()
    }
}

/// The limit as people write it.
pub(crate) fn limit(limit_s: f64) -> LatencyLimit {
    if limit_s == f64::INFINITY {
        return LatencyLimit::None;
    }
    // Kept in whole nanoseconds, at most 2000 s of them.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    match (limit_s * 1e9).round() as u64 {
        0 => LatencyLimit::Poll,
        ns => LatencyLimit::AtMostNs(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(wall_ms: u64, governor: &str, limit_s: f64, holder: Option<&str>, n_off: f64) -> Settings {
        let info = format!("wakewatt_settings_info{{frequency_governor=\"{governor}\"}}");
        let daemon = |name: &str| (format!("wakewatt_daemon_info{{daemon=\"{name}\"}}"), 1.0);
        let mut series = vec![
            (info, 1.0),
            daemon("TuneD"),
            daemon("irqbalance"),
            ("wakewatt_latency_limit_seconds".to_string(), limit_s),
        ];
        series.extend(holder.map(|name| (format!("wakewatt_latency_limit_holder_info{{holder=\"{name}\"}}"), 1.0)));
        if n_off > 0.0 {
            series.push(("wakewatt_cpuidle_disabled_cpus{state=\"C6\",index=\"3\"}".into(), n_off));
        }
        Settings::of(wall_ms, series.iter().map(|(name, value)| (name.as_str(), *value)))
    }

    #[test]
    fn a_change_says_between_which_moments_and_who_held_it() {
        let then = settings(10, "powersave", f64::INFINITY, None, 0.0);
        let now = settings(20, "performance", 50e-6, Some("db"), 4.0);
        let found = now.since(&then, true);
        let told: Vec<(&str, &str, &str)> =
            found.iter().map(|c| (c.what.as_str(), c.from.as_str(), c.to.as_str())).collect();
        assert_eq!(
            told,
            [
                ("frequency_governor", "powersave", "performance"),
                ("idle_state_off C6", "on no CPU", "on 4 CPUs"),
                ("latency_limit", "none", "50us")
            ]
        );
        assert_eq!((found[0].was_ms, found[0].wall_ms), (Some(10), 20));
        assert_eq!(
            (found[0].may_be_by.as_slice(), found[2].held_by.as_slice()),
            (&["TuneD".into()][..], &["db".into()][..])
        );
        let lifted = then.since(&now, true);
        assert_eq!(lifted[2].held_by, ["db"], "who had held it");
        assert!(now.since(&now, true).is_empty());
    }

    #[test]
    fn another_holder_of_the_same_limit_is_a_change_too() {
        let found = settings(20, "x", 0.0, Some("other"), 0.0).since(&settings(10, "x", 0.0, Some("db"), 0.0), true);
        assert_eq!((found.len(), found[0].from.as_str(), found[0].to.as_str()), (1, "db", "other"));
        assert_eq!(limit(0.0), LatencyLimit::Poll);
    }

    #[test]
    fn what_an_older_agent_did_not_look_at_is_no_change() {
        let now = settings(20, "x", 0.0, None, 0.0);
        let mut then = settings(10, "x", 0.0, None, 0.0);
        then.is.remove("daemons");
        assert!(now.since(&then, false).is_empty() && now.since(&then, true).len() == 1);
    }
}
