//! An attribute that shows its choices and marks one, `[default] performance powersave`, and takes only that one word.
//!
//! Behind the scheme `choice:` the marked word alone is read, so that what is journaled can be written back as it is.

use super::{SinkError, attribute, refuse};
use std::path::Path;
use wakewatt_core::fact::parse;

/// The marked word; a file without marks is taken whole.
pub(super) fn read(file: &Path, path: &str) -> Result<String, SinkError> {
    let text = attribute::read(file, path)?;
    if text.contains('[') { parse::chosen(&text).map_err(|why| refuse(path, why)) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marked_word_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("policy");
        for (text, word) in
            [("default [performance] powersave \n", Some("performance")), ("one\n", Some("one")), ("[\n", None)]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read(&file, "choice:/policy").ok().as_deref(), word);
        }
    }
}
