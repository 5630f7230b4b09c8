//! wakewatt-lab measures: probes that take a latency now. Experiments (arms, rounds) stand on them.
//!
//! Nothing in `bench` changes a setting of the machine; each probe only pins and schedules its own threads.
#![forbid(unsafe_code)]

pub mod bench;
