//! How long, how often: one ridge per arm (the shape), and below it, on the same axis, the percentiles (the tail).
//!
//! The vertical axis of the lower panel is the percentile stretched so that every further nine takes the same room,
//! as in HDR plots; a plain cumulative curve would squeeze the tail, which is what people suffer from, into one line.
//! p50 and p99 are marked with their values. All samples of an arm are pooled here: to see, never to test.

use super::super::words;
use super::axis::LogAxis;
use super::svg::{Anchor, Svg, text_width};
use super::{WIDTHS, arm_class};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_words::{say, word};

/// One curve.
#[derive(Debug)]
pub(crate) struct Curve<'a> {
    /// The label beside it.
    pub(crate) name: &'a str,
    /// Which arm style.
    pub(crate) index: usize,
    /// Its samples.
    pub(crate) latency: &'a Distribution,
}

const PEAK: f64 = 34.0;
const PANEL: f64 = 200.0;

/// Draws the figure at both widths.
pub(crate) fn draw(id: &str, title: &str, curves: &[Curve<'_>]) -> String {
    WIDTHS.iter().map(|(class, width)| one(&format!("{id}-{class}"), class, *width, title, curves)).collect()
}

fn one(id: &str, class: &str, width: f64, title: &str, curves: &[Curve<'_>]) -> String {
    let is_wide = class == "wide";
    let (left, right) = (46.0, width - 14.0);
    // On a phone a name has a line of its own above its ridge; on a wide page it stands beside the peak.
    let step = if is_wide { PEAK + 12.0 } else { PEAK + 26.0 };
    let ridges = 20.0 + step * curves.len() as f64;
    let (top, bottom) = (ridges + 30.0, ridges + 30.0 + PANEL);
    let mut svg = Svg::new(width, bottom + 44.0);
    // The axis ends where the curves do: at the last percentile that the sample sizes support, and a little beyond.
    let last = |d: &Distribution| d.quantiles.last().map_or(d.max_ns, |q| q.high_ns) as f64;
    let ends =
        curves.iter().flat_map(|c| [c.latency.min_ns.max(1) as f64 * if is_wide { 1.0 } else { 0.7 }, last(c.latency)]);
    let x = LogAxis::around(ends, 3.0, left, right);
    for tick in x.ticks(if is_wide { 8 } else { 5 }) {
        svg.line("grid", (x.at(tick), 18.0), (x.at(tick), bottom));
        svg.text("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &words::ns(tick));
    }
    svg.text("axis", Anchor::End, (right, bottom + 37.0), word!("latency, logarithmic"));
    svg.text("axis", Anchor::Start, (left, 12.0), word!("how often"));
    for (row, curve) in curves.iter().enumerate() {
        let base = 20.0 + step * (row as f64 + 1.0);
        ridge(&mut svg, &x, curve, base, right);
        name(&mut svg, &x, curve, base, right, is_wide);
    }
    svg.text("axis", Anchor::Start, (left, top - 9.0), word!("percentile"));
    let y = |q: f64| bottom - (-(1.0 - q).max(1e-9).log10()) / 3.15 * PANEL;
    for q in [0.0, 0.5, 0.9, 0.99, 0.999] {
        svg.line(if q == 0.0 { "base" } else { "grid" }, (left, y(q)), (right, y(q)));
        let label = if q == 0.0 { word!("fastest").to_string() } else { words::quantile(q) };
        svg.text("tick", Anchor::End, (left - 6.0, y(q) + 4.0), &label);
    }
    for curve in curves {
        svg.path(&format!("line a{}", arm_class(curve.index)), &percentile_points(curve.latency, &x, y), false);
    }
    for q in [0.5, 0.99] {
        marks(&mut svg, &x, y(q), q, curves, (left, right));
    }
    let desc: Vec<String> = curves
        .iter()
        .map(|c| {
            let at = |q| c.latency.quantile(q).map_or(word!("not known").into(), |v| words::ns(v.value_ns as f64));
            say!("{}: p50 {}, p99 {}, {} samples", c.name, at(0.5), at(0.99), c.latency.n)
        })
        .collect();
    svg.finish(id, class, title, &desc.join("; "))
}

fn percentile_points(latency: &Distribution, x: &LogAxis, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut points = vec![(x.at(latency.min_ns as f64), y(0.0))];
    // A quantile with fewer than ten samples beyond it is not drawn either.
    let limit = latency.quantiles.last().map_or(0.9, |q| q.q).min(1.0 - 10.0 / latency.n.max(11) as f64).min(0.9992);
    let mut seen = 0u64;
    for bucket in &latency.buckets {
        seen += bucket.n;
        let q = seen as f64 / latency.n.max(1) as f64;
        if q > limit {
            break;
        }
        points.push((x.at(bucket.upto_ns as f64), y(q)));
    }
    points
}

/// Density over the logarithm of latency, from buckets of about equal logarithmic width, lightly smoothed.
fn ridge(svg: &mut Svg, x: &LogAxis, curve: &Curve<'_>, base: f64, right: f64) {
    let class = arm_class(curve.index);
    let mut bars: Vec<(f64, f64)> = Vec::new();
    let mut before = (curve.latency.min_ns.max(1) as f64 * 0.97).ln();
    for bucket in &curve.latency.buckets {
        let upto = (bucket.upto_ns.max(1) as f64).ln();
        // A gap before a lone bucket must not dilute it: its own width is at most a sixteenth of its value.
        let width = (upto - before).clamp(0.02, 0.07);
        bars.push((upto - width / 2.0, bucket.n as f64 / width));
        before = upto;
    }
    let smooth: Vec<(f64, f64)> = (0..bars.len())
        .map(|i| {
            let near = &bars[i.saturating_sub(1)..(i + 2).min(bars.len())];
            (bars[i].0, near.iter().map(|b| b.1).sum::<f64>() / near.len() as f64)
        })
        .collect();
    let top = smooth.iter().map(|b| b.1).fold(0.0, f64::max).max(1e-9);
    if let (Some(first), Some(last)) = (smooth.first(), smooth.last()) {
        let mut points = vec![(x.at((first.0 - 0.05).exp()), base)];
        points.extend(smooth.iter().map(|(v, n)| (x.at(v.exp()), base - n / top * PEAK)));
        points.push((x.at((last.0 + 0.05).exp()), base));
        svg.path(&format!("fill a{class}"), &points, true);
    }
    svg.line("base", (x.at(0.0), base), (right, base));
}

fn name(svg: &mut Svg, x: &LogAxis, curve: &Curve<'_>, base: f64, right: f64, is_wide: bool) {
    let class = format!("name a{}", arm_class(curve.index));
    let p50 = curve.latency.p50_ns().map_or(x.at(1.0), |v| x.at(v as f64));
    let is_left = p50 < (x.at(0.0) + right) / 2.0;
    match (is_wide, is_left) {
        (true, true) => svg.text(&class, Anchor::End, (right, base - 16.0), curve.name),
        (true, false) => svg.text(&class, Anchor::Start, (x.at(0.0) + 4.0, base - 16.0), curve.name),
        (false, _) => svg.text(&class, Anchor::Start, (x.at(0.0) + 4.0, base - PEAK - 6.0), curve.name),
    }
}

/// Marks of one percentile with their values, each on the side where the next curve is farther away.
fn marks(svg: &mut Svg, x: &LogAxis, y: f64, q: f64, curves: &[Curve<'_>], (left, right): (f64, f64)) {
    let mut known: Vec<(usize, f64)> =
        curves.iter().filter_map(|c| Some((c.index, c.latency.quantile(q)?.value_ns as f64))).collect();
    known.arrange_by(|a, b| a.1.total_cmp(&b.1));
    let mut label_end = f64::NEG_INFINITY;
    for (i, (index, value)) in known.iter().enumerate() {
        let (at, label) = (x.at(*value), words::ns_rough(*value));
        let before = i.checked_sub(1).and_then(|j| known.get(j)).map_or(left - 30.0, |(_, v)| x.at(*v));
        let after = known.get(i + 1).map_or(right + 60.0, |(_, v)| x.at(*v));
        let width = text_width(&label, 12.5) + 10.0;
        // Curves rise to the right: left of a mark the room is above it, right of it below.
        let is_left = at - before > after - at && at - width > label_end.max(left) || at + width > right + 12.0;
        let class = arm_class(*index);
        svg.mark(&format!("mark a{class}"), class, (at, y), 5.0);
        if is_left {
            svg.text_if_free(&format!("value a{class}"), Anchor::End, (at - 9.0, y - 6.0), &label);
        } else {
            svg.text_if_free(&format!("value a{class}"), Anchor::Start, (at + 9.0, y + 16.0), &label);
            label_end = at + width;
        }
    }
}
