//! The `.host` file: one machine as one text file, stable, diff-able, small enough to attach to a ticket.
//!
//! It holds exactly what the parsers asked for, including what they asked for in vain, so that a later reader can tell
//! "the host has no such file" from "nobody looked". Equal values of many CPUs are one line. Version 1, line by line:
//!
//! ```text
//! wakewatt-host 1
//! partial                              only where it was made from a partial tree: a name not listed proves nothing
//! imported                             only where it was put together from other tools' text: what it lacks says nothing
//! # a comment
//! /sys/devices/system/cpu/cpu{0-143}/cpuidle/state3/latency = 290
//! /sys/devices/system/cpu/cpu{0-3}/cpuidle/state3/usage each 17 0 4 12     one value per CPU, in order
//! /proc/loadavg <<                     several lines, each behind a tab; <<- if the last has no newline
//! /proc/cpuinfo blocks                 blocks between blank lines; ^12 stands for 12 lines of the block before
//! /sys/firmware/dmi/tables/DMI hex     bytes, behind tabs
//! /sys/class/powercap : absent no such file      (absent, denied, failed) and the reason
//! /sys/class/net/ list eth0 lo         a folder
//! /sys/class/net/eth0/device/driver -> ../../bus/virtio/drivers/virtio_net
//! msr 0x1b0 cpu{0-143} 6
//! # end                                what is cut at the end of a line would not show otherwise
//! ```
//! In paths and names, blank, `%`, `{`, `}` and control characters are written `%20` …

mod names;
mod read;
mod write;

pub use read::read;
pub use write::write;

/// The version this code writes, and the only one it reads.
pub const VERSION: u32 = 1;
/// The last line of a whole file; a comment, so that readers that do not know it pass it over.
const END: &str = "# end";
/// Numbers in the names of files and folders; CPUs are fewer.
const MAX_NUMBER: u32 = 1 << 16;

/// Why a `.host` file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostFileError {
    /// Not a `.host` file at all.
    #[error("not a .host file: the first line must be \"wakewatt-host {VERSION}\"")]
    NotAHostFile,
    /// Made by another version of the format.
    #[error(
        "format version {0}; this wakewatt reads version {VERSION}. Capture the host again, or use the wakewatt that wrote the file"
    )]
    Version(String),
    /// A line that does not parse.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// Does the text end as one that was written whole? Files made before there was an end mark do not.
pub fn has_end(text: &str) -> bool {
    text.trim_end_matches('\n').lines().next_back() == Some(END)
}

#[cfg(test)]
mod tests;
