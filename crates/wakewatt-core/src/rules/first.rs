//! Which finding comes first: the one that a reader who stops after one has read.
//!
//! Verdict, *What to do* and the list of findings all ask here, so they cannot name three. Something to mend comes before what
//! is a choice between latency and watts, unless the choice was measured to cost; a choice comes before a hint. Among those of the
//! same weight one that has a plan goes before one that has none, because something can be done about it now.

use super::{Answer, Confidence, CostBasis, Finding, Ruling, Weight, costs_latency, is_choice};

/// What makes it the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// It is to be mended, or was measured to cost.
    ToMend,
    /// Nothing is to be mended; whoever needs latency would change this.
    Choice,
    /// Nothing is to be mended or changed; this is worth a look.
    Hint,
}

/// The first finding, with its place among the rulings and what makes it the first; none without findings.
pub fn first(rulings: &[Ruling]) -> Option<(usize, &Finding, Because)> {
    [Because::ToMend, Because::Choice, Because::Hint].into_iter().find_map(|because| {
        let all = rulings.iter().enumerate().filter_map(|(at, ruling)| match &ruling.answer {
            Answer::Yes(finding) if belongs(ruling, finding, because) => Some((at, &**finding, because)),
            _ => None,
        });
        let all: Vec<_> = all.collect();
        let heaviest = all.first()?.1.weight;
        // Among its like a placeholder comes behind what is better known.
        let is_sure = |finding: &Finding| finding.confidence != Confidence::Low || is_measured(finding);
        let like: Vec<_> = all.into_iter().filter(|(_, finding, _)| finding.weight == heaviest).collect();
        let has_sure = like.iter().any(|(_, finding, _)| is_sure(finding));
        let like: Vec<_> = like.into_iter().filter(|(_, finding, _)| is_sure(finding) || !has_sure).collect();
        let has_plan = like.iter().find(|(_, finding, _)| finding.plan.is_some());
        has_plan.or(like.first()).copied()
    })
}

fn is_measured(finding: &Finding) -> bool {
    finding.cost.basis == CostBasis::Measured
}

fn belongs(ruling: &Ruling, finding: &Finding, because: Because) -> bool {
    let is_measured = is_measured(finding);
    // What rests on little is no fault yet; what was measured in a busy hour was measured.
    let is_heavy = finding.weight != Weight::Note && (is_measured || finding.confidence != Confidence::Low);
    let is_choice = is_choice(&ruling.rule, finding.weight);
    match because {
        Because::ToMend => is_heavy && (is_measured || !is_choice),
        // Only what there is to change, and what latency is paid for with.
        Because::Choice => is_heavy || (is_choice && costs_latency(&ruling.rule) && finding.plan.is_some()),
        Because::Hint => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;
    use crate::plan::{Plan, Step};

    fn ruling(rule: &str, weight: Weight, cost: Cost, has_plan: bool) -> Ruling {
        let finding = Finding {
            id: rule.into(),
            title: rule.into(),
            weight,
            cost,
            confidence: Confidence::Medium,
            evidence: Vec::new(),
            remedy: String::new(),
            plan: has_plan.then(|| {
                let mut plan = Plan::default();
                plan.push(Step { knob: "k".into(), on: None, to: "1".into(), path: "/p".into(), reason: "r".into() });
                plan
            }),
            price: String::new(),
            verify: String::new(),
        };
        Ruling { rule: rule.into(), question: String::new(), answer: Answer::Yes(Box::new(finding)) }
    }

    fn of(rulings: &[Ruling]) -> Option<(&str, Because)> {
        first(rulings).map(|(_, finding, because)| (finding.id.as_str(), because))
    }

    #[test]
    fn what_is_to_mend_comes_before_a_choice_and_a_choice_before_a_hint() {
        let unknown = || Cost::unknown("x");
        let sleep = |cost| ruling("rule.deep-idle-vs-latency", Weight::Risk, cost, true);
        let modules = ruling("rule.dimm-below-rated", Weight::Risk, unknown(), false);
        let note = ruling("rule.snc-nps", Weight::Note, unknown(), false);
        assert_eq!(
            of(&[sleep(unknown()), modules.clone(), note.clone()]),
            Some(("rule.dimm-below-rated", Because::ToMend))
        );
        assert_eq!(of(&[note.clone(), sleep(unknown())]), Some(("rule.deep-idle-vs-latency", Because::Choice)));
        assert_eq!(of(std::slice::from_ref(&note)), Some(("rule.snc-nps", Because::Hint)));
        assert_eq!(of(&[]), None);
        // Four CPUs of 32 on another setting are a fault, whatever the rule.
        let uneven = ruling("rule.epp", Weight::Problem, unknown(), true);
        assert_eq!(of(&[sleep(unknown()), uneven]), Some(("rule.epp", Because::ToMend)));
        let measured = sleep(Cost::measured_ns(1e5, "x"));
        assert_eq!(of(&[measured, modules.clone()]), Some(("rule.deep-idle-vs-latency", Because::ToMend)));
    }

    #[test]
    fn among_equals_the_one_with_a_plan_and_what_is_only_a_hint_last() {
        let make = |rule, weight, has_plan| ruling(rule, weight, Cost::unknown("x"), has_plan);
        let (a, b) = (make("rule.a", Weight::Problem, false), make("rule.b", Weight::Problem, true));
        assert_eq!(of(&[a.clone(), b]), Some(("rule.b", Because::ToMend)));
        assert_eq!(of(&[a, make("rule.c", Weight::Risk, true)]), Some(("rule.a", Because::ToMend)));
        // A choice that rests on a placeholder comes behind one that does not.
        let mut placeholder = make("rule.deep-idle-vs-latency", Weight::Risk, true);
        if let Answer::Yes(finding) = &mut placeholder.answer {
            finding.confidence = Confidence::Low;
        }
        let governor = make("rule.governor", Weight::Risk, true);
        assert_eq!(of(&[placeholder.clone(), governor]), Some(("rule.governor", Because::Choice)));
        let note = make("rule.epp", Weight::Note, true);
        assert_eq!(of(&[placeholder, note]), Some(("rule.deep-idle-vs-latency", Because::Choice)));
        let mut hint = make("rule.d", Weight::Risk, false);
        if let Answer::Yes(finding) = &mut hint.answer {
            finding.confidence = Confidence::Low;
        }
        let heavier = make("rule.e", Weight::Risk, false);
        assert_eq!(of(&[hint.clone(), heavier]), Some(("rule.e", Because::ToMend)));
        assert_eq!(of(&[hint]), Some(("rule.d", Because::Hint)));
    }
}
