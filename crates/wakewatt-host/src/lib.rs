//! stub

pub mod clock;
pub mod affinity;
pub mod sched;
pub mod sleep;
pub mod ipi;
pub mod timestamps;
