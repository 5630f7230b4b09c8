//! One plain sentence per arm: what it does to the primary metric, what it costs, and what the experiment cannot say.
//!
//! "performance answers 1.8 times as fast as ondemand (99.2 % 1.6-2.1, 12 blocks of this run) and costs 9 W more; the experiment cannot
//! say whether …". Only what the adjusted tests allow is said: without a verdict no direction, without a meter no watts,
//! and between two looks nothing at all.

use super::verdict::too_busy;
use super::words::{ended, listed};
use wakewatt_core::samples::busy::lost_to_others;
use wakewatt_core::samples::ended::How;
use wakewatt_core::samples::experiment::{Better, Effect, Metric, Unit, Verdict};
use wakewatt_core::samples::study::{Comparison, Study};
use wakewatt_core::units::three_digits;
use wakewatt_words::{say, word};

/// Secondary metrics of which something is shown, named in a sentence at most.
const N_NAMED: usize = 2;

/// The interval that holds whenever one stops, turned like the ratio beside it.
fn at_any_time(comparison: &Comparison) -> String {
    comparison.any_time.map_or(String::new(), |found| {
        let (low, high) = (1.0 / found.ratio_high, 1.0 / found.ratio_low);
        say!(
            "({}\u{2013}{}, which holds at 95 % whenever a run ends and covers {}) ",
            three_digits(low),
            three_digits(high),
            found.covers
        )
    })
}

/// One per other arm.
pub(crate) fn of(study: &Study) -> Vec<String> {
    study.run.arms.iter().skip(1).map(|arm| sentence(study, &arm.id)).collect()
}

fn sentence(study: &Study, arm: &str) -> String {
    let Some((primary, secondary)) = study.run.metrics.split_first() else { return String::new() };
    let find = |metric: &Metric| {
        study.conclusions.comparisons.iter().find(|c| c.effect.arm == arm && c.effect.metric == metric.id)
    };
    let baseline = study.run.arms.first().map_or("", |a| a.id.as_str());
    let Some(comparison) = find(primary) else {
        if let Some(busy) = lost_to_others(&study.run) {
            return say!("{arm}: {}", too_busy(busy));
        }
        let has_any = study.run.blocks.iter().any(|b| b.values.first().copied().flatten().is_some());
        return match has_any {
            true => say!("{arm}: too few blocks counted to compare it with {baseline}."),
            false => say!(
                "{arm}: not compared with {baseline}, because no block has a value of the primary metric ({}); a percentile needs ten samples beyond it, so measure longer.",
                primary.title
            ),
        };
    };
    if !study.conclusions.is_final {
        let effect = &comparison.effect;
        return say!(
            "{arm}: no verdict, because the run ended between two looks; so far {} is {} times that of {baseline} {}after {} ({} go on with it: wakewatt experiment resume).",
            primary.title,
            three_digits(effect.inverted().ratio),
            at_any_time(comparison),
            blocks(effect.n_pairs),
            if study.run.ended.how == How::Interrupted { word!("interrupted;") } else { word!("it failed;") },
        );
    }
    if !study.run.is_sized() {
        let what = match comparison.effect.verdict {
            Verdict::Higher | Verdict::Lower => word!("differs from"),
            Verdict::NoDifference | Verdict::Undecided => word!("is not told apart from"),
        };
        let why = study.run.graded().reasons();
        return say!("{arm} {what} {baseline} in the {}, and no size is told: {why}.", primary.title);
    }
    let (mut said, mut unknown) = (vec![main_clause(study, primary, comparison)], Vec::new());
    let has_watts = |m: &&Metric| m.unit == Unit::Microwatts && find(m).is_some_and(|c| c.effect.n_pairs > 0);
    let metrics = || study.run.metrics.iter().filter(has_watts);
    // The watts of what the primary metric says, so that a latency is not paid for with another level's power.
    let own = own_watts(&primary.id).find_map(|id| metrics().find(|m| m.id == id));
    let of_another = own.is_none().then(|| metrics().next()).flatten();
    let at = of_another.map_or(String::new(), |m| format!(" ({})", m.title));
    match own.or(of_another).and_then(|m| Some((m, find(m)?))) {
        Some((metric, _)) if metric.id == primary.id => {}
        Some((_, c)) => match c.effect.verdict {
            Verdict::Higher | Verdict::Lower => {
                let more_w = -c.effect.difference / 1e6;
                let word = if more_w >= 0.0 { word!("more") } else { word!("less") };
                said.push(say!("costs {} W {word}{at}", three_digits(more_w.abs())));
            }
            Verdict::NoDifference => said.push(say!("costs as many watts, within {} %{at}", margin(study))),
            Verdict::Undecided => unknown.push(say!("what it costs in watts{at}")),
        },
        None => unknown.push(word!("what it costs in watts, without a power meter").into()),
    }
    // Who cannot say the first thing need not list the others; the table does.
    if comparison.effect.verdict == Verdict::Undecided {
        return ended(&format!("{arm} {}", list(&said, word!("and"))));
    }
    let (mut n_named, mut open) = (0, Vec::new());
    for metric in secondary.iter().filter(|m| m.unit != Unit::Microwatts) {
        let Some(c) = find(metric) else { continue };
        match c.effect.verdict {
            Verdict::NoDifference => {}
            Verdict::Undecided if !c.is_no_harm => open.push(metric.title.as_str()),
            _ if n_named >= N_NAMED => {}
            Verdict::Higher | Verdict::Lower => {
                said.push(change(metric, &c.effect));
                n_named += 1;
            }
            Verdict::Undecided => {
                said.push(say!("does not worsen the {} by more than {} %", metric.title, margin(study)));
                n_named += 1;
            }
        }
    }
    match &open[..] {
        [] => {}
        [one] => unknown.push(say!("whether the {one} differs")),
        many => unknown.push(say!("whether {} other metrics differ", many.len())),
    }
    let mut sentence = format!("{arm} {}", list(&said, word!("and")));
    if !unknown.is_empty() {
        sentence += &say!("; the experiment cannot say {}", list(&unknown, word!("or")));
    }
    ended(&sentence)
}

/// What the watts beside a metric may be called, nearest first: `steps.50.p99` has `steps.50.watts`, and
/// `wakeup.eventfd.p50` has `wakeup.watts`.
fn own_watts(id: &str) -> impl Iterator<Item = String> {
    let mut rest = id;
    std::iter::from_fn(move || {
        rest = rest.rsplit_once('.')?.0;
        Some(format!("{rest}.watts"))
    })
}

fn list(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {word} {last}", listed(most)),
    }
}

fn blocks(n: usize) -> String {
    if n == 1 { word!("1 block").into() } else { say!("{n} blocks") }
}

fn margin(study: &Study) -> String {
    three_digits((study.conclusions.margin_ratio - 1.0) * 100.0)
}

/// How sure intervals are: `95 %`, or what the look that judges the run has.
pub(crate) fn sure(study: &Study) -> String {
    let percent = format!("{:.1}", (1.0 - study.conclusions.level) * 100.0);
    format!("{} %", percent.strip_suffix(".0").unwrap_or(&percent))
}

fn main_clause(study: &Study, metric: &Metric, c: &Comparison) -> String {
    let (effect, baseline) = (&c.effect, &c.effect.baseline);
    let sure = sure(study);
    // Of how much it speaks: this many blocks of this run.
    let of = say!("{} of {}", blocks(effect.n_pairs), effect.covers);
    let interval = |low: f64, high: f64| format!("({sure} {}-{}, {of})", two_digits(low), two_digits(high));
    // How many times the arm's value is the baseline's.
    let turned = effect.inverted();
    let (times, low, high) = (turned.ratio, turned.ratio_low, turned.ratio_high);
    match effect.verdict {
        Verdict::NoDifference => say!(
            "and {baseline} differ by less than {} % in the {} ({sure} {}-{} times, {of})",
            margin(study),
            metric.title,
            two_digits(low),
            two_digits(high)
        ),
        Verdict::Undecided => {
            let limit = match c.detectable_ratio {
                Some(ratio) => say!("less than about {} % could not be seen", three_digits((ratio - 1.0) * 100.0)),
                None => word!("so few blocks prove nothing, however large it is").into(),
            };
            let interval = effect
                .interval()
                .map_or(String::new(), |_| say!("{sure} {}-{} times, ", two_digits(low), two_digits(high)));
            say!(
                "may or may not differ from {baseline} in the {}: the experiment cannot say ({interval}{of}; {limit})",
                metric.title
            )
        }
        Verdict::Higher if metric.is_latency() => say!(
            "answers {} times as fast as {baseline} {}",
            two_digits(effect.ratio),
            interval(effect.ratio_low, effect.ratio_high)
        ),
        Verdict::Lower if metric.is_latency() => {
            say!("takes {} times as long to answer as {baseline} {}", two_digits(times), interval(low, high))
        }
        Verdict::Higher | Verdict::Lower => {
            let does = match metric.unit {
                Unit::PerSecond if metric.better == Better::Higher => {
                    say!("does {} times the work of {baseline}", two_digits(times))
                }
                Unit::Microwatts => say!("draws {} times the power of {baseline}", two_digits(times)),
                Unit::PerJoule => say!("does {} times as much work per energy as {baseline}", two_digits(times)),
                _ => say!("has {} times {baseline}'s {}", two_digits(times), metric.title),
            };
            format!("{does} {}", interval(low, high))
        }
    }
}

/// A secondary metric that is shown to differ.
fn change(metric: &Metric, effect: &Effect) -> String {
    let times = effect.inverted().ratio;
    let is_better = (metric.better == Better::Lower) == (times < 1.0);
    let word = if is_better { word!("improves") } else { word!("worsens") };
    say!("{word} the {} to {} times", metric.title, two_digits(times))
}

/// Two significant digits, three below 1.2: a third would pretend, and 1.05 is not 1.1.
fn two_digits(value: f64) -> String {
    if (0.8..1.2).contains(&value) {
        format!("{value:.2}")
    } else if value >= 9.95 {
        format!("{value:.0}")
    } else if value >= 0.1 {
        format!("{value:.1}")
    } else {
        three_digits(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::experiment::{Arm, ExperimentRun};
    use wakewatt_core::samples::study::AnyTime;
    use wakewatt_core::samples::study::{Conclusions, StudyHost};

    fn comparison(metric: &str, verdict: Verdict, ratio: f64, difference: f64) -> Comparison {
        let (ratio_low, ratio_high) = (ratio * 0.9, ratio * 1.15);
        let effect = Effect {
            covers: wakewatt_core::covers::Covers::Run,
            metric: metric.into(),
            baseline: "ondemand".into(),
            arm: "performance".into(),
            ratio,
            ratio_low,
            ratio_high,
            difference,
            difference_low: difference - 1.0,
            difference_high: difference + 1.0,
            confidence: None,
            p_value: 0.001,
            at_look: None,
            n_pairs: 12,
            verdict,
        };
        Comparison {
            effect,
            equivalence_p: 1.0,
            no_harm_p: 1.0,
            is_no_harm: false,
            detectable_ratio: Some(1.08),
            any_time: None,
        }
    }

    fn said(comparisons: Vec<Comparison>, metrics: Vec<Metric>, is_final: bool) -> String {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let run = ExperimentRun {
            arms: vec![arm("ondemand"), arm("performance")],
            metrics,
            seed: 1,
            ended: How::Interrupted.into(),
            ..ExperimentRun::default()
        };
        let conclusions = Conclusions {
            name: "x".into(),
            question: "?".into(),
            host: StudyHost::default(),
            looks: vec![],
            margin_ratio: 1.05,
            level: 0.0078,
            is_final,
            sentences: vec![],
            comparisons,
            noise: vec![],
            skipped: vec![],
            rejected: vec![],
            remarks: vec![],
            run_dir: None,
        };
        let study = Study { conclusions, run, loads: vec![] };
        of(&study).remove(0)
    }

    fn metrics() -> Vec<Metric> {
        vec![
            Metric::latency("steps.50.p50", "median answer"),
            Metric::power("steps.50.watts", "mean power"),
            Metric::latency("steps.50.p99", "99th percentile"),
        ]
    }

    #[test]
    fn what_is_shown_is_said_and_what_is_not_is_said_to_be_unknown() {
        let all = vec![
            comparison("steps.50.p50", Verdict::Higher, 1.8, 1e5),
            comparison("steps.50.watts", Verdict::Lower, 0.9, -9e6),
            comparison("steps.50.p99", Verdict::Undecided, 1.1, 10.0),
        ];
        assert_eq!(
            said(all.clone(), metrics(), true),
            "performance answers 1.8 times as fast as ondemand (99.2 % 1.6-2.1, 12 blocks of this run) and costs 9 W more; the experiment cannot say whether the 99th percentile differs."
        );
        assert_eq!(
            said(all[..1].to_vec(), metrics()[..1].to_vec(), true),
            "performance answers 1.8 times as fast as ondemand (99.2 % 1.6-2.1, 12 blocks of this run); the experiment cannot say what it costs in watts, without a power meter."
        );
        let known = AnyTime { ratio_low: 1.25, ratio_high: 2.5, covers: wakewatt_core::covers::Covers::Run };
        let at_any_time: Vec<_> = all.iter().map(|c| Comparison { any_time: Some(known), ..c.clone() }).collect();
        let said_so_far = said(at_any_time, metrics(), false);
        assert!(
            said_so_far.contains("(0.4\u{2013}0.8, which holds at 95 % whenever a run ends and covers this run)"),
            "{said_so_far}"
        );
        let open = said(all, metrics(), false);
        assert!(open.contains("no verdict") && !open.contains("faster") && !open.contains("costs"), "{open}");
    }

    #[test]
    fn watts_are_those_of_the_level_whose_latency_is_told_or_the_level_is_named() {
        let mut metrics = metrics();
        metrics.insert(1, Metric::power("steps.100.watts", "load at 100 %, mean power"));
        let all = vec![
            comparison("steps.50.p50", Verdict::Higher, 1.8, 1e5),
            comparison("steps.100.watts", Verdict::Lower, 0.7, -30e6),
            comparison("steps.50.watts", Verdict::Lower, 0.9, -9e6),
        ];
        let both = said(all.clone(), metrics.clone(), true);
        assert!(both.contains("costs 9 W more;") || both.contains("costs 9 W more."), "{both}");
        let other = said(all[..2].to_vec(), metrics, true);
        assert!(other.contains("costs 30 W more (load at 100 %, mean power)"), "{other}");
        assert!(own_watts("loopback.network.udp.p50").any(|id| id == "loopback.network.watts"));
    }

    #[test]
    fn it_refuses_to_conclude_when_it_cannot() {
        let undecided = said(vec![comparison("steps.50.p50", Verdict::Undecided, 1.02, 1.0)], metrics(), true);
        assert!(
            undecided.starts_with(
                "performance may or may not differ from ondemand in the median answer: the experiment cannot say"
            ),
            "{undecided}"
        );
        assert!(undecided.contains("less than about 8 % could not be seen"), "{undecided}");
        let none = said(vec![comparison("steps.50.p50", Verdict::NoDifference, 1.0, 0.0)], metrics(), true);
        assert!(none.contains("differ by less than 5 % in the median answer"), "{none}");
        let slow = said(vec![comparison("steps.50.p50", Verdict::Lower, 0.5, -1e5)], metrics(), true);
        assert!(
            slow.contains("takes 2.0 times as long to answer as ondemand (99.2 % 1.7-2.2, 12 blocks of this run)"),
            "{slow}"
        );
        assert!(said(vec![], metrics(), true).contains("no block has a value of the primary metric (median answer)"));
        let rate = vec![Metric::rate("shop.500.rate", "requests")];
        let more = said(vec![comparison("shop.500.rate", Verdict::Lower, 0.8, -10.0)], rate, true);
        assert!(more.starts_with("performance does 1.2 times the work of ondemand"), "{more}");
        let mut count = Metric::rate("alone.switches", "context switches");
        count.better = Better::Lower;
        let busier = said(vec![comparison("alone.switches", Verdict::Lower, 0.8, -10.0)], vec![count], true);
        assert!(busier.starts_with("performance has 1.2 times ondemand's context switches"), "{busier}");
    }

    #[test]
    fn no_harm_is_a_claim_of_its_own() {
        let mut p99 = comparison("steps.50.p99", Verdict::Undecided, 1.03, 10.0);
        p99.is_no_harm = true;
        let all = vec![comparison("steps.50.p50", Verdict::Higher, 1.8, 1e5), p99];
        let said = said(all, metrics(), true);
        assert!(said.contains("does not worsen the 99th percentile by more than 5 %"), "{said}");
    }
}
