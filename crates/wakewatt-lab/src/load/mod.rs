//! Graduated load: so many transactions per second, at shares of what the machine can do, down to none at all.
//!
//! The question is case K4's: how much work, how late and at how many watts, from 100 % to active idle, under the settings in
//! force. The procedure is that of SPECpower_ssj2008 as its public material tells it (three calibration intervals or more,
//! the mean of the last two; levels from 100 % down; ramp, record, ramp; then active idle), the design and the code are our
//! own, and no number of it is a SPEC result (docs/methods/load.md).
//!
//! A transaction is a fixed amount of work ([`crate::table_work`]), sized once so that it takes the time asked for at full speed: where
//! the clock drops, it takes longer, and that shows. Arrivals are a plan made beforehand ([`schedule`]): nothing that
//! happens moves it, and latency counts from it, so a stall is not hidden by the requests it kept from being sent
//! (coordinated omission; Schroeder, Wierman and Harchol-Balter, NSDI 2006, "Open versus closed").
//!
//! One thread per CPU, pinned, of ordinary priority, each with a queue of its own; one process per memory node, bound to it
//! ([`worker`]). The coordinator ([`engine`], [`mod@level`]) sends orders down pipes ([`message`]) and keeps the watts, the
//! counters and the rules ([`rules`]). It wakes four times a second, and so does the machine in active idle.

pub mod calibrate;
pub mod engine;
pub mod level;
pub mod message;
pub mod pace;
pub mod phases;
pub mod places;
pub mod rules;
pub mod runs;
pub mod schedule;
pub mod settings;
pub mod steps;
pub mod usage;
pub mod within;
pub mod worker;

pub use engine::{Engine, LoadError, Spec};
pub use level::level;
pub use phases::Phases;

/// Told what is being done, several times a second.
pub type Announce<'a> = &'a dyn Fn(&str);
