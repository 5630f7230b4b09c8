//! wakewatt-core thinks and never touches.
//!
//! Bytes, time and randomness come in as arguments; facts, samples, findings, plans and reports go out. No file, no
//! clock, no environment, no thread: `clippy.toml` beside this crate bans them. The modules are listed in the order
//! of the data flow, and each may use only those before it; `tests/tidy.rs` checks that.
#![forbid(unsafe_code)]
// What is published as a schema is described by its doc comments; elsewhere a comment is there where it says something.
#![warn(missing_docs)]

pub mod arrange;
pub mod visible;
pub mod nearest;
pub mod file_keys;
pub mod units;
pub mod cpuset;
pub mod glossary;
pub mod source;
mod gap_reasons;
pub mod kept_words;
pub mod fact;
pub mod folder;
pub mod sheet;
pub mod facts;
pub mod covers;
pub mod distribution;
pub mod samples;
pub mod stats;
pub mod evidence;
pub mod cost;
pub mod budget;
pub mod enterable;
pub mod clock_window;
pub mod turbo;
pub mod choice;
pub mod plan;
pub mod package_states;
pub mod watch;
pub mod rules;
pub mod explain;
pub mod compare;
pub mod record;
pub mod told;
