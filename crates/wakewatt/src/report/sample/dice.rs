//! Fixed random numbers for the samples, and the windows they are said to be from.

use wakewatt_core::samples::Window;

/// A generator small enough to read: the sequence only has to be fixed and well spread.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
    /// A narrow bulk, and 3 % in a tail `tail` times as far out.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^63")]
    pub(super) fn latency_ns(&mut self, p50_ns: f64, tail: f64) -> u64 {
        let bulk = p50_ns * (0.14 * self.normal()).exp();
        let late = if self.unit() < 0.03 { tail * (0.35 * self.normal()).exp() } else { 1.0 };
        (bulk * late.max(0.8)) as u64
    }
}

/// A window that began so many milliseconds into the run.
pub(super) fn window(start_ms: u64, length_ms: u64) -> Window {
    let start_at_ns = 4_021_000_000_000 + start_ms * 1_000_000;
    Window { start_at_ns, end_at_ns: start_at_ns + length_ms * 1_000_000 }
}
