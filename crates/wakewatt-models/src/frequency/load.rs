//! The load that ondemand and conservative see: the busiest CPU of a policy, as a share of the time since the last sample.
//!
//! A CPU is only sampled when its scheduler has something to do, so a long gap means a long sleep, and its average hides that the CPU
//! is busy now. So once after a long sleep the load from before it counts again, a help that a second sleep does not get.
//! The number of whole sampling periods slept through is kept for conservative, which steps down once for each.

/// A CPU's time since the last sample, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// In all.
    pub wall_us: u32,
    /// Idle; negative where the clocks disagree.
    pub idle_us: i64,
}

/// What the samples of a policy come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The busiest CPU, in percent.
    pub percent: u32,
    /// The same without the help after a long sleep.
    pub unhelped_percent: u32,
    /// Sampling periods slept through by the CPU that slept least of those that slept long; none where none did.
    pub periods: Option<u32>,
}

/// What is remembered of each CPU.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    previous: Vec<u32>,
}

impl Loads {
    /// Of so many CPUs, never sampled.
    pub fn new(n_cpus: usize) -> Loads {
        Loads { previous: vec![0; n_cpus] }
    }

    /// Takes a sample. `rate_us` is the sampling rate with its multiplier; CPUs beyond those known are ignored.
    pub fn sample(&mut self, cpus: &[Elapsed], rate_us: u32) -> Load {
        let mut load = Load::default();
        for (previous, cpu) in self.previous.iter_mut().zip(cpus) {
            let idle_us = u32::try_from(cpu.idle_us.max(0)).unwrap_or(u32::MAX);
            let (wall, idle) = (u64::from(cpu.wall_us), u64::from(idle_us));
            let is_long = idle > 2 * u64::from(rate_us);
            let busy = (100 * wall.saturating_sub(idle)).checked_div(wall);
            let unhelped = busy.map_or(*previous, |percent| u32::try_from(percent).unwrap_or(100));
            let percent = if is_long && *previous != 0 && wall != 0 {
                std::mem::take(previous)
            } else {
                if wall != 0 {
                    *previous = unhelped;
                }
                unhelped
            };
            if is_long {
                let periods = idle_us.checked_div(rate_us).unwrap_or(u32::MAX);
                load.periods = Some(load.periods.map_or(periods, |p| p.min(periods)));
            }
            load.percent = load.percent.max(percent);
            load.unhelped_percent = load.unhelped_percent.max(unhelped);
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_from_before_a_long_sleep_counts_once() {
        let mut loads = Loads::new(1);
        let mut said = |wall_us, idle_us| loads.sample(&[Elapsed { wall_us, idle_us }], 10_000);
        assert_eq!(said(10_000, 2_000).percent, 80);
        let slept = said(50_000, 45_000);
        assert_eq!((slept.percent, slept.unhelped_percent, slept.periods), (80, 10, Some(4)));
        assert_eq!(said(50_000, 45_000).percent, 10);
        assert_eq!(said(10_000, -5).percent, 100);
        assert_eq!((said(0, 0).percent, said(10, 20).percent), (100, 0));
    }

    #[test]
    fn the_busiest_cpu_counts() {
        let mut loads = Loads::new(2);
        let cpus = [Elapsed { wall_us: 100, idle_us: 90 }, Elapsed { wall_us: 100, idle_us: 30 }];
        assert_eq!(loads.sample(&cpus, 10_000), Load { percent: 70, unhelped_percent: 70, periods: None });
    }
}
