//! Recorded idle time replayed: what is printed, the documents, what cannot be asked, and recordings that are cut.

use crate::schemas::{assert_valid, validator};
use crate::tool::{fixtures, run, said, wakewatt};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use wakewatt_core::record::wtrace::{Encoder, Header, Item, Reader};
use wakewatt_core::samples::state_cost::{StateCost, StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;

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
    assert!(said.out.starts_with("The model decided as the recorded kernel did in 100.00 % of 3137 decisions; the exit latency of haltpoll idle is claimed, not measured.\n"), "{said:?}");
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

const DEEP: &str = "table=POLL:0us/0us,C1:2us/2us,C6:133us/600us";
/// The recording under a table of a server.
const SERVER: [&str; 6] = ["--recorded", "guest-halt-poll=0us", "--set", "governor=menu", "--set", DEEP];
/// One in which the two kernels of the judge differ.
const FIVE: &str = "table=POLL:0us/0us,C1:1us/20us,C2:15us/300us,C3:70us/1ms,C6:200us/3ms";
/// Corrections that are wrong.
const WRONG: [&str; 4] =
    ["--recorded", "governor=ladder", "--recorded", "table=POLL:0us/0us,C1:400us/900us,C2:900us/2ms"];

#[test]
fn an_objective_becomes_a_limit_and_a_command() {
    let file = recording();
    let ask = |more: &[&str]| run(&[&["replay", &file], &SERVER[..], more].concat());
    let told = ask(&["--slo", "p99 < 500us over 40 hops", "--sleepers", "100%"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let lines: Vec<&str> = told.out.lines().collect();
    assert!(lines[0].starts_with("The model decided as the recorded kernel did in 100.00 %"), "{}", told.out);
    assert!(
        lines[1].starts_with("The largest latency limit that keeps p99 < 500us over 40 hops is 2us"),
        "{}",
        told.out
    );
    for words in [
        "wakewatt tune plan --max-latency 2us",
        "poll",
        "no limit",
        "100.0 % of hops find a sleeping CPU (as given)",
        "a hop costs 0ns besides",
    ] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
    let json = ask(&["--slo", "p99 < 500us over 8 hops + 4 parallel hops", "--hop-cost", "5us", "--json"]);
    let document = assert_valid(&validator("replay-slo"), "replay --slo", &json.out);
    assert_eq!((document["hop_cost_ns"].as_u64(), document["limits"].as_array().unwrap().len()), (Some(5_000), 3));
    assert!(
        document["limits"][0]["percentile_ns"].as_u64().unwrap() >= 45_000,
        "nine hops in series cost that besides"
    );
    for (objective, words) in
        [("p99 < 5", "no unit"), ("99 < 5ms", "no percentile"), ("p99 < 5ms over hops", "say 40 hops")]
    {
        let refused = ask(&["--slo", objective]);
        assert!(refused.code == Some(2) && refused.err.contains(words), "{refused:?}");
    }
    assert_eq!(ask(&["--sleepers", "40%"]).code, Some(2), "a share without an objective");
    assert!(ask(&["--slo", "p99 < 5ms", "--sleepers", "0.4"]).err.contains("write it as a percentage"));
}

/// The recording under menu, with the inputs of every `nth` stay left out; of 0 without any stay.
fn cut_inputs(dir: &Path, nth: usize) -> String {
    let bytes = fs::read(recording()).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let header = Header { governor: Some("menu".into()), ..reader.header.clone() };
    let (mut encoder, mut out) = Encoder::start(&header);
    let mut n = 0;
    for item in reader.by_ref() {
        let Item::Pairs(pairs) = item else { continue };
        for mut pair in pairs.into_iter().filter(|_| nth > 0) {
            n += 1;
            if n % nth == 0 {
                (pair.sleep_length_ns, pair.is_tick_stopped) = (None, None);
            }
            out.extend(encoder.push(pair).unwrap_or_default());
        }
    }
    out.extend(encoder.end());
    let file = dir.join(format!("every-{nth}.wtrace"));
    fs::write(&file, out).unwrap();
    file.to_str().unwrap().into()
}

/// Nothing is concluded from nothing, whatever is asked; the code says so to scripts, and no file is written.
#[test]
fn an_empty_sample_is_refused_with_a_code_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    for (nth, words) in [(0, "holds no idle interval"), (1, "idle intervals can be followed")] {
        let file = cut_inputs(dir.path(), nth);
        for question in [
            &[][..],
            &["--sweep"],
            &["--slo", "p99 < 5ms over 40 hops"],
            &["--set", "max-latency=50us"],
            &["--upgrade", "6.18.2"],
            &["-o", page.to_str().unwrap()],
        ] {
            let told = run(&[&["replay", &file], question].concat());
            assert_eq!((told.code, told.out.as_str()), (Some(10), ""), "{nth} {question:?}: {told:?}");
            assert!(told.err.contains(words) && told.err.contains("wakewatt trace --record"), "{told:?}");
            assert!(!page.exists(), "{question:?}");
        }
    }
}

/// Of a recording of which too little can be followed nobody gets a verdict, in whatever form.
#[test]
fn a_share_below_the_bound_gives_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (cut_inputs(dir.path(), 3), dir.path().join("page.html"));
    for question in [&[][..], &["--sweep"], &["--slo", "p99 < 5ms over 40 hops"], &["--upgrade", "6.18.2"]] {
        let told = run(&[&["replay", &file, "-o", page.to_str().unwrap()], question].concat());
        assert_eq!(told.code, Some(10), "{question:?}: {told:?}");
        assert!(told.out.starts_with("No verdict: ") && told.out.contains("at least 95 % are needed"), "{told:?}");
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.split("<h1 id=\"verdict\">").nth(1).unwrap().starts_with("No verdict: "), "{question:?}");
        for text in [&told.out, &html] {
            for verdict in ["knee: ", "keeps p99", "tune plan --max-latency", "a wake-up comes", "nothing changes here"]
            {
                assert!(!text.contains(verdict), "{question:?} {verdict}: {text}");
            }
        }
        let json = run(&[&["replay", &file, "--json"], question].concat());
        let document: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        let n = |name: &str| document["followed"][name].as_u64().unwrap();
        assert!(n("n_followed") > 0 && n("n_followed") * 100 < n("n_recorded") * 95, "{question:?}");
        assert_eq!(json.code, Some(10));
    }
}

/// What `measure idle` finds of a state that claims so much: 31 us over polling.
pub(crate) fn costs(name: &str, claimed_ns: u64) -> StateCosts {
    let state = |index: u32, name: &str, claimed: u64, p50: u64| StateCost {
        index,
        name: name.into(),
        is_polling: index == 0,
        claimed_exit_ns: Some(claimed),
        claimed_residency_ns: None,
        allowed_by: String::new(),
        n_entered: 900,
        n_entered_any: 900,
        time_ns: 0,
        n_rejected: None,
        not_entered: None,
        first_work: Vec::new(),
        round_own_ratio: Vec::new(),
        wakes: vec![StateWake {
            n_entered: 900,
            n_entered_any: 900,
            ..StateWake::of(WakeKind::Ipi, wakewatt_core::distribution::Distribution::default(), vec![p50; 6])
        }],
    };
    let mut costs = StateCosts::of(1, vec![state(0, "POLL", 0, 1_000), state(1, name, claimed_ns, 32_000)]);
    costs.compare_with_floor();
    costs
}

/// A run of `measure idle`, as its run file has it.
pub(crate) fn measured(dir: &Path, claimed_ns: u64) -> String {
    let costs = costs("C6", claimed_ns);
    let run = serde_json::json!({
        "schema": "wakewatt/run/v1", "made_at": "x", "command": "measure idle", "host": "wakewatt-host 1\n", "idle_states": [costs],
    });
    let file = dir.join(format!("{claimed_ns}.run"));
    fs::write(&file, run.to_string()).unwrap();
    file.to_str().unwrap().into()
}

#[test]
fn measured_exits_come_before_claims_and_are_labelled() {
    let (file, dir) = (recording(), tempfile::tempdir().unwrap());
    let run_file = measured(dir.path(), 133_000);
    let ask = |more: &[&str]| run(&[&["replay", &file], &SERVER[..], more].concat());
    let text = ask(&["--measured", &run_file]).out;
    let row = |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_string();
    assert!(row("C6").contains("measured") && row("C6").contains("31us"), "{text}");
    assert!(row("C1").contains("claimed") && row("POLL").contains("polls"), "{text}");
    assert!(
        text.contains("What leaving C6 costs was measured")
            && text.contains("Leaving C1, haltpoll idle is taken to cost half")
            || text.contains("Leaving haltpoll idle, C1 is taken to cost half"),
        "{text}"
    );
    let document = assert_valid(&validator("replay"), "replay", &ask(&["--measured", &run_file, "--json"]).out);
    let c6 = document["predicted"]["states"].as_array().unwrap().iter().find(|s| s["state"] == "C6").unwrap().clone();
    assert_eq!((c6["exit_ns"].as_u64(), c6["exit_basis"].as_str()), (Some(31_000), Some("measured")));
    // Of a state that claims something else it says nothing.
    let other = ask(&["--measured", &measured(dir.path(), 170_000)]).out;
    assert!(
        other.contains("The cost measured of C6 is not used: the driver claims 170us there and 133us here."),
        "{other}"
    );
    let none = dir.path().join("none.run");
    fs::write(&none, r#"{"schema":"wakewatt/run/v1","made_at":"x","command":"doctor","host":"wakewatt-host 1\n"}"#)
        .unwrap();
    let refused = ask(&["--measured", none.to_str().unwrap()]);
    assert!(
        refused.code == Some(4) && refused.err.contains("holds no idle state whose exit was measured"),
        "{refused:?}"
    );
}

#[test]
fn an_upgrade_is_judged_in_one_command() {
    let file = recording();
    let ask = |more: &[&str]| run(&[&["replay", &file], &SERVER[..], more].concat());
    let told = ask(&["--set", FIVE, "--upgrade", "6.6.9", "--from", "6.1.145", "--by-cpu"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let lines: Vec<&str> = told.out.lines().collect();
    assert!(lines[0].contains("100.00 %") && lines[1].starts_with("From 6.1.145 to 6.6.9, "), "{}", told.out);
    for words in ["decisions differ", "493  14.8 %", "CPU 1", "energy while idle (model): old "] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
    let vendor = ask(&["--upgrade", "5.14.0-427.13.1.el9_4.x86_64", "--json"]);
    let document = assert_valid(&validator("replay-upgrade"), "replay --upgrade", &vendor.out);
    assert_eq!(document["policies"][0][1]["basis"], "assumed");
    assert!(document["remarks"].to_string().contains("Red Hat"), "{document}");
    let unknown = ask(&["--upgrade", "elm"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("no kernel version"), "{unknown:?}");
    assert_eq!(ask(&["--upgrade", "6.18", "--sweep"]).code, Some(2));
}

#[test]
fn what_is_not_to_be_trusted_says_so_first_wherever_it_goes() {
    let (file, dir) = (recording(), tempfile::tempdir().unwrap());
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    for question in [&[][..], &["--sweep"], &["--slo", "p99 < 5ms over 40 hops"], &["--upgrade", "6.18.2"]] {
        let text = run(&[&["replay", &file], &WRONG[..], question].concat());
        assert!(text.out.starts_with("Not to be trusted: "), "{question:?}: {text:?}");
        let json = run(&[&["replay", &file, "--json"], &WRONG[..], question].concat()).out;
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(document["trust"].as_str().unwrap().starts_with("Not to be trusted: "), "{question:?}");
        assert!(
            document["identical_ratio"].as_f64().unwrap() < 0.95 && document["is_trusted"] == false,
            "{question:?}"
        );
        let (page, table) = (at("page.html"), at("table.csv"));
        let written = run(&[&["replay", &file, "-o", &page, "--csv", &table], &WRONG[..], question].concat());
        assert_eq!(written.code, Some(0), "{written:?}");
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.split("<h1 id=\"verdict\">").nth(1).unwrap().starts_with("Not to be trusted: "), "{question:?}");
        let csv = fs::read_to_string(&table).unwrap();
        let column = csv.lines().next().unwrap().split(',').position(|c| c == "is_trusted").unwrap();
        assert!(
            csv.lines().count() > 4 && csv.lines().skip(1).all(|l| l.split(',').nth(column) == Some("false")),
            "{csv}"
        );
    }
}

#[test]
fn a_replay_is_kept_read_and_compared() {
    let (file, dir) = (recording(), tempfile::tempdir().unwrap());
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (free, held) = (at("free.run"), at("held.run"));
    let save = |name: &str, more: &[&str]| run(&[&["replay", &file, "--save", name], &SERVER[..], more].concat());
    let saved = save(&free, &[]);
    assert!(saved.code == Some(0) && saved.err.contains("read it with: wakewatt report"), "{saved:?}");
    assert_eq!(save(&held, &["--set", "max-latency=50us"]).code, Some(0));
    let compared = run(&["compare", &free, &held, "--all"]);
    for words in [
        "replayed (both modelled)",
        "mean cost of a wake-up (replay, modelled)",
        "A is a replay",
        "residency moved from C6",
    ] {
        assert!(compared.out.contains(words), "{words}: {}", compared.out);
    }
    let page = at("report.html");
    let reported = run(&["report", &held, "-o", &page]);
    assert_eq!(reported.code, Some(0), "{reported:?}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Asked: governor=menu") && html.contains("residency-wide"), "page");
    // Beside a run in which the machine's own work was traced.
    let traced = at("traced.run");
    let document = fs::read_to_string(&free).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["command"], "replay");
    let state = |name: &str, time_ns: u64| {
        serde_json::json!({"state": name, "n_requested": 5, "n_entered": null, "time_ns": time_ns, "entered_time_ns": null, "label": "measured",
            "hardware": {"label": "unavailable", "residency_ratio": null, "source": "-"}, "length": wakewatt_core::distribution::Distribution::default()})
    };
    document["replays"] = serde_json::json!([]);
    let mut trace = serde_json::to_value(wakewatt_core::samples::traced::Traced::default()).unwrap();
    trace["states"] = serde_json::json!([state("C1", 900), state("C6", 100)]);
    document["trace"] = trace;
    fs::write(&traced, document.to_string()).unwrap();
    let beside = run(&["compare", &traced, &free]);
    assert!(beside.out.contains("own work (B modelled)") && beside.out.contains("B is a replay"), "{beside:?}");
}

#[test]
fn tables_of_a_fleet_have_a_row_for_each_state() {
    let (file, dir) = (recording(), tempfile::tempdir().unwrap());
    let (csv, parquet) = (dir.path().join("t.csv"), dir.path().join("t.parquet"));
    let mut args = vec!["replay", &file, "--sweep", "--csv", csv.to_str().unwrap()];
    if wakewatt::features::Feature::Parquet.is_in() {
        args.extend(["--parquet", parquet.to_str().unwrap()]);
    }
    let told = run(&[&args[..], &SERVER[..]].concat());
    assert_eq!(told.code, Some(0), "{told:?}");
    let text = fs::read_to_string(&csv).unwrap();
    // Three limits, two CPUs, four states of both tables.
    assert_eq!(text.lines().count(), 1 + 3 * 2 * 4, "{text}");
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    for name in ["trace", "boot", "recorded_kernel", "cpu", "setting", "state", "exit_basis", "predicted_time_ns"] {
        assert!(head.contains(&name), "{head:?}");
    }
    assert!(text.contains("max-latency=2us") && text.contains("modelled"), "{text}");
    assert!(!wakewatt::features::Feature::Parquet.is_in() || fs::read(&parquet).unwrap().starts_with(b"PAR1"));
}

#[test]
fn places_that_cannot_be_written_and_readers_that_leave() {
    let (file, dir) = (recording(), tempfile::tempdir().unwrap());
    for option in ["-o", "--save", "--csv"] {
        let refused = run(&["replay", &file, option, "/proc/none/x"]);
        assert!(refused.code == Some(4) && refused.out.is_empty(), "{option}: {refused:?}");
    }
    let full = run(&["replay", &file, "--csv", "/dev/full"]);
    assert!(full.code == Some(4) && full.err.contains("No space left"), "{full:?}");
    // The table was asked for, too, and is there although nobody reads what is printed.
    for (kind, code) in [("full", 4), ("closed", 0)] {
        let table = dir.path().join(kind);
        let mut command = wakewatt(&["replay", &file, "--csv", table.to_str().unwrap()]);
        let out = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let command = command.stderr(Stdio::piped());
        let mut child =
            if kind == "full" { command.stdout(out).spawn() } else { command.stdout(Stdio::piped()).spawn() }.unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{kind}: {done:?}");
        assert!(fs::read_to_string(&table).unwrap().lines().count() > 4, "{kind}");
    }
    let help = said(wakewatt(&["replay", "--help"]).stdout(Stdio::piped()));
    assert!(help.out.contains("--slo <OBJECTIVE>"), "{help:?}");
}

#[test]
fn of_a_damaged_recording_what_is_readable_is_used_or_it_says_why() {
    let (bytes, dir) = (fs::read(recording()).unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join("damaged.wtrace");
    let name = file.to_str().unwrap();
    let head = 2000;
    let mut n_used = 0;
    for at in (head..bytes.len()).step_by(bytes.len() / 12) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&file, &damaged).unwrap();
        let told = run(&["replay", name, "--slo", "p99 < 5ms over 40 hops"]);
        // Damaged before its first interval nothing is left to conclude from.
        let (code, text) = if at == head { (10, &told.err) } else { (0, &told.out) };
        assert!(told.code == Some(code) && text.contains("The recording is damaged at byte"), "{at}: {told:?}");
        n_used += 1;
    }
    assert!(n_used >= 10);
    for (at, words) in [(0, "its first line is not"), (40, "in its header"), (25, "in its header")] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&file, &damaged).unwrap();
        let refused = run(&["replay", name]);
        assert!(refused.code == Some(4) && refused.err.contains(words), "{at}: {refused:?}");
        assert!(refused.err.contains("trace --record"), "{at}: {refused:?}");
    }
    for length in [0, 10, 30] {
        fs::write(&file, &bytes[..length]).unwrap();
        assert_eq!(run(&["replay", name, "--upgrade", "6.18"]).code, Some(4), "{length}");
    }
}
