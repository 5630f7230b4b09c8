//! Which CPU somebody waited for in a block, and how often: what its idle counters are divided by (`slept`).

use serde::{Deserialize, Serialize};

/// How often which CPU was woken in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Woken {
    /// Number of the CPU that somebody waited for.
    pub cpu: u32,
    /// How many times it was waited for: wake-ups, round trips, reads, those that were counted.
    pub n: u64,
    /// Steal of that CPU meanwhile, in nanoseconds (the kernel counts in ticks of 10 ms); none where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
}

impl Woken {
    /// So many wake-ups of this CPU.
    pub fn new(cpu: u32, n: u64) -> Woken {
        Woken { cpu, n, steal_ns: None }
    }
}
