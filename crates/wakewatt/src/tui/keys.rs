//! Which keys are in these bytes?
//!
//! The screen reads its terminal itself. A library that waits for events reads for ever from a terminal that has gone
//! (reads of nothing, or EIO), whatever its caller looked at before; here one read follows one `poll` that said there
//! is something, and what is not a key is passed over. Sequences are those of xterm, the Linux console and tmux
//! (ECMA-48 control sequences, SS3 for cursor keys, SGR 1006 for the mouse). Keys held with Ctrl are left out, but for
//! Ctrl-C.

use super::update::Event;
use ratatui::crossterm::event::KeyCode;

/// Longer than any sequence; what is unfinished and longer is none.
const LONGEST: usize = 64;
const ESC: u8 = 0x1b;
/// Lines of one step of the wheel.
const WHEEL: isize = 3;

/// Bytes in, keys out; a sequence may come in pieces.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    rest: Vec<u8>,
}

/// What stands at the start of some bytes.
enum Found {
    /// So many bytes, and the key in them, if it is one.
    Piece(usize, Option<Event>),
    /// The rest has not come yet.
    Unfinished,
}

impl Decoder {
    /// Is there an Escape that may be the key or begin a sequence?
    pub(super) fn is_waiting(&self) -> bool {
        self.rest == [ESC]
    }

    /// Nothing followed: an Escape that stood last was the key.
    pub(super) fn pause(&mut self) -> Vec<Event> {
        if !self.is_waiting() {
            return Vec::new();
        }
        self.rest.clear();
        key(KeyCode::Esc).into_iter().collect()
    }

    /// The keys in what was read.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let (mut events, mut left) = (Vec::new(), &all[..]);
        while !left.is_empty() {
            match first(left) {
                Found::Piece(n, event) => {
                    events.extend(event);
                    left = &left[n.clamp(1, left.len())..];
                }
                Found::Unfinished if left.len() < LONGEST => {
                    self.rest = left.to_vec();
                    break;
                }
                Found::Unfinished => left = &left[1..],
            }
        }
        events
    }
}

fn key(code: KeyCode) -> Option<Event> {
    Some(Event::Key(code))
}

fn first(bytes: &[u8]) -> Found {
    let event = match bytes[0] {
        // Escape alone is the key, once nothing follows; before anything else it begins a sequence, or says that Alt was held.
        ESC => match bytes.get(1) {
            None => return Found::Unfinished,
            Some(&ESC) => key(KeyCode::Esc),
            Some(b'[') => return control_sequence(bytes),
            Some(b'O') => match bytes.get(2) {
                None => return Found::Unfinished,
                Some(&last) => return Found::Piece(3, cursor(last)),
            },
            Some(_) => None,
        },
        0x03 => Some(Event::Interrupt),
        b'\r' | b'\n' => key(KeyCode::Enter),
        b'\t' => key(KeyCode::Tab),
        0x7f | 0x08 => key(KeyCode::Backspace),
        0x00..0x20 => None,
        b @ 0x20..0x7f => key(KeyCode::Char(char::from(b))),
        _ => return character(bytes),
    };
    Found::Piece(1, event)
}

/// A character of more than one byte.
fn character(bytes: &[u8]) -> Found {
    let n = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Found::Piece(1, None),
    };
    match bytes.get(..n).map(std::str::from_utf8) {
        None => Found::Unfinished,
        Some(Ok(text)) => Found::Piece(n, text.chars().next().map(|c| Event::Key(KeyCode::Char(c)))),
        Some(Err(_)) => Found::Piece(1, None),
    }
}

/// `ESC [`, parameters, intermediates, a last byte.
fn control_sequence(bytes: &[u8]) -> Found {
    let body = &bytes[2..];
    let Some(at) = body.iter().position(|b| !(0x20..0x40).contains(b)) else { return Found::Unfinished };
    let (params, last, n) = (&body[..at], body[at], at + 3);
    // The old mouse: three more bytes. Function keys of the Linux console: one more.
    match last {
        b'M' if params.is_empty() => match bytes.get(3..6) {
            None => Found::Unfinished,
            Some(report) => Found::Piece(6, wheel(u32::from(report[0].wrapping_sub(32)))),
        },
        b'[' if params.is_empty() => {
            if bytes.len() > n {
                Found::Piece(n + 1, None)
            } else {
                Found::Unfinished
            }
        }
        _ => Found::Piece(n, named(params, last)),
    }
}

fn named(params: &[u8], last: u8) -> Option<Event> {
    let text = std::str::from_utf8(params).unwrap_or_default();
    let number = |at: usize| text.trim_start_matches('<').split(';').nth(at).and_then(|n| n.parse::<u32>().ok());
    if text.starts_with('<') || (last == b'M' && !text.is_empty()) {
        let button = number(0)?;
        return wheel(if text.starts_with('<') { button } else { button.wrapping_sub(32) });
    }
    // One more than a set of bits; the third is Ctrl.
    let is_ctrl = number(1).is_some_and(|modifiers| modifiers.wrapping_sub(1) & 4 != 0);
    match (last, number(0)) {
        _ if is_ctrl => None,
        (b'~', Some(1 | 7)) => key(KeyCode::Home),
        (b'~', Some(4 | 8)) => key(KeyCode::End),
        (b'~', Some(5)) => key(KeyCode::PageUp),
        (b'~', Some(6)) => key(KeyCode::PageDown),
        (b'Z', _) => key(KeyCode::BackTab),
        _ => cursor(last),
    }
}

fn cursor(last: u8) -> Option<Event> {
    key(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        _ => return None,
    })
}

fn wheel(button: u32) -> Option<Event> {
    match button & !0b1_1100 {
        64 => Some(Event::Wheel(-WHEEL)),
        65 => Some(Event::Wheel(WHEEL)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many keys as there are words, in one piece and byte by byte.
    fn words(bytes: &[u8]) -> String {
        let words = |events: Vec<Event>| {
            let words = events.into_iter().map(|event| match event {
                Event::Key(code) => format!("{code:?}"),
                other => format!("{other:?}"),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let mut decoder = Decoder::default();
        let mut whole = decoder.keys(bytes);
        whole.extend(decoder.pause());
        let mut pieces: Vec<Event> = bytes.iter().flat_map(|byte| decoder.keys(&[*byte])).collect();
        pieces.extend(decoder.pause());
        assert_eq!(whole, pieces, "{bytes:?} byte by byte");
        words(whole)
    }

    #[test]
    fn keys_as_terminals_send_them() {
        for (bytes, expected) in [
            (&b"q?"[..], "Char('q') Char('?')"),
            (b"\x03", "Interrupt"),
            (b"\r\t\x7f\x1b", "Enter Tab Backspace Esc"),
            (b"\x1b[A\x1b[B\x1bOC\x1b[1;2D", "Up Down Right Left"),
            (b"\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[Z\x1b[3~", "Home End PageUp PageDown BackTab"),
            (b"\x1b[1;5A\x1b[[Ax", "Char('x')"),
            (b"\x1b[<64;10;5M\x1b[<65;10;5M\x1b[<0;1;1m\x1b[M`!!", "Wheel(-3) Wheel(3) Wheel(-3)"),
            ("\u{e4}\u{20ac}".as_bytes(), "Char('\u{e4}') Char('\u{20ac}')"),
            (b"\xff\xc2q\x01", "Char('q')"),
            (b"\x1bx", "Char('x')"),
            (b"\x1b\x1b[A", "Esc Up"),
        ] {
            assert_eq!(words(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_in_pieces_is_one_key_and_rubbish_ends() {
        let mut decoder = Decoder::default();
        assert_eq!((decoder.keys(b"\x1b"), decoder.is_waiting()), (vec![], true));
        assert_eq!(decoder.keys(b"[A"), [Event::Key(KeyCode::Up)]);
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert_eq!((decoder.pause(), decoder.pause()), (vec![Event::Key(KeyCode::Esc)], vec![]));
        assert_eq!(decoder.keys(b"\x1b["), []);
        assert_eq!(decoder.keys(b"1;2A\xe2\x82"), [Event::Key(KeyCode::Up)]);
        assert_eq!(decoder.keys(b"\xac"), [Event::Key(KeyCode::Char('\u{20ac}'))]);
        // A sequence without an end holds nothing back for ever, and what any byte does is no panic.
        assert_eq!(
            decoder.keys(&[b"\x1b[", &[b'0'; 200][..], b"~q"].concat()).last(),
            Some(&Event::Key(KeyCode::Char('q')))
        );
        for byte in 0..=255u8 {
            for start in [&b""[..], b"\x1b", b"\x1b[", b"\x1bO", b"\x1b[M", b"\xf0\x9f"] {
                let bytes = [start, &[byte; 3], b"qqqqqq"].concat();
                let mut decoder = Decoder::default();
                let mut events = decoder.keys(&bytes);
                events.extend(decoder.keys(b"qqqqqq"));
                assert_eq!(events.last(), Some(&Event::Key(KeyCode::Char('q'))), "{bytes:?}");
            }
        }
    }
}
