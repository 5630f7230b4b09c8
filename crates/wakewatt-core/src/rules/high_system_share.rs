//! Does the kernel take an unusual share of the busy time?
//!
//! In case K0 system time fell by 50 to 70 % when sleep was limited: entering and leaving idle is kernel time, and so
//! is spinning on locks whose holder has just been woken. Mean since boot from /proc/stat; interrupts included. For the
//! first minutes that mean is of the boot itself, which is mostly the kernel's work, so it is not judged then.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

const LIMIT: f64 = 0.35;
/// Until then the boot outweighs the work.
const BOOTING_NS: u64 = 300_000_000_000;

pub(super) struct HighSystemShare;

impl Rule for HighSystemShare {
    fn id(&self) -> &'static str {
        "rule.high-system-share"
    }
    fn question(&self) -> &'static str {
        word!("does the kernel take an unusual share of the busy time?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let stat = match (evidence.facts.load.stat.get(), evidence.facts.load.stat.gap()) {
            (Some(stat), _) => stat,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("not known")),
        };
        let total = &stat.total;
        let busy = total.ratio(total.busy_ns()).unwrap_or(0.0);
        if busy < 0.05 {
            return Answer::cannot_tell(
                say!("the machine was busy {} of its time since boot", percent(busy)),
                word!("ask again under load: wakewatt doctor"),
            );
        }
        if let Some(uptime_ns) = evidence.facts.load.uptime_ns.get().filter(|ns| **ns < BOOTING_NS) {
            return Answer::cannot_tell(
                say!("the machine was booted {} ago, so its counters tell of booting", show_ns(*uptime_ns)),
                word!("ask again when it has worked for a while: wakewatt doctor"),
            );
        }
        let share = total.kernel_ns() as f64 / total.busy_ns() as f64;
        if share < LIMIT {
            return Answer::no(say!("{} of the busy time since boot was the kernel's", percent(share)));
        }
        let cost =
            Cost::unknown(word!("CPU time that the applications did not get; which part is avoidable is not known"));
        Finding::new(
            self,
            Weight::Risk,
            Confidence::Low,
            say!("The kernel took {} of the busy time since boot", percent(share)),
            cost,
        )
        .on("/proc/stat", say!("busy {}, of which kernel and interrupts {}", percent(busy), percent(share)))
        .remedy(
            word!(
                "See what the kernel does (perf top, if available). Many short sleeps, interrupts \
                    (rule.irq-affinity), a slow clocksource (rule.clocksource) and reclaim (rule.psi-pressure) \
                    are the usual causes."
            ),
            word!("None for looking."),
            word!("wakewatt inspect load before and after a change"),
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn shares() {
        let check = |stat: &str| ask(&HighSystemShare, &format!("//- /proc/stat\ncpu {stat}\n"));
        assert!(check("50 0 50 100").starts_with("yes risk unknown: the kernel took 50 % of the busy time"));
        assert!(check("90 0 10 100").starts_with("no"));
        assert!(check("1 0 1 1000").starts_with("cannot tell"));
        assert!(ask(&HighSystemShare, "").starts_with("cannot tell"));
        let up = |s: u32| {
            ask(&HighSystemShare, &format!("//- /proc/stat\ncpu 50 0 50 100\n//- /proc/uptime\n{s}.00 1.00\n"))
        };
        assert!(up(12).starts_with("cannot tell: the machine was booted 12") && up(3000).starts_with("yes"));
    }
}
