//! Recorded idle time replayed: what is printed, the documents, what cannot be asked, and recordings that are cut.

use crate::schemas::{assert_valid, validator};
use crate::tool::{fixtures, run};
use std::fs;

fn recording() -> String {
    fixtures().join("traces/vm-haltpoll-6.18.wtrace").to_str().unwrap().to_string()
}

/// What that machine had set, and the recording does not hold.
const NO_SPINNING: [&str; 2] = ["--recorded", "guest-halt-poll=0us"];

#[test]
fn the_first_line_says_how_far_to_trust_the_rest() {
    let file = recording();
    let said = run(&[&["replay", &file], &NO_SPINNING[..]].concat());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.starts_with("The model decided as the recorded kernel did in 100.00 % of 3137 decisions.\n"));
    for words in ["recorded:", "predicted:", "haltpoll idle", "energy while idle (model)", "assumed"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let wrong = run(&[
        "replay",
        &file,
        "--recorded",
        "governor=ladder",
        "--recorded",
        "table=POLL:0us/0us,C1:400us/900us,C2:900us/2ms",
    ]);
    assert!(wrong.out.starts_with("Not to be trusted: "), "{wrong:?}");
}

#[test]
fn the_documents_are_as_published() {
    let file = recording();
    let said = run(&["replay", &file, "--json", "--set", "governor=teo", "--set", "max-latency=50us"]);
    let document = assert_valid(&validator("replay"), "replay", &said.out);
    assert_eq!(document["policies"][0][1]["governor"], "teo");
    assert_eq!(document["policies"][0][1]["latency_limit_ns"], 50_000);
    assert_eq!(document["cpus"].as_array().unwrap().len(), 2);
    let table = "table=POLL:0us/0us,C1:2us/2us,C6:133us/600us";
    let said = run(&["replay", &file, "--sweep", "--json", "--set", "governor=menu", "--set", table]);
    let swept = assert_valid(&validator("replay-sweep"), "replay --sweep", &said.out);
    let limits: Vec<u64> =
        swept["points"].as_array().unwrap().iter().map(|p| p["limit_ns"].as_u64().unwrap()).collect();
    assert_eq!(limits, [0, 2000, 133_000]);
    assert!(run(&["replay", &file, "--sweep", "--set", "governor=menu", "--set", table]).out.contains("poll"));
}

#[test]
fn another_servers_table_is_read_from_its_recording() {
    let host = fs::read_dir(fixtures().join("hosts")).unwrap().flatten().map(|e| e.path());
    let host = host.filter(|p| fs::read_to_string(p).is_ok_and(|t| t.contains("C1E"))).min().unwrap();
    let said = run(&["replay", &recording(), "--by-cpu", "--set", "governor=menu", "--table", host.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("C1E") && said.out.contains("CPU 1"), "{}", said.out);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let file = recording();
    let unknown = run(&["replay", &file, "--set", "colour=red"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("governor=NAME"), "{unknown:?}");
    let state = run(&["replay", &file, "--set", "disable=C6"]);
    assert_eq!(state.code, Some(4));
    assert!(state.err.contains("no idle state `C6` in the table; it has POLL, haltpoll idle"), "{state:?}");
    let none = run(&["replay", "/dev/null"]);
    assert_eq!(none.code, Some(4), "{none:?}");
}

#[test]
fn of_a_cut_recording_what_is_there_is_used() {
    let bytes = fs::read(recording()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cut = dir.path().join("cut.wtrace");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let said = run(&[&["replay", cut.to_str().unwrap()], &NO_SPINNING[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("The recording is cut off after byte"), "{}", said.out);
}
