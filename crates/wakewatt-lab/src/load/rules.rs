//! When a level does not count (docs/methods/load.md). A level that breaks one of these rules is kept and says which.
//!
//! The rate that was done lies within 2 % of capacity of the rate that was planned, and within four standard deviations
//! of a Poisson count (beyond that it is not chance); at 100 % it may fall short by 2.5 %, because a queue that is
//! always full and a machine that is calibrated to 2 % cannot do better. Everything planned was done. The quoted meter
//! was not silent for more than 1 % of the window (and an interval at its edges), no temperature drifted by more than 2
//! degrees, the hypervisor took nothing to speak of, nothing was throttled, the firmware did not interrupt (where its
//! counter can be read), and other processes had at most 2 % of the CPUs.

use wakewatt_core::samples::Label;
use wakewatt_core::samples::broken_rule::BrokenRule;
use wakewatt_core::samples::energy::{EnergySample, Sense};
use wakewatt_core::samples::load::{Ask, Level};
use wakewatt_core::units::{show_ns, three_digits};

/// Of the capacity.
const RATE_RATIO: f64 = 0.02;
/// Of the capacity, downwards, at 100 %.
const SHORT_RATIO: f64 = 0.025;
/// Standard deviations of a Poisson count.
const SIGMAS: f64 = 4.0;
/// Of the window.
const SILENT_RATIO: f64 = 0.01;
/// Two degrees.
const DRIFT_MC: u64 = 2_000;
/// Of the measured CPUs' time.
const STEAL_RATIO: f64 = 0.005;

/// Of the measured CPUs' time, by others than the generator and its meters.
pub const FOREIGN_RATIO: f64 = 0.02;

/// What is known beside the level itself.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// 100 %.
    pub capacity_per_s: Option<f64>,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
    /// Times something slowed down for its heat.
    pub n_throttles: u64,
    /// System-management interrupts: the firmware took the CPUs, and the kernel does not know.
    pub n_smis: u64,
    /// Taken by other processes; none where nobody can tell.
    pub foreign_ratio: Option<f64>,
}

/// 100 % or more: a queue that need not have a steady state.
pub fn is_saturated(ask: Ask) -> bool {
    matches!(ask, Ask::Share(share) if share >= 1.0)
}

/// What the surroundings did to a level, and not the settings the load ran under: it says nothing about them. Heat, and slowing
/// down for it, may be the settings' doing, and how much the hypervisor may take is for whoever asks to say, as is how much
/// other processes may: `foreign_ratio`, of the CPUs' time.
pub fn by_surroundings(level: &Level, foreign_ratio: f64) -> Vec<BrokenRule> {
    let had = level.foreign_ratio.filter(|had| *had > foreign_ratio);
    level
        .broken_rules
        .iter()
        .filter(|rule| rule.is_by_surroundings())
        .cloned()
        .chain(had.map(|had| others(had, foreign_ratio)))
        .collect()
}

fn others(had_ratio: f64, limit_ratio: f64) -> BrokenRule {
    let (had, limit) = (had_ratio * 100.0, limit_ratio * 100.0);
    format!("other processes used at least {had:.1} % of the CPUs' time ({} % are allowed)", three_digits(limit)).into()
}

/// The rules a level broke; none: valid.
pub fn broken(level: &Level, beside: &Surroundings) -> Vec<BrokenRule> {
    let mut out = Vec::new();
    if let Some(target) = level.target_per_s.filter(|t| *t > 0.0) {
        rate(level, target, beside.capacity_per_s.unwrap_or(target), &mut out);
    }
    out.extend(environment(level.energy.as_ref(), beside));
    out
}

/// The part of the rules that is about the machine and its meters, whatever made the load.
pub fn environment(energy: Option<&EnergySample>, beside: &Surroundings) -> Vec<BrokenRule> {
    let mut out = Vec::new();
    if let Some(energy) = energy {
        meters(energy, &mut out);
    }
    if beside.steal_ratio > STEAL_RATIO {
        out.push(format!("the hypervisor took {:.1} % of the CPUs' time", beside.steal_ratio * 100.0).into());
    }
    if beside.n_throttles > 0 {
        out.push(format!("cores slowed down for their heat, {} times", beside.n_throttles).into());
    }
    if beside.n_smis > 0 {
        out.push(BrokenRule::FirmwareInterrupted { n: beside.n_smis });
    }
    out.extend(beside.foreign_ratio.filter(|had| *had > FOREIGN_RATIO).map(|had| others(had, FOREIGN_RATIO)));
    out
}

/// When the quoted meter was silent, for people: every silence, also those too short to spoil the level.
pub fn silences(energy: Option<&EnergySample>) -> Vec<String> {
    let Some((energy, meter)) = energy.and_then(|e| Some((e, e.chosen()?))) else { return Vec::new() };
    let Some(total) = &meter.total else { return Vec::new() };
    let after = |at_ns: u64| show_ns(at_ns.saturating_sub(energy.window.start_at_ns));
    let of = meter.channels.iter().filter(|c| total.of.contains(&c.channel.name) && !c.silences.is_empty());
    of.map(|channel| {
        let when: Vec<String> =
            channel.silences.iter().map(|s| format!("{} to {}", after(s.start_at_ns), after(s.end_at_ns))).collect();
        let name = channel.channel.name.escape_debug();
        format!("the meter ({}, {name}) said nothing from {}; watts are of the rest", meter.meter, when.join(", "))
    })
    .collect()
}

fn rate(level: &Level, target: f64, capacity: f64, out: &mut Vec<BrokenRule>) {
    let seconds = level.window.length_ns() as f64 / 1e9;
    let (expected, off) = (target * seconds, level.per_s - target);
    let sigma_per_s = expected.max(1.0).sqrt() / seconds.max(1e-9);
    let is_saturated = is_saturated(level.ask);
    let short_ratio = if is_saturated { SHORT_RATIO } else { RATE_RATIO };
    if off > RATE_RATIO * capacity || -off > short_ratio * capacity {
        let mut why = format!(
            "{} per second were done and {} asked for: {:.1} % of capacity apart (at most {:.1} %)",
            three_digits(level.per_s),
            three_digits(target),
            off.abs() / capacity * 100.0,
            if off > 0.0 { RATE_RATIO * 100.0 } else { short_ratio * 100.0 }
        );
        if off.abs() < SIGMAS * sigma_per_s {
            why.push_str(
                "; with so few transactions that may be chance: give a longer --interval or a shorter --service",
            );
        }
        out.push(why.into());
    }
    // A full queue finishes what the machine can, not what was planned; there only the plan is Poisson.
    let counted_per_s = if is_saturated { level.n_planned as f64 / seconds.max(1e-9) } else { level.per_s };
    if (counted_per_s - target).abs() > SIGMAS * sigma_per_s {
        let what = if is_saturated { "planned" } else { "done" };
        let sigmas = (counted_per_s - target).abs() / sigma_per_s;
        out.push(
            format!("what was {what} is {sigmas:.1} standard deviations from what was asked for: no chance").into(),
        );
    }
    if level.n_done < level.n_planned && !is_saturated {
        let left = level.n_planned - level.n_done;
        let why =
            format!("{left} of {} planned were not begun before the level's end: the queue grew", level.n_planned);
        out.push(why.into());
    }
}

fn meters(energy: &EnergySample, out: &mut Vec<BrokenRule>) {
    let window_ns = energy.window.length_ns() as f64;
    if let Some((meter, total)) = energy.chosen().and_then(|m| Some((m, m.total.as_ref()?))) {
        let counted =
            meter.channels.iter().filter(|c| c.label == Label::Measured && total.of.contains(&c.channel.name));
        let covered_ns = counted.map(|c| c.covered_ns).min().unwrap_or(0) as f64;
        let silent = 1.0 - covered_ns / window_ns.max(1.0);
        // The first and the last reading may each lie half an interval inside the window.
        let edges = energy.interval_ns as f64 / window_ns.max(1.0);
        if silent > SILENT_RATIO + edges {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share above the limit, at most 1"
            )]
            let permille = (silent * 1e3).round() as u32;
            out.push(BrokenRule::MeterSilent { meter: meter.meter.clone(), permille });
        }
    }
    for witness in energy.witnesses.iter().filter(|w| w.sense == Sense::Temperature) {
        let drift_mc = witness.last.abs_diff(witness.first);
        if drift_mc > DRIFT_MC {
            out.push(format!("{} drifted by {:.1} degrees", witness.name.escape_debug(), drift_mc as f64 / 1e3).into());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::energy::{
        Channel, ChannelSample, Covers, Kind, MeterSample, Total, Witness, series::Series,
    };

    const S: u64 = 1_000_000_000;

    fn level(ask: Ask, target: f64, per_s: f64) -> Level {
        let n = |rate: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let n = (rate * 100.0) as u64;
            n
        };
        Level {
            ask,
            window: Window { start_at_ns: 0, end_at_ns: 100 * S },
            target_per_s: Some(target),
            n_planned: n(target),
            n_done: n(target),
            per_s,
            ..Level::default()
        }
    }

    fn n_broken(level: &Level) -> usize {
        broken(level, &Surroundings { capacity_per_s: Some(1000.0), ..Surroundings::default() }).len()
    }

    #[test]
    fn the_surroundings_are_told_from_what_the_settings_did() {
        let beside = Surroundings { n_smis: 2, foreign_ratio: Some(0.5), ..Surroundings::default() };
        let mut level = Level { foreign_ratio: Some(0.5), ..level(Ask::Share(0.5), 500.0, 100.0) };
        level.broken_rules = broken(&level, &beside);
        let all = by_surroundings(&level, FOREIGN_RATIO);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(level.broken_rules.len() > 2 && all.iter().all(|why| level.broken_rules.contains(why)), "and the rate");
        assert_eq!(by_surroundings(&level, 0.5).len(), 1, "as much as they may");
        assert!(
            by_surroundings(&level, 0.499)[1]
                .to_string()
                .ends_with("used at least 50.0 % of the CPUs' time (49.9 % are allowed)")
        );
        level.foreign_ratio = None;
        assert_eq!(by_surroundings(&level, 0.0).len(), 1, "nobody knows, so nobody is blamed");
    }

    #[test]
    fn the_rate_must_be_near_in_both_senses() {
        // 100 s at 500 per second: sigma is 2.24 per second, and 2 % of capacity are 20.
        assert_eq!(n_broken(&level(Ask::Share(0.5), 500.0, 508.0)), 0);
        assert_eq!(n_broken(&level(Ask::Share(0.5), 500.0, 490.0)), 1, "4.5 sigma");
        assert_eq!(n_broken(&level(Ask::Share(0.5), 500.0, 479.0)), 2, "and beyond 2 %");
        // 100 % may fall short by 2.5 % and not exceed by more than 2 %.
        assert_eq!(n_broken(&level(Ask::Share(1.0), 1000.0, 976.0)), 0);
        assert_eq!(n_broken(&level(Ask::Share(1.0), 1000.0, 974.0)), 1);
        assert_eq!(n_broken(&level(Ask::Share(1.0), 1000.0, 1021.0)), 1);
        let mut few = level(Ask::Share(0.5), 500.0, 525.0);
        few.window.end_at_ns = S;
        let why = broken(&few, &Surroundings { capacity_per_s: Some(1000.0), ..Surroundings::default() });
        assert!(why.len() == 1 && why[0].to_string().contains("may be chance"), "{why:?}");
        let mut idle = level(Ask::Idle, 0.0, 0.0);
        idle.target_per_s = None;
        assert_eq!(n_broken(&idle), 0);
    }

    #[test]
    fn a_queue_that_grew_is_told_but_at_100_percent_it_must() {
        let mut slow = level(Ask::Share(0.9), 900.0, 900.0);
        slow.n_done -= 5;
        assert!(
            broken(&slow, &Surroundings::default())[0].to_string().starts_with("5 of 90000 planned were not begun")
        );
        slow.ask = Ask::Share(1.0);
        assert_eq!(broken(&slow, &Surroundings::default()), []);
    }

    #[test]
    fn steal_heat_and_others_are_named() {
        let beside = Surroundings {
            capacity_per_s: None,
            steal_ratio: 0.006,
            n_throttles: 2,
            n_smis: 1,
            foreign_ratio: Some(0.021),
        };
        let why = broken(&level(Ask::Rate(500.0), 500.0, 500.0), &beside);
        assert!(why.len() == 4 && why[3].to_string().contains("used at least 2.1 %"), "{why:?}");
        let still = Surroundings { foreign_ratio: Some(0.02), ..Surroundings::default() };
        assert_eq!(broken(&level(Ask::Rate(500.0), 500.0, 500.0), &still), []);
    }

    /// One reading a second of a meter that says 100 W, with a hole.
    fn channel(n_missing: u64) -> ChannelSample {
        let channel =
            Channel { id: "p".into(), name: "wall".into(), covers: Covers::Wall, is_part: false, kind: Kind::Power };
        let mut series = Series::new(channel, S);
        (0..=100u64).filter(|s| *s < 10 || *s >= 10 + n_missing).for_each(|s| series.push(s * S, Ok(100_000_000)));
        series.within(Window { start_at_ns: 0, end_at_ns: 100 * S })
    }

    #[test]
    fn a_silent_meter_and_drifting_heat_are_named() {
        let energy = |n_missing| EnergySample {
            window: Window { start_at_ns: 0, end_at_ns: 100 * S },
            chosen: Some("hwmon".into()),
            meters: vec![MeterSample::of("hwmon", "", None, vec![channel(n_missing)])],
            ..EnergySample::default()
        };
        let mut valid = level(Ask::Idle, 0.0, 0.0);
        valid.energy = Some(energy(0));
        assert_eq!(
            valid.energy.as_ref().and_then(|e| e.meters[0].total.as_ref()).map(|t: &Total| t.mean_uw),
            Some(100_000_000)
        );
        assert_eq!(n_broken(&valid), 0);
        valid.energy = Some(energy(5));
        assert!(broken(&valid, &Surroundings::default())[0].to_string().contains("silent for 6.0 %"));
        let said = silences(valid.energy.as_ref());
        assert!(said.len() == 1 && said[0].contains("said nothing from 9"), "{said:?}");
        assert_eq!(silences(Some(&energy(0))), Vec::<String>::new());
        let warm = |last| Witness {
            name: "coretemp Package id 0".into(),
            sense: Sense::Temperature,
            first: 40_000,
            last,
            min: 40_000,
            max: 43_000,
            n: 9,
        };
        valid.energy = Some(EnergySample { witnesses: vec![warm(42_000), warm(42_500)], ..energy(0) });
        let why = broken(&valid, &Surroundings::default());
        assert!(why.len() == 1 && why[0].to_string().contains("drifted by 2.5 degrees"), "{why:?}");
    }
}
