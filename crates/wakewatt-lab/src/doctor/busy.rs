//! Is any CPU ever idle? On a machine that is not, nothing can be measured of idle states, and that is known in seconds.
//!
//! The kernel counts idle time per CPU, polling included. While doctor looks for power meters nothing of its own runs, so
//! that second shows the others. Where the last CPU, which doctor wakes by default, is mostly busy and another one is not,
//! that one is measured instead.

use super::Ground;
use crate::noise::NoiseCounters;
use crate::quiet::{Surroundings as _, ThisMachine};
use wakewatt_core::samples::not_done::TooBusy;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock;

/// With less idle time than this on every CPU nothing can be measured.
const NEVER_IDLE_RATIO: f64 = 0.05;
/// A CPU with at least half of its time idle is as good as any.
const IDLE_ENOUGH_RATIO: f64 = 0.5;

/// The CPUs' time from one moment on.
pub(super) struct Load {
    before: NoiseCounters,
}

impl Load {
    pub(super) fn start(ground: Ground<'_>) -> Load {
        Load { before: read(ground) }
    }

    /// The CPU to measure, or what kept all of them busy; a look of a second more confirms that.
    pub(super) fn stop(self, ground: Ground<'_>) -> Result<Cpu, TooBusy> {
        let Some((cpu, idle_ratio)) = self.idlest(ground) else { return Ok(ground.cpu) };
        if idle_ratio >= NEVER_IDLE_RATIO || ground.lab.is_stopped() {
            return Ok(cpu);
        }
        let mut machine = ThisMachine { src: ground.lab.src, cpus: ground.allowed, stop: ground.lab.stop };
        let taken = machine.look();
        match (self.idlest(ground), taken) {
            (Some((_, idle_ratio)), Some(taken)) if idle_ratio < NEVER_IDLE_RATIO => Err(TooBusy::of(taken)),
            _ => Ok(cpu),
        }
    }

    /// The CPU that doctor wakes by default where it is idle enough, else the one with most idle time.
    fn idlest(&self, ground: Ground<'_>) -> Option<(Cpu, f64)> {
        let now = read(ground);
        let idle = |cpu: Cpu| Some((cpu, now.idle_ratio(&self.before, cpu)?));
        let usual = idle(ground.cpu).filter(|(_, ratio)| *ratio >= IDLE_ENOUGH_RATIO);
        usual.or_else(|| ground.allowed.iter().filter_map(idle).max_by(|a, b| a.1.total_cmp(&b.1)))
    }
}

fn read(ground: Ground<'_>) -> NoiseCounters {
    NoiseCounters::read(ground.lab.src, ground.allowed, clock::own_cpu_ns())
}
