//! What watts cost: a price and an emission per kilowatt hour, applied to what a meter said and to nothing else.
//!
//! A year at the measured power is an extrapolation and is called one; the number keeps its interval, the meter it is from
//! and what that meter covers, because the watts of a package are not those of a machine. What no meter measured is not priced:
//! there is no default of so many watts per CPU. What a replay says stays modelled.

use crate::evidence::Evidence;
use crate::samples::Label;
use crate::samples::energy::EnergySample;
use crate::samples::experiment::{ExperimentRun, Unit};
use crate::units::three_digits;
use std::str::FromStr;
use wakewatt_words::{say, word};

const KWH_A_YEAR: f64 = 8.766;
/// Dearer or dirtier than this is a slip of the pen.
const MOST: f64 = 1e6;

/// An amount per kilowatt hour, and what it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct PerKwh {
    amount: f64,
    unit: String,
}

impl FromStr for PerKwh {
    type Err = String;

    /// `0.30/kWh`, `0.30EUR/kWh`, `350g/kWh`.
    fn from_str(text: &str) -> Result<PerKwh, String> {
        let help = || say!("\"{text}\": write an amount per kilowatt hour, such as 0.30/kWh, 0.30EUR/kWh or 350g/kWh");
        let amount = text.trim().strip_suffix("/kWh").ok_or_else(help)?;
        let end = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
        let unit = amount[end..].trim();
        let amount: f64 = amount[..end].parse().map_err(|_| help())?;
        let is_fine = unit.chars().count() <= 8 && unit.chars().all(|c| c.is_alphabetic() || "€$£¥".contains(c));
        if !is_fine || !(0.0..=MOST).contains(&amount) {
            return Err(help());
        }
        Ok(PerKwh { amount, unit: unit.into() })
    }
}

impl PerKwh {
    /// An emission is in grams or kilograms; a bare number would not say which.
    pub fn emission(text: &str) -> Result<PerKwh, String> {
        let found: PerKwh = text.parse()?;
        match found.unit.as_str() {
            "g" => Ok(PerKwh { amount: found.amount / 1000.0, unit: "kg".into() }),
            "kg" => Ok(found),
            _ => Err(say!("\"{text}\": write grams or kilograms per kilowatt hour, such as 350g/kWh")),
        }
    }

    /// Of so many watts for a year.
    fn a_year(&self, watts: f64) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{}{unit}", three_digits(watts * KWH_A_YEAR * self.amount))
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Money per kilowatt hour.
    pub price: Option<PerKwh>,
    /// Kilograms of carbon dioxide per kilowatt hour.
    pub emission: Option<PerKwh>,
}

/// Watts that somebody said.
struct Watts {
    what: String,
    watts: f64,
    interval: Option<(f64, f64)>,
    /// What the interval is of, or why there is none.
    covers: String,
    label: &'static str,
}

impl Rates {
    /// Was anything asked for?
    pub fn is_asked(&self) -> bool {
        self.price.is_some() || self.emission.is_some()
    }

    /// One sentence for each power that was measured, or why nothing is priced. Nothing where nothing was asked for.
    pub fn sentences(&self, evidence: &Evidence) -> Vec<String> {
        if !self.is_asked() {
            return Vec::new();
        }
        let found = watts(evidence);
        if found.is_empty() {
            return vec![word!("Not priced: no meter measured watts in this run, and none are guessed.").into()];
        }
        found.iter().map(|w| self.sentence(w)).collect()
    }

    fn sentence(&self, w: &Watts) -> String {
        let unit = if w.watts.abs() < 1.0 { (1e3, "mW") } else { (1.0, "W") };
        let show = |watts: f64| format!("{} {}", three_digits(watts * unit.0), unit.1);
        let between = w.interval.map_or_else(
            || say!("no interval: {}", w.covers),
            |(low, high)| say!("95 % interval {} to {}, covers {}", show(low), show(high), w.covers),
        );
        let cost = |rate: &PerKwh, of: &str| {
            let range = w.interval.map(|(low, high)| format!(" ({} to {})", rate.a_year(low), rate.a_year(high)));
            format!("{}{of}{}", rate.a_year(w.watts), range.unwrap_or_default())
        };
        let costs: Vec<String> = [(&self.price, ""), (&self.emission, " CO2")]
            .into_iter()
            .filter_map(|(rate, of)| Some(cost(rate.as_ref()?, of)))
            .collect();
        let costs = costs.join(word!(" and "));
        say!("{}: {} ({}; {between}); a year of that would be {costs}", w.what, show(w.watts), w.label)
    }
}

fn label(label: Label) -> &'static str {
    match label {
        Label::Measured => word!("measured"),
        _ => word!("modelled"),
    }
}

/// Everything in a run that is power.
fn watts(evidence: &Evidence) -> Vec<Watts> {
    let samples = &evidence.samples;
    let mut all: Vec<Watts> = samples.energy.iter().filter_map(|e| of_meter(word!("power"), e)).collect();
    for run in &samples.load {
        let levels = run.levels.iter().filter(|level| level.broken_rules.is_empty());
        all.extend(levels.filter_map(|l| of_meter(&format!("{}, {}", run.title, l.ask), l.energy.as_ref()?)));
    }
    all.extend(samples.all_experiments().flat_map(of_experiment));
    for replayed in samples.replays.iter().filter(|r| r.followed.is_enough()) {
        let ns = replayed.window_ns.filter(|ns| *ns > 0);
        all.extend(ns.map(|ns| Watts {
            what: say!("replay, {}, while idle", replayed.setting_words()),
            // Microjoules in nanoseconds are kilowatts.
            watts: replayed.predicted.modelled_energy_uj / ns as f64 * 1e3,
            interval: None,
            covers: word!("a model has none").into(),
            label: word!("modelled"),
        }));
    }
    all
}

fn of_meter(what: &str, sample: &EnergySample) -> Option<Watts> {
    let meter = sample.chosen()?;
    let total = meter.total.as_ref().filter(|t| t.mean_uw > 0)?;
    let watts = total.mean_uw as f64 / 1e6;
    let half = total.uncertainty_uw.map(|uw| uw as f64 / 1e6);
    let missing = if total.without.is_empty() { "" } else { word!(", too low: a channel gave nothing") };
    let covers = match (half, meter.label) {
        (None, _) => word!("too little was read for one"),
        (Some(_), Label::Measured) => word!("this window"),
        // How often the model was asked, not how well it fits a machine.
        (Some(_), _) => word!("the model's replications and no machine"),
    };
    Some(Watts {
        what: say!("{what}, by {} ({}{missing})", meter.meter, total.covers),
        watts,
        interval: half.map(|half| ((watts - half).max(0.0), watts + half)),
        covers: covers.into(),
        label: label(meter.label),
    })
}

/// What each setting saves or costs, where power was a metric.
fn of_experiment(run: &ExperimentRun) -> impl Iterator<Item = Watts> + '_ {
    run.effects.iter().filter_map(|effect| {
        let metric = run.metrics.iter().find(|m| m.id == effect.metric && m.unit == Unit::Microwatts)?;
        // Effects are baseline less arm; whoever pays asks what the arm takes more.
        Some(Watts {
            what: say!("{}, \"{}\" less \"{}\"", metric.title, effect.arm, effect.baseline),
            watts: -effect.difference / 1e6,
            interval: Some((-effect.difference_high / 1e6, -effect.difference_low / 1e6)),
            covers: effect.covers.words().into(),
            label: word!("measured"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Samples;
    use crate::samples::energy::{MeterSample, Total};
    use proptest::prelude::*;

    fn metered(mean_uw: u64, uncertainty_uw: Option<u64>) -> Evidence {
        let total = Total { covers: "package".into(), mean_uw, uncertainty_uw, ..Total::default() };
        let meter = MeterSample { label: Label::Measured, total: Some(total), ..MeterSample::unavailable("rapl", "x") };
        let energy = EnergySample { chosen: Some("rapl".into()), meters: vec![meter], ..EnergySample::default() };
        Evidence::of(Samples { energy: vec![energy], ..Samples::default() })
    }

    fn rates(price: &str, emission: Option<&str>) -> Rates {
        Rates { price: Some(price.parse().unwrap()), emission: emission.map(|e| PerKwh::emission(e).unwrap()) }
    }

    #[test]
    fn watts_are_priced_with_their_meter_and_interval() {
        let said = rates("0.30EUR/kWh", Some("350g/kWh")).sentences(&metered(100_000_000, Some(1_000_000)));
        let wanted = "power, by rapl (package): 100 W (measured; 95 % interval 99 W to 101 W, covers this window); a year of that would be \
                      263 EUR (260 EUR to 266 EUR) and 307 kg CO2 (304 kg to 310 kg)";
        assert_eq!(said, [wanted]);
        let mut model = metered(100_000_000, Some(1_000_000));
        model.samples.energy[0].meters[0].label = Label::Modelled;
        let said = rates("0.30/kWh", None).sentences(&model);
        assert!(
            said[0].contains("(modelled; 95 % interval 99 W to 101 W, covers the model's replications and no machine)"),
            "{said:?}"
        );
        let said = rates("0.30/kWh", None).sentences(&metered(500_000, None));
        assert!(said[0].contains("500 mW (measured; no interval") && said[0].ends_with("would be 1.31"), "{said:?}");
    }

    #[test]
    fn what_nobody_measured_is_not_priced() {
        let nothing = Evidence::default();
        assert!(rates("0.3/kWh", None).sentences(&nothing)[0].starts_with("Not priced: no meter"));
        assert!(Rates::default().sentences(&nothing).is_empty(), "nobody asked");
        assert!(rates("0.3/kWh", None).sentences(&metered(0, None))[0].starts_with("Not priced"), "a dead meter");
    }

    #[test]
    fn amounts_are_read_and_slips_refused() {
        let parsed = |text: &str| text.parse::<PerKwh>().map(|p| (p.amount, p.unit));
        assert_eq!(parsed("0.30/kWh"), Ok((0.3, String::new())));
        assert_eq!(parsed("25 ct/kWh"), Ok((25.0, "ct".into())));
        for text in ["", "0.3", "x/kWh", "-1/kWh", "1e9/kWh", "99999999/kWh", "1<b>/kWh", "1.2.3/kWh", "/kWh"] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert!(PerKwh::emission("350/kWh").unwrap_err().contains("grams"));
        assert_eq!(PerKwh::emission("0.35kg/kWh"), PerKwh::emission("350g/kWh"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "\\PC{0,20}") {
            let _ = (text.parse::<PerKwh>(), PerKwh::emission(&text));
        }
    }
}
