//! The frequency governors: which clock a policy's CPUs should run at, and when to ask again.
//!
//! All end in the same question to a table of clocks (`table.rs`): the lowest at or above, the highest at or below, or the
//! closest to a wish. The sampling governors (`load.rs`, then `ondemand.rs` and `conservative.rs`, and their forms of 2.6)
//! look at how much of the last samples was idle; `schedutil.rs` at what the scheduler thinks of the load (`pelt.rs`);
//! `intel_pstate.rs` at the hardware's own counters; the others at nothing. `hwp.rs` is no kernel's rule but a guess at the hardware's. Clocks in kilohertz, times as named.

pub mod conservative;
pub mod conservative_old;
pub mod cpuspeed;
pub mod delay;
pub mod fixed;
pub mod hwp;
pub mod intel_pstate;
pub mod load;
pub mod ondemand;
pub mod ondemand_old;
pub mod pelt;
pub mod schedutil;
pub mod table;

pub use table::{Relation, Table};

/// What a sampling governor says after a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The clock in force from now, in kilohertz.
    pub khz: u32,
    /// Until the next sample at the earliest, in microseconds.
    pub next_delay_us: u32,
}
