//! The loops for x86-64: SSE2 (always there), AVX2 and AVX-512, asked for at run time.
//!
//! One macro, filled in with register names and widths, so the widths differ in nothing else: four lines (256 bytes) per
//! turn. Addresses are aligned to 64, so the aligned moves do not fault. After ymm or zmm the upper halves are cleared
//! (vzeroupper), or SSE code that follows would be slow on older processors; non-temporal stores end with sfence.
//! vzeroupper reaches registers 0 to 15, not only the few the loop names, so all are given to the compiler as lost: built
//! for x86-64-v3 it would else keep 256-bit values in the others. `make v3` runs the tests so.

use super::{SCALE, VectorLoop, Width};
use crate::pages::Line;
use std::arch::asm;

/// Runs one kernel; false if the processor does not have the width.
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
    // SAFETY: the ranges are the caller's promise; each width is used only where the processor says it has it.
    unsafe {
        match width {
            Width::Sse2 => sse2(kernel, a, b, c, n_turns),
            Width::Avx2 if std::arch::is_x86_feature_detected!("avx2") => avx2(kernel, a, b, c, n_turns),
            Width::Avx512 if std::arch::is_x86_feature_detected!("avx512f") => avx512(kernel, a, b, c, n_turns),
            _ => return false,
        }
    }
    true
}

/// A loop: `$body` moves 256 bytes at offset {i} of the ranges; {left} counts down to zero.
macro_rules! turns {
    ($a:ident, $b:ident, $c:ident, $n:ident, [$($body:expr),+ $(,)?], $end:expr) => {
        asm!(
            "2:",
            $($body,)+
            "add {i}, 256",
            "dec {left}",
            "jnz 2b",
            $end,
            i = inout(reg) 0usize => _,
            left = inout(reg) $n => _,
            a = in(reg) $a,
            b = in(reg) $b,
            c = in(reg) $c,
            s = in(reg) &raw const SCALES,
            // An xmm name stands for the whole register, however wide.
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        )
    };
}

/// The scale, as wide as the widest register.
static SCALES: Line = Line([SCALE; 8]);

macro_rules! wide {
    ($name:ident, $r:literal, [$($at:literal),+], $end:literal) => {
        /// # Safety
        /// As [`run`]; the processor must have the width.
        #[inline(always)] // So that a test can hold registers across it.
        unsafe fn $name(kernel: VectorLoop, a: *mut Line, b: *const Line, c: *const Line, n: usize) {
            // SAFETY: n turns of 256 bytes from each pointer are inside the ranges the caller promised; only the named
            // registers, the flags and the range at `a` change.
            unsafe {
                match kernel {
                    VectorLoop::Load => turns!(a, b, c, n, [
                        "/* {a} {c} {s} */",
                        $(concat!("vmovaps ", $r, "0, [{b} + {i} + ", $at, "]")),+
                    ], $end),
                    VectorLoop::Copy => turns!(a, b, c, n, [
                        "/* {c} {s} */",
                        $(concat!("vmovaps ", $r, "0, [{b} + {i} + ", $at, "]\nvmovaps [{a} + {i} + ", $at, "], ", $r, "0")),+
                    ], $end),
                    VectorLoop::CopyNonTemporal => turns!(a, b, c, n, [
                        "/* {c} {s} */",
                        $(concat!("vmovaps ", $r, "0, [{b} + {i} + ", $at, "]\nvmovntps [{a} + {i} + ", $at, "], ", $r, "0")),+
                    ], concat!("sfence\n", $end)),
                    VectorLoop::Triad => turns!(a, b, c, n, [
                        concat!("vmovaps ", $r, "4, [{s}]"),
                        $(concat!("vmulpd ", $r, "0, ", $r, "4, [{c} + {i} + ", $at, "]\nvaddpd ", $r, "0, ", $r,
                            "0, [{b} + {i} + ", $at, "]\nvmovaps [{a} + {i} + ", $at, "], ", $r, "0")),+
                    ], $end),
                }
            }
        }
    };
}

wide!(avx512, "zmm", ["0", "64", "128", "192"], "vzeroupper");
wide!(avx2, "ymm", ["0", "32", "64", "96", "128", "160", "192", "224"], "vzeroupper");

macro_rules! narrow {
    ($($at:literal),+) => {
        /// # Safety
        /// As [`run`].
        unsafe fn sse2(kernel: VectorLoop, a: *mut Line, b: *const Line, c: *const Line, n: usize) {
            // SAFETY: as in `wide`.
            unsafe {
                match kernel {
                    VectorLoop::Load => turns!(a, b, c, n, [
                        "/* {a} {c} {s} */",
                        $(concat!("movaps xmm0, [{b} + {i} + ", $at, "]")),+
                    ], ""),
                    VectorLoop::Copy => turns!(a, b, c, n, [
                        "/* {c} {s} */",
                        $(concat!("movaps xmm0, [{b} + {i} + ", $at, "]\nmovaps [{a} + {i} + ", $at, "], xmm0")),+
                    ], ""),
                    VectorLoop::CopyNonTemporal => turns!(a, b, c, n, [
                        "/* {c} {s} */",
                        $(concat!("movaps xmm0, [{b} + {i} + ", $at, "]\nmovntps [{a} + {i} + ", $at, "], xmm0")),+
                    ], "sfence"),
                    VectorLoop::Triad => turns!(a, b, c, n, [
                        "movaps xmm4, [{s}]",
                        $(concat!("movaps xmm0, [{c} + {i} + ", $at, "]\nmulpd xmm0, xmm4\naddpd xmm0, [{b} + {i} + ",
                            $at, "]\nmovaps [{a} + {i} + ", $at, "], xmm0")),+
                    ], ""),
                }
            }
        }
    };
}

narrow!("0", "16", "32", "48", "64", "80", "96", "112", "128", "144", "160", "176", "192", "208", "224", "240");

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::x86_64::{__m256d, _mm256_loadu_pd, _mm256_storeu_pd};
    use std::hint::black_box;
    use wakewatt_testing::{Lacks, skipped};

    /// What eight registers of 256 bits hold after a loop that ran while they were in use. Only an optimised build keeps
    /// them in registers: `make v3`.
    #[target_feature(enable = "avx2")]
    fn held(
        kernel: VectorLoop,
        a: &mut [Line; 4],
        b: &[Line; 4],
        c: &[Line; 4],
        values: &[[f64; 4]; 8],
    ) -> [[f64; 4]; 8] {
        // SAFETY: each is four doubles; unaligned loads.
        let registers: [__m256d; 8] = std::array::from_fn(|i| unsafe { _mm256_loadu_pd(values[i].as_ptr()) });
        // SAFETY: one turn is four lines, as many as each range has; the caller has seen that AVX2 is there.
        unsafe { avx2(kernel, a.as_mut_ptr(), b.as_ptr(), c.as_ptr(), 1) };
        let mut after = [[0.0; 4]; 8];
        for (to, from) in after.iter_mut().zip(registers) {
            // SAFETY: four doubles; unaligned.
            unsafe { _mm256_storeu_pd(to.as_mut_ptr(), from) };
        }
        after
    }

    #[test]
    fn a_loop_leaves_the_callers_wide_registers_alone() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            let test = "a_loop_leaves_the_callers_wide_registers_alone";
            return skipped(test, Lacks::Here, "this processor has no AVX2");
        }
        let values: [[f64; 4]; 8] =
            black_box(std::array::from_fn(|i| std::array::from_fn(|j| (10 * i + j) as f64 + 1.0)));
        let line = |x: f64| [Line([x; 8]); 4];
        let (mut a, b, c) = (line(0.0), line(2.0), line(3.0));
        for kernel in [VectorLoop::Load, VectorLoop::Copy, VectorLoop::CopyNonTemporal, VectorLoop::Triad] {
            // SAFETY: AVX2 was just seen.
            assert_eq!(unsafe { held(kernel, &mut a, &b, &c, black_box(&values)) }, values, "{kernel:?}");
        }
        assert_eq!(a[3].0[7], 2.0 + SCALE * 3.0);
    }
}
