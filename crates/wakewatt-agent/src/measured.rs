//! What leaving idle states was measured to take on this machine, from a run that somebody made: read once, told beside what the driver claims.
//!
//! A run of another machine, of another driver or of other firmware says nothing of the states here that go by the same names. So its idle driver and its table
//! (names, indexes, claims) must be those of the machine; what the run does not say is not guessed. Where the machine is another one later, nothing is told any more.

use std::collections::BTreeSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::idle::Idle;
use wakewatt_core::units::show_ns;

/// Index, name, exit latency and target residency as claimed.
type Row = (u32, String, Option<u64>, Option<u64>);

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredExits {
    driver: String,
    table: BTreeSet<Row>,
    /// Index, name, and the median extra over the floor.
    states: Vec<(u32, String, f64)>,
}

fn table(idle: &Idle) -> BTreeSet<Row> {
    let rows = idle.tables().into_iter().flat_map(|(_, rows)| rows);
    rows.map(|row| (row.index, row.name, row.exit_latency_ns, row.target_residency_ns)).collect()
}

impl MeasuredExits {
    /// Of a run; of a state measured on several CPUs the first. Refused where nothing was measured, or it is not said on what.
    pub fn of(run: &Evidence) -> Result<MeasuredExits, String> {
        let costs = &run.samples.idle_states;
        let mut states: Vec<(u32, String, f64)> = Vec::new();
        for (costs, state) in costs.iter().flat_map(|costs| costs.states.iter().map(move |state| (costs, state))) {
            let Some(found) = costs.measured_exit(&state.name) else { continue };
            if !states.iter().any(|(index, name, _)| (*index, name) == (state.index, &state.name)) {
                // One below the floor by noise takes no time.
                states.push((state.index, state.name.clone(), found.extra.median_ns.max(0.0)));
            }
        }
        if states.is_empty() {
            let how = "make one with: wakewatt measure idle --save FILE";
            return Err(format!("holds no idle state whose exit was measured; {how}"));
        }
        let idle = &run.facts.idle;
        let noted = || costs.iter().find_map(|costs| costs.driver.clone());
        let driver = idle.driver.get().cloned().or_else(noted);
        let driver = driver.ok_or("does not say which idle driver it was measured under")?;
        let mut table = table(idle);
        if table.is_empty() {
            // Without facts the samples say what was claimed of what was measured.
            let rows = costs.iter().flat_map(|costs| &costs.states);
            table.extend(rows.map(|s| (s.index, s.name.clone(), s.claimed_exit_ns, s.claimed_residency_ns)));
        }
        Ok(MeasuredExits { driver, table, states })
    }

    /// Is this the machine? Else how it differs.
    pub(crate) fn fits(&self, here: &Idle) -> Result<(), String> {
        let driver = here.driver.get().map_or("not known", String::as_str);
        if driver != self.driver {
            return Err(format!("it was measured under the idle driver {}, and here that is {driver}", self.driver));
        }
        let own = table(here);
        match self.table.iter().find(|row| !own.contains(*row)) {
            None => Ok(()),
            Some(row) => {
                let same = own.iter().find(|own| own.0 == row.0).map_or("there is none".into(), claimed);
                let there = claimed(row);
                Err(format!(
                    "its idle states are not those of this machine: state {} is {there} there, and here {same}",
                    row.0
                ))
            }
        }
    }

    /// What leaving a state takes, in nanoseconds.
    pub(crate) fn exit_ns(&self, index: u32, name: &str) -> Option<f64> {
        self.states.iter().find(|state| (state.0, state.1.as_str()) == (index, name)).map(|state| state.2)
    }
}

fn claimed((_, name, exit_ns, residency_ns): &Row) -> String {
    let ns = |ns: &Option<u64>| ns.map_or("unknown".into(), show_ns);
    format!("{name} (exit {}, residency {})", ns(exit_ns), ns(residency_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::distribution::Distribution;
    use wakewatt_core::facts::Snapshot;
    use wakewatt_core::samples::Samples;
    use wakewatt_core::samples::state_cost::{StateCost, StateCosts, StateWake};
    use wakewatt_core::samples::wakeup::WakeKind;
    use wakewatt_core::source::Tree;

    const CPU: &str = "/sys/devices/system/cpu";

    fn facts(driver: &str, exit_us: u32) -> Snapshot {
        let state = |index: u32, name: &str, us: u32| {
            let at = format!("{CPU}/cpu0/cpuidle/state{index}");
            format!("//- {at}/name\n{name}\n//- {at}/latency\n{us}\n//- {at}/residency\n{}\n", 3 * us)
        };
        let driver = format!("//- {CPU}/cpuidle/current_driver\n{driver}\n");
        let text = format!("//- {CPU}/present\n0\n//- {CPU}/online\n0\n{driver}");
        let tree = Tree::from_text(&format!("{text}{}{}", state(0, "POLL", 0), state(1, "C6", exit_us)));
        Snapshot::read(&tree, |topic| topic == "idle")
    }

    /// A run in which leaving C6 took 80 us more than polling.
    fn run(facts: Snapshot) -> Evidence {
        let state = |index: u32, name: &str, rounds: [u64; 3]| StateCost {
            index,
            name: name.into(),
            is_polling: index == 0,
            claimed_exit_ns: Some(133_000 * u64::from(index)),
            claimed_residency_ns: Some(399_000 * u64::from(index)),
            allowed_by: String::new(),
            n_entered: 3000,
            n_entered_any: 3000,
            time_ns: 0,
            n_rejected: None,
            not_entered: None,
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
            wakes: vec![StateWake {
                n_entered: 3000,
                n_entered_any: 3000,
                ..StateWake::of(WakeKind::Ipi, Distribution::from_ns(rounds), rounds.into())
            }],
        };
        let mut costs = StateCosts::of(0, vec![state(0, "POLL", [1_000; 3]), state(1, "C6", [80_000, 81_000, 82_000])]);
        costs.compare_with_floor();
        Evidence { facts, ..Evidence::of(Samples { idle_states: vec![costs], ..Samples::default() }) }
    }

    #[test]
    fn a_run_of_this_machine_says_what_leaving_took() {
        let here = facts("intel_idle", 133);
        let exits = MeasuredExits::of(&run(here.clone())).unwrap();
        assert_eq!(exits.fits(&here.idle), Ok(()));
        assert_eq!(
            (exits.exit_ns(1, "C6"), exits.exit_ns(1, "C1"), exits.exit_ns(2, "C6")),
            (Some(80_000.0), None, None)
        );
        assert_eq!(exits.exit_ns(0, "POLL"), None, "the floor has no extra");
    }

    #[test]
    fn a_run_of_another_machine_says_how_it_is_another() {
        let exits = MeasuredExits::of(&run(facts("intel_idle", 133))).unwrap();
        let why = exits.fits(&facts("acpi_idle", 133).idle).unwrap_err();
        assert!(why.contains("intel_idle") && why.contains("acpi_idle"), "{why}");
        let why = exits.fits(&facts("intel_idle", 170).idle).unwrap_err();
        assert!(why.contains("C6 (exit 133us") && why.contains("here C6 (exit 170us"), "{why}");
        assert!(exits.fits(&Snapshot::default().idle).unwrap_err().contains("not known"));
        // Facts that were left out: what was noted while it was measured.
        let mut bare = run(Snapshot::default());
        assert!(MeasuredExits::of(&bare).unwrap_err().contains("does not say"));
        bare.samples.idle_states[0].driver = Some("intel_idle".into());
        assert_eq!(MeasuredExits::of(&bare).unwrap().fits(&facts("intel_idle", 133).idle), Ok(()));
        bare.samples.idle_states.clear();
        assert!(MeasuredExits::of(&bare).unwrap_err().contains("wakewatt measure idle --save"));
    }
}
