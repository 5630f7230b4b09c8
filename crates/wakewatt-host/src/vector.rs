//! Work for the widest vector unit, for measuring what starting it costs.
//!
//! Intel CPUs keep the upper lanes powered down and, from Skylake-SP on, lower the clock for heavy wide work; for some
//! ten microseconds after the first such instruction they run it at a quarter of its speed. Fused multiply-adds on eight
//! registers are what takes the heaviest licence. Other architectures have nothing alike that is known here.

/// A vector width that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 512 bits.
    Avx512,
    /// 256 bits.
    Avx2,
}

impl Width {
    /// The widest here; none where there is no fused multiply-add of 256 bits or more.
    pub fn widest() -> Option<Width> {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                return Some(Width::Avx512);
            }
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                return Some(Width::Avx2);
            }
        }
        None
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Width::Avx512 => "AVX-512",
            Width::Avx2 => "AVX2",
        }
    }

    /// So many rounds of eight multiply-adds; the result depends on all of them.
    pub fn work(self, rounds: u64) -> f64 {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
            if self == Width::Avx512 && std::arch::is_x86_feature_detected!("avx512f") {
                // SAFETY: the feature was just seen.
                return unsafe { x86::avx512(rounds) };
            }
            if self == Width::Avx2 && has_avx2 {
                // SAFETY: both features were just seen.
                return unsafe { x86::avx2(rounds) };
            }
        }
        rounds as f64
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(rounds: u64) -> f64 {
        let (factor, add) = (_mm512_set1_pd(0.999_999), _mm512_set1_pd(1e-6));
        let mut sums = [_mm512_set1_pd(1.0); 8];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_pd(*sum, factor, add);
            }
        }
        sums.iter().map(|s| _mm512_reduce_add_pd(*s)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(rounds: u64) -> f64 {
        let (factor, add) = (_mm256_set1_pd(0.999_999), _mm256_set1_pd(1e-6));
        let mut sums = [_mm256_set1_pd(1.0); 8];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_pd(*sum, factor, add);
            }
        }
        sums.iter().map(|s| _mm256_cvtsd_f64(*s)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done() {
        if let Some(width) = Width::widest() {
            assert!((width.work(1000) - width.work(1000)).abs() < 1e-12 && width.work(10) > 0.0);
        }
    }
}
