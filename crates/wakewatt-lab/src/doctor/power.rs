//! The power step of `doctor`: which meter works here, or why none.
//!
//! A second, to learn whether its counters move and what the machine draws as found; `measure power` takes its time. It asks
//! files of this machine only: a graphics card would have to wake up for the answer and says nothing about the machine, a
//! BMC takes seconds to say it, so it is asked only where there is time and doctor may use devices at all.

use super::Ground;
use std::sync::Arc;
use std::time::Duration;
use wakewatt_core::evidence::Evidence;
use wakewatt_host::live::Live;
use wakewatt_host::power::{self, MetersWanted, Recorder};

const LOOK: Duration = Duration::from_millis(1_100);
const INTERVAL_NS: u64 = 100_000_000;
/// Meters in files, which wake nobody.
const OF_FILES: [&str; 3] = ["powercap", "perf", "hwmon"];
/// Behind the BMC.
const OF_BMC: &str = "ipmi";

/// Looks for a second.
pub(super) fn look(ground: Ground<'_>, evidence: &mut Evidence) {
    if ground.lab.is_stopped() {
        return;
    }
    let has_bmc = !ground.plan.is_read_only && !ground.plan.is_quick;
    ground.onlooker.part("doctor");
    ground.lab.tell.progress(0.9, "looking for power meters");
    let wanted =
        MetersWanted { machine: Some(Arc::new(Live::this_machine())), has_devices: has_bmc, ..MetersWanted::default() };
    let recorder = Recorder::start(power::find(&wanted, &names(has_bmc)), None, INTERVAL_NS, &[]);
    std::thread::sleep(LOOK);
    evidence.samples.energy.push(recorder.stop());
}

fn names(has_bmc: bool) -> Vec<String> {
    OF_FILES.into_iter().chain(has_bmc.then_some(OF_BMC)).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_meters() {
        let known: Vec<&str> = power::METERS.iter().map(|kind| kind.name).collect();
        assert!(names(true).iter().all(|name| known.contains(&name.as_str())), "{known:?}");
        assert_eq!(names(false).len(), 3);
    }
}
