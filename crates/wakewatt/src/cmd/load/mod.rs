//! `wakewatt load`: work under a stated load, with its latency and its watts.
//!
//! One file per kind of load; all end in a [`LoadRun`], which is printed as one table or one document.

mod command;
mod runs_text;
mod score;
#[cfg(feature = "shop")]
mod shop;
mod steps;
mod text;
mod words;

use crate::cli::load::{Load, LoadArgs};
use crate::cli::meter::MeterArgs;
use crate::exit::{Code, End, Failure};
#[cfg(not(feature = "shop"))]
use crate::features::Feature;
use crate::output::{self, Colour};
use crate::saved::Saving;
use anyhow::Result;
use serde::Serialize;
use std::io::BufReader;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::{LoadRun, Overall};

/// What a load came to.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loaded {
    /// Levels and everything about them.
    pub run: LoadRun,
    /// Their sums, of a graduated load.
    pub overall: Option<Overall>,
}

/// Runs it.
pub fn run(args: &LoadArgs) -> Result<End> {
    match &args.what {
        Some(Load::Steps(args)) => steps::run(args),
        Some(Load::Shop(args)) => shop(args).map(End::Own),
        None => command::run(&args.command),
    }
}

#[cfg(feature = "shop")]
use shop::run as shop;
#[cfg(feature = "shop")]
pub use shop::serve_for_parent;

#[cfg(not(feature = "shop"))]
fn shop(_: &crate::cli::shop::ShopArgs) -> Result<Code> {
    Err(Feature::Shop.lacking("load shop"))
}

/// The hidden `wakewatt shop-server`.
#[cfg(not(feature = "shop"))]
pub fn serve_for_parent() -> Result<Code> {
    Err(Feature::Shop.lacking("shop-server"))
}

/// The hidden `wakewatt load-worker`.
pub fn worker() -> Result<Code> {
    let input = BufReader::new(std::io::stdin());
    wakewatt_lab::load::worker::run(input, std::io::stdout())
        .map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}

/// Prints it, and keeps it where --save said so: `BadFile` where it could not be kept.
fn publish(run: LoadRun, is_json: bool, meters: &MeterArgs, saving: Option<&Saving>) -> Result<Code> {
    let loaded = Loaded { overall: run.overall(), run };
    let shown = match is_json {
        true => output::json("load", &loaded).and_then(|text| output::print(&text)),
        false => output::print(&text::text(&loaded, output::width(), Colour::Auto.is_on())),
    };
    let evidence = Evidence::of(Samples { load: vec![loaded.run], ..Samples::default() });
    let priced = if is_json { Ok(()) } else { output::costs(&meters.rates.rates(), &evidence) };
    let own = output::settled(shown.and(priced), Code::Fine);
    Ok(saving.map_or(own, |saving| saving.finish_with(&evidence, own)))
}
