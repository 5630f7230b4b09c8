//! Fans and temperatures beside the watts.
//!
//! They measure no power, but contradict it where it misleads: in case K1 the machine that looked busy was the quiet one,
//! and a fan at full speed is itself tens of watts. Read seldom (start, end, every 5 s): a coretemp input interrupts its
//! CPU, so cores are left out and packages kept.

use super::{Machine, number_in};
use wakewatt_core::facts::sensors::Sensors;
use wakewatt_core::facts::{Cpus, Domain};
use wakewatt_core::samples::energy::{Sense, Witness};

/// Time between readings.
pub const INTERVAL_NS: u64 = 5_000_000_000;

/// The sensors, and what they said.
pub struct Witnesses {
    machine: Machine,
    paths: Vec<String>,
    seen: Vec<Witness>,
}

impl Witnesses {
    /// Finds them.
    pub fn find(machine: Machine) -> Witnesses {
        let sensors = Sensors::read(machine.as_ref(), &Cpus::default());
        let mut out = Witnesses { machine, paths: Vec::new(), seen: Vec::new() };
        for chip in &sensors.chips {
            let driver = chip.name.get().map_or("unnamed", String::as_str);
            let mut add = |stem: String, label: Option<&String>, sense: Sense| {
                let name = format!("{driver} {}", label.unwrap_or(&stem));
                out.paths.push(format!("/sys/class/hwmon/hwmon{}/{stem}_input", chip.number));
                out.seen.push(Witness { name, sense, first: 0, last: 0, min: 0, max: 0, n: 0 });
            };
            for t in &chip.temperatures {
                let label = t.label.get();
                if !label.is_some_and(|l| l.starts_with("Core ")) {
                    add(format!("temp{}", t.index), label, Sense::Temperature);
                }
            }
            chip.fans.iter().for_each(|f| add(format!("fan{}", f.index), f.label.get(), Sense::Fan));
        }
        out
    }

    /// Reads all of them once; what fails is left out.
    pub fn read(&mut self) {
        for (path, seen) in self.paths.iter().zip(&mut self.seen) {
            let Ok(value) = number_in(self.machine.as_ref(), path) else { continue };
            if seen.n == 0 {
                (seen.first, seen.min, seen.max) = (value, value, value);
            }
            (seen.last, seen.min, seen.max) = (value, seen.min.min(value), seen.max.max(value));
            seen.n += 1;
        }
    }

    /// Those that said anything.
    pub fn said(self) -> Vec<Witness> {
        self.seen.into_iter().filter(|w| w.n > 0).collect()
    }
}
