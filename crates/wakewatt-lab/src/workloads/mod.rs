//! What an experiment over settings measures in each block: one or several workloads, one after the other, and watts.
//!
//! All workloads of a plan are measured in every block, always in the same order, so that a block is a row of metrics
//! and everything is paired by round; each has its own settling time before it. A metric may be named primary, and is then
//! put first. Watts are read around each workload where the machine has a meter; without one there is no such metric.

pub mod alone;
pub mod command;
pub mod declared;
pub mod level;
pub mod network;

use crate::experiment::{Calibrated, ShortMeasurement, Workload, Yield, loads};
use std::sync::atomic::AtomicBool;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::nearest::nearest;
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::load::Kind;

/// Mean watts between two moments.
pub trait WattMeter {
    fn start(&mut self);
    /// Mean microwatts since; none where no meter said anything.
    fn stop(&mut self) -> Option<f64>;
}

/// One of them.
pub struct Part<'a> {
    /// In front of its metrics' ids, if anything.
    pub name: Option<String>,
    /// Its word, for its watts.
    pub kind: &'static str,
    /// What makes the load, where it is one. A load says its own watts, level by level.
    pub load: Option<Kind>,
    /// Itself.
    pub workload: Box<dyn Workload + 'a>,
}

/// The watts of a workload that does not say its own.
fn watts_of(kind: &str) -> Metric {
    Metric::power(format!("{kind}.watts"), format!("{kind}, mean power"))
}

/// A workload's name goes before its metrics.
fn call(name: Option<&str>, metrics: &mut [Metric]) {
    let Some(name) = name else { return };
    for metric in metrics {
        metric.id = format!("{name}.{}", metric.id);
        metric.title = format!("{name}: {}", metric.title);
    }
}

/// Where the primary metric stands: the one named, or the first. Two of one id, or none of that name, are errors.
fn primary_among(metrics: &[Metric], primary: Option<&str>) -> Result<usize, String> {
    let ids: Vec<&str> = metrics.iter().map(|m| m.id.as_str()).collect();
    if let Some(twice) = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
        return Err(format!("metric {}: two workloads have it; give one of them a name", twice.1));
    }
    let Some(primary) = primary else { return Ok(0) };
    ids.iter().position(|id| *id == primary).ok_or_else(|| {
        let hint = nearest(primary, ids.iter().copied())
            .map_or_else(|| format!("there are {}", ids.join(", ")), |near| format!("did you mean {near}?"));
        format!("primary: no metric {primary}; {hint}")
    })
}

/// All workloads of a plan as one.
pub struct Composite<'a> {
    parts: Vec<Part<'a>>,
    meter: Option<Box<dyn WattMeter + 'a>>,
    settle_ns: u64,
    /// Where each metric, in the order in which the parts name them, stands in the result.
    places: Vec<usize>,
}

impl<'a> Composite<'a> {
    /// With the primary metric first; an unknown one is an error with the nearest name.
    pub fn new(
        parts: Vec<Part<'a>>,
        meter: Option<Box<dyn WattMeter + 'a>>,
        settle_ns: u64,
        primary: Option<&str>,
    ) -> Result<Composite<'a>, String> {
        let mut composite = Composite { parts, meter, settle_ns, places: Vec::new() };
        let metrics = composite.in_part_order();
        let first = primary_among(&metrics, primary)?;
        composite.places = (0..metrics.len())
            .map(|at| match at {
                _ if at == first => 0,
                _ if at < first => at + 1,
                _ => at,
            })
            .collect();
        Ok(composite)
    }

    fn in_part_order(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        for part in &self.parts {
            let mut metrics = part.workload.metrics();
            if self.meter.is_some() && part.load.is_none() {
                metrics.push(watts_of(part.kind));
            }
            call(part.name.as_deref(), &mut metrics);
            all.append(&mut metrics);
        }
        all
    }

    /// What each part needs to know from an earlier part of the run, or finds out now: its calibrated maximum.
    pub fn calibrate(
        &mut self,
        known: &[Option<Calibrated>],
        stop: &AtomicBool,
    ) -> Result<Vec<Option<Calibrated>>, String> {
        let mut found = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            found.push(part.workload.calibrate(known.get(at).and_then(Option::as_ref), stop)?);
        }
        Ok(found)
    }

    /// Those that are loads, with what `calibrate` found.
    pub fn loads(&self, calibrated: &[Option<Calibrated>]) -> Vec<loads::Source> {
        let source = |(at, part): (usize, &Part<'_>)| {
            let name = part.name.as_ref().map_or(String::new(), |name| format!("{name}."));
            let calibrated = calibrated.get(at).cloned().flatten();
            Some(loads::Source { id: format!("{name}{}", part.kind), kind: part.load?, calibrated })
        };
        self.parts.iter().enumerate().filter_map(source).collect()
    }
}

impl Composite<'_> {
    /// The workload whose first metric is the primary one, and where its metrics begin among those of all workloads.
    fn primary_part(&self) -> Option<(usize, usize)> {
        let mut first = 0;
        for (at, part) in self.parts.iter().enumerate() {
            if self.places.get(first) == Some(&0) {
                return Some((at, first));
            }
            first += part.workload.metrics().len() + usize::from(self.meter.is_some() && part.load.is_none());
        }
        None
    }

    fn prefix(part: &Part<'_>) -> String {
        part.name.as_ref().map_or(String::new(), |name| format!("{name}."))
    }
}

impl ShortMeasurement for Composite<'_> {
    fn measure_for(&mut self, measure_ns: u64, stop: &AtomicBool) -> Result<Yield, String> {
        let (at, first) = self.primary_part().ok_or("no workload has the primary metric")?;
        let part = &mut self.parts[at];
        let short = part.workload.short().ok_or("the workload cannot be measured shortly")?;
        let mut measured = short.measure_for(measure_ns, stop)?;
        let mut values = vec![None; self.places.len()];
        for (place, value) in self.places[first..].iter().zip(std::mem::take(&mut measured.values)) {
            values[*place] = value;
        }
        let prefix = Self::prefix(part);
        measured.latencies.iter_mut().for_each(|(id, ..)| *id = format!("{prefix}{id}"));
        Ok(Yield { values, ..measured })
    }
}

impl Workload for Composite<'_> {
    fn metrics(&self) -> Vec<Metric> {
        let mut placed: Vec<(usize, Metric)> = self.places.iter().copied().zip(self.in_part_order()).collect();
        placed.arrange_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, metric)| metric).collect()
    }

    fn cpus(&self) -> CpuSet {
        self.parts.iter().fold(CpuSet::new(), |all, part| all.union(&part.workload.cpus()))
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        if let Some(part) = self.parts.first_mut() {
            part.workload.warm_up(duration_ns, stop);
        }
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let mut all = Yield::default();
        let mut values = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            if at > 0 {
                part.workload.warm_up(self.settle_ns, stop);
            }
            let mut meter = self.meter.as_mut().filter(|_| part.load.is_none());
            if let Some(meter) = &mut meter {
                meter.start();
            }
            let n_metrics = part.workload.metrics().len();
            let mut measured = part.workload.measure(stop)?;
            // One that was cut short may have said nothing.
            measured.values.resize(n_metrics, None);
            if let Some(meter) = &mut meter {
                measured.values.push(meter.stop());
            }
            let prefix = Self::prefix(part);
            values.append(&mut measured.values);
            all.latencies
                .extend(measured.latencies.into_iter().map(|(id, title, h)| (format!("{prefix}{id}"), title, h)));
            all.levels.extend(measured.levels.into_iter().map(|(id, level)| (format!("{prefix}{id}"), level)));
            // The counters of the first that has any are the ones that its wake-ups are held against.
            if all.idle.is_empty() {
                all.woken = measured.woken;
            }
            all.idle.append(&mut measured.idle);
            all.disturbances.append(&mut measured.disturbances);
            all.rejected = all.rejected.or(measured.rejected);
            all.waker = all.waker.or(measured.waker);
        }
        all.values = vec![None; values.len()];
        for (place, value) in self.places.iter().zip(values) {
            if let Some(slot) = all.values.get_mut(*place) {
                *slot = value;
            }
        }
        Ok(all)
    }

    /// Of the workload that the primary metric belongs to.
    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        let (part, _) = self.primary_part()?;
        self.parts[part].workload.short()?;
        Some(self)
    }

    fn begin_round(&mut self, round: usize) {
        self.parts.iter_mut().for_each(|part| part.workload.begin_round(round));
    }

    fn is_busy(&self) -> bool {
        self.parts.iter().any(|part| part.workload.is_busy())
    }
}
