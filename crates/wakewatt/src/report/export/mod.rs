//! Every chart of a report as a file of its own: SVG and PNG to put into a document, CSV to calculate with.
//!
//! In the page a drawing takes its colours from the page's style sheet. Here it brings its own (light or dark, plain values,
//! no variables, which drawing programs do not know), a background, its title above and its caption below.
//!
//! PNG: `resvg` without its text stack (shaping, bidirectional text and font search are 1.5 MB of a binary that has to stay
//! below 20); text is turned into outlines here with `ttf-parser` and two faces of DejaVu Sans cut down to the letters
//! that reports use (92 kB). A server has no fonts, and a picture must not depend on where it was made. SVG keeps text.

use super::Report;
use super::figure::Figure;
use super::view;
use crate::features::Feature;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use wakewatt_host::place::Folder;
use wakewatt_words::Language;

#[cfg(feature = "png")]
mod outline;
mod standalone;

/// Colours of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// For paper and light pages.
    #[default]
    Light,
    /// For dark pages.
    Dark,
}

/// A file type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable, text stays text.
    Svg,
    /// Pixels, two for each CSS pixel.
    Png,
    /// The drawn numbers, unrounded.
    Csv,
}

impl Format {
    /// All.
    pub const ALL: [Format; 3] = [Format::Svg, Format::Png, Format::Csv];

    /// The end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Csv => "csv",
        }
    }
}

/// One chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Unique in the report, and a file name: letters, digits and dashes.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The sentence below it.
    pub caption: String,
    /// The drawn numbers.
    pub csv: String,
    /// The wide drawing, as the page has it.
    drawing: String,
}

impl Chart {
    fn of(figure: Figure) -> Option<Chart> {
        // Both widths stand one after the other; the first is the wide one.
        let end = figure.svg.find("</svg>")?;
        let drawing = figure.svg.get(..end)?.to_string();
        let (id, title) = (figure.id, figure.title);
        Some(Chart { id, title, caption: format!("{}: {}", figure.label, figure.caption), csv: figure.csv, drawing })
    }

    /// A document of its own.
    pub fn svg(&self, theme: Theme) -> Result<String> {
        standalone::document(self, theme).with_context(|| format!("chart {}", self.id))
    }

    /// The picture, two pixels for each CSS pixel; an error where the binary was built without.
    pub fn png(&self, theme: Theme) -> Result<Vec<u8>> {
        Feature::Png.need("a chart as PNG")?;
        pixels(&self.svg(theme)?).with_context(|| format!("chart {}", self.id))
    }

    /// The file's bytes.
    pub fn file(&self, format: Format, theme: Theme) -> Result<Vec<u8>> {
        match format {
            Format::Svg => Ok(self.svg(theme)?.into_bytes()),
            Format::Png => self.png(theme),
            Format::Csv => Ok(self.csv.clone().into_bytes()),
        }
    }
}

#[cfg(feature = "png")]
use outline::png as pixels;

#[cfg(not(feature = "png"))]
fn pixels(_: &str) -> Result<Vec<u8>> {
    Err(Feature::Png.lacking("a chart as PNG"))
}

/// All charts of a report, in reading order; in English, whoever asks: the letters that pictures are drawn with have no Chinese.
pub fn charts(report: &Report) -> Vec<Chart> {
    let view = wakewatt_words::within(Language::English, || view::of(report));
    view.into_figures().into_iter().filter_map(Chart::of).collect()
}

/// Writes them to a folder, which is made; the files written, in reading order. Files of the same name are replaced.
pub fn write(report: &Report, folder: &Path, formats: &[Format], theme: Theme) -> Result<Vec<PathBuf>> {
    let folder = Folder::make(folder)?;
    let mut written = Vec::new();
    for chart in charts(report) {
        for format in formats {
            let place = folder.place(&format!("{}.{}", chart.id, format.extension()))?;
            let bytes = chart.file(*format, theme)?;
            place.write(&bytes)?;
            written.push(place.path().to_path_buf());
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
