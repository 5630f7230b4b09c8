//! Who holds a global wake-up latency limit?
//!
//! `/dev/cpu_dma_latency` holds as long as a process keeps it open; the kernel names nobody, so the holders topic walks
//! `/proc/*/fd`. No other tool names the holder. A limit of 2000 s is the default and none. This is a
//! note: a limit is usually meant, but it explains results that do not repeat after the holder ends.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::budget;
use crate::evidence::Evidence;
use crate::facts::pm_qos::GLOBAL;
use crate::units::LatencyLimit;
use wakewatt_words::{say, word};

pub(super) struct LatencyLimitHeld;

impl Rule for LatencyLimitHeld {
    fn id(&self) -> &'static str {
        "rule.latency-limit-held"
    }
    fn question(&self) -> &'static str {
        word!("does somebody hold a global wake-up latency limit?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (global, holders) = (&evidence.facts.qos.global, evidence.facts.holders.of_latency_limit());
        let limit = global.get().copied();
        let held = holders.clone().unwrap_or_default();
        match (limit, &holders) {
            (Some(LatencyLimit::None), _) => return Answer::no(word!("the global limit is none")),
            (None, Some(all)) if all.is_empty() => return Answer::no(word!("no process holds the file open")),
            (None, None) => {
                return match global.gap() {
                    Some(gap) => Answer::gap(gap),
                    None => Answer::cannot_tell(
                        word!("not every process could be looked at"),
                        word!("run wakewatt inspect holders as root"),
                    ),
                };
            }
            _ => {}
        }
        let names: Vec<String> =
            held.iter().map(|h| format!("{} (pid {})", h.comm.as_deref().unwrap_or("?"), h.pid)).collect();
        let who = if names.is_empty() { word!("Somebody").to_string() } else { names.join(", ") };
        let what = match limit {
            Some(limit) => {
                say!("a global wake-up limit: {}", or_bare(limit, budget::sentence_here(limit, &evidence.facts)))
            }
            None => word!("/dev/cpu_dma_latency open; the limit itself is not readable").into(),
        };
        let cost = Cost::unknown(word!(
            "deeper states are excluded on every CPU while it is held: faster wake-ups, more watts"
        ));
        let mut finding = Finding::new(self, Weight::Note, Confidence::High, say!("{who} holds {what}"), cost);
        if let Some(limit) = limit {
            finding = finding.on(GLOBAL, limit);
        }
        for holder in held {
            finding = finding.on(format!("/proc/{}/fd", holder.pid), say!("has {} open", holder.path));
        }
        finding
            .remedy(
                word!(
                    "Leave it if it is meant. If not, stop the holder or change its profile; a limit of one's own \
                    cannot raise it, because the smallest wins."
                ),
                word!("Without it wake-ups may get slower, up to the exit latency of the deepest state."),
                word!("wakewatt inspect holders qos"),
            )
            .yes()
    }
}

fn or_bare(limit: LatencyLimit, sentence: String) -> String {
    if sentence.is_empty() { limit.to_string() } else { sentence }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence, icx, line};
    use super::*;
    use crate::fact::Fact;
    use crate::facts::holders::Holder;

    #[test]
    fn names_the_holder() {
        let mut host = evidence(&icx());
        host.facts.qos.global = Fact::Known(LatencyLimit::AtMostNs(50_000));
        host.facts.holders.open.push(Holder { pid: 7, comm: Some("tuned".into()), path: GLOBAL.into() });
        assert_eq!(
            line(&LatencyLimitHeld, &host),
            "yes note unknown: tuned (pid 7) holds a global wake-up limit: 50us -> c1e (4us); c6 (170us) excluded; \
                51-169us would be the same"
        );
        host.facts.qos.global = Fact::Known(LatencyLimit::None);
        assert!(line(&LatencyLimitHeld, &host).starts_with("no"));
        assert!(ask(&LatencyLimitHeld, "").starts_with("cannot tell"));
    }
}
