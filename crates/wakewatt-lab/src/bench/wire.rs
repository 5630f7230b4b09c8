//! The 64 bytes that go there and back, little-endian, version 1.
//!
//! | bytes | request | reply |
//! |--|--|--|
//! | 0-3 | magic `WKWT` | the same |
//! | 4 | version 1 | 1 |
//! | 5 | 1 | 2 |
//! | 6-7 | length 64 | 64 |
//! | 8-15 | session, random per run | the same |
//! | 16-23 | sequence number | the same |
//! | 24-47 | zero | kernel receive, user receive, user send; the responder's CLOCK_REALTIME in ns, 0 for none |
//! | 48-51 | zero | the responder's CPU plus 1, 0 for not pinned |
//! | 52-63 | zero | zero |
//!
//! A reply is as long as its request, so nobody can be flooded through a responder with more than was sent to it.

/// Bytes of a message, both ways.
pub const LENGTH: usize = 64;
/// Spoken version.
pub const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"WKWT";

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the responder.
    Request,
    /// Back.
    Reply,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which way.
    pub direction: Direction,
    /// Of one run: replies to another are foreign.
    pub session: u64,
    /// Counts up.
    pub sequence: u64,
    /// The responder's kernel took it in.
    pub kernel_rx_at_ns: u64,
    /// The responder ran.
    pub user_rx_at_ns: u64,
    /// The responder sent.
    pub user_tx_at_ns: u64,
    /// The responder's CPU.
    pub cpu: Option<u32>,
}

impl Message {
    pub fn request(session: u64, sequence: u64) -> Message {
        let direction = Direction::Request;
        Message { direction, session, sequence, kernel_rx_at_ns: 0, user_rx_at_ns: 0, user_tx_at_ns: 0, cpu: None }
    }

    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = if self.direction == Direction::Request { 1 } else { 2 };
        bytes[6] = 64;
        let numbers = [self.session, self.sequence, self.kernel_rx_at_ns, self.user_rx_at_ns, self.user_tx_at_ns];
        for (slot, number) in bytes[8..48].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        bytes[48..52].copy_from_slice(&self.cpu.map_or(0, |cpu| cpu.saturating_add(1)).to_le_bytes());
        bytes
    }

    /// From bytes; none where they are not a whole message of this version.
    pub fn decode(bytes: &[u8]) -> Option<Message> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC || bytes[4] != VERSION || bytes[6..8] != [64, 0] {
            return None;
        }
        let direction = match bytes[5] {
            1 => Direction::Request,
            2 => Direction::Reply,
            _ => return None,
        };
        let number = |at: usize| {
            let mut raw = [0; 8];
            raw.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let cpu = u32::from_le_bytes([bytes[48], bytes[49], bytes[50], bytes[51]]);
        Some(Message {
            direction,
            session: number(8),
            sequence: number(16),
            kernel_rx_at_ns: number(24),
            user_rx_at_ns: number(32),
            user_tx_at_ns: number(40),
            cpu: cpu.checked_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(numbers in prop::array::uniform5(any::<u64>()), cpu in prop::option::of(0u32..9999), is_reply in any::<bool>()) {
            let [session, sequence, kernel_rx_at_ns, user_rx_at_ns, user_tx_at_ns] = numbers;
            let direction = if is_reply { Direction::Reply } else { Direction::Request };
            let message = Message { direction, session, sequence, kernel_rx_at_ns, user_rx_at_ns, user_tx_at_ns, cpu };
            prop_assert_eq!(Message::decode(&message.encode()), Some(message));
        }

        #[test]
        fn foreign_bytes_are_refused_not_misread(bytes in prop::collection::vec(any::<u8>(), 0..130), version in 2u8.., at in 0usize..64) {
            prop_assert!(Message::decode(&bytes).is_none());
            let mut other = Message::request(1, 2).encode();
            prop_assert!(Message::decode(&other[..at]).is_none());
            other[4] = version;
            prop_assert!(Message::decode(&other).is_none());
        }
    }
}
