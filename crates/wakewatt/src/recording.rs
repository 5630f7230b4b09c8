//! Opening what `trace --record` wrote, for the commands that read it.

use crate::exit::{Code, Failure};
use crate::report::trace::clean;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace::{Ending, Reader};
use wakewatt_host::wtrace_file;
use wakewatt_lab::trace::MAX_READ;

/// Its bytes.
pub(crate) fn load(path: &Path) -> Result<Vec<u8>> {
    wtrace_file::read(path, MAX_READ).map_err(|e| Failure::error(Code::BadFile, format!("{}: {e}", path.display())))
}

/// As far as it can be read.
pub(crate) fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<Reader<'a>> {
    Reader::new(bytes).map_err(|e| {
        let why = clean(&e.to_string());
        Failure::error(Code::BadFile, format!("{}: {why}; make one with: wakewatt trace --record FILE", path.display()))
    })
}

/// How it ends, once it was read.
pub(crate) fn ending(reader: &Reader<'_>) -> String {
    match reader.ending() {
        Some(Ending::Complete) => "complete".into(),
        Some(Ending::Damaged { at_byte, why }) => {
            format!("damaged at byte {at_byte}: {}; everything before it is good", clean(why))
        }
        Some(Ending::Torn { at_byte }) => {
            format!("cut off after byte {at_byte}, inside a block; everything before it is good")
        }
        _ => "unfinished: the recorder was killed or still runs; everything in the file is good".into(),
    }
}
