//! A model fitted to saved loads: what is printed, the document, and what cannot be fitted.

// Made-up numbers of known size.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::schemas::{assert_valid, validator};
use crate::tool::{fixtures, run};
use std::fs;
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

/// A run file with these loads.
fn saved(folder: &tempfile::TempDir, loads: Vec<LoadRun>) -> String {
    let host = fs::read_to_string(fixtures().join("hosts/vm-haltpoll-2cpu.host")).unwrap();
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
    let path = folder.path().join("loads.run");
    fs::write(&path, document.to_string()).unwrap();
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
}
