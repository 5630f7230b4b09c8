//! `--arrivals FILE`: when requests come, from a recording of idle time.
//!
//! A run file is answered with what it has instead: it keeps distributions, and of loads the rates, but the time of no single request.

use crate::exit::{Code, Failure};
use crate::recording;
use crate::saved;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::record::wtrace;
use wakewatt_core::units::three_digits;
use wakewatt_host::input;
use wakewatt_sim::recorded::{Recorded, Taken};

/// The arrivals of a recording.
pub(super) fn taken(file: &Path) -> Result<Taken> {
    let failed = |why: &str| Failure::error(Code::BadFile, format!("--arrivals {}: {why}", file.display()));
    if !wtrace::is_known(&input::front(file, input::RUN)?) {
        return Err(failed(&of_run(file)?));
    }
    let mut stream = recording::stream(file)?;
    let mut recorded = Recorded::default();
    stream.by_ref().for_each(|item| recorded.item(&item));
    let mut taken = recorded.finish().map_err(|why| failed(&why))?;
    taken.told.extend(recording::not_whole(stream.ending()).map(|words| format!(" {words}")));
    Ok(taken)
}

/// Why a run file has none, and what it has.
fn of_run(file: &Path) -> Result<String> {
    let (_, run) = saved::open(file)?;
    let levels = run.samples.load.iter().flat_map(|l| &l.levels);
    let rates: Vec<String> = levels
        .filter_map(|level| Some((level.target_per_s?, level.ask)))
        .map(|(per_s, ask)| format!("{} ({ask})", three_digits(per_s)))
        .take(12)
        .collect();
    let instead = match rates.is_empty() {
        true => "record some with: wakewatt trace --record FILE".to_string(),
        false => format!(
            "its loads were Poisson; give the server workload.arrivals.kind=poisson and per_s, which were {}",
            rates.join(", ")
        ),
    };
    Ok(format!("a run file keeps the time of no single request; {instead}"))
}
