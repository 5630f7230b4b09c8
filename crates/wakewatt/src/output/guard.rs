//! The last guard before a terminal: of all that could command it, only our own colours pass, and only where colour is on.
//!
//! Values are made visible where text is composed; what was forgotten there is caught here, in errors and remarks too.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::visible;

/// What our views and the help write: bold, dim, underlined, red, green, yellow, and the end of each.
const OWN: &[&str] = &["0", "1", "2", "4", "31", "32", "33"];
/// And the heat map's background.
const SHADE: &str = "38;5;16;48;5;";

static IS_COLOURED: AtomicBool = AtomicBool::new(false);

/// From now on our colours pass.
pub fn allow_colour(is_on: bool) {
    IS_COLOURED.store(is_on, Ordering::Relaxed);
}

/// Text for people, as allowed.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if IS_COLOURED.load(Ordering::Relaxed) { coloured(text) } else { visible::text(text) }
}

pub(super) fn coloured(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| visible::is_hidden(c) && !matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\x1b') {
        let (head, tail) = rest.split_at(at);
        out += &visible::text(head);
        let own = own(tail);
        out += own.map_or("\\x1b", |sequence| sequence);
        rest = &tail[own.map_or(1, str::len)..];
    }
    out += &visible::text(rest);
    Cow::Owned(out)
}

/// The sequence this begins with, if it is one of ours.
fn own(text: &str) -> Option<&str> {
    let (number, _) = text.strip_prefix("\x1b[")?.split_once('m')?;
    let is_shade = || number.strip_prefix(SHADE).is_some_and(|n| n.len() <= 3 && n.bytes().all(|b| b.is_ascii_digit()));
    (OWN.contains(&number) || is_shade()).then(|| &text[..number.len() + 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_colours_pass_and_nothing_else_does() {
        let ours = "\x1b[1mA\x1b[0m\x1b[38;5;16;48;5;229m##\x1b[0m\n\tµ";
        assert_eq!(coloured(ours), ours);
        let foreign = "\x1b[1mA\x1b[2J\x1b]0;x\x07\x1b[8mhidden\x1b[38;5;16;48;5;1;8m\u{9b}1m\r\u{202e}\x1b";
        let expected = "\x1b[1mA\\x1b[2J\\x1b]0;x\\x07\\x1b[8mhidden\\x1b[38;5;16;48;5;1;8m\\x9b1m\\r\\u{202e}\\x1b";
        assert_eq!(coloured(foreign), expected);
        assert_eq!(visible::text("\x1b[1mA"), "\\x1b[1mA");
    }
}
