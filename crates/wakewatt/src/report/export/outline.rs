//! Pixels: text of a drawing turned into outlines, then drawn by `resvg`.
//!
//! The drawings are our own writer's, so text is always `<text class x y text-anchor>…</text>` without children. What a
//! letter is not in the font is drawn as the font's box. Pairs are kerned by the font's own table; nothing else is shaped,
//! which is right for the scripts the font has.

use super::super::charts::svg::escape;
use super::standalone::page_rules;
use anyhow::{Context, Result, bail, ensure};
use resvg::{tiny_skia, usvg};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const REGULAR: &[u8] = include_bytes!("../fonts/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("../fonts/DejaVuSans-Bold-subset.ttf");
/// Pixels of a CSS pixel.
const SCALE: f32 = 2.0;
/// More is not a chart.
const MOST_PIXELS: u32 = 20_000;

/// The picture of a document.
pub(super) fn png(svg: &str) -> Result<Vec<u8>> {
    let tree = usvg::Tree::from_str(&outlined(svg)?, &usvg::Options::default()).context("drawing the chart")?;
    let size = tree.size().to_int_size().scale_by(SCALE).context("a chart without size")?;
    ensure!(size.width().max(size.height()) <= MOST_PIXELS, "the chart is too large for a picture");
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).context("no room for the picture")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().context("encoding the picture")
}

/// The document with every text as a path.
fn outlined(svg: &str) -> Result<String> {
    let regular = Face::parse(REGULAR, 0).context("the built-in font")?;
    let bold = Face::parse(BOLD, 0).context("the built-in bold font")?;
    let mut parts = svg.split("<text ");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (head, rest) = part.split_once('>').context("a text that does not end")?;
        let Some((content, rest)) = rest.split_once("</text>") else { bail!("a text that does not end") };
        let attribute = |name: &str| {
            let value = head.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            value.map_or("", |(value, _)| value)
        };
        let (class, anchor) = (attribute("class"), attribute("text-anchor"));
        let size: f32 =
            property(class, "font-size").and_then(|v| v.trim_end_matches("px").parse().ok()).unwrap_or(12.0);
        let is_bold = property(class, "font-weight").and_then(|v| v.parse().ok()).is_some_and(|w: u32| w >= 600);
        let face = if is_bold { &bold } else { &regular };
        // `x` stands after `class`, with a space, so that it is not the end of another name.
        let at = |name: &str| attribute(name).parse::<f32>().unwrap_or(0.0);
        let d = path(face, &unescape(content), size, (at(" x"), at(" y")), anchor);
        out += &format!("<path class=\"text {}\" d=\"{d}\"/>{rest}", escape(class));
    }
    Ok(out)
}

/// What the page's rules say of a text of these classes; the later rule wins.
fn property(classes: &str, name: &str) -> Option<&'static str> {
    let mut found = None;
    for (selectors, body) in page_rules() {
        let is_meant = selectors.split(',').map(str::trim).any(|selector| {
            let own = selector.strip_prefix(".chart .").unwrap_or_default();
            selector == ".chart text" || !own.is_empty() && own.split('.').all(|c| classes.split(' ').any(|k| k == c))
        });
        let values = body.split(';').filter_map(|line| line.split_once(':'));
        if let Some((_, value)) = values.filter(|_| is_meant).find(|(n, _)| n.trim() == name) {
            found = Some(value.trim());
        }
    }
    found
}

struct Pen {
    d: String,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> String {
        format!("{:.2} {:.2}", self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.d += &format!("M{}", self.at(x, y));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.d += &format!("L{}", self.at(x, y));
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.d += &format!("Q{} {}", self.at(x1, y1), self.at(x, y));
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.d += &format!("C{} {} {}", self.at(x1, y1), self.at(x2, y2), self.at(x, y));
    }
    fn close(&mut self) {
        self.d.push('Z');
    }
}

fn path(face: &Face<'_>, text: &str, size: f32, (x, y): (f32, f32), anchor: &str) -> String {
    let scale = size / f32::from(face.units_per_em().max(1));
    let glyphs: Vec<GlyphId> = text.chars().map(|c| face.glyph_index(c).unwrap_or(GlyphId(0))).collect();
    let advance = |i: usize| {
        let own = glyphs.get(i).and_then(|g| face.glyph_hor_advance(*g)).unwrap_or(0);
        let kern = match (glyphs.get(i), glyphs.get(i + 1)) {
            (Some(left), Some(right)) => kerning(face, *left, *right),
            _ => 0,
        };
        (f32::from(own) + f32::from(kern)) * scale
    };
    let width: f32 = (0..glyphs.len()).map(advance).sum();
    let start = match anchor {
        "middle" => x - width / 2.0,
        "end" => x - width,
        _ => x,
    };
    let mut pen = Pen { d: String::new(), x: start, y, scale };
    for (i, glyph) in glyphs.iter().enumerate() {
        face.outline_glyph(*glyph, &mut pen);
        pen.x += advance(i);
    }
    pen.d
}

fn kerning(face: &Face<'_>, left: GlyphId, right: GlyphId) -> i16 {
    let tables = face.tables().kern.iter().flat_map(|kern| kern.subtables);
    tables.filter(|t| t.horizontal && !t.variable).find_map(|t| t.glyphs_kerning(left, right)).unwrap_or(0)
}

fn unescape(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}
