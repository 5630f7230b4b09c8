//! Opening what `trace --record` wrote, for the commands that read it: whole, or piece by piece where only a pass over it is wanted.

use crate::exit::{Code, Failure};
use crate::report::trace::clean;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace::{Ending, Reader, Stream, WtraceError};
use wakewatt_host::wtrace_file::{self, Pieces};
use wakewatt_lab::trace::MAX_READ;

/// Its bytes.
pub(crate) fn load(path: &Path) -> Result<Vec<u8>> {
    wtrace_file::read(path, MAX_READ).map_err(|e| Failure::error(Code::BadFile, format!("{}: {e}", path.display())))
}

fn refused(path: &Path, e: &WtraceError) -> anyhow::Error {
    let why = clean(&e.to_string());
    Failure::error(Code::BadFile, format!("{}: {why}; make one with: wakewatt trace --record FILE", path.display()))
}

/// As far as it can be read.
pub(crate) fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<Reader<'a>> {
    Reader::new(bytes).map_err(|e| refused(path, &e))
}

/// The same piece by piece: of any length, in memory that does not grow with it.
#[allow(clippy::type_complexity)] // A closure has no name to give the type.
pub(crate) fn stream(path: &Path) -> Result<Stream<impl FnMut(&mut Vec<u8>) -> Result<bool, String>>> {
    let mut pieces =
        Pieces::open(path).map_err(|e| Failure::error(Code::BadFile, format!("{}: {e}", path.display())))?;
    Stream::new(move |into: &mut Vec<u8>| pieces.more(into).map_err(|e| e.to_string())).map_err(|e| refused(path, &e))
}

/// How it ends, once it was read.
pub(crate) fn ending(found: Option<&Ending>) -> String {
    match found {
        Some(Ending::Complete) => "complete".into(),
        Some(Ending::Damaged { at_byte, why }) => {
            format!("damaged at byte {at_byte}: {}; everything before it is good", clean(why))
        }
        Some(Ending::Unreadable { at_byte, why }) => {
            format!("not read beyond byte {at_byte}: {}; everything before it is good", clean(why))
        }
        Some(Ending::Torn { at_byte }) => {
            format!("cut off after byte {at_byte}, inside a block; everything before it is good")
        }
        _ => "unfinished: the recorder was killed or still runs; everything in the file is good".into(),
    }
}

/// How it ends in a sentence, unless it is complete.
pub(crate) fn not_whole(found: Option<&Ending>) -> Option<String> {
    (found != Some(&Ending::Complete)).then(|| format!("The recording is {}.", ending(found)))
}
