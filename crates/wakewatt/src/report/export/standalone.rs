//! A drawing as a document: the page's own rules for charts with their variables filled in, a background, title and caption.
//!
//! The rules and palettes are those of the page (`templates/chart.css`, `templates/style.css`), so a colour is chosen once.
//! A rule that speaks of an arm's colour (`var(--c)`) becomes one rule for each arm.

use super::super::charts::{N_STYLES, svg::escape};
use super::super::template::{CHART_STYLE, STYLE};
use super::{Chart, Theme};
use crate::view::wrap::wrap;
use anyhow::{Context, Result};

const MARGIN: f64 = 24.0;
const TITLE: f64 = 44.0;
const LINE: f64 = 17.0;

pub(super) fn document(chart: &Chart, theme: Theme) -> Result<String> {
    let palette = Palette::of(theme);
    let (opening, inside) = chart.drawing.split_once('>').context("a drawing without content")?;
    let size = |name: &str| {
        let value = opening.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        value.and_then(|(number, _)| number.parse::<f64>().ok()).with_context(|| format!("a drawing without {name}"))
    };
    let (width, height) = (size("width")?, size("height")?);
    let caption = wrap("", "", &chart.caption, 112);
    let below = TITLE + MARGIN + height + 8.0;
    let lines: String = (0u32..)
        .zip(caption.lines())
        .map(|(i, line)| text("below", below + LINE * (f64::from(i) + 1.0), line))
        .collect();
    let total = below + LINE * caption.lines().count() as f64 + MARGIN;
    let (w, h) = (width + 2.0 * MARGIN, total);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" font-family=\"system-ui, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif\"><style>{}</style><rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/><g class=\"chart\">{}<g transform=\"translate({MARGIN} {})\">{inside}</g>{lines}</g></svg>\n",
        rules(&palette),
        palette.colour("--paper"),
        text("headline", MARGIN + 14.0, &chart.title),
        TITLE + MARGIN / 2.0
    ))
}

fn text(class: &str, y: f64, text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\" text-anchor=\"start\">{}</text>", escape(text))
}

/// Names and colours.
struct Palette(Vec<(String, String)>);

impl Palette {
    /// The first `:root` of the style sheet is light, the second dark.
    fn of(theme: Theme) -> Palette {
        let at = if theme == Theme::Light { 1 } else { 2 };
        let block = STYLE.split(":root {").nth(at).and_then(|rest| rest.split('}').next()).unwrap_or_default();
        let pairs = block.split(';').filter_map(|line| line.split_once(':'));
        Palette(pairs.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect())
    }

    fn colour(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("#888888", |(_, value)| value)
    }

    /// A rule's body with every variable filled in.
    fn fill(&self, body: &str, arm: Option<usize>) -> String {
        let own = arm.map_or(self.colour("--ink"), |i| self.colour(&format!("--c{i}")));
        let mut out = body.replace("var(--c, var(--ink))", own).replace("var(--c)", own);
        for (name, value) in &self.0 {
            out = out.replace(&format!("var({name})"), value);
        }
        out
    }
}

/// The page's rules for charts: selectors and bodies.
pub(super) fn page_rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rules = CHART_STYLE.split('}').filter_map(|rule| rule.split_once('{'));
    rules.map(|(selectors, body)| (selectors.trim(), body.trim()))
}

fn rules(palette: &Palette) -> String {
    let mut out = String::new();
    for (selectors, body) in page_rules() {
        for selector in selectors.split(',').map(str::trim) {
            // Text that was turned into outlines is a path of class `text`.
            let selector = if selector == ".chart text" { ".chart text, .chart .text" } else { selector };
            if !body.contains("var(--c)") {
                out += &format!("{selector}{{{}}}", palette.fill(body, None));
            }
            if body.contains("var(--c)") || body.contains("var(--c,") {
                for arm in 0..N_STYLES {
                    out += &format!("{selector}.a{arm}{{{}}}", palette.fill(body, Some(arm)));
                }
            }
        }
    }
    out
}
