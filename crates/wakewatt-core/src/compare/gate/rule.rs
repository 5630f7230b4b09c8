//! A rule of a gate as people write it: `slower:5%`, `watts:3%`, `slower@p99:10%`, `unsure`.
//!
//! What is named is an aspect, so that a pipeline need not know the fifty quantities of a run; behind `@` stands a part of the
//! id or the title where only some of them count. The number is how much worse the second side may be.

use crate::compare::measure::Aspect;
use std::fmt;
use std::str::FromStr;
use wakewatt_words::{say, told};

/// The words before the colon, what they look at, and what that is for people.
const SUBJECTS: &[(&str, &[Aspect], &str)] = &[
    ("slower", &[Aspect::Latency, Aspect::Rate], "latency or rate"),
    ("latency", &[Aspect::Latency], "latency"),
    ("rate", &[Aspect::Rate], "rate"),
    ("watts", &[Aspect::Power], "power"),
    ("cpu", &[Aspect::CpuTime], "CPU time"),
    ("wakeups", &[Aspect::Disturbance], "wake-ups"),
    ("work-per-joule", &[Aspect::WorkPerEnergy], "work per energy"),
    ("score", &[Aspect::Figure], "figure of a benchmark"),
    (
        "any",
        &[
            Aspect::Latency,
            Aspect::Rate,
            Aspect::Power,
            Aspect::CpuTime,
            Aspect::Disturbance,
            Aspect::WorkPerEnergy,
            Aspect::Figure,
        ],
        "quantity",
    ),
];
/// More than ten times as bad is no allowance.
const MOST_PERCENT: f64 = 1000.0;

/// What rules look at, in words that are looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    SUBJECTS.iter().map(|(.., words)| *words)
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Fails where something is worse than allowed, beyond doubt.
    Worse(Worse),
    /// Fails where another rule cannot tell.
    Unsure,
}

/// How much worse something may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Worse {
    at: usize,
    part: Option<String>,
    /// 0.05 for 5 %.
    pub allowed_ratio: f64,
}

impl Worse {
    /// Does it look at a quantity of this aspect, id and title?
    pub fn is_about(&self, aspect: Aspect, id: &str, title: &str) -> bool {
        let has = |part: &String| id.contains(part.as_str()) || title.contains(part.as_str());
        SUBJECTS[self.at].1.contains(&aspect) && self.part.as_ref().is_none_or(has)
    }

    /// What it looks at, for people.
    pub fn subject(&self) -> String {
        let of = self.part.as_ref().map_or(String::new(), |part| say!(" with \"{part}\" in its name"));
        format!("{}{of}", told(SUBJECTS[self.at].2))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Unsure => f.write_str("unsure"),
            Rule::Worse(worse) => {
                let part = worse.part.as_ref().map_or(String::new(), |part| format!("@{part}"));
                // A percentage that was typed comes back as it was.
                let percent = (worse.allowed_ratio * 1e8).round() / 1e6;
                write!(f, "{}{part}:{percent}%", SUBJECTS[worse.at].0)
            }
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let help = || {
            let names: Vec<&str> = SUBJECTS.iter().map(|(name, ..)| *name).collect();
            say!(
                "say METRIC:PERCENT, such as slower:5% or latency@p99:10%, or unsure; metrics are {}",
                names.join(", ")
            )
        };
        if text == "unsure" {
            return Ok(Rule::Unsure);
        }
        let (what, percent) = text.rsplit_once(':').ok_or_else(help)?;
        let (name, part) = what.split_once('@').map_or((what, None), |(name, part)| (name, Some(part.to_string())));
        let at = SUBJECTS.iter().position(|(known, ..)| *known == name).ok_or_else(help)?;
        let number: f64 = percent.strip_suffix('%').and_then(|n| n.trim().parse().ok()).ok_or_else(help)?;
        if part.as_ref().is_some_and(String::is_empty) || !(0.0..=MOST_PERCENT).contains(&number) {
            return Err(help());
        }
        Ok(Rule::Worse(Worse { at, part, allowed_ratio: number / 100.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_are_read_and_shown_as_they_were_written() {
        for text in ["slower:5%", "watts:0%", "cpu:2.5%", "latency@p99:10%", "any@steps, 50 %: x:1000%", "unsure"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        for text in
            ["", "slower", "slower:5", "slower:-1%", "slower:nan%", "slower:1001%", "fast:5%", "slower@:5%", "5%"]
        {
            assert!(text.parse::<Rule>().unwrap_err().contains("slower:5%"), "{text}");
        }
    }

    #[test]
    fn a_rule_looks_at_its_aspect_and_its_part() {
        let Ok(Rule::Worse(rule)) = "slower@p99:5%".parse() else { panic!("no rule") };
        assert!(rule.is_about(Aspect::Latency, "disk.d1.p99", "") && !rule.is_about(Aspect::Power, "p99", ""));
        assert!(!rule.is_about(Aspect::Rate, "load.rate", "at 50 %") && rule.is_about(Aspect::Rate, "", "p99 of it"));
        let Ok(Rule::Worse(any)) = "any:5%".parse() else { panic!("no rule") };
        assert!(!any.is_about(Aspect::Modelled, "replay", ""), "a model is not judged");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "\\PC{0,40}") {
            let _ = text.parse::<Rule>();
        }
    }
}
