//! `wakewatt fit`: a model of this machine from its runs, and what it says of a setting that it was not shown.
//!
//! Arguments to inputs, the fit of the sim crate, and what it came to. `--check` measures first, through the experiment of the lab.

mod check;
mod text;

use crate::cli::fit::FitArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Outlet};
use crate::report::modelled::ModelledReport;
use crate::saved;
use anyhow::Result;
use wakewatt_core::evidence::Evidence;
use wakewatt_sim::fit::{Fit, Inputs, Under, fit};

/// The arm of no sleep, and what it is in the model.
const POLL: (&str, &str) = ("poll", "machine.idle.max_latency=0us");

/// What a fit came to: the model, how far it misses what it was fitted to, and what it foretells.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fits {
    /// One per direction: fitted to one setting, predicting the other.
    pub fits: Vec<Fit>,
}

/// Runs it.
pub fn run(args: &FitArgs) -> Result<Code> {
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let (evidence, ways) = if args.check {
        let (found, poll) = (under("found", &[]), under(POLL.0, &[]));
        (vec![check::measured(args)?], vec![(found.clone(), poll.clone()), (poll, found)])
    } else {
        let runs = args.runs.iter().map(|file| saved::open(file).map(|(_, evidence)| evidence));
        let ways = vec![(under(&args.on, &args.on_set), under(&args.predict, &args.set))];
        (runs.collect::<Result<Vec<_>>>()?, ways)
    };
    let fits = Fits { fits: fits(&evidence, &ways)? };
    // Files first: a terminal that is gone must not cost them.
    if let Some(page) = &page {
        let title = args.runs.first().map_or("this machine".into(), |file| file.to_string_lossy());
        super::write_page(page, &ModelledReport::of_fits(&fits.fits), &title)?;
    }
    let shown = if args.json { output::json("fit", &fits)? } else { text::text(&fits, output::width()) };
    output::print(&shown)?;
    Ok(Code::Fine)
}

fn under(name: &str, set: &[String]) -> Under {
    let known = (set.is_empty() && name == POLL.0).then(|| POLL.1.to_string());
    Under { name: name.into(), set: set.iter().cloned().chain(known).collect() }
}

fn fits(evidence: &[Evidence], ways: &[(Under, Under)]) -> Result<Vec<Fit>> {
    let failed = |e: wakewatt_sim::fit::FitError| Failure::error(Code::BadFile, e.to_string());
    let inputs = Inputs::of(evidence).map_err(failed)?;
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    ways.iter().map(|(on, other)| fit(&inputs, on, other, n_threads).map_err(failed)).collect()
}
