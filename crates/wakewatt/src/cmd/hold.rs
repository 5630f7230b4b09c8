//! The hidden `wakewatt hold LIMIT`: lives so that a latency limit does. Started by `tune apply` or by a unit.
//!
//! It says `on` once the kernel has the limit, leaves its terminal, and waits for SIGTERM without ever waking up.

use crate::cli::tune::HoldArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::{Interrupt, Wait};
use anyhow::Result;
use std::io::Write;
use wakewatt_tune::knobs::qos_global::GlobalLimit;

pub fn run(args: &HoldArgs) -> Result<Code> {
    let held = GlobalLimit::hold(args.limit).map_err(|e| Failure::error(Code::Refused, e.to_string()))?;
    // A session of its own: neither Ctrl-C nor a terminal that closes ends it. Fails only for a group leader.
    let _ = rustix::process::setsid();
    let interrupt = Interrupt::listen()?;
    let wait = Wait::listen()?;
    std::io::stdout().write_all(b"on\n")?;
    std::io::stdout().flush()?;
    while !interrupt.is_set() {
        wait.wait(u64::MAX);
    }
    drop(held);
    Ok(Code::Fine)
}
