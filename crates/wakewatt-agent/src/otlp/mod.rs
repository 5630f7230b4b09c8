//! Pushing pages to a collector, where somebody asked for it: OTLP over HTTP, as protobuf (opentelemetry.io/docs/specs/otlp, version 1).
//!
//! At every interval the thread that reads writes its page as a request and leaves it in an [`Outbox`] of limited size; a thread of its own sends them,
//! the oldest first, again after a growing pause where the server wants that, and gives up what the server refuses. Nobody waits for a network
//! but that thread. What goes wrong is told on every page (`source_up`) and once in the log.

mod attribute;
mod message;
mod names;
mod outbox;

pub use outbox::Outbox;

use crate::trouble::Teller;
use prost::Message;
use std::time::Duration;
use wakewatt_host::push::{Push, Sent};

/// Where the protocol has metrics, below the address of a collector.
pub const PATH: &str = "/v1/metrics";
/// The first pause; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Who is speaking: what every request says of its sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    /// Name of the host; none where it is not known.
    pub host: Option<String>,
    /// Version of the agent.
    pub version: &'static str,
}

/// A page as a request, of the moment it was read.
pub(crate) fn request(page: &crate::metric::Page, sender: &Sender, wall_ns: u64) -> Vec<u8> {
    message::of(page, sender, wall_ns).encode_to_vec()
}

/// Sends what lies in the outbox until that is closed.
pub(crate) fn send_all(push: &Push, outbox: &Outbox, teller: &Teller) {
    let mut pause = FIRST_PAUSE;
    while let Some(request) = outbox.next() {
        match push.send("application/x-protobuf", &request) {
            Sent::Taken(answer) => {
                outbox.sent();
                pause = FIRST_PAUSE;
                teller.tell(partly(&answer));
            }
            Sent::Refused(why) => {
                outbox.refused();
                pause = FIRST_PAUSE;
                teller.tell(Some(why));
            }
            Sent::Later(why, after) => {
                outbox.back(request);
                teller.tell(Some(why));
                // Whoever pushes a thousand nodes shall not meet them all at once.
                let spread = pause.mul_f64(f64::from(std::process::id() % 256) / 1024.0);
                outbox.pause(after.map_or(pause + spread, |after| after.max(pause + spread)).min(LONGEST_PAUSE));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// What a server took only in part: that is not sent again (the protocol forbids it).
fn partly(answer: &[u8]) -> Option<String> {
    let partial = message::Answer::decode(answer).ok()?.partial?;
    (partial.n_rejected > 0).then(|| {
        let why: String = partial.why.chars().filter(|c| !c.is_control()).take(200).collect();
        format!("the server took all but {} numbers: {why}", partial.n_rejected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_in_part_is_told() {
        assert_eq!((partly(b""), partly(b"\xff\xff rubbish")), (None, None));
        // Field 1 holds the message: 3 rejected, and why.
        let answer = [&[0x0a, 7, 0x08, 3, 0x12, 3][..], b"o\nld"].concat();
        assert_eq!(partly(&answer[..]), None, "a message that is cut");
        let answer = [&[0x0a, 7, 0x08, 3, 0x12, 3][..], b"o\nl"].concat();
        assert_eq!(partly(&answer).as_deref(), Some("the server took all but 3 numbers: ol"));
    }
}
