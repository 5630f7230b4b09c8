//! `trace export`: a recording as a Parquet table.

use super::parquet;
use crate::cli::trace::ExportArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::recording::{ending, load, open};
use anyhow::Result;
use std::fs::File;
use wakewatt_core::record::wtrace::Reader;
use wakewatt_host::place::FilePlace;

/// Runs `trace export`.
pub(super) fn run(args: &ExportArgs) -> Result<Code> {
    let bytes = load(&args.file)?;
    let mut reader = open(&args.file, &bytes)?;
    let bad = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", args.output.display()));
    let place = FilePlace::of(&args.output).map_err(|e| Failure::error(Code::BadFile, e.to_string()))?;
    let taken = || bad("exists; overwrite it with --force".into());
    if !args.force && place.exists() {
        return Err(taken());
    }
    // Half a table is none, its footer is missing: it gets its name when it is whole.
    let fill = |reader: &mut Reader<'_>, file: &mut File| parquet::write(reader, file).map_err(|e| e.to_string());
    let written = match place.draft().map_err(|e| bad(e.to_string()))? {
        Some(mut draft) => fill(&mut reader, draft.file()).and_then(|n| {
            let kept = if args.force { draft.commit() } else { draft.commit_new() };
            kept.map(|()| n).map_err(|e| e.to_string())
        }),
        None => place.fresh().map_err(|e| e.to_string()).and_then(|mut file| fill(&mut reader, &mut file)),
    };
    match written {
        Ok(n) => {
            output::remark(&format!(
                "{}: {n} rows; the recording was {}",
                args.output.display(),
                ending(reader.ending())
            ));
            Ok(Code::Fine)
        }
        Err(why) => Err(bad(format!("{why}; nothing was kept"))),
    }
}
