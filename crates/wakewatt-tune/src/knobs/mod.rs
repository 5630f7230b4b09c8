//! Knobs: what wakewatt may write, one file each.

pub mod qos_cpu;
pub mod qos_global;
