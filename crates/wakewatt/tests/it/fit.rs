//! A model fitted to saved loads: what is printed, the document, and what cannot be fitted.

// Made-up numbers of known size.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::schemas::{assert_valid, validator};
use crate::tool::{fixtures, run};
use std::fs;
use std::io::Read as _;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::samples::load::{Ask, CpuUse, Kind, Level, LoadRun};
use wakewatt_core::samples::{Samples, Window};

/// Transactions of 200 us on two CPUs that add so much to each while they sleep.
fn load(title: &str, wake_ns: u64) -> LoadRun {
    let level = |share: f64| {
        let per_s = share * 9_000.0;
        let p50_ns = 200_000.0 * (1.0 + 0.4 * share) + wake_ns as f64;
        Level {
            ask: Ask::Share(share),
            window: Window { start_at_ns: 0, end_at_ns: 10_000_000_000 },
            target_per_s: Some(per_s),
            n_planned: (per_s * 10.0) as u64,
            n_done: (per_s * 10.0) as u64,
            per_s,
            latency: Some(Distribution::from_ns((0..100).map(|i| (p50_ns * (0.8 + f64::from(i) * 0.004)) as u64))),
            cpu_ns: (206_000.0 * per_s * 10.0) as u64,
            cpus: vec![CpuUse::default(); 2],
            ..Level::default()
        }
    };
    let levels = [0.75, 0.5, 0.25].map(level).to_vec();
    LoadRun { kind: Kind::Steps, title: title.into(), levels, ..LoadRun::default() }
}

/// The host of the runs, with one text for another.
fn host_with(text: &str, other: &str) -> String {
    let host = fs::read_to_string(fixtures().join("hosts/vm-haltpoll-2cpu.host")).unwrap();
    assert!(host.contains(text), "{text}");
    host.replace(text, other)
}

/// A run file with these loads.
fn saved(folder: &tempfile::TempDir, loads: Vec<LoadRun>) -> String {
    saved_on(host_with("", ""), &folder.path().join("loads.run"), loads)
}

/// The same of another host.
fn saved_on(host: String, path: &std::path::Path, loads: Vec<LoadRun>) -> String {
    let run = RunFile {
        made_at: "2026-11-22T12:00:00Z".into(),
        command: "load steps".into(),
        host,
        samples: Samples { load: loads, ..Samples::default() },
        ..RunFile::default()
    };
    let mut document = serde_json::to_value(&run).unwrap();
    document["schema"] = "wakewatt/run/v1".into();
    document["wakewatt"] = "0.1.0".into();
    fs::write(path, document.to_string()).unwrap();
    path.to_str().unwrap().into()
}

#[test]
fn a_fit_says_what_it_was_fitted_to_and_how_far_off_its_prediction_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let said = run(&["fit", &file]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(
        said.out.starts_with("Modelled: fitted to `found`, predicting `poll`, which it was not shown.\n"),
        "{}",
        said.out
    );
    for words in ["steps: work ", "residuals", "largest error of a prediction", "75 %", "half of what is claimed"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let said = run(&["fit", &file, "--json"]);
    let document = assert_valid(&validator("fit"), "fit", &said.out);
    assert_eq!(document["fits"][0]["label"], "modelled");
    assert_eq!(document["fits"][0]["loads"][0]["predicted"].as_array().unwrap().len(), 3);
    assert_eq!(run(&["fit", &file, "--json"]).out, said.out, "equal inputs, equal bytes");
}

/// Six rounds of each setting, as they were kept.
#[test]
fn a_run_of_rounds_has_ranges_and_says_of_how_many_predictions_they_tell() {
    let folder = tempfile::tempdir().unwrap();
    let kept = fixtures().join("../bench/runs/2026-11-23-vm-2cpu-epyc/fit-check.run.xz");
    let mut text = Vec::new();
    lzma_rust2::XzReader::new(fs::File::open(kept).unwrap(), true).read_to_end(&mut text).unwrap();
    let file = folder.path().join("fit.run");
    fs::write(&file, &text).unwrap();
    let args = ["fit", file.to_str().unwrap(), "--on", "found", "--predict", "poll"];
    let said = run(&args);
    for words in
        ["of 6 predictions within 15 %.", "of 6 whatever the doubt", "[...]: what the doubt of 6 rounds or more"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let document = assert_valid(&validator("fit"), "fit", &run(&[&args[..], &["--json"]].concat()).out);
    for load in document["fits"][0]["loads"].as_array().unwrap() {
        let hits = |what: &str| load["hits"][what].as_u64().unwrap();
        assert_eq!(hits("n"), 6);
        assert_eq!(hits("n_within") + hits("n_unsure") + hits("n_missed"), 6, "each once, all with ranges: {load}");
        for level in load["predicted"].as_array().unwrap() {
            assert_eq!(level["doubt"]["n_rounds"], 6);
            let (low, high) = (&level["doubt"]["p50_ns"][0], &level["doubt"]["p50_ns"][1]);
            let measured = level["measured"]["p50_ns"].as_f64().unwrap();
            assert!(low.as_f64().unwrap() <= measured && measured <= high.as_f64().unwrap(), "{level}");
        }
    }
    // Rounds of one setting that are not counted take no part: five have no interval.
    let mut run_file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let blocks = run_file["experiment"]["blocks"].as_array_mut().unwrap();
    let spoilt = blocks.iter_mut().find(|block| block["arm"] == "poll").unwrap();
    spoilt["is_rejected"] = "stolen from".into();
    fs::write(&file, run_file.to_string()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&run(&[&args[..], &["--json"]].concat()).out).unwrap();
    let level = &document["fits"][0]["loads"][0]["predicted"][0];
    assert_eq!((&level["doubt"]["n_rounds"], level["doubt"].get("p50_ns")), (&5.into(), None));
    assert_eq!(document["fits"][0]["loads"][0]["fitted"][0]["doubt"]["n_rounds"], 6);
}

#[test]
fn what_cannot_be_fitted_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("as it was", 60_000)]);
    let unknown = run(&["fit", &file]);
    assert!(unknown.err.contains("no load was measured under `found`; there are `as it was`"), "{unknown:?}");
    let alone = run(&["fit", &file, "--on", "as it was"]);
    assert!(alone.out.contains("was not measured in these runs"), "{alone:?}");
    let field = run(&["fit", &file, "--on", "as it was", "--set", "machine.idle.max_latncy=1us"]);
    assert!(field.code != Some(0) && field.err.contains("max_lat"), "{field:?}");
    assert_eq!(run(&["fit"]).code, Some(2));
    // What only a measurement can do is refused beside runs that are there, not forgotten.
    let kept = folder.path().join("kept.run");
    for extra in [["--rounds", "7"], ["--save", kept.to_str().unwrap()]] {
        let said = run(&["fit", &file, "--on", "as it was", extra[0], extra[1]]);
        assert!(said.code == Some(2) && said.err.contains(extra[0]), "{said:?}");
    }
    assert!(!kept.exists());
    let few = run(&["fit", "--check", "--rounds", "5"]);
    assert!(few.code == Some(2) && few.err.contains("6..=60"), "{few:?}");
}

/// `tune plan` for the host of these runs.
fn plan(args: &[&str]) -> crate::tool::Said {
    let host = fixtures().join("hosts/vm-haltpoll-2cpu.host");
    run(&[&["tune", "plan", "--host", host.to_str().unwrap()], args].concat())
}

#[test]
fn a_plan_is_told_as_the_fit_foretells_it_with_its_last_error_beside() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let said = plan(&["--max-latency", "poll", "--predict", &file]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    for words in ["qos.global = poll", "Predicted (modelled, not measured", "max_latency=0us", "checked it was", "75 %"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let json = plan(&["--max-latency", "poll", "--predict", &file, "--json"]);
    let told = assert_valid(&validator("tune-plan"), "tune-plan", &json.out);
    let fitted: serde_json::Value = serde_json::from_str(&run(&["fit", &file, "--json"]).out).unwrap();
    let (load, fit) = (&told["predicted"]["loads"][0], &fitted["fits"][0]["loads"][0]);
    assert_eq!(told["predicted"]["label"], "modelled");
    assert_eq!(load["last_error_ratio"], fit["worst_ratio"]);
    for i in 0..3 {
        assert_eq!(load["levels"][i]["expected"], fit["predicted"][i]["modelled"], "level {i}");
        assert_eq!(load["levels"][i]["measured"], fit["fitted"][i]["measured"], "level {i}");
    }
    let none = plan(&["--max-latency", "none", "--predict", &file]);
    assert!(none.code == Some(0) && none.out.contains("changes nothing in the model"), "{none:?}");
}

/// The first line of the prediction names the exits that nobody measured, and none once they were.
#[test]
fn a_prediction_by_claimed_exits_says_so_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let predicted = |file: &str| {
        let said = plan(&["--max-latency", "poll", "--predict", file]);
        let at = said.out.find("Predicted (").unwrap_or_else(|| panic!("{said:?}"));
        let json = plan(&["--max-latency", "poll", "--predict", file, "--json"]);
        let document = assert_valid(&validator("tune-plan"), "tune-plan", &json.out);
        let words = said.out[at..].split_whitespace().collect::<Vec<_>>().join(" ");
        (words, document["predicted"]["claimed_exits"].clone())
    };
    let (words, states) = predicted(&file);
    assert!(
        words.starts_with("Predicted (modelled, not measured; exit latencies claimed: haltpoll idle) by"),
        "{words}"
    );
    assert_eq!(states, serde_json::json!(["haltpoll idle"]));
    let text = fs::read_to_string(&file).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["idle_states"] = serde_json::json!([crate::replay::costs("haltpoll idle", 1_000)]);
    let measured = folder.path().join("measured.run");
    fs::write(&measured, document.to_string()).unwrap();
    let (words, states) = predicted(measured.to_str().unwrap());
    assert!(words.starts_with("Predicted (modelled, not measured) by"), "{words}");
    assert_eq!(states, serde_json::json!([]));
}

#[test]
fn an_error_that_nobody_measured_is_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("as it was", 60_000)]);
    let said = plan(&["--max-latency", "poll", "--predict", &file]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for words in ["no prediction of it could be checked", "how far off it is", "`as it was`"] {
        assert!(said.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{words}: {}", said.out);
    }
    assert!(!said.out.contains("checked it was"), "{}", said.out);
}

#[test]
fn what_a_model_cannot_tell_of_a_plan_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let because = |args: &[&str]| {
        let said = plan(&[args, &["--predict", &file]].concat());
        assert!(said.out.starts_with("Plan "), "the plan itself is shown all the same: {said:?}");
        (said.code, said.out.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for (args, why) in [
        (&["--max-latency", "poll", "--cpus", "0"][..], "CPUs 0 only, and in the model all CPUs are alike"),
        (&["--set", "idle.haltpoll.guest_halt_poll_grow=4"], "outside what the model knows"),
        (&["--set", "freq.governor=performance"], "a part of the plan is not possible here"),
    ] {
        let (code, out) = because(args);
        assert!(code == Some(7) && out.contains("Predicted: cannot tell: "), "{args:?}: {code:?} {out}");
        assert!(out.contains(why), "{args:?}: {out}");
    }
    let governor = because(&["--set", "idle.governor=menu"]);
    assert!(governor.0 == Some(0) && governor.1.contains("machine.idle.governor=menu"), "{governor:?}");
    let spin = because(&["--set", "idle.haltpoll.guest_halt_poll_ns=100000"]);
    assert!(spin.0 == Some(0) && spin.1.contains("machine.idle.halt_poll=100000ns"), "{spin:?}");
    let sklep = crate::tool::host("sklep0");
    let other = run(&["tune", "plan", "--max-latency", "20us", "--predict", &file, "--host", sklep.to_str().unwrap()]);
    assert!(other.code == Some(7) && other.out.contains("another machine"), "{other:?}");
    let empty = saved(&folder, Vec::new());
    let unfit = plan(&["--max-latency", "poll", "--predict", &empty]);
    assert!(unfit.code == Some(4) && unfit.err.contains("no load was measured under `found`"), "{unfit:?}");
}

/// A limit of 0 us and the governor of the fixture, in the words of a host file.
const LIMIT: (&str, &str) = ("/dev/cpu_dma_latency hex\n\t00943577", "/dev/cpu_dma_latency hex\n\t00000000");
const GOVERNOR: (&str, &str) = ("current_governor = haltpoll", "current_governor = menu");

#[test]
fn a_host_that_is_not_as_in_the_run_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let host = folder.path().join("now.host");
    for ((text, other), args, field) in [
        (LIMIT, ["--max-latency", "none"], "machine.idle.max_latency=0us"),
        (LIMIT, ["--max-latency", "20us"], "machine.idle.max_latency=0us"),
        (GOVERNOR, ["--set", "idle.governor=menu"], "machine.idle.governor=menu"),
    ] {
        fs::write(&host, host_with(text, other)).unwrap();
        let words = ["tune", "plan", "--host", host.to_str().unwrap(), args[0], args[1], "--predict", file.as_str()];
        let said = run(&words);
        assert!(said.code == Some(0) && said.out.contains(field), "{args:?}: {said:?}");
        assert!(!said.out.contains("changes nothing in the model"), "{args:?}: {said:?}");
    }
}

#[test]
fn runs_that_differ_are_no_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let first = saved(&folder, vec![load("found", 60_000)]);
    let path = folder.path().join("other.run");
    for (text, other) in [LIMIT, GOVERNOR] {
        let second = saved_on(host_with(text, other), &path, vec![load("poll", 20_000)]);
        let said = plan(&["--max-latency", "poll", "--predict", &first, "--predict", &second]);
        let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.code == Some(7) && out.contains("Predicted: cannot tell: "), "{said:?}");
        assert!(out.contains("other.run: ") && out.contains("not as in the first run"), "{out}");
    }
}

#[test]
fn the_page_shows_prediction_beside_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&folder, vec![load("found", 60_000), load("poll", 20_000)]);
    let page = folder.path().join("fit.html");
    let said = run(&["fit", &file, "-o", page.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let html = fs::read_to_string(&page).unwrap().replace('\u{a0}', " ");
    for words in
        ["steps: fitted to `found`, predicting `poll`", "predicted beside measured", "How far off", "<svg", "modelled"]
    {
        assert!(html.contains(words), "{words}");
    }
    for forbidden in ["http://", "https://", "<script", "NaN"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}
