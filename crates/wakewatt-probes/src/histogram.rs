//! The histogram of `shared/hist.h` as it lies in a map, byte for byte: every probe reads its counts through this.

use wakewatt_core::samples::kernel_histogram::{KernelHistogram, N_BUCKETS};

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawHistogram {
    pub(crate) n: u64,
    sum_ns: u64,
    max_ns: u64,
    buckets: [u32; N_BUCKETS],
}

// SAFETY: plain integers without padding, valid for every bit pattern.
unsafe impl aya::Pod for RawHistogram {}

impl RawHistogram {
    /// What it counted.
    pub(crate) fn histogram(&self) -> KernelHistogram {
        let buckets = if self.n == 0 { Vec::new() } else { self.buckets.iter().map(|n| u64::from(*n)).collect() };
        KernelHistogram { n: self.n, sum_ns: self.sum_ns, max_ns: self.max_ns, buckets }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_as_large_as_the_c_structure() {
        assert_eq!(size_of::<super::RawHistogram>(), 3 * 8 + 240 * 4);
    }
}
