//! Charts as files: valid SVG, PNG of the right size, CSV that equals what is drawn, in both themes.

use super::super::sample;
use super::*;

#[test]
fn every_chart_of_the_sample_report_has_all_three_files() {
    let folder = tempfile::tempdir().unwrap();
    let report = sample::everything();
    let all = charts(&report);
    assert!(all.len() >= 40, "{}", all.len());
    let mut ids: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
    for id in &ids {
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{id} is a file name");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "an id for each");
    for chart in &all {
        let svg = chart.svg(Theme::Dark).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</g></svg>"), "{}", chart.id);
        assert!(!svg.contains("var(") && !svg.contains("NaN") && svg.contains("#14171b"), "{}", chart.id);
        assert!(chart.csv.lines().count() > 1, "{}: numbers", chart.id);
    }
    // Pictures take a second each without optimisation: a few stand for all.
    let written = write(&report, folder.path(), &[Format::Svg, Format::Csv], Theme::Light).unwrap();
    assert_eq!(written.len(), 2 * all.len());
    for id in ["load-watts", "cores-0", "forest"] {
        let png = all.iter().find(|c| c.id == id).unwrap().png(Theme::Light).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{id}: {}", png.len());
    }
}

#[test]
fn a_report_without_measurements_has_no_charts() {
    let report = Report::default();
    assert!(charts(&report).is_empty());
}

#[test]
fn text_that_is_not_in_the_font_is_a_box_and_markup_stays_text() {
    let chart = Chart {
        id: "x".into(),
        title: "<b>&\"漢".into(),
        caption: "c".into(),
        csv: String::new(),
        drawing:
            "<svg width=\"100\" height=\"50\"><text class=\"name a0\" x=\"1\" y=\"9\" text-anchor=\"end\">a</text>"
                .into(),
    };
    assert!(chart.svg(Theme::Light).unwrap().contains("&lt;b&gt;"));
    assert!(chart.png(Theme::Light).unwrap().starts_with(b"\x89PNG"));
    assert!(Chart { drawing: "<svg>".into(), ..chart }.png(Theme::Light).is_err(), "no size");
}
