//! wakewatt-tune is the only crate that changes the machine.
//!
//! Every change that outlives the process is journaled on disk before it is made, read back after, and undone by a
//! guard process if the one that made it dies ([`transaction`]). A latency limit through `/dev/cpu_dma_latency` needs
//! none of that: the kernel drops it with the file descriptor ([`knobs::qos_global`]).
#![forbid(unsafe_code)]

pub mod nearest;
pub mod knob;
pub mod journal;
pub mod undo;
pub mod guard;
pub mod transaction;
pub mod knobs;
pub mod reference;
