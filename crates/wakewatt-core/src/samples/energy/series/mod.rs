//! The readings of one channel, and what they come to.
//!
//! Power is integrated by trapezoid between neighbouring readings, an energy counter by differences. Neighbours farther
//! apart than 2.5 intervals (the planned one, or the meter's own median where that is longer) are a gap: nobody knows
//! what a power meter would have said in it, so it is not integrated, while a counter has kept it. Zero watts from a
//! machine that runs is no reading; zeros throughout are a dead meter. A counter that moved and then stands still for 3
//! intervals has stopped: from there on it covers nothing.
//!
//! The interval of the mean comes from batches (at most 10 equal stretches of the window, Student's t), because
//! neighbouring readings are correlated and a per-sample error would be far too small (docs/methods/power.md).

use super::counter::step;
use super::{Channel, ChannelSample, Kind, MOST_UW};
use crate::arrange::Arrange as _;
use crate::samples::{Label, Window};

/// A counter that stands still for less may only be slow: RAPL updates every 1 ms, a BMC once a second.
const SHORTEST_FOR_DEAD_NS: u64 = 50_000_000;
/// So many readings, all equal, and no others: a frozen or a very slow meter, or a load steadier than its steps.
const N_FROZEN: usize = 5;
/// A meter that answers every third time has thousands; these are for people.
const MAX_SILENCES: usize = 16;
/// Batches for the interval of the mean.
const MAX_BATCHES: usize = 10;
/// Student's t at 97.5 %, by degrees of freedom from 3 on.
const T_975: [f64; 7] = [3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// The readings of one channel.
#[derive(Clone, Debug)]
pub struct Series {
    channel: Channel,
    interval_ns: u64,
    points: Vec<(u64, i64)>,
    n_failed: u64,
    n_disordered: u64,
    failure: Option<String>,
}

/// A stretch between two readings.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start_at_ns: u64,
    length_ns: u64,
    energy_uj: f64,
}

impl Stretch {
    /// The part of it inside a window, as if its power were even.
    fn within(&self, window: Window) -> Option<Stretch> {
        let end_at_ns = (self.start_at_ns + self.length_ns).min(window.end_at_ns);
        let start_at_ns = self.start_at_ns.max(window.start_at_ns);
        let length_ns = end_at_ns.checked_sub(start_at_ns).filter(|ns| *ns > 0)?;
        let energy_uj = self.energy_uj * length_ns as f64 / self.length_ns as f64;
        Some(Stretch { start_at_ns, length_ns, energy_uj })
    }

    fn uw(&self) -> f64 {
        self.energy_uj * 1e9 / self.length_ns as f64
    }
}

impl Series {
    /// An empty one.
    pub fn new(channel: Channel, interval_ns: u64) -> Series {
        Series { channel, interval_ns, points: Vec::new(), n_failed: 0, n_disordered: 0, failure: None }
    }

    /// One reading with the time it was taken (microwatts, or microjoules of a counter), or why there is none.
    pub fn push(&mut self, at_ns: u64, reading: Result<i64, String>) {
        match reading {
            Ok(_) if self.points.last().is_some_and(|(last, _)| *last >= at_ns) => self.n_disordered += 1,
            Ok(value) => self.points.push((at_ns, value)),
            Err(why) => {
                self.n_failed += 1;
                self.failure = Some(why);
            }
        }
    }

    /// The time between readings that is normal here: a slow meter has its own.
    fn nominal_ns(&self) -> u64 {
        let mut apart: Vec<u64> = self.points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        apart.sort_unstable();
        let median = apart.get(apart.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        self.interval_ns.max(median)
    }

    /// What it comes to, from the first reading to this time.
    pub fn summary(&self, end_at_ns: u64) -> ChannelSample {
        self.within(Window { start_at_ns: 0, end_at_ns })
    }

    /// What it comes to in a window. Readings before and after it give its edges; energy outside is cut off.
    pub fn within(&self, window: Window) -> ChannelSample {
        let mut out = ChannelSample {
            channel: self.channel.clone(),
            label: Label::Unavailable,
            why: None,
            window: Window::default(),
            covered_ns: 0,
            n: 0,
            n_gaps: 0,
            silences: Vec::new(),
            n_failed: self.n_failed,
            n_rejected: self.n_disordered,
            n_resets: 0,
            mean_uw: None,
            uncertainty_uw: None,
            min_uw: None,
            max_uw: None,
            energy_uj: None,
            doubts: Vec::new(),
        };
        if self.points.is_empty() {
            out.why = Some(self.failure.clone().unwrap_or_else(|| "it was not read".into()));
            return out;
        }
        let stretches = match self.channel.kind {
            Kind::Power => self.power(&mut out),
            Kind::Energy { range_uj } => self.energy(range_uj, &mut out),
        };
        if out.label != Label::Measured {
            return out;
        }
        self.doubt(window.end_at_ns, &mut out);
        out.window.start_at_ns = out.window.start_at_ns.max(window.start_at_ns);
        out.window.end_at_ns = out.window.end_at_ns.min(window.end_at_ns).max(out.window.start_at_ns);
        out.silences = silences(&out.silences, window);
        let inside: Vec<Stretch> = stretches.iter().filter_map(|s| s.within(window)).collect();
        self.fill(&inside, &mut out);
        out
    }

    /// Trapezoids between readings that can be true.
    fn power(&self, out: &mut ChannelSample) -> Vec<Stretch> {
        let is_true = |value: i64| u64::try_from(value).is_ok_and(|uw| uw > 0 && uw <= MOST_UW);
        let good: Vec<(u64, i64)> = self.points.iter().copied().filter(|(_, v)| is_true(*v)).collect();
        out.n_rejected += (self.points.len() - good.len()) as u64;
        out.n = good.len() as u64;
        let (Some(first), Some(last)) = (good.first(), good.last()) else {
            let is_zero = self.points.iter().all(|(_, v)| *v == 0);
            out.label = if is_zero { Label::PresentButDead } else { Label::Unavailable };
            let said = self.points.last().map_or(0, |(_, v)| *v);
            out.why = Some(match is_zero {
                true => "present but constant zero".into(),
                false => format!("it says {said} uW, which no machine draws"),
            });
            return Vec::new();
        };
        out.label = Label::Measured;
        out.window = Window { start_at_ns: first.0, end_at_ns: last.0 };
        out.min_uw = good.iter().filter_map(|(_, v)| u64::try_from(*v).ok()).min();
        out.max_uw = good.iter().filter_map(|(_, v)| u64::try_from(*v).ok()).max();
        if good.len() >= N_FROZEN && out.min_uw == out.max_uw {
            out.doubts.push(format!(
                "all {} readings are equal: frozen, slower than this window, or coarser than the load varied",
                good.len()
            ));
        }
        if good.len() == 1 {
            out.mean_uw = out.min_uw;
            out.doubts.push("a single reading: no energy, no interval".into());
        }
        let mut stretches = Vec::new();
        let nominal_ns = self.nominal_ns();
        for pair in good.windows(2) {
            let length_ns = pair[1].0 - pair[0].0;
            if is_gap(length_ns, nominal_ns) {
                out.n_gaps += 1;
                out.silences.push(Window { start_at_ns: pair[0].0, end_at_ns: pair[1].0 });
                continue;
            }
            let mean_uw = (pair[0].1 as f64 + pair[1].1 as f64) / 2.0;
            stretches.push(Stretch { start_at_ns: pair[0].0, length_ns, energy_uj: mean_uw * length_ns as f64 / 1e9 });
        }
        stretches
    }

    /// Differences of a counter.
    fn energy(&self, range_uj: Option<u64>, out: &mut ChannelSample) -> Vec<Stretch> {
        out.n = self.points.len() as u64;
        let (first, last) = (self.points[0].0, self.points[self.points.len() - 1].0);
        out.window = Window { start_at_ns: first, end_at_ns: last };
        let mut stretches = Vec::new();
        let (mut moved_at_ns, mut n_still) = (None, 0);
        let nominal_ns = self.nominal_ns();
        for pair in self.points.windows(2) {
            let ((then_at, then), (now_at, now)) = (pair[0], pair[1]);
            let length_ns = now_at - then_at;
            out.n_gaps += u64::from(is_gap(length_ns, nominal_ns));
            let (Ok(then), Ok(now)) = (u64::try_from(then), u64::try_from(now)) else {
                out.n_rejected += 1;
                continue;
            };
            let Some(moved) = step(range_uj, then, now) else {
                out.n_resets += 1;
                continue;
            };
            let stretch = Stretch { start_at_ns: pair[0].0, length_ns, energy_uj: moved as f64 };
            if stretch.uw() > MOST_UW as f64 {
                out.n_rejected += 1;
                continue;
            }
            n_still = if moved == 0 { n_still + 1 } else { 0 };
            if moved > 0 {
                moved_at_ns = Some(now_at);
            }
            stretches.push(stretch);
        }
        match moved_at_ns {
            None if out.window.length_ns() < SHORTEST_FOR_DEAD_NS => {
                out.why = Some("the window is too short for a counter".into());
            }
            None if out.n_resets + out.n_rejected > 0 => {
                out.why = Some(format!("{} steps, none of them possible", self.points.len() - 1));
            }
            None => {
                out.label = Label::PresentButDead;
                out.why = Some(match self.points[0].1 {
                    0 => "present but constant zero".into(),
                    _ => "present, but the counter does not move".into(),
                });
            }
            Some(at_ns) => {
                out.label = Label::Measured;
                if n_still >= 3 && last - at_ns >= SHORTEST_FOR_DEAD_NS {
                    stretches.truncate(stretches.len() - n_still);
                    out.silences.push(Window { start_at_ns: at_ns, end_at_ns: last });
                    out.doubts.push(format!("it stopped moving {} before the end", seconds(last - at_ns)));
                }
            }
        }
        let powers = stretches.iter().map(Stretch::uw);
        out.min_uw = powers.clone().reduce(f64::min).map(whole);
        out.max_uw = powers.reduce(f64::max).map(whole);
        stretches
    }

    fn doubt(&self, end_at_ns: u64, out: &mut ChannelSample) {
        let silent_ns = end_at_ns.saturating_sub(out.window.end_at_ns);
        if silent_ns > self.nominal_ns().max(1).saturating_mul(3) {
            out.silences.push(Window { start_at_ns: out.window.end_at_ns, end_at_ns });
            out.doubts.push(format!("it gave nothing in the last {}", seconds(silent_ns)));
        }
        let mut count = |n: u64, what: &str| {
            if n > 0 {
                out.doubts.push(format!("{n} {what}"));
            }
        };
        count(out.n_rejected, "readings refused (zero, negative, absurd or out of order)");
        count(out.n_resets, "times it jumped back without wrapping");
        let n_failed = self.n_failed;
        if let (true, Some(why)) = (n_failed > 0, &self.failure) {
            out.doubts.push(format!("{n_failed} readings failed: {why}"));
        }
    }

    fn fill(&self, stretches: &[Stretch], out: &mut ChannelSample) {
        out.covered_ns = stretches.iter().map(|s| s.length_ns).sum();
        if out.covered_ns == 0 {
            return;
        }
        let energy_uj: f64 = stretches.iter().map(|s| s.energy_uj).sum();
        out.energy_uj = Some(whole(energy_uj));
        out.mean_uw = Some(whole(energy_uj * 1e9 / out.covered_ns as f64));
        out.uncertainty_uw = half_width(stretches).map(whole);
        if out.covered_ns * 100 < out.window.length_ns() * 99 {
            let share = out.covered_ns * 100 / out.window.length_ns();
            out.doubts.push(format!("only {share} % of the window is covered; energy is of that part"));
        }
    }
}

/// What of them lies in the window, the longest first if there are too many, and then in order.
fn silences(all: &[Window], window: Window) -> Vec<Window> {
    let clipped = all.iter().map(|s| Window {
        start_at_ns: s.start_at_ns.max(window.start_at_ns),
        end_at_ns: s.end_at_ns.min(window.end_at_ns),
    });
    let mut inside: Vec<Window> = clipped.filter(|s| s.end_at_ns > s.start_at_ns).collect();
    inside.arrange_by_key(|s| std::cmp::Reverse(s.length_ns()));
    inside.truncate(MAX_SILENCES);
    inside.arrange_by_key(|s| s.start_at_ns);
    inside
}

fn is_gap(length_ns: u64, nominal_ns: u64) -> bool {
    nominal_ns > 0 && length_ns > nominal_ns.saturating_mul(5) / 2
}

/// Half of the 95 % interval of the mean, from batches; none with fewer than four.
fn half_width(stretches: &[Stretch]) -> Option<f64> {
    let n_batches = stretches.len().min(MAX_BATCHES);
    let t = *T_975.get(n_batches.checked_sub(4)?)?;
    let mean_of = |batch: &[Stretch]| {
        let length: u64 = batch.iter().map(|s| s.length_ns).sum();
        batch.iter().map(|s| s.energy_uj).sum::<f64>() * 1e9 / length as f64
    };
    let at = |i: usize| i * stretches.len() / n_batches;
    let means: Vec<f64> = (0..n_batches).map(|i| mean_of(&stretches[at(i)..at(i + 1)])).collect();
    let n = n_batches as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t * (variance / n).sqrt())
}

/// Rounded; negative is 0.
fn whole(value: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates, and nothing here is negative.
    let out = value.round().max(0.0) as u64;
    out
}

fn seconds(ns: u64) -> String {
    crate::units::show_ns(ns)
}

#[cfg(test)]
mod tests;
