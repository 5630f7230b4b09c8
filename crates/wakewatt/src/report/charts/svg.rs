//! A small SVG writer for figures that live inside an HTML page.
//!
//! plotters was read first; docs/journal/2026-11-21-charts.md says why it cannot give these figures
//! (whole pixels, no dash, no class, no halo behind text). Here colours are CSS classes, so one drawing follows light,
//! dark and print; all text is escaped; there is no xmlns, which inline SVG does not need and which would be the only
//! address in the file. Sizes are in CSS pixels: a figure is drawn once for a wide page and once for a phone, each at
//! its own width, so text is never scaled below the size it was chosen for.

use crate::view::width::is_wide;
use wakewatt_core::visible;

/// A drawing under construction.
#[derive(Debug)]
pub(in crate::report) struct Svg {
    width: f64,
    height: f64,
    body: String,
    /// Where text stands already: left, top, right, bottom.
    taken: Vec<[f64; 4]>,
}

/// Which side of the point the text stands on.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(in crate::report) fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new(), taken: Vec::new() }
    }

    pub(in crate::report) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.body += &format!(
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1)
        );
    }

    pub(in crate::report) fn path(&mut self, class: &str, points: &[(f64, f64)], is_closed: bool) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            d += &format!("{}{} {}", if i == 0 { "M" } else { "L" }, n(*x), n(*y));
        }
        if is_closed {
            d.push('Z');
        }
        self.body += &format!("<path class=\"{class}\" d=\"{d}\"/>");
    }

    pub(in crate::report) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.body += &format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            n(at.0),
            n(at.1),
            n(size.0.max(0.0)),
            n(size.1.max(0.0))
        );
    }

    /// The mark of an arm: circle, square, diamond, triangle, its reverse, cross, so that grey print tells them apart.
    pub(in crate::report) fn mark(&mut self, class: &str, shape: usize, (x, y): (f64, f64), r: f64) {
        let points = match shape % 6 {
            0 => {
                self.body += &format!("<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", n(x), n(y), n(r));
                return;
            }
            1 => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]
                .into_iter()
                .map(|(a, b)| (x + (a - x) * 0.88, y + (b - y) * 0.88))
                .collect::<Vec<_>>(),
            2 => vec![(x, y - r * 1.3), (x + r * 1.3, y), (x, y + r * 1.3), (x - r * 1.3, y)],
            3 => vec![(x, y - r * 1.2), (x + r * 1.15, y + r * 0.9), (x - r * 1.15, y + r * 0.9)],
            4 => vec![(x, y + r * 1.2), (x + r * 1.15, y - r * 0.9), (x - r * 1.15, y - r * 0.9)],
            _ => {
                let (a, b) = (r * 0.42, r * 1.15);
                let corners = [(a, b), (a, a), (b, a), (b, -a), (a, -a), (a, -b)];
                let half = |(i, j): &(f64, f64)| (x + i, y + j);
                let other = |(i, j): &(f64, f64)| (x - i, y - j);
                corners.iter().map(half).chain(corners.iter().map(other)).collect()
            }
        };
        self.path(class, &points, true);
    }

    pub(in crate::report) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        self.taken.push(text_box(anchor, (x, y), text));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body += &format!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            n(x),
            n(y),
            escape(text)
        );
    }

    /// The same for a label that can be done without: only where no text stands yet and inside the drawing.
    pub(in crate::report) fn text_if_free(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) -> bool {
        let [left, top, right, bottom] = text_box(anchor, at, text);
        let is_inside = left >= -2.0 && right <= self.width + 2.0;
        let is_free = self.taken.iter().all(|t| right < t[0] || left > t[2] || bottom < t[1] || top > t[3]);
        if is_inside && is_free {
            self.text(class, anchor, at, text);
        }
        is_inside && is_free
    }

    /// The finished element; `id` must be unique in the page, `class` says at which widths it shows.
    pub(in crate::report) fn finish(self, id: &str, class: &str, title: &str, desc: &str) -> String {
        format!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(title),
            escape(desc),
            self.body,
            w = n(self.width),
            h = n(self.height)
        )
    }
}

/// Width of a text in the system font, for placing only: digits and lower case average 0.56 em, a Chinese character is one.
pub(in crate::report) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if is_wide(c) { size } else { size * 0.56 }).sum()
}

/// Room of a text of 13 pixels, with a little air.
fn text_box(anchor: Anchor, (x, y): (f64, f64), text: &str) -> [f64; 4] {
    let width = text_width(text, 13.0);
    let left = match anchor {
        Anchor::Start => x,
        Anchor::Middle => x - width / 2.0,
        Anchor::End => x - width,
    };
    [left - 2.0, y - 12.0, left + width + 2.0, y + 4.0]
}

/// One decimal is a tenth of a pixel; not-a-number becomes 0 rather than a broken drawing.
fn n(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}

/// Foreign text as content or attribute.
pub(in crate::report) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if visible::is_hidden(c) => visible::show(c, &mut out),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_gives_way_to_one_that_is_there() {
        let mut svg = Svg::new(100.0, 50.0);
        assert!(svg.text_if_free("t", Anchor::Start, (0.0, 20.0), "one"));
        assert!(!svg.text_if_free("t", Anchor::Start, (10.0, 22.0), "two"));
        assert!(!svg.text_if_free("t", Anchor::Start, (95.0, 40.0), "outside"));
        assert!(svg.text_if_free("t", Anchor::End, (90.0, 20.0), "right"));
    }

    #[test]
    fn foreign_text_cannot_leave_its_element() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.text("t", Anchor::Start, (f64::NAN, 1.25), "</text><script>&\u{0}");
        let out = svg.finish("a", "wide", "<b>", "\"");
        assert!(out.contains("&lt;/text&gt;&lt;script&gt;&amp;\\x00</text>"), "{out}");
        assert!(!out.contains("<script") && !out.contains("NaN") && !out.contains("http"));
    }
}
