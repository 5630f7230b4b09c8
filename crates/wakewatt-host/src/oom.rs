//! Who goes first when memory runs out.
//!
//! The kernel's choice is the process with the highest badness: the share of memory it holds, plus oom_score_adj
//! (Documentation/filesystems/proc.rst, 3.1). At 1000 a process goes before any other that may be chosen. Any process may
//! raise its own; it is a property of that process and gone with it. Processes that this one starts inherit it.

use std::fs::{OpenOptions, read_to_string};
use std::io::{Error, Result, Write};

const PATH: &str = "/proc/self/oom_score_adj";

/// Makes this process the kernel's first choice, for the rest of its life. Only for one that exists to measure.
pub fn go_first() -> Result<()> {
    OpenOptions::new().write(true).open(PATH)?.write_all(b"1000")?;
    let kept = read_to_string(PATH)?;
    if kept.trim() == "1000" { Ok(()) } else { Err(Error::other(format!("{PATH} stays at {}", kept.trim()))) }
}
