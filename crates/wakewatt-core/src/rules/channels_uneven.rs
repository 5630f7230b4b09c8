//! Are the memory channels filled unevenly?
//!
//! Accesses interleave over channels of equal size; what is left over runs on fewer channels (case K1's neighbour).
//! Sockets and channels are guessed from the slots' names in SMBIOS, so the rule is silent where a name is not
//! recognised.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use crate::facts::dmi::TABLE;
use crate::units::show_bytes;
use wakewatt_words::{say, word};

pub(super) struct ChannelsUneven;

impl Rule for ChannelsUneven {
    fn id(&self) -> &'static str {
        "rule.channels-uneven"
    }
    fn question(&self) -> &'static str {
        word!("are the memory channels filled unevenly?")
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
        match dmi.is_evenly_populated() {
            None => {
                return Answer::cannot_tell(
                    word!("the slots' names do not tell the channels"),
                    word!("the machine's manual, or the BMC"),
                );
            }
            Some(true) => return Answer::no(say!("all {} channels hold the same amount", channels.len())),
            Some(false) => {}
        }
        let empty = channels.iter().filter(|c| c.n_populated == 0).count();
        let (title, cost) = if empty > 0 {
            let ratio = empty as f64 / channels.len() as f64;
            let text = say!(
                "up to {} of memory bandwidth, computed from the channels without a module; not measured",
                percent(ratio)
            );
            (say!("{empty} of {} memory channels are empty", channels.len()), Cost::predicted_ratio(ratio, text))
        } else {
            let text = word!("the memory beyond the smallest channel runs on fewer channels; how much is not measured");
            (say!("The {} memory channels hold different amounts", channels.len()), Cost::unknown(text))
        };
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, cost);
        for c in channels {
            let name = say!("{} channel {}", c.socket.as_deref().unwrap_or(word!("board")), c.channel);
            finding = finding.on(
                format!("{TABLE} type 17, {name}"),
                say!("{} of {} slots, {}", c.n_populated, c.n_slots, show_bytes(c.size_bytes)),
            );
        }
        finding
            .remedy(
                word!(
                    "Move or add modules so that every channel of every socket holds the same amount, in the slots the \
                    manual names first."
                ),
                word!("Modules and a maintenance window."),
                word!("wakewatt inspect dimms after it; wakewatt compare with the capture from before"),
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

    fn host(sizes: &[(Option<&str>, u64)]) -> Evidence {
        let dimm = |(channel, size): &(Option<&str>, u64)| Dimm {
            channel: channel.map(str::to_string),
            size_bytes: Some(*size),
            ..Dimm::default()
        };
        let mut host = Evidence::default();
        host.facts.dimms.dimms = Fact::Known(sizes.iter().map(dimm).collect());
        host
    }

    #[test]
    fn population() {
        let said = line(&ChannelsUneven, &host(&[(Some("A"), 1 << 34), (Some("B"), 0)]));
        assert_eq!(said, "yes risk predicted: 1 of 2 memory channels are empty");
        let sizes = [(Some("A"), 1 << 34), (Some("B"), 1 << 35)];
        assert!(line(&ChannelsUneven, &host(&sizes)).starts_with("yes risk unknown"));
        assert!(line(&ChannelsUneven, &host(&[(Some("A"), 1), (Some("B"), 1)])).starts_with("no"));
        assert!(line(&ChannelsUneven, &host(&[(None, 1)])).starts_with("cannot tell"));
        assert!(ask(&ChannelsUneven, "").starts_with("cannot tell"));
    }
}
