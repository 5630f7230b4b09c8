//! Saying what is being done to the machine while it is being done.
//!
//! Standard output may be closed (`| head`) or its disk full. Where settings change, that must neither stop the work
//! half-way nor hide how it ended: what cannot be said there is noted, the work goes on, and standard error and the exit
//! code tell at the end. Everywhere else a closed pipe ends the program quietly, as it should.

use crate::exit::Code;
use crate::output;

/// Standard output, as far as it goes.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    broken: Option<String>,
}

impl Telling {
    /// Says a line, if that can still be done.
    pub(crate) fn line(&mut self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// Says a text as it is.
    pub(crate) fn text(&mut self, text: &str) {
        if self.broken.is_none() {
            self.broken = output::print(text).err().map(|e| format!("{e:#}"));
        }
    }

    /// The end: `outcome` is what has come of it in a sentence, for those who could not be told.
    pub(crate) fn end(self, code: Code, outcome: &str) -> Code {
        let Some(why) = self.broken else { return code };
        output::complain(&format!("standard output: {why}; {outcome}"));
        if matches!(code, Code::Fine | Code::Partial) { Code::BadFile } else { code }
    }
}
