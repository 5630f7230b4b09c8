//! From when on an idle state saves energy, beside what the driver says; and whose the target residencies of
//! `intel_idle.table=` are.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::{Cell, Data, Show};
use super::super::words;
use super::section::{Section, table_if_any};
use wakewatt_core::covers::Covers;
use wakewatt_core::samples::measured_table::{self, Parameter};
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::state_energy::{EnergyOfStates, MIN_ROUNDS, NoBreakEven};
use wakewatt_words::{say, word};

/// Figure, table and remarks; nothing where energy was not asked for.
pub(super) fn add(out: &mut Section, costs: &StateCosts) {
    let Some(energy) = &costs.energy else { return };
    if let Some(no) = &energy.why_not {
        out.remarks.push(say!("From when on a state saves energy cannot be told: {}.", why(no)));
        return;
    }
    let mut ranges = Ranges {
        title: say!("Idle time from which a state of CPU {} saves energy, claimed and measured", costs.cpu),
        of: word!("state").into(),
        range: word!("least to most of the rounds"),
        x: AxisSpec::new(word!("idle time"), Show::Ns, Scale::Log),
        series: vec![word!("target residency by the driver").into(), word!("energy break-even, measured").into()],
        is_first_claimed: true,
        rows: Vec::new(),
    };
    for state in &energy.states {
        let Some(found) = &state.break_even else { continue };
        let claim = claimed_ns(costs, &state.name).map(|ns| Mark { series: 0, value: ns, range: None });
        let measured = Mark { series: 1, value: found.median_ns, range: Some((found.low_ns, found.high_ns)) };
        ranges.add(state.name.clone(), claim.into_iter().chain([measured]));
    }
    out.draw(
        format!("idle-break-even-cpu{}", costs.cpu),
        &say!("Idle time from which a state of CPU {} saves energy", costs.cpu),
        word!("Where a state takes as much energy as the next shallower one. A state that pays at once has no place on a logarithmic axis; the table has it."),
        &ranges,
    );
    out.tables.extend(table_if_any(
        &table(costs, energy),
        &say!("Energy of the idle states of CPU {}: measured by {}", costs.cpu, by(energy)),
    ));
    out.remarks.push(say!(
        "Energy: a pause of {} and one of {} before each wake-up, {} of watts each in {MIN_ROUNDS} rounds of random order, are two \
         equations for the power at rest and the energy of an entry. The break-even is the idle time from which on a state takes \
         less than the next shallower one; its range is that of the rounds and holds their median with 97 %; it covers {}. Of one core: what the \
         package saves beyond that when all of its cores sleep is not in it.",
        words::ns(energy.short_gap_ns as f64),
        words::ns(energy.long_gap_ns as f64),
        words::ns(energy.counted_ns as f64),
        Covers::Run
    ));
}

/// The boot parameter with whose its residencies are, or why there is none.
pub(super) fn parameter(costs: &StateCosts) -> String {
    match measured_table::parameter(costs) {
        Ok(found) => say!(
            "These numbers as a boot parameter (Linux {} and later; latencies are worst cases; {}): {line}; wakewatt tune apply --boot-arg \
             {line} sets it.",
            measured_table::SINCE,
            residencies(costs, &found),
            line = found.line
        ),
        Err(why) => say!("No intel_idle.table= from these numbers: {why}."),
    }
}

/// Whose they are, in words.
fn residencies(costs: &StateCosts, found: &Parameter) -> String {
    let of_driver: Vec<&str> =
        found.residencies.iter().filter(|r| r.measured.is_none()).map(|r| r.state.as_str()).collect();
    let energy = match &costs.energy {
        None => return word!("target residencies are the driver's: no watts per state were measured").into(),
        Some(EnergyOfStates { why_not: Some(no), .. }) => {
            return say!("target residencies are the driver's: {}", why(no));
        }
        Some(energy) => energy,
    };
    let told = |name: &&str| {
        let no = energy.state(name).and_then(|s| s.why_not.as_ref());
        format!("{name} ({})", no.map_or_else(|| word!("no shallower state was measured to compare with").into(), why))
    };
    let of_driver: Vec<String> = of_driver.iter().map(told).collect();
    let measured: Vec<String> = found
        .residencies
        .iter()
        .filter_map(|r| {
            let b = r.measured.as_ref()?;
            let raised =
                if (r.us as f64) * 1000.0 > b.median_ns + 1000.0 { word!(", raised to the latency") } else { "" };
            let (at, range) = (words::ns(b.median_ns), words::ns_interval(b.low_ns, b.high_ns));
            Some(say!("{} {at} ({range}) over {}{raised}", r.state, b.over))
        })
        .collect();
    let parts = [
        (!measured.is_empty()).then(|| {
            let (by, covers) = (by(energy), Covers::Run);
            say!("measured energy break-evens by {by}, ranges covering {covers}, for {}", words::listed(&measured))
        }),
        (!of_driver.is_empty()).then(|| say!("the driver's for {}", words::listed(&of_driver))),
    ];
    say!("target residencies are {}", words::clauses(&parts.into_iter().flatten().collect::<Vec<_>>()))
}

/// The meter with what it covers.
fn by(energy: &EnergyOfStates) -> String {
    format!("{} ({})", energy.meter.as_deref().unwrap_or(word!("no meter")), energy.meter_covers)
}

fn claimed_ns(costs: &StateCosts, state: &str) -> Option<f64> {
    costs.states.iter().find(|s| s.name == state)?.claimed_residency_ns.map(|ns| ns as f64)
}

fn table(costs: &StateCosts, energy: &EnergyOfStates) -> Data {
    let mut data = Data::with(&[
        (word!("state"), Show::Text),
        (word!("over"), Show::Text),
        (word!("break-even"), Show::Ns),
        (word!("least"), Show::Ns),
        (word!("most"), Show::Ns),
        (word!("claimed residency"), Show::Ns),
        (word!("rests at less by"), Show::Watts),
        (word!("an entry takes more by, uJ"), Show::Number),
        (word!("cannot tell because"), Show::Text),
    ]);
    for state in &energy.states {
        let found = state.break_even.as_ref();
        data.rows.push(vec![
            state.name.clone().into(),
            found.map_or(Cell::Missing, |b| b.over.clone().into()),
            Cell::of(found.map(|b| b.median_ns)),
            Cell::of(found.map(|b| b.low_ns)),
            Cell::of(found.map(|b| b.high_ns)),
            Cell::of(claimed_ns(costs, &state.name)),
            Cell::of(found.map(|b| b.saves_uw / 1e6)),
            Cell::of(found.map(|b| b.costs_uj)),
            state.why_not.as_ref().map_or(Cell::Missing, |no| why(no).into()),
        ]);
    }
    data
}

/// In words.
fn why(no: &NoBreakEven) -> String {
    match no {
        NoBreakEven::NoMeter { why } => why.clone(),
        NoBreakEven::Slow { averages_ns, longest_ns } => say!(
            "the meter averages over {}, and with more than {} this would take tens of minutes",
            words::ns(*averages_ns as f64),
            words::ns(*longest_ns as f64)
        ),
        NoBreakEven::UnknownAveraging => {
            word!("the meter does not say over what time it averages, so its watts may be those of the state before")
                .into()
        }
        NoBreakEven::Coarse => {
            word!("the meter said one number all the time: its steps are coarser than what the states differ by").into()
        }
        NoBreakEven::NotEntered { state } => say!("{state} was not what the CPU slept in nearly always"),
        NoBreakEven::FewRounds { n } => say!("only {n} of {MIN_ROUNDS} rounds have watts of both states"),
        NoBreakEven::NotLess { low_uw, high_uw } => say!(
            "not all rounds show it to rest at less ({} to {}): the meter sees too much else",
            Show::Watts.text(low_uw / 1e6),
            Show::Watts.text(high_uw / 1e6)
        ),
        NoBreakEven::Wide { low_ns, high_ns } => {
            say!("the rounds disagree ({}): the meter sees too much else", words::ns_interval(*low_ns, *high_ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::state_energy::StateEnergy;

    fn costs() -> StateCosts {
        let mut all = super::super::super::sample::everything().evidence.samples.idle_states;
        StateCosts { driver: Some("intel_idle".into()), ..all.remove(0) }
    }

    #[test]
    fn the_line_says_whose_its_residencies_are() {
        let measured = parameter(&costs());
        assert!(measured.contains("measured energy break-evens by powercap (package)"), "{measured}");
        assert!(measured.contains(" over C1E") && !measured.contains("no watts"), "{measured}");
        let without = parameter(&StateCosts { energy: None, ..costs() });
        assert!(without.contains("the driver's: no watts per state were measured"), "{without}");
        let no = NoBreakEven::Slow { averages_ns: 60_000_000_000, longest_ns: 2_000_000_000 };
        let slow = parameter(&StateCosts { energy: Some(EnergyOfStates::none(no)), ..costs() });
        assert!(slow.contains("the driver's: the meter averages over 60 s"), "{slow}");
        let mut mixed = costs();
        for state in mixed.energy.iter_mut().flat_map(|e| &mut e.states).filter(|s| s.name == "C6") {
            *state = StateEnergy { name: "C6".into(), why_not: Some(NoBreakEven::Coarse), ..StateEnergy::default() };
        }
        let mixed = parameter(&mixed);
        assert!(mixed.contains("C6 (the meter said one number"), "{mixed}");
    }

    #[test]
    fn a_page_without_a_meter_says_that_it_cannot_tell() {
        let mut out = Section::new("x");
        let no = NoBreakEven::NoMeter { why: "no meter works".into() };
        add(&mut out, &StateCosts { energy: Some(EnergyOfStates::none(no)), ..costs() });
        assert!(out.is_empty() && out.remarks[0].contains("cannot be told: no meter works"), "{:?}", out.remarks);
        add(&mut out, &costs());
        assert_eq!((out.figures.len(), out.tables.len()), (1, 1));
    }
}
