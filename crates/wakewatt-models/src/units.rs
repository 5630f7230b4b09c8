//! The kernel's times: nanoseconds with a sign, a largest one that means never, and what older kernels kept of them.

/// No timer at all: the largest time the kernel has, in nanoseconds.
pub const FOREVER_NS: i64 = i64::MAX;

/// As the kernel compares it with numbers that have no sign: a negative time is a very long one.
#[inline]
pub(crate) fn unsigned(ns: i64) -> u64 {
    ns.cast_unsigned()
}

/// Whole microseconds, cut to the 32 bits that kernels up to 5.4 kept.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn whole_us(ns: i64) -> u32 {
    (ns / 1000) as u32
}

/// A residency in whole microseconds, as kernels up to 5.4 accounted it: 31 bits.
pub(crate) fn residency_us(ns: i64) -> u32 {
    u32::try_from((ns / 1000).clamp(0, i64::from(i32::MAX))).unwrap_or(0)
}
