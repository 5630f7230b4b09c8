//! wakewatt-models answers what a Linux kernel's governors would have done: which idle state, which clock, and why.
//!
//! A model is a few numbers of state and a rule; inputs are arguments, so equal inputs give equal answers on any machine.
//! No file, no clock, no environment, no thread, no allocation while deciding. Rules changed within stable series, so each
//! governor has a list of forms by kernel version beside it, and `kernel/` reads which version a machine really runs.
//! Written from a specification of the rules in our own words, and held against decisions recorded from the kernels' own
//! code (`fixtures/vectors`), never from kernel source: that is under another licence.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod kernel;
pub mod units;
pub mod table;
pub mod tick;
pub mod idle;
pub mod accounting;
pub mod poll;
pub mod frequency;
pub mod vectors;
pub mod replay;
pub mod truth;
