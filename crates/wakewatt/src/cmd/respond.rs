//! `wakewatt respond`: the far end of `measure network`. It answers requests of its own format with replies of the same
//! size, and nothing else; by default only on loopback. With `--icmp` it answers nothing: the kernel answers pings, and
//! this watches how.

use super::icmp;
use crate::cli::RespondArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use anyhow::Result;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wakewatt_lab::bench::{self, RespondSpec};

/// Runs it.
pub fn run(args: &RespondArgs) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    if let Some(ns) = args.for_ns {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_nanos(ns));
            interrupt.flag().store(true, Ordering::Relaxed);
        });
    }
    if args.icmp {
        return icmp::respond(args.json, &interrupt);
    }
    let spec = RespondSpec { bind: args.listen, ..RespondSpec::loopback(args.cpu) };
    bench::respond(&spec, interrupt.flag(), |responder| {
        output::remark(&format!("answering on {} (UDP and TCP) until interrupted", responder.address()));
    })
    .map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?;
    Ok(Code::Fine)
}
