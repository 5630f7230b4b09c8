//! Ctrl-C, SIGTERM and SIGHUP become a flag: measuring loops look at it, settings are put back, what is known is printed.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flag; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on these signals set the flag instead of ending the process.
    pub fn listen() -> Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
        }
        Ok(Interrupt(flag))
    }

    /// Has one come?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For the probes.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
