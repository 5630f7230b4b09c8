//! Words that stand in constants and are looked up while running (`wakewatt_words::told`).

use super::scan::Messages;

/// All of them.
pub(super) fn all() -> Messages {
    let mut found = Messages::default();
    for (place, text) in wakewatt::spoken_tables() {
        found.add(text, place);
    }
    found
}
