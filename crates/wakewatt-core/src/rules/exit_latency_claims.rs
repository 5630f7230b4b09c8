//! Do idle states cost what they claim?
//!
//! The claim in `cpuidle/stateK/latency` is what latency limits and governors calculate with. It comes from a table in
//! the driver or from firmware, and on record it is off both ways: firmware tables copied between boards, guests whose
//! HLT claims 1 us and leaves through the hypervisor. Measured with one state allowed at a time
//! ([`crate::samples::state_cost`]); a state counts only where it was really entered, and more than 3 times off, beyond
//! the spread of the rounds, is far off. Too low a claim breaks every limit that relies on it; too high a claim wastes
//! watts, and since a claim is a worst case, one run is weaker evidence for that.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::samples::state_cost::{ClaimOff, FAR_OFF};
use crate::units::{show_ns, three_digits};
use wakewatt_words::{say, word};

pub(super) struct ExitLatencyClaims;

impl Rule for ExitLatencyClaims {
    fn id(&self) -> &'static str {
        "rule.exit-latency-claims"
    }
    fn question(&self) -> &'static str {
        word!("do idle states cost much more or less to leave than they claim?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let all = || evidence.samples.idle_states.iter().flat_map(|c| c.states.iter().map(move |s| (c, s)));
        let n = all().filter(|(_, s)| s.is_claim_judged()).count();
        if n == 0 {
            return Answer::cannot_tell(
                word!(
                    "no idle state that claims an exit latency was measured alone, really entered and woken unannounced"
                ),
                word!("sudo wakewatt measure idle, at a time when the machine is quiet"),
            );
        }
        let off = all().filter_map(|(c, s)| Some((c, s, s.claim_off()?)));
        let worst = off.max_by(|a, b| a.2.ratio.max(0.001).ln().abs().total_cmp(&b.2.ratio.max(0.001).ln().abs()));
        let Some((costs, state, off)) = worst else {
            return Answer::no(say!(
                "{n} measured, each within {FAR_OFF} times of its claim, as far as the rounds can tell"
            ));
        };
        let ClaimOff { claimed_ns, above_floor_ns, extra, kind, ratio } = off;
        let is_low = ratio > 1.0;
        let floor = costs.floor.as_deref().unwrap_or(word!("the floor"));
        // Polling claims nothing; where the floor is a state with an exit of its own, both numbers are beyond that.
        let above = if above_floor_ns == claimed_ns { String::new() } else { say!(" above {floor}'s") };
        let title = say!(
            "{} claims an exit latency of {}{above} and costs {} over {floor} ({} times the claim)",
            state.name,
            show_ns(above_floor_ns),
            words(extra.median_ns),
            three_digits(ratio)
        );
        let (weight, confidence) =
            if is_low { (Weight::Risk, Confidence::Medium) } else { (Weight::Note, Confidence::Low) };
        let missing_ns = extra.median_ns - above_floor_ns as f64;
        let cost = match is_low {
            true => Cost::measured_ns(
                missing_ns,
                say!("each wake-up out of it takes {} longer than claimed", words(missing_ns)),
            ),
            false => Cost::unknown(word!(
                "a latency limit below the claim forbids a state that would keep it; the watts are not measured"
            )),
        };
        Finding::new(self, weight, confidence, title, cost)
            .on(format!("/sys/devices/system/cpu/cpu{}/cpuidle/state{}/latency", costs.cpu, state.index), show_ns(claimed_ns))
            .on(
                say!("{} wake-ups of CPU {}, one state at a time", kind.word(), costs.cpu),
                say!("{} [{}, {}] over {} rounds", words(extra.median_ns), words(extra.low_ns), words(extra.high_ns), extra.n_rounds),
            )
            .remedy(
                word!("Choose latency limits by the measured cost, not by the claim: give tune the limit that admits or excludes \
                    the state by its claimed number."),
                word!("None; the table itself cannot be changed at run time."),
                word!("wakewatt measure idle again, and wakewatt measure wakeup under the limit"),
            )
            .yes()
    }
}

fn words(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded size, far below 2^64
    let size = show_ns(ns.abs().round() as u64);
    if ns < 0.0 { format!("-{size}") } else { size }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::distribution::Distribution;
    use crate::samples::Samples;
    use crate::samples::state_cost::{Extra, StateCost, StateCosts, StateWake};
    use crate::samples::wakeup::WakeKind;

    pub(in crate::rules) fn host(claimed_ns: u64, extra_ns: f64, not_entered: Option<&str>) -> Evidence {
        host_by(WakeKind::Ipi, 0, claimed_ns, extra_ns, not_entered)
    }

    fn host_by(
        kind: WakeKind,
        over_claimed_ns: u64,
        claimed_ns: u64,
        extra_ns: f64,
        not_entered: Option<&str>,
    ) -> Evidence {
        let extra = Extra {
            median_ns: extra_ns,
            low_ns: extra_ns * 0.9,
            high_ns: extra_ns * 1.1,
            n_rounds: 6,
            over_claimed_ns,
        };
        let wake = StateWake {
            n_entered: 1000,
            n_entered_any: 1000,
            extra: Some(extra),
            ..StateWake::of(kind, Distribution::default(), Vec::new())
        };
        let state = StateCost {
            index: 3,
            name: "C6".into(),
            is_polling: false,
            claimed_exit_ns: Some(claimed_ns),
            claimed_residency_ns: None,
            allowed_by: String::new(),
            n_entered: 1000,
            n_entered_any: 1000,
            time_ns: 1,
            n_rejected: None,
            not_entered: not_entered.map(str::to_string),
            wakes: vec![wake],
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
        };
        let costs = StateCosts {
            driver: Some("intel_idle".into()),
            n_rounds: 6,
            floor: Some("POLL".into()),
            ..StateCosts::of(1, vec![state])
        };
        Evidence::of(Samples { idle_states: vec![costs], ..Samples::default() })
    }

    #[test]
    fn off_by_more_than_three_either_way() {
        assert_eq!(
            line(&ExitLatencyClaims, &host(10_000, 60_000.0, None)),
            "yes risk measured: c6 claims an exit latency of 10us and costs 60us over poll (6 times the claim)"
        );
        assert!(line(&ExitLatencyClaims, &host(170_000, 20_000.0, None)).starts_with("yes note unknown"));
        assert!(line(&ExitLatencyClaims, &host(50_000, 60_000.0, None)).starts_with("no: 1 measured"));
        assert!(line(&ExitLatencyClaims, &host(10_000, 60_000.0, Some("refused"))).starts_with("cannot tell"));
        assert!(ask(&ExitLatencyClaims, "").starts_with("cannot tell"));
    }

    #[test]
    fn what_cannot_judge_a_claim_does_not_clear_it() {
        let by = |kind, claimed_ns| line(&ExitLatencyClaims, &host_by(kind, 0, claimed_ns, 20_000.0, None));
        assert!(by(WakeKind::Timer, 10_000).starts_with("cannot tell"));
        assert!(by(WakeKind::Ipi, 0).starts_with("cannot tell"));
        assert!(by(WakeKind::Futex, 10_000).starts_with("no: 1 measured"));
    }

    #[test]
    fn a_floor_with_a_claim_is_taken_off_in_every_number() {
        let arm = host_by(WakeKind::Ipi, 40_000, 50_000, 60_000.0, None);
        assert_eq!(
            line(&ExitLatencyClaims, &arm),
            "yes risk measured: c6 claims an exit latency of 10us above poll's and costs 60us over poll (6 times the claim)"
        );
        let Answer::Yes(found) = ExitLatencyClaims.check(&arm) else { panic!("no finding") };
        assert!(found.cost.text.contains("50us longer"), "{}", found.cost.text);
    }
}
