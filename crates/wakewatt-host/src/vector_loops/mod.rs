//! The four inner loops of a bandwidth measurement, each for every vector width the processor has.
//!
//! They are written in assembly on purpose. A compiler turns a plain copy into memcpy, which picks non-temporal stores
//! by itself for long ranges, and so a "copy" of one program is 55 % faster than that of another
//! (docs/methods/memory.md: STREAM compiled by GCC 23.1 GB/s, likwid's copy 13.8 GB/s). Here the store type is what the
//! name says. A normal store reads its line first (write-allocate), so a copy moves three bytes for every two that are
//! counted; a non-temporal one does not. Bytes are counted as STREAM and likwid-bench do, without the write-allocate.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::pages::Line;

/// Lines per turn of every loop; the rest of a range is left out, and not counted.
pub const LINES_PER_TURN: usize = 4;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorLoop {
    /// Reads everything.
    Load,
    /// a = b, with stores through the cache.
    Copy,
    /// a = b, with stores past the cache.
    CopyNonTemporal,
    /// a = b + s * c, with stores through the cache.
    Triad,
}

/// With which registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// 8 bytes; everywhere.
    Scalar,
    /// 16 bytes, x86-64.
    Sse2,
    /// 16 bytes, arm64.
    Neon,
    /// 32 bytes.
    Avx2,
    /// 64 bytes.
    Avx512,
}

impl Width {
    /// For tables and `--simd`.
    pub fn word(self) -> &'static str {
        match self {
            Width::Scalar => "scalar",
            Width::Sse2 => "sse2",
            Width::Neon => "neon",
            Width::Avx2 => "avx2",
            Width::Avx512 => "avx512",
        }
    }

    /// What this processor has, narrowest first.
    pub fn available() -> Vec<Width> {
        let mut all = vec![Width::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            all.push(Width::Sse2);
            all.extend(std::arch::is_x86_feature_detected!("avx2").then_some(Width::Avx2));
            all.extend(std::arch::is_x86_feature_detected!("avx512f").then_some(Width::Avx512));
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Width::Neon);
        all
    }
}

/// Which regions a kernel works on; the compiler sees to it that what is written is not read elsewhere.
#[derive(Debug)]
pub struct Ranges<'a> {
    /// Written, except by load.
    pub a: &'a mut [Line],
    /// Read.
    pub b: &'a [Line],
    /// Read by triad.
    pub c: &'a [Line],
}

impl Ranges<'_> {
    /// Lines the kernel will touch in each range.
    fn n_lines(&self, kernel: VectorLoop) -> usize {
        let n = match kernel {
            VectorLoop::Load => self.b.len(),
            VectorLoop::Copy | VectorLoop::CopyNonTemporal => self.a.len().min(self.b.len()),
            VectorLoop::Triad => self.a.len().min(self.b.len()).min(self.c.len()),
        };
        n - n % LINES_PER_TURN
    }

    /// Runs a kernel once over the ranges and returns the bytes counted; 0 if this processor does not have the width.
    pub fn run(&mut self, kernel: VectorLoop, width: Width) -> u64 {
        let n_lines = self.n_lines(kernel);
        if n_lines == 0 {
            return 0;
        }
        let n_turns = n_lines / LINES_PER_TURN;
        let (a, b, c) = (self.a.as_mut_ptr(), self.b.as_ptr(), self.c.as_ptr());
        let is_done = match width {
            Width::Scalar => false,
            // SAFETY: the first n_turns * LINES_PER_TURN lines of each range that the kernel touches are inside its slice
            // (n_lines above); `a` is borrowed exclusively; the callee checks that the processor has the width.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { x86::run(kernel, width, a, b, c, n_turns) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            _ => unsafe { arm::run(kernel, width, a, b, c, n_turns) },
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            _ => false,
        };
        if !is_done {
            if width != Width::Scalar {
                return 0;
            }
            self.scalar(kernel, n_lines);
        }
        kernel.counted_bytes(n_lines as u64)
    }

    /// The loops of any other processor. The compiler may use vectors here, so the name means "as compiled".
    fn scalar(&mut self, kernel: VectorLoop, n_lines: usize) {
        match kernel {
            VectorLoop::Load => {
                for line in &self.b[..n_lines] {
                    // SAFETY: a read from a live reference; volatile, so that it is not left out.
                    line.0.iter().for_each(|x| _ = unsafe { std::ptr::read_volatile(x) });
                }
            }
            // Without vectors there is no portable non-temporal store; the caller does not offer it.
            VectorLoop::Copy | VectorLoop::CopyNonTemporal => {
                for (a, b) in self.a[..n_lines].iter_mut().zip(self.b) {
                    for (to, from) in a.0.iter_mut().zip(&b.0) {
                        // SAFETY: a write to a live exclusive reference; volatile, so that no memcpy is made of it.
                        unsafe { std::ptr::write_volatile(to, *from) };
                    }
                }
            }
            VectorLoop::Triad => {
                for (a, (b, c)) in self.a[..n_lines].iter_mut().zip(self.b.iter().zip(self.c)) {
                    for (to, (x, y)) in a.0.iter_mut().zip(b.0.iter().zip(&c.0)) {
                        // SAFETY: as for copy.
                        unsafe { std::ptr::write_volatile(to, *x + SCALE * *y) };
                    }
                }
            }
        }
    }
}

impl VectorLoop {
    /// Bytes counted for this many lines: what the program reads and writes.
    pub fn counted_bytes(self, n_lines: u64) -> u64 {
        let ranges = match self {
            VectorLoop::Load => 1,
            VectorLoop::Copy | VectorLoop::CopyNonTemporal => 2,
            VectorLoop::Triad => 3,
        };
        ranges * n_lines * crate::pages::LINE_BYTES as u64
    }
}

/// The s of triad.
const SCALE: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_computes_the_same() {
        for width in Width::available() {
            let line = |i: u32| Line([f64::from(i), 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f64::from(i) * 0.5]);
            let b: Vec<Line> = (0..10).map(line).collect();
            let c: Vec<Line> = (10..20).map(line).collect();
            for kernel in [VectorLoop::Load, VectorLoop::Copy, VectorLoop::CopyNonTemporal, VectorLoop::Triad] {
                let mut a = vec![Line::default(); 10];
                let counted = Ranges { a: &mut a, b: &b, c: &c }.run(kernel, width);
                assert_eq!(counted, kernel.counted_bytes(8), "{kernel:?} {width:?}: 8 of 10 lines are whole turns");
                for i in 0..10 {
                    let of = |at: usize| match kernel {
                        VectorLoop::Load => 0.0,
                        _ if i >= 8 => 0.0,
                        VectorLoop::Triad => b[i].0[at] + SCALE * c[i].0[at],
                        _ => b[i].0[at],
                    };
                    let expected: Vec<f64> = (0..8).map(of).collect();
                    assert_eq!(a[i].0.to_vec(), expected, "{kernel:?} {width:?} line {i}");
                }
            }
        }
        let mut none = Ranges { a: &mut [], b: &[], c: &[] };
        assert_eq!(none.run(VectorLoop::Load, Width::Scalar), 0);
    }
}
