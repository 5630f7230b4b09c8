//! The meters that a measurement reads: found once, then read in every level or block by those that worked.
//!
//! A kind of meter that is not there would otherwise be searched for in every level, and its reason be in every level's
//! document. The first look lasts a second or so: a counter that does not move in it is dead.

use std::sync::Arc;
use std::time::Duration;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{Averaging, EnergySample};
use wakewatt_core::samples::watts_by::WattsBy;
use wakewatt_host::live::Live;
use wakewatt_host::power::{self, Found, Machine, MetersWanted, Recorder};

/// How long meters are looked at to see which work.
pub const LOOK: Duration = Duration::from_millis(1100);
/// Time between readings, where nobody says another.
pub const INTERVAL_NS: u64 = 1_000_000_000;
/// Readings closer together say nothing more.
const LEAST_INTERVAL_NS: u64 = 1_000_000;

/// Which, and how often.
#[derive(Clone, Default)]
pub struct Meters {
    wanted: MetersWanted,
    only: Vec<String>,
    preferred: Vec<String>,
    interval_ns: u64,
    works: Vec<String>,
    /// The one whose watts are quoted: another one's are no continuation of them.
    quoted: Option<String>,
    /// How its readings come about.
    averaging: Averaging,
    is_settled: bool,
    /// Is what is measured another machine? Then this one's temperatures say nothing about it.
    is_elsewhere: bool,
}

impl Meters {
    /// None: watts stay absent.
    pub fn none() -> Meters {
        Meters::default()
    }

    /// Those wanted (only these, if any are named), of which the preferred are quoted first.
    pub fn new(wanted: MetersWanted, only: &[String], preferred: &[String], interval_ns: u64) -> Meters {
        Meters { wanted, only: only.into(), preferred: preferred.into(), interval_ns, ..Meters::default() }
    }

    /// All that this machine has, read once a second; none that somebody would have to name.
    pub fn of_this_machine() -> Meters {
        let wanted = MetersWanted {
            machine: Some(Arc::new(Live::this_machine())),
            has_devices: true,
            ..MetersWanted::default()
        };
        Meters::new(wanted, &[], &[], INTERVAL_NS)
    }

    /// The same, read so often.
    pub fn every(&self, interval_ns: u64) -> Meters {
        Meters { interval_ns, ..self.clone() }
    }

    /// What may be asked about a machine elsewhere: this one's meters say nothing about it, only those that were named do.
    pub fn elsewhere(&self) -> Option<Meters> {
        let wanted = MetersWanted { machine: None, has_devices: false, ..self.wanted.clone() };
        let only = self.preferred.clone();
        (!only.is_empty()).then(|| Meters { wanted, only, is_elsewhere: true, ..self.clone() })
    }

    /// Does one give this machine's watts? Known after a look.
    pub fn has_any(&self) -> bool {
        self.quoted.is_some()
    }

    /// The one behind the watts of an experiment that settles and counts for so long.
    pub fn watts_by(&self, settled_ns: u64, counted_ns: u64) -> Option<WattsBy> {
        let by = |meter: &String| WattsBy { meter: meter.clone(), averaging: self.averaging, settled_ns, counted_ns };
        self.quoted.as_ref().map(by)
    }

    /// Looks for as long as it takes to see a counter move, unless that was done; says what does not work, if none does.
    pub fn settle(&mut self) -> Option<String> {
        if self.is_settled {
            return None;
        }
        let look = self.look();
        std::thread::sleep(LOOK);
        self.keep(&look.stop())
    }

    /// Starts a first look at all of them.
    pub fn look(&self) -> Recorder {
        self.record(power::find(&self.wanted, &self.only), None)
    }

    fn record(&self, found: Vec<Found>, machine: Option<Machine>) -> Recorder {
        Recorder::start(found, machine, self.interval_ns.max(LEAST_INTERVAL_NS), &self.preferred)
    }

    /// Keeps those that worked in it; says what did not, if none did.
    pub fn keep(&mut self, seen: &EnergySample) -> Option<String> {
        let works = seen.meters.iter().filter(|m| m.label == Label::Measured);
        self.is_settled = true;
        self.works = works.map(|m| m.meter.clone()).collect();
        self.quoted.clone_from(&seen.chosen);
        self.averaging = seen.chosen().map_or(Averaging::Unknown, |meter| meter.averaging);
        if seen.chosen.is_some() {
            return None;
        }
        // Kept in English, whatever the language: the run file says it.
        let said = |(meter, why): (&str, Option<&str>)| format!("{meter} ({})", why.unwrap_or("no total"));
        let why = seen.in_vain().map(said).collect::<Vec<_>>().join("; ");
        let what = "watts are absent, because no meter of this machine works";
        Some(if why.is_empty() { what.into() } else { format!("{what}: {why}") })
    }

    /// Reads those that work from now on, and temperatures of the machine that is measured where it is this one.
    pub fn start(&self) -> Recorder {
        let found = match self.works.is_empty() {
            true => Vec::new(),
            false => power::find(&self.wanted, &self.works),
        };
        let this =
            || self.wanted.machine.as_ref().map_or_else(|| Arc::new(Live::this_machine()) as Machine, Arc::clone);
        self.record(found, (!self.is_elsewhere).then(this))
    }

    /// A level's energy, or none where neither a meter nor a sensor said anything. Where the quoted meter gave no total nothing
    /// is quoted: a wall meter in one level and a package counter in the next would be compared.
    pub fn said(&self, mut sample: EnergySample) -> Option<EnergySample> {
        if sample.chosen != self.quoted {
            sample.chosen = None;
        }
        (sample.chosen.is_some() || !sample.witnesses.is_empty() || !sample.meters.is_empty()).then_some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::energy::{MeterGap, MeterSample};

    #[test]
    fn only_what_works_is_read_again() {
        let mut meters = Meters::new(MetersWanted::default(), &[], &[], 1_000_000_000);
        let silent = |name, why| MeterSample::unavailable(name, why);
        let not_asked = MeterGap::NotAskedFor("--redfish URL".into());
        let both = vec![silent("ipmi", "no BMC".into()), silent("redfish", not_asked)];
        let dead = EnergySample { meters: both, ..EnergySample::default() };
        let remark = meters.keep(&dead).unwrap();
        assert!(remark.ends_with("works: ipmi (no BMC)"), "{remark}");
        assert!(meters.works.is_empty());
        let cards = MeterSample { label: Label::Measured, why: None, ..MeterSample::unavailable("drm", "") };
        let remark = meters.keep(&EnergySample { meters: vec![cards], ..EnergySample::default() }).unwrap();
        assert!(remark.ends_with("works: drm (no total)"), "a meter that is never quoted is named: {remark}");
        let working = MeterSample { label: Label::Measured, ..MeterSample::unavailable("hwmon", "") };
        let working = working.averaged(Averaging::Over { ns: 5 });
        let seen = EnergySample { chosen: Some("hwmon".into()), meters: vec![working], ..dead };
        assert_eq!(meters.watts_by(1, 2), None);
        assert_eq!(meters.keep(&seen), None);
        assert_eq!(meters.watts_by(1, 2).unwrap().averaging, Averaging::Over { ns: 5 });
        assert_eq!(meters.works, ["hwmon"]);
        assert_eq!(meters.settle(), None, "once is enough");
        assert!(meters.elsewhere().is_none(), "nobody named a meter of the other machine");
        assert_eq!(meters.said(EnergySample::default()), None);
        let other = EnergySample { chosen: Some("perf".into()), ..seen.clone() };
        assert_eq!(meters.said(other).unwrap().chosen, None, "watts of another meter are no continuation");
        assert!(meters.said(seen).unwrap().chosen.is_some() && meters.has_any());
    }
}
