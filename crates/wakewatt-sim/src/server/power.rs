//! What a machine takes: platform, packages, memory and cores, behind a power supply.
//!
//! A core at work takes activity * c * V^2 * f + k * V, with V the larger of the least voltage and a line over the clock; c and k follow
//! from what it takes at the highest clock. In a clock-gated state (C1) part of the dynamic share is left and all leakage; in a deep one
//! a part of the leakage. Entering and leaving is charged at the power of work. A package whose cores all sleep deep enough takes its own, lower
//! power. Watts at the wall are the sum over the supply's efficiency at that sum. The starting values are of a Skylake-SP
//! server from papers read second hand (AgileWatts 2022, AgilePkgC 2022), and are wrong for yours: calibrate.

use serde::{Deserialize, Serialize};

/// Efficiency of a power supply at a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PsuPoint {
    /// Watts it gives.
    pub watts: f64,
    /// Of what it takes it gives this part: 0.85.
    pub efficiency: f64,
}

/// Parameters of the power model, in watts, volts and gigahertz.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Power {
    /// What never sleeps: board, fans, disks.
    pub platform_w: f64,
    /// Memory of a package while it is awake.
    pub memory_w: f64,
    /// Memory of a package that sleeps.
    pub memory_sleep_w: f64,
    /// A package without its cores (uncore) while it is awake.
    pub uncore_w: f64,
    /// A package without its cores while it sleeps.
    pub uncore_sleep_w: f64,
    /// Dynamic power of a core that works at the highest clock, with all its threads.
    pub core_dynamic_w: f64,
    /// Part of it that a core with SMT draws while one of its two threads works.
    pub one_thread_share: f64,
    /// Leakage of a core at the highest clock's voltage.
    pub core_leakage_w: f64,
    /// Voltage at no clock at all, of the line.
    pub volt_base: f64,
    /// Volts per gigahertz, of the line.
    pub volt_per_ghz: f64,
    /// No less than this.
    pub volt_least: f64,
    /// How much of the dynamic power the work draws: 1 for what SPECpower does, less where it waits for memory.
    pub activity: f64,
    /// The same while polling.
    pub poll_activity: f64,
    /// Part of the dynamic power that is left in a clock-gated state.
    pub gated_share: f64,
    /// Part of the leakage that is left in a deep state.
    pub deep_share: f64,
    /// From this target residency on a state is deep (power-gated), in microseconds.
    pub deep_from_us: f64,
    /// Efficiency of the power supply, by load; a line between the points.
    pub psu: Vec<PsuPoint>,
}

/// Calibrated: see docs/methods/simulate-watts.md.
const ONE_THREAD_SHARE: f64 = 0.5;

impl Default for Power {
    fn default() -> Power {
        Power {
            platform_w: 30.0,
            memory_w: 5.5,
            memory_sleep_w: 0.5,
            uncore_w: 29.6,
            uncore_sleep_w: 11.0,
            core_dynamic_w: 2.8,
            one_thread_share: ONE_THREAD_SHARE,
            core_leakage_w: 1.2,
            volt_base: 0.6,
            volt_per_ghz: 0.2,
            volt_least: 0.7,
            activity: 1.0,
            poll_activity: 0.7,
            gated_share: 0.1,
            deep_share: 0.08,
            deep_from_us: 50.0,
            psu: vec![PsuPoint { watts: 0.0, efficiency: 0.85 }],
        }
    }
}

impl Power {
    fn volts(&self, ghz: f64) -> f64 {
        (self.volt_base + self.volt_per_ghz * ghz).max(self.volt_least)
    }

    /// A core with this part of its dynamic power and of its leakage, at a clock.
    fn core(&self, ghz: f64, top_ghz: f64, dynamic_share: f64, leakage_share: f64) -> f64 {
        let (v, top_v) = (self.volts(ghz), self.volts(top_ghz));
        let dynamic = self.core_dynamic_w * (v / top_v).powi(2) * (ghz / top_ghz);
        dynamic * dynamic_share + self.core_leakage_w * (v / top_v) * leakage_share
    }

    /// A core at work with all its threads, in watts.
    pub fn working_w(&self, ghz: f64, top_ghz: f64) -> f64 {
        self.core(ghz, top_ghz, self.activity, 1.0)
    }

    /// A core with SMT of which one thread works.
    pub fn one_thread_w(&self, ghz: f64, top_ghz: f64) -> f64 {
        self.core(ghz, top_ghz, self.activity * self.one_thread_share, 1.0)
    }

    /// A core that polls.
    pub fn polling_w(&self, ghz: f64, top_ghz: f64) -> f64 {
        self.core(ghz, top_ghz, self.poll_activity, 1.0)
    }

    /// A core whose clock is gated.
    pub fn gated_w(&self, ghz: f64, top_ghz: f64) -> f64 {
        self.core(ghz, top_ghz, self.gated_share, 1.0)
    }

    /// A core without power.
    pub fn deep_w(&self) -> f64 {
        self.core_leakage_w * self.deep_share
    }

    /// Watts at the wall for watts behind the supply.
    pub fn wall_w(&self, watts: f64) -> f64 {
        let Some(first) = self.psu.first() else { return watts };
        let after = self.psu.partition_point(|p| p.watts <= watts);
        let efficiency = match (after.checked_sub(1).and_then(|i| self.psu.get(i)), self.psu.get(after)) {
            (Some(low), Some(high)) => {
                let part = (watts - low.watts) / (high.watts - low.watts);
                low.efficiency + part * (high.efficiency - low.efficiency)
            }
            (Some(low), None) => low.efficiency,
            (None, _) => first.efficiency,
        };
        watts / efficiency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_of_eight_cores_at_half_load() {
        // docs/methods/simulate.md: dynamic 15 W at 3.0 GHz and 1.2 V, leakage 3 W, a gated part of 0.15, supply 0.74.
        let p = Power {
            core_dynamic_w: 15.0,
            core_leakage_w: 3.0,
            volt_least: 0.9,
            gated_share: 0.15,
            psu: vec![PsuPoint { watts: 0.0, efficiency: 0.74 }],
            ..Power::default()
        };
        let at = |ghz, busy| 8.0 * (busy * p.working_w(ghz, 3.0) + (1.0 - busy) * p.gated_w(ghz, 3.0));
        assert!((at(3.0, 0.5) - 93.0).abs() < 0.05, "{}", at(3.0, 0.5));
        assert!((at(2.0, 0.75) - 63.8).abs() < 0.15, "{}", at(2.0, 0.75));
        assert!((p.wall_w(at(3.0, 0.5) - at(2.0, 0.75)) - 39.5).abs() < 0.2);
    }

    #[test]
    fn a_supply_is_a_line_between_its_points() {
        let point = |watts, efficiency| PsuPoint { watts, efficiency };
        let p = Power { psu: vec![point(100.0, 0.8), point(200.0, 0.9)], ..Power::default() };
        assert_eq!([p.wall_w(80.0), p.wall_w(150.0), p.wall_w(450.0)].map(f64::round), [100.0, 176.0, 500.0]);
    }
}
