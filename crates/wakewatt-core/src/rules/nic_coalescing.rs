//! Does a network interface hold packets back before it raises an interrupt?
//!
//! `rx-usecs` delays a received packet on purpose and adds to every round trip like a slow wake-up (case K2's
//! look-alike). Read with ETHTOOL_GCOALESCE. Adaptive coalescing goes down by itself when packets are few.

use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

const LIMIT_NS: u64 = 10_000;

pub(super) struct NicCoalescing;

impl Rule for NicCoalescing {
    fn id(&self) -> &'static str {
        "rule.nic-coalescing"
    }
    fn question(&self) -> &'static str {
        word!("does a network interface hold packets back before it raises an interrupt?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let all: Vec<_> = evidence.facts.network.interfaces.iter().filter(|i| i.is_physical).collect();
        let known: Vec<_> = all.iter().filter_map(|i| Some((*i, i.coalesce.get()?))).collect();
        if known.is_empty() {
            return match all.iter().find_map(|i| i.coalesce.gap()) {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no physical interface is listed"),
                    word!("wakewatt inspect network on the machine itself"),
                ),
            };
        }
        let slow: Vec<_> = known.iter().filter(|(_, c)| c.rx_ns.is_some_and(|ns| ns >= LIMIT_NS)).collect();
        let worst = slow
            .iter()
            .filter_map(|(i, c)| Some((i, c.rx_ns?, c.is_adaptive_rx == Some(true))))
            .max_by_key(|w| (!w.2, w.1));
        let Some((interface, ns, is_adaptive)) = worst else {
            return Answer::no(say!("no interface holds a packet back for {}", show_ns(LIMIT_NS)));
        };
        let (weight, adaptive) = if is_adaptive { (Weight::Note, word!(", adaptive")) } else { (Weight::Risk, "") };
        let names: Vec<&str> = slow.iter().map(|(i, _)| i.name.as_str()).collect();
        let on = Things::Interfaces.extent(&names, known.len());
        let title = say!("A received packet may be held back for {}{adaptive}, on {on}", show_ns(ns));
        let cost = Cost::predicted_ns(
            ns as f64,
            say!("up to {} per received packet, by the driver's setting; not measured", show_ns(ns)),
        );
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost);
        for (i, c) in slow {
            let path = format!("ethtool -c {}", i.name);
            finding = finding.on(path.clone(), format!("rx-usecs {}", c.rx_ns.unwrap_or(0) / 1000));
            // Without a time, a driver waits for the number of packets.
            let steps = [
                (
                    c.is_adaptive_rx == Some(true),
                    "adaptive-rx",
                    "off",
                    word!("the driver would choose the number again"),
                ),
                (
                    c.n_rx_frames.is_some_and(|n| n > 1),
                    "rx-frames",
                    "1",
                    word!("one packet is enough for an interrupt"),
                ),
                (true, "rx-usecs", "0", word!("no wait before the interrupt")),
            ];
            for (_, field, to, why) in steps.iter().filter(|(is_needed, ..)| *is_needed) {
                let knob = format!("net.coalescing.{field}");
                finding = finding.step(&knob, Some(i.name.clone()), *to, path.clone(), *why);
            }
        }
        finding
            .remedy(
                say!(
                    "ethtool -C {} adaptive-rx off rx-usecs 0 (or a few) for latency; it ends with the next \
                    reboot or link reset.",
                    interface.name
                ),
                word!("More interrupts, more CPU time per packet."),
                word!("wakewatt measure network before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::fact::Fact;
    use crate::facts::network::{Coalesce, Interface};

    fn check(ns: u64, adaptive: bool) -> String {
        let coalesce = Fact::Known(Coalesce { rx_ns: Some(ns), is_adaptive_rx: Some(adaptive), ..Coalesce::default() });
        let mut host = Evidence::default();
        host.facts.network.interfaces.push(Interface {
            name: "eth0".into(),
            is_physical: true,
            coalesce,
            ..Interface::default()
        });
        line(&NicCoalescing, &host)
    }

    #[test]
    fn held_back() {
        assert_eq!(check(50_000, false), "yes risk predicted: a received packet may be held back for 50us, on eth0");
        assert!(check(50_000, true).starts_with("yes note"));
        assert!(check(3_000, false).starts_with("no"));
        assert!(ask(&NicCoalescing, "").starts_with("cannot tell"));
    }
}
