//! Every chart, given nothing, one point, absurd and hostile numbers: it draws, says no NaN, lets no markup through, and
//! its table has what was drawn.

use super::super::data::{Cell, Data, Show};
use super::Chart;
use super::axis::{AxisSpec, Scale};
use super::bars::{Bar, Bars};
use super::columns::{Column, Columns};
use super::grid::Grid;
use super::legend::Style;
use super::plot::{Level, Plot, Point};
use super::ranges::{Mark, Ranges};

const EVIL: &str = "</text><script>alert(1)</script>\u{1b}[31m a name far too long to be drawn whole anywhere";
const SCALES: [Scale; 4] = [Scale::Zero, Scale::Fit, Scale::Log, Scale::Binary];
const UNITS: [Show; 3] = [Show::Ns, Show::Bytes, Show::Ratio];

fn lists() -> Vec<Vec<f64>> {
    vec![
        vec![],
        vec![42.0],
        vec![0.0],
        vec![-3.0],
        vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        vec![1.0, f64::NAN, 7.0],
        vec![1e-300, 1e300, f64::MAX, f64::MIN],
        vec![5.0; 9],
        (0..300).map(|i| f64::from(i) * 1.7 - 20.0).collect(),
    ]
}

fn charts() -> Vec<Box<dyn Chart>> {
    let mut all: Vec<Box<dyn Chart>> = Vec::new();
    for values in lists() {
        for scale in SCALES {
            for show in UNITS.into_iter().take(if values.len() > 100 { 1 } else { 3 }) {
                let spec = || AxisSpec::new(EVIL, show, scale);
                let mut plot = Plot::new(EVIL, spec(), spec());
                let points = || {
                    let point = |(i, y): (usize, &f64)| Point {
                        x: if i % 2 == 0 { *y } else { i as f64 },
                        y: *y,
                        interval: Some((*y, f64::NAN)).filter(|_| i % 2 == 0).or(Some((y - 1.0, y + 1.0))),
                        invalid_because: (i % 3 == 0).then(|| EVIL.to_string()),
                    };
                    values.iter().enumerate().map(point).collect::<Vec<_>>()
                };
                for k in 0..7 {
                    plot.add(EVIL, Style::Arm(k), points());
                }
                plot.levels = values.iter().take(4).map(|y| Level { series: 1, x: (*y, *y), y: *y }).collect();
                plot.marks = values.iter().take(4).map(|x| (*x, EVIL.to_string())).collect();
                all.push(Box::new(plot.clone()));
                all.push(Box::new(Plot { is_cloud: true, ..plot }));
                let mut ranges = Ranges {
                    title: EVIL.into(),
                    of: EVIL.into(),
                    range: "least to most",
                    x: spec(),
                    series: vec![EVIL.into(), EVIL.into()],
                    is_first_claimed: true,
                    rows: Vec::new(),
                };
                for value in values.iter().take(40) {
                    ranges.add(
                        EVIL,
                        [0, 1].map(|series| Mark { series, value: *value, range: Some((*value, value * 2.0)) }),
                    );
                }
                all.push(Box::new(ranges));
            }
        }
        let mut bars = Bars::new(EVIL, EVIL, EVIL, Show::Watts);
        bars.series = vec![EVIL.into(), EVIL.into()];
        let mut columns = Columns { title: EVIL.into(), panels: Vec::new() };
        for value in values.iter().take(40) {
            bars.add(EVIL, [0, 9].map(|series| Bar { series, value: *value, invalid_because: None }));
        }
        let cpus = (0u32..).zip(&values);
        let cpus = cpus.map(|(cpu, v)| Column { cpu, busy_ratio: *v, system_ratio: v / 2.0 }).collect::<Vec<_>>();
        columns.add(EVIL.into(), 0, cpus.clone());
        columns.add(EVIL.into(), 9, cpus);
        let row: Vec<Option<f64>> = values.iter().take(50).map(|v| Some(*v)).chain([None]).collect();
        let grid = Grid {
            title: EVIL.into(),
            of: (EVIL.into(), EVIL.into()),
            show: Show::Ns,
            columns: row.iter().map(|_| EVIL.to_string()).collect(),
            rows: vec![(EVIL.into(), row.clone()), (EVIL.into(), row)],
        };
        all.push(Box::new(bars));
        all.push(Box::new(columns));
        all.push(Box::new(grid));
    }
    all
}

#[test]
fn nothing_breaks_a_chart() {
    for (i, chart) in charts().iter().enumerate() {
        let svg = chart.draw("x");
        assert_eq!(svg.matches("<svg ").count(), 2, "{i}");
        for bad in ["NaN", "inf", "<script", "\u{1b}"] {
            assert!(!svg.contains(bad), "{i}: {bad}");
        }
        let data = chart.data();
        assert!(data.rows.iter().all(|row| row.len() == data.columns.len()), "{i}: a cell for each column");
        assert!(!data.csv().contains("NaN") && !data.csv().contains("inf"), "{i}");
        assert_eq!(chart.is_empty(), n_numbers(&data) == 0, "{i}: empty and a table without numbers are one");
        assert!(!data.table("t").rows.iter().flatten().any(|cell| cell.contains("NaN")), "{i}");
    }
}

fn n_numbers(data: &Data) -> usize {
    data.rows.iter().flatten().filter(|cell| matches!(cell, Cell::Value(_))).count()
}

#[test]
fn a_table_has_every_drawn_point_and_no_other() {
    let spec = |show, scale| AxisSpec::new("axis", show, scale);
    let mut plot = Plot::new("t", spec(Show::Count, Scale::Zero), spec(Show::Ns, Scale::Log));
    let point =
        |(x, y): (f64, f64)| Point { x, y, invalid_because: (y > 50.0).then(|| "too far".into()), interval: None };
    plot.add("a", Style::Arm(0), [(1.0, 10.0), (2.0, 0.0), (3.0, 90.0)].map(point));
    plot.add("b", Style::Arm(1), [(1.0, 20.0), (4.0, f64::NAN)].map(point));
    let svg = plot.one("x", "wide", 760.0);
    assert_eq!((svg.matches("class=\"mark a").count(), svg.matches("class=\"hollow a").count()), (2, 1));
    let table = plot.data().table("t");
    assert_eq!(table.heads, ["axis", "a", "b", "does not count because"]);
    assert_eq!(table.rows, [["1", "10 ns", "20 ns", "–"], ["3", "90 ns", "–", "a: too far"]]);
    let mut bars = Bars::new("t", "what", "watts", Show::Watts);
    bars.add("x", [3.0, f64::NAN].map(|value| Bar { series: 0, value, invalid_because: None }));
    bars.add("y", [-3.0].map(|value| Bar { series: 0, value, invalid_because: None }));
    assert_eq!(bars.one("x", "wide", 760.0).matches("class=\"bar a0\"").count(), 1);
    assert_eq!(bars.data().table("t").rows, [["x", "3 W"]]);
}

#[test]
fn a_grid_shades_by_factor_and_noise_looks_flat() {
    let grid = |values: [f64; 3]| Grid {
        title: "t".into(),
        of: ("a".into(), "b".into()),
        show: Show::Ns,
        columns: ["1", "2", "3"].map(String::from).to_vec(),
        rows: vec![("r".into(), values.map(Some).to_vec())],
    };
    let far = grid([10.0, 30.0, 100.0]).one("x", "wide", 760.0);
    assert!(far.contains("heat g1") && far.contains("heat g8"));
    let near = grid([100.0, 101.0, 102.0]).one("x", "wide", 760.0);
    assert!(near.contains("heat g1") && !near.contains("heat g8"), "two percent are not the whole scale");
}

#[test]
fn labels_are_moved_apart_and_keep_their_order() {
    assert_eq!(super::spread(&[10.0, 11.0, 50.0], 10.0, 0.0, 100.0), [10.0, 20.0, 50.0]);
    assert_eq!(super::spread(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
}
