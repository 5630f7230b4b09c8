//! Graduated load as a source of levels: the same engine as `load steps`, kept running through all blocks.
//!
//! Nothing is started before the load is calibrated, so a dry run starts no process. All blocks of a round ask for the
//! same arrivals (one seed), so arms differ in their settings and in nothing else; every round has others.

use crate::experiment::Calibrated;
use crate::load::places::spec;
use crate::load::{Engine, LoadError, Phases, Spec, level};
use crate::meters::Meters;
use crate::workloads::level::LevelSource;
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Ask, Level};
use wakewatt_core::source::Source;

/// The service time of `load steps`, when the plan says nothing.
pub(super) const SERVICE_NS: u64 = 500_000;

fn quiet(_: &str) {}

fn words(ended: LoadError) -> String {
    ended.to_string()
}

/// Transactions at shares of what this machine can do.
pub(super) struct StepsSource<'a> {
    src: &'a dyn Source,
    spec: Spec,
    calibration: Phases,
    meters: Meters,
    engine: Option<Engine>,
}

impl<'a> StepsSource<'a> {
    /// On these CPUs, transactions of so long, calibrated with intervals of so long.
    pub(super) fn new(
        src: &'a dyn Source,
        cpus: &CpuSet,
        (service_ns, measure_ns): (u64, u64),
        seed: u64,
        meters: Meters,
    ) -> Result<Self, String> {
        // What is worth a remark in a load of its own (a node without memory) is the same in every arm.
        let spec = spec(src, cpus, service_ns, None, seed, &mut Vec::new()).map_err(|e| e.to_string())?;
        Ok(StepsSource { src, spec, calibration: Phases::custom(measure_ns), meters, engine: None })
    }
}

impl LevelSource for StepsSource<'_> {
    fn id(&self) -> &'static str {
        "steps"
    }

    fn title(&self) -> String {
        "graduated load".into()
    }

    fn cpus(&self) -> CpuSet {
        self.spec.places.iter().flat_map(|place| place.cpus.iter()).collect()
    }

    fn calibrate(&mut self, known: Option<&Calibrated>, stop: &AtomicBool) -> Result<Calibrated, String> {
        // Work sized anew, at another clock, would be another load.
        let work_units = known.and_then(|known| known.work_units).or(self.spec.work_units);
        let spec = Spec { work_units, ..self.spec.clone() };
        let mut engine = Engine::start(&spec, stop, &quiet).map_err(words)?;
        match known.and_then(|known| Some((known, known.per_s?))) {
            Some((known, per_s)) => {
                if !engine.set_threads_per_s(&known.threads_per_s) {
                    engine.set_capacity(per_s);
                }
            }
            None => drop(engine.calibrate(&self.calibration, stop, &quiet).map_err(words)?),
        }
        let found = Calibrated {
            per_s: engine.capacity_per_s(),
            work_units: Some(engine.work_units()),
            service_ns: Some(self.spec.service_ns),
            threads_per_s: engine.threads_per_s(),
        };
        self.engine = Some(engine);
        Ok(found)
    }

    fn reseed(&mut self, seed: u64) {
        if let Some(engine) = &mut self.engine {
            engine.seed = seed;
        }
    }

    fn seed(&self) -> u64 {
        self.spec.seed
    }

    fn level(&mut self, ask: Ask, phases_ns: [u64; 4], stop: &AtomicBool) -> Result<Level, String> {
        let engine = self.engine.as_mut().ok_or("not calibrated")?;
        let [settle_ns, ramp_up_ns, record_ns, ramp_down_ns] = phases_ns;
        let phases = Phases { settle_ns, ramp_up_ns, record_ns, ramp_down_ns };
        level(engine, ask, &phases, &self.meters, stop, self.src, &quiet).map(|run| run.level).map_err(words)
    }
}
