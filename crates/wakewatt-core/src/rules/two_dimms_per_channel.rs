//! Do two modules share a channel?
//!
//! Most platforms lower the memory clock with two modules per channel; more capacity for less bandwidth. A note, which
//! explains rule.dimm-below-rated where both hold.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::facts::dmi::TABLE;
use wakewatt_words::{say, word};

pub(super) struct TwoDimmsPerChannel;

impl Rule for TwoDimmsPerChannel {
    fn id(&self) -> &'static str {
        "rule.two-dimms-per-channel"
    }
    fn question(&self) -> &'static str {
        word!("do two memory modules share a channel?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let dmi = &evidence.facts.dimms;
        if let Some(gap) = dmi.dimms.gap() {
            return Answer::gap(gap);
        }
        let channels = dmi.channels();
        if channels.is_empty() {
            return Answer::cannot_tell(
                word!("the slots' names do not tell the channels"),
                word!("the machine's manual, or the BMC"),
            );
        }
        let shared: Vec<_> = channels.iter().filter(|c| c.n_populated >= 2).collect();
        if shared.is_empty() {
            return Answer::no(word!("every channel holds one module at most"));
        }
        let slow = dmi.below_rated().count();
        let title = say!("{} of {} memory channels hold two or more modules", shared.len(), channels.len());
        let cost = Cost::unknown(say!(
            "platforms often lower the memory clock then; {slow} modules run below their rating here"
        ));
        let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost);
        for c in shared {
            let name = say!("{} channel {}", c.socket.as_deref().unwrap_or(word!("board")), c.channel);
            finding = finding.on(format!("{TABLE} type 17, {name}"), say!("{} modules", c.n_populated));
        }
        finding
            .remedy(
                word!("If bandwidth matters more than capacity: fewer, larger modules, one per channel."),
                word!("New modules."),
                word!("wakewatt inspect dimms shows the configured speed"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::fact::Fact;
    use crate::facts::dmi::Dimm;

    fn host(channels: &[Option<&str>]) -> Evidence {
        let dimm =
            |c: &Option<&str>| Dimm { channel: c.map(str::to_string), size_bytes: Some(1 << 34), ..Dimm::default() };
        let mut host = Evidence::default();
        host.facts.dimms.dimms = Fact::Known(channels.iter().map(dimm).collect());
        host
    }

    #[test]
    fn sharing() {
        let said = line(&TwoDimmsPerChannel, &host(&[Some("A"), Some("A"), Some("B")]));
        assert_eq!(said, "yes note unknown: 1 of 2 memory channels hold two or more modules");
        assert!(line(&TwoDimmsPerChannel, &host(&[Some("A"), Some("B")])).starts_with("no"));
        assert!(line(&TwoDimmsPerChannel, &host(&[None])).starts_with("cannot tell"));
        assert!(ask(&TwoDimmsPerChannel, "").starts_with("cannot tell"));
    }
}
