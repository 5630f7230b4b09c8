//! The loops for arm64, where NEON is always there: pairs of 16-byte registers.
//!
//! `stnp` is only a hint that the data will not be needed soon; a processor may treat it as a plain store, and most
//! recognise long runs of plain stores and skip the write-allocate by themselves. So copy and its non-temporal twin are
//! often equally fast here, which is no fault of the measurement.

use super::{SCALE, VectorLoop, Width};
use crate::pages::Line;
use std::arch::asm;

/// Runs one kernel; false if it is not NEON that is wanted.
///
/// # Safety
/// `n_turns * LINES_PER_TURN` lines must be readable at `b` (and `c` for triad) and, except for load, writable at `a`,
/// not overlapping.
pub(super) unsafe fn run(
    kernel: VectorLoop,
    width: Width,
    a: *mut Line,
    b: *const Line,
    c: *const Line,
    n_turns: usize,
) -> bool {
    if width != Width::Neon {
        return false;
    }
    /// `$body` moves 256 bytes; x9, x10 and x11 run through b, a and c.
    macro_rules! turns {
        ($($body:expr),+ $(,)?) => {
            asm!(
                "2:",
                $($body,)+
                "add x9, x9, #256",
                "add x10, x10, #256",
                "add x11, x11, #256",
                "subs {left}, {left}, #1",
                "b.ne 2b",
                left = inout(reg) n_turns => _,
                inout("x9") b => _,
                inout("x10") a => _,
                inout("x11") c => _,
                in("v4") SCALE,
                out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                options(nostack),
            )
        };
    }
    /// Each line, which ends in an open address, for every pair of registers of a turn.
    macro_rules! pairs {
        ($($line:literal),+ $(,)?) => {
            turns!(
                concat!($($line, "#0]\n"),+),
                concat!($($line, "#32]\n"),+),
                concat!($($line, "#64]\n"),+),
                concat!($($line, "#96]\n"),+),
                concat!($($line, "#128]\n"),+),
                concat!($($line, "#160]\n"),+),
                concat!($($line, "#192]\n"),+),
                concat!($($line, "#224]\n"),+)
            )
        };
    }
    // SAFETY: n turns of 256 bytes from each pointer are inside the ranges the caller promised; only the named
    // registers, the flags and the range at `a` change.
    unsafe {
        match kernel {
            VectorLoop::Load => pairs!("ldp q0, q1, [x9, "),
            VectorLoop::Copy => {
                pairs!("ldp q0, q1, [x9, ", "stp q0, q1, [x10, ");
            }
            VectorLoop::CopyNonTemporal => {
                pairs!("ldp q0, q1, [x9, ", "stnp q0, q1, [x10, ");
            }
            VectorLoop::Triad => pairs!(
                "ldp q0, q1, [x9, ",
                "ldp q2, q3, [x11, ",
                "fmla v0.2d, v2.2d, v4.d[0]\nfmla v1.2d, v3.2d, v4.d[0]\nstp q0, q1, [x10, "
            ),
        }
    }
    true
}
