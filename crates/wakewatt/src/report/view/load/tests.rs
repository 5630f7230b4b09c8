//! Load sections: every chart from few, odd and missing numbers, and what is said without a meter.

use super::super::super::sample;
use super::*;

fn evidence() -> Evidence {
    sample::everything().evidence
}

fn find<'a>(section: &'a Section, id: &str) -> Option<&'a super::super::Figure> {
    section.figures.iter().find(|f| f.id == id)
}

#[test]
fn every_figure_of_the_study_is_there_and_its_table_has_the_levels() {
    let all = sections(&evidence());
    let ids: Vec<&str> = all.iter().flat_map(|s| &s.figures).map(|f| f.id.as_str()).collect();
    for id in ["rate", "watts", "per-joule", "proportionality", "awake", "p50", "p99", "distribution", "cpu", "average"]
    {
        assert!(ids.contains(&format!("load-{id}").as_str()), "{id} of {ids:?}");
    }
    assert!(ids.contains(&"load-cpus") && ids.contains(&"load-system") && ids.contains(&"shop-per-joule"));
    assert!(!ids.contains(&"shop-proportionality"), "there is no 100 % of a shop");
    let table = find(&all[0], "load-watts").unwrap().table.as_ref().unwrap();
    assert_eq!((table.rows.len(), table.heads[1].as_str()), (11, "performance"));
    let run = &evidence().samples.load[0];
    let drawn = &table.rows.last().unwrap()[1];
    assert_eq!(*drawn, Show::Watts.text(run.at_share(1.0).and_then(watts).unwrap()), "the sample's own number");
}

#[test]
fn an_invalid_level_is_hollow_and_its_reason_in_the_table() {
    let all = sections(&evidence());
    let rate = find(&all[0], "load-rate").unwrap();
    assert!(rate.svg.contains("class=\"hollow a1\""));
    let table = rate.table.as_ref().unwrap();
    assert!(table.rows.iter().flatten().any(|c| c == "powersave: the queue had no steady state"), "{table:?}");
    assert!(all[0].lines[1].contains("1 level invalid") && all[0].lines[1].contains("at 90 %"), "{}", all[0].lines[1]);
}

#[test]
fn without_a_meter_there_is_a_sentence_and_no_figure_of_watts() {
    let all = sections(&sample::load_without_meter().evidence);
    assert!(all[0].intro.iter().any(|line| line.starts_with("No power meter")), "{:?}", all[0].intro);
    for id in ["load-watts", "load-per-joule", "load-proportionality", "load-awake"] {
        assert!(find(&all[0], id).is_none(), "{id}");
    }
    let overall = &all[0].tables[0];
    assert!(
        !overall.heads.iter().any(|h| h.contains("watt")),
        "columns without values are left out: {:?}",
        overall.heads
    );
}

#[test]
fn one_run_of_one_level_and_absurd_levels_are_drawn_without_panic() {
    let mut evidence = evidence();
    evidence.samples.load.truncate(1);
    evidence.samples.load[0].levels.truncate(1);
    let text = format!("{:?}", sections(&evidence));
    assert!(!text.contains("NaN"));
    for level in &mut evidence.samples.load[0].levels {
        level.per_s = f64::NAN;
        level.load_average = Some(f64::INFINITY);
        level.ask = Ask::Share(f64::NAN);
        level.cpu_ns = u64::MAX;
        level.n_done = 1;
        level.cpus.iter_mut().for_each(|c| c.user_ratio = f64::NAN);
    }
    let text = format!("{:?}", sections(&evidence));
    assert!(!text.contains("\"NaN") && !text.contains(">NaN"), "{text}");
    evidence.samples.load[0].levels.clear();
    assert!(sections(&evidence).is_empty());
}

#[test]
fn other_work_has_no_scores_side_by_side_and_few_levels_are_called_partial() {
    let mut evidence = evidence();
    let heads = |evidence: &Evidence| sections(evidence)[0].tables[0].heads.clone();
    assert!(heads(&evidence).iter().any(|h| h.contains("score")));
    evidence.samples.load[0].levels.remove(3);
    let section = &sections(&evidence)[0];
    assert!(section.tables[0].rows[0][1].starts_with("partial"), "{:?}", section.tables[0]);
    assert!(section.lines[0].contains("not all of ten") && !section.lines[1].contains("not all of ten"));
    evidence.samples.load[1].work_units = Some(2_345);
    let section = &sections(&evidence)[0];
    assert!(!heads(&evidence).iter().any(|h| h.contains("score")), "{:?}", heads(&evidence));
    assert!(section.remarks.iter().any(|r| r.contains("2 345") || r.contains("2,345") || r.contains("2345")));
}

#[test]
fn runs_are_named_by_what_differs() {
    let run = |title: &str, governor: &str| LoadRun {
        title: title.into(),
        settings: vec![("governor".into(), governor.into()), ("same".into(), "x".into())],
        ..LoadRun::default()
    };
    let (a, b, c) = (run("steps", "powersave"), run("steps", "ondemand"), run("other", "ondemand"));
    assert_eq!(names(&[&a, &b]), ["powersave", "ondemand"]);
    assert_eq!(names(&[&b, &b, &b]), ["steps", "steps (2)", "steps (3)"]);
    assert_eq!(names(&[&a, &c]), ["steps", "other"]);
    assert!(names(&[]).is_empty());
}

#[test]
fn a_level_is_said_with_the_units_and_separators_of_the_page() {
    let mut level = evidence().samples.load[0].levels[0].clone();
    let mut said = |asked| {
        level.ask = asked;
        ask(&level, 0)
    };
    assert_eq!(said(Ask::Rate(1000.0 / 3.0)), Show::PerS.text(1000.0 / 3.0));
    assert_eq!(said(Ask::Rate(f64::NAN)), "–");
    assert_eq!(said(Ask::Share(0.9)), "90 %");
    assert_eq!(said(Ask::Clients(20_000)), format!("{} clients", words::count(20_000)));
    assert_eq!([said(Ask::Clients(1)), said(Ask::Idle), said(Ask::Run)], ["1 client", "active idle", "run 1"]);
}
