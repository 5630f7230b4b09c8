//! How much: every comparison as a ratio with its interval, on a logarithmic axis with a line at "equal".
//!
//! The primary metric stands first and heavier. The axis always shows both sides of 1, so that "slower" is seen as a
//! side and not as a length, and the ±5 % band in which a difference is not worth a change is shaded.

use super::super::words;
use super::axis::LogAxis;
use super::svg::{Anchor, Svg};
use super::{WIDTHS, arm_class};
use wakewatt_words::word;

/// One comparison.
#[derive(Debug)]
pub(crate) struct Row {
    /// What was compared.
    pub(crate) label: String,
    /// Below its label: against which arm, over how many rounds.
    pub(crate) note: String,
    /// Arm style.
    pub(crate) index: usize,
    /// Estimate and interval.
    pub(crate) ratio: (f64, f64, f64),
    /// What it was made of, drawn as ticks.
    pub(crate) parts: Vec<f64>,
    /// Declared before the run.
    pub(crate) is_primary: bool,
}

/// The room for labels, at least and at most; a longer one runs into its interval's lines.
const LABELS_PX: (f64, f64) = (270.0, 390.0);

/// Draws the figure at both widths; `sides` say what the baseline is on either side of equal: faster and slower.
pub(crate) fn draw(id: &str, title: &str, baseline: &str, sides: (&str, &str), rows: &[Row]) -> String {
    let about = (title, baseline, sides);
    let one = |(class, width): &(&str, f64)| one(&format!("{id}-{class}"), class, *width, about, rows);
    WIDTHS.iter().map(one).collect()
}

/// Title, baseline, and what that is on either side of equal.
type About<'a> = (&'a str, &'a str, (&'a str, &'a str));

fn one(id: &str, class: &str, width: f64, (title, baseline, sides): About<'_>, rows: &[Row]) -> String {
    let is_wide = class == "wide";
    let longest = rows.iter().map(|r| super::svg::text_width(&r.label, 13.0)).fold(0.0, f64::max);
    let labels = (longest + 24.0).clamp(LABELS_PX.0, LABELS_PX.1);
    let (left, right) = if is_wide { (labels, width - 145.0) } else { (14.0, width - 14.0) };
    let (top, step) = (34.0, if is_wide { 46.0 } else { 68.0 });
    let bottom = top + step * rows.len() as f64;
    let mut svg = Svg::new(width, bottom + 44.0);
    let of_row = |r: &Row| [r.ratio.1, r.ratio.2].into_iter().chain(r.parts.clone()).collect::<Vec<_>>();
    let ends = rows.iter().flat_map(of_row).filter(|v| v.is_finite()).chain([0.8, 1.25]);
    let x = LogAxis::around(ends, 2.0, left, right);
    // On a phone the labels stand above each interval, so the lines are drawn beside the intervals only.
    let strips: Vec<(f64, f64)> = if is_wide {
        vec![(top - 6.0, bottom)]
    } else {
        (0..rows.len()).map(|i| top + step * (i as f64 + 0.7)).map(|m| (m - 9.0, m + 13.0)).collect()
    };
    let mut ticks = x.ticks(if is_wide { 8 } else { 5 });
    ticks.retain(|t| (x.at(*t) - x.at(1.0)).abs() > 34.0);
    for (upper, lower) in strips {
        svg.rect("band", (x.at(0.95), upper), (x.at(1.05) - x.at(0.95), lower - upper));
        for tick in &ticks {
            svg.line("grid", (x.at(*tick), upper), (x.at(*tick), lower));
        }
        svg.line("one", (x.at(1.0), upper), (x.at(1.0), lower));
    }
    svg.text("tick", Anchor::Middle, (x.at(1.0), bottom + 18.0), word!("equal"));
    for tick in ticks {
        let label = format!("×{}", wakewatt_core::units::three_digits(tick));
        svg.text("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &label);
    }
    let (faster, slower) = (format!("← {baseline} {}", sides.0), format!("{baseline} {} →", sides.1));
    let room = |px: f64, text: &str| px > super::svg::text_width(text, 12.0) + 8.0;
    if room(right - x.at(1.0), &slower) {
        svg.text("axis", Anchor::Start, (x.at(1.0) + 6.0, 16.0), &slower);
    } else {
        svg.text("axis", Anchor::End, (right, 16.0), &slower);
    }
    if room(x.at(1.0) - if is_wide { 0.0 } else { left }, &faster) {
        svg.text("axis", Anchor::End, (x.at(1.0) - 6.0, 16.0), &faster);
    }
    for (i, row) in rows.iter().enumerate() {
        let middle = top + step * (i as f64 + if is_wide { 0.5 } else { 0.7 });
        draw_row(&mut svg, &x, row, middle, is_wide, right);
    }
    let desc: Vec<String> = rows
        .iter()
        .map(|r| {
            format!(
                "{}, {}: {} ({})",
                r.label,
                r.note,
                words::ratio(r.ratio.0),
                words::ratio_interval(r.ratio.1, r.ratio.2)
            )
        })
        .collect();
    svg.finish(id, class, title, &desc.join("; "))
}

fn draw_row(svg: &mut Svg, x: &LogAxis, row: &Row, middle: f64, is_wide: bool, right: f64) {
    let class = arm_class(row.index);
    let weight = if row.is_primary { "strong" } else { "label" };
    let (ratio, low, high) = row.ratio;
    let number = format!("×{} ({})", words::ratio(ratio), words::ratio_interval(low, high));
    if is_wide {
        svg.text(weight, Anchor::Start, (0.0, middle - 2.0), &row.label);
        svg.text("axis", Anchor::Start, (0.0, middle + 14.0), &row.note);
        svg.text("value", Anchor::Start, (right + 12.0, middle + 4.0), &number);
    } else {
        svg.text(weight, Anchor::Start, (0.0, middle - 30.0), &row.label);
        svg.text("axis", Anchor::Start, (0.0, middle - 14.0), &row.note);
        svg.text("value", Anchor::End, (right, middle - 14.0), &number);
    }
    for part in &row.parts {
        svg.line(&format!("whisker a{class}"), (x.at(*part), middle - 9.0), (x.at(*part), middle + 9.0));
    }
    svg.line(&format!("ci a{class}"), (x.at(low), middle), (x.at(high), middle));
    for end in [low, high] {
        svg.line(&format!("cap a{class}"), (x.at(end), middle - 5.0), (x.at(end), middle + 5.0));
    }
    svg.mark(&format!("mark a{class}"), class, (x.at(ratio), middle), if row.is_primary { 6.5 } else { 5.0 });
}
