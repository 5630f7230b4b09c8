//! `wakewatt load`: what a machine does under a stated load, level by level. One file per load.

pub mod shop;
mod shop_text;

use crate::cli::load::{Load, LoadArgs};
use crate::exit::Code;
use anyhow::Result;

/// Runs it.
pub fn run(args: &LoadArgs) -> Result<Code> {
    match &args.what {
        Load::Shop(args) => shop::run(args),
    }
}
