//! `--arrivals FILE`: when requests come, from a recording of idle time, or at the rates of a run's load.
//!
//! A run file keeps distributions, and of loads the rates, but the time of no single request: what is drawn from it says so.

use crate::exit::{Code, Failure};
use crate::recording;
use crate::saved;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace;
use wakewatt_host::input;
use wakewatt_sim::ran;
use wakewatt_sim::recorded::{Recorded, Taken};

/// The arrivals of a recording.
pub(super) fn taken(file: &Path) -> Result<Taken> {
    let failed = |why: &str| Failure::error(Code::BadFile, format!("--arrivals {}: {why}", file.display()));
    if !wtrace::is_known(&input::front(file, input::RUN)?) {
        let (_, run) = saved::open(file)?;
        return ran::of_loads(&run.samples.load).map_err(|why| failed(&why));
    }
    let mut stream = recording::stream(file)?;
    let mut recorded = Recorded::default();
    stream.by_ref().for_each(|item| recorded.item(&item));
    let mut taken = recorded.finish().map_err(|why| failed(&why))?;
    taken.told.extend(recording::not_whole(stream.ending()).map(|words| format!(" {words}")));
    Ok(taken)
}
