//! Mean watts around each workload, by the meters that work.

use crate::meters::Meters;
use crate::workloads::WattMeter;
use wakewatt_host::power::Recorder;

/// How often meters are read within a block.
const INTERVAL_NS: u64 = 500_000_000;

/// Meters, read from start to stop.
pub(super) struct Watts {
    meters: Meters,
    running: Option<Recorder>,
}

impl Watts {
    /// By these.
    pub(super) fn by(meters: &Meters) -> Watts {
        Watts { meters: meters.every(INTERVAL_NS), running: None }
    }
}

impl WattMeter for Watts {
    fn start(&mut self) {
        self.running = Some(self.meters.start());
    }
    fn stop(&mut self) -> Option<f64> {
        let sample = self.meters.said(self.running.take()?.stop())?;
        let mean_uw = sample.chosen()?.total.as_ref()?.mean_uw;
        (mean_uw > 0).then_some(mean_uw as f64)
    }
}
