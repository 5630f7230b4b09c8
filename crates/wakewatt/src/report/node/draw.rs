//! Drawings over time: columns of shares, a heat map, lines. Time goes from left to right, in the same place in each, so that what happened together stands
//! one below the other; a change of a setting is a line through all of them.

use crate::report::charts::WIDTHS;
use crate::report::charts::svg::{Anchor, Svg};
use wakewatt_agent::node::past::Past;
use wakewatt_words::say;

/// Shades of the style sheet.
const N_SHADES: usize = 8;
/// Below the plot: times.
const FOOT: f64 = 20.0;
/// Above it: numbers of changes.
const HEAD: f64 = 16.0;

/// Where time goes in a drawing.
pub(super) struct Frame<'a> {
    past: &'a Past,
    is_wide: bool,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// One drawing at both widths; `height` is the plot's, `body` fills it.
pub(super) fn both(
    past: &Past,
    id: &str,
    words: (&str, &str),
    height: f64,
    body: impl Fn(&Frame<'_>, &mut Svg),
) -> String {
    let one = |(class, width): &(&str, f64)| {
        let is_wide = *class == "wide";
        let frame = Frame {
            past,
            is_wide,
            left: if is_wide { 76.0 } else { 62.0 },
            right: width - 2.0,
            top: HEAD,
            bottom: HEAD + height,
        };
        let mut svg = Svg::new(*width, HEAD + height + FOOT);
        body(&frame, &mut svg);
        frame.marks(&mut svg);
        frame.times(&mut svg);
        svg.finish(&format!("{id}-{class}"), class, words.0, words.1)
    };
    WIDTHS.iter().map(one).collect()
}

impl Frame<'_> {
    fn x(&self, wall_ms: u64) -> f64 {
        let span_ms = (self.past.n_steps * self.past.step_ms).max(1);
        let share = wall_ms.saturating_sub(self.past.from_ms) as f64 / span_ms as f64;
        self.left + share.min(1.0) * (self.right - self.left)
    }

    /// Left edge and width of a step.
    fn column(&self, at: usize) -> (f64, f64) {
        let begin = |at: usize| self.x(self.past.from_ms + at as u64 * self.past.step_ms);
        (begin(at), begin(at + 1) - begin(at))
    }

    /// From 0 at the bottom to 1 at the top.
    fn y(&self, share: f64) -> f64 {
        self.bottom - share.clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// Whole hours, or every ten or twenty minutes of one.
    fn times(&self, svg: &mut Svg) {
        const MINUTE_MS: u64 = 60_000;
        let is_long = self.past.step_ms > MINUTE_MS;
        let every_ms = match (is_long, self.is_wide) {
            (true, true) => 60 * MINUTE_MS,
            (true, false) => 120 * MINUTE_MS,
            (false, true) => 10 * MINUTE_MS,
            (false, false) => 20 * MINUTE_MS,
        };
        svg.line("base", (self.left, self.bottom), (self.right, self.bottom));
        let end_ms = self.past.from_ms + self.past.n_steps * self.past.step_ms;
        let mut at_ms = self.past.from_ms.next_multiple_of(every_ms);
        while at_ms <= end_ms {
            let x = self.x(at_ms);
            svg.line("base", (x, self.bottom), (x, self.bottom + 4.0));
            svg.text_if_free("tick", Anchor::Middle, (x, self.bottom + 17.0), &clock(at_ms));
            at_ms += every_ms;
        }
    }

    /// A line for each change, with its number in the list and since when it holds, as far as there is room; the newest first, because it holds now.
    fn marks(&self, svg: &mut Svg) {
        for (number, change) in self.past.changes.iter().enumerate().rev() {
            let x = self.x(change.wall_ms);
            svg.line("change", (x, self.top - 3.0), (x, self.bottom));
            let (number, since) = ((number + 1).to_string(), since(change.wall_ms));
            let at = (x, self.top - 5.0);
            let is_told = svg.text_if_free("strong", Anchor::Start, at, &format!("{number} {since}"))
                || svg.text_if_free("strong", Anchor::End, at, &format!("{number} {since}"));
            if !is_told {
                svg.text_if_free("strong", Anchor::Middle, at, &number);
            }
        }
    }

    /// A word at the left of a height.
    fn label(&self, svg: &mut Svg, y: f64, text: &str) {
        svg.text_if_free("tick", Anchor::End, (self.left - 6.0, y + 4.0), text);
    }

    /// Shares on top of each other, the first of `lines` uppermost; each with its class.
    pub(super) fn stack(&self, svg: &mut Svg, lines: &[(String, &[Option<f64>])]) {
        for share in [0.0, 0.5, 1.0] {
            svg.line("grid", (self.left, self.y(share)), (self.right, self.y(share)));
            self.label(svg, self.y(share), &format!("{:.0} %", share * 100.0));
        }
        let n_steps = usize::try_from(self.past.n_steps).unwrap_or(0);
        for at in 0..n_steps {
            let (x, width) = self.column(at);
            let mut from = 0.0;
            for (class, values) in lines.iter().rev() {
                let Some(share) = values.get(at).copied().flatten() else { continue };
                let (low, high) = (self.y(from), self.y(from + share));
                svg.rect(class, (x, high), (width - 0.5, low - high));
                from += share;
            }
        }
    }

    /// Rows from below, shaded by their share of the column; a line where the percentile is.
    pub(super) fn heat(&self, svg: &mut Svg, rows: &[(String, &[Option<f64>])], line: &[Option<usize>]) {
        let height = (self.bottom - self.top) / rows.len().max(1) as f64;
        let y = |row: usize| self.bottom - height * (row + 1) as f64;
        for (row, (name, _)) in rows.iter().enumerate() {
            self.label(svg, y(row) + height / 2.0, name);
        }
        let n_steps = usize::try_from(self.past.n_steps).unwrap_or(0);
        for at in 0..n_steps {
            let (x, width) = self.column(at);
            let value = |values: &[Option<f64>]| values.get(at).copied().flatten();
            let all: f64 = rows.iter().filter_map(|(_, values)| value(values)).sum();
            if rows.iter().all(|(_, values)| value(values).is_none()) {
                continue;
            }
            for (row, (_, values)) in rows.iter().enumerate() {
                let shade = shade(value(values).unwrap_or(0.0), all);
                svg.rect(&format!("heat h{shade}"), (x, y(row)), (width - 0.5, height - 0.5));
            }
            if let Some(row) = line.get(at).copied().flatten() {
                svg.line("p99", (x, y(row)), (x + width - 0.5, y(row)));
            }
        }
    }

    /// Lines from 0 to the largest value, broken where nothing was seen.
    pub(super) fn lines(&self, svg: &mut Svg, lines: &[&[Option<f64>]], text: impl Fn(f64) -> String) {
        let most = lines.iter().flat_map(|values| values.iter().flatten()).fold(0.0_f64, |a, b| a.max(*b));
        let top = round_up(most);
        for share in [0.0, 0.5, 1.0] {
            svg.line("grid", (self.left, self.y(share)), (self.right, self.y(share)));
            self.label(svg, self.y(share), &text(share * top));
        }
        for (arm, values) in lines.iter().enumerate() {
            let class = format!("line a{0} s{0}", arm.min(5));
            let mut run: Vec<(f64, f64)> = Vec::new();
            for at in 0..=values.len() {
                match values.get(at).copied().flatten() {
                    Some(value) => {
                        let (x, width) = self.column(at);
                        run.extend([(x, self.y(value / top)), (x + width, self.y(value / top))]);
                    }
                    None => {
                        if !run.is_empty() {
                            svg.path(&class, &run, false);
                        }
                        run.clear();
                    }
                }
            }
        }
    }
}

/// The next of 1, 2, 3, 5 times a power of ten.
fn round_up(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let ten = 10f64.powf(most.log10().floor());
    [1.0, 2.0, 3.0, 5.0, 10.0].map(|step| step * ten).into_iter().find(|top| *top >= most).unwrap_or(most)
}

/// 0 for nothing, 1 to 8 by the root of the share: one in a hundred must still be seen.
fn shade(value: f64, all: f64) -> usize {
    if value <= 0.0 || all <= 0.0 {
        return 0;
    }
    // 0 to 8 by construction.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let shade = ((value / all).sqrt() * N_SHADES as f64).ceil() as usize;
    shade.clamp(1, N_SHADES)
}

/// As the drawings and the list of settings say it.
pub(super) fn since(wall_ms: u64) -> String {
    say!("since {}", clock(wall_ms))
}

/// Hours and minutes of the day, UTC.
fn clock(wall_ms: u64) -> String {
    let minutes = wall_ms / 60_000 % (24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}
