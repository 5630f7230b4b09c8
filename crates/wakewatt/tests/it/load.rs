//! `load`: short runs through the binary. What is asserted is structure and bookkeeping, not speed: the machine that runs the
//! tests may be busy with others.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, run, wait_until, wakewatt};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::Duration;

fn document(args: &[&str]) -> Value {
    let said = run(&[args, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    assert_valid(&validator("load"), &format!("{args:?}"), &said.out)
}

/// `load steps` without a meter.
fn steps<'a>(levels: &'a str, interval: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["load", "steps", "--levels", levels, "--interval", interval, "--meter", "redfish"], more].concat()
}

/// The same, under way.
fn started(args: &[&str]) -> Child {
    wakewatt(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Its code, output and complaints, once it has ended.
fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The first CPU that may be used.
fn cpu() -> String {
    wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap().to_string()
}

#[test]
fn a_short_graduated_load_has_all_its_parts() {
    let json = document(&steps("100,30,idle", "1s", &["--service", "200us", "--seed", "7"]));
    let load = &json["run"];
    assert_eq!((&load["kind"], &load["length"], &load["seed"]), (&"steps".into(), &"custom".into(), &7.into()));
    let n_calibrations = load["calibration"].as_array().unwrap().len();
    assert!((3..=10).contains(&n_calibrations), "{n_calibrations}");
    assert!(load["capacity_per_s"].as_f64().unwrap() > 0.0 && load["work_units"].as_u64().unwrap() > 0);
    assert!(!load["workers"].as_array().unwrap().is_empty() && load["settings"].is_array());
    let levels = load["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 3);
    let number = |level: &Value, name: &str| level[name].as_f64().unwrap();
    for level in levels {
        assert_eq!(number(&level["window"], "end_at_ns") - number(&level["window"], "start_at_ns"), 1e9);
        assert!(number(level, "n_done") <= number(level, "n_planned"), "{level}");
        assert!(!level["cpus"].as_array().unwrap().is_empty());
        let is_told = level["is_invalid"].to_string().contains("other processes used");
        assert_eq!(number(level, "foreign_ratio") > 0.02, is_told, "{level}");
    }
    assert!(levels[0]["latency"].is_null(), "a queue without a steady state has no latency");
    let (third, idle) = (&levels[1], &levels[2]);
    assert_eq!(third["latency"]["n"], third["n_done"]);
    assert!(
        number(&third["latency"], "mean_ns") >= number(&third["service"], "mean_ns"),
        "it waits, then it is served"
    );
    let target = load["capacity_per_s"].as_f64().unwrap() * 0.3;
    assert!((number(third, "target_per_s") / target - 1.0).abs() < 1e-6);
    assert_eq!((number(idle, "per_s"), idle["target_per_s"].is_null()), (0.0, true));
    let score = number(&levels[0], "per_s") + number(third, "per_s");
    assert!((number(&json["overall"], "score_per_s") - score).abs() < 1e-6);
    let remarks = load["remarks"].to_string();
    assert!(json["overall"]["sum_uw"].is_null() == remarks.contains("watts are absent"), "{remarks}");
}

#[test]
fn the_same_seed_plans_the_same_load_and_a_rate_needs_no_calibration() {
    let cpu = cpu();
    let planned = |seed: &str| {
        let json = document(&steps("300/s", "400ms", &["--cpus", &cpu, "--work", "1", "--seed", seed]));
        assert_eq!((&json["run"]["capacity_per_s"], &json["overall"]), (&Value::Null, &Value::Null));
        json["run"]["levels"][0]["n_planned"].as_u64().unwrap()
    };
    let all = ["1", "1", "2", "3", "4"].map(planned);
    assert_eq!(all[0], all[1]);
    assert!(all[1..].iter().any(|n| *n != all[0]), "{all:?}");
    assert!(all.iter().all(|n| (60..190).contains(n)), "{all:?}: 120 expected, a standard deviation of 11");
}

#[test]
fn the_table_reads_well() {
    let cpu = cpu();
    let said = run(&steps("50/s,idle", "200ms", &["--cpus", &cpu, "--work", "2"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    for word in
        ["Graduated load, measured", "50/s", "active idle", "no score", "--work 2 repeats it", "Every level: measured"]
    {
        assert!(said.out.contains(word), "{word:?} is missing: {}", said.out);
    }
}

#[test]
fn a_killed_worker_ends_the_run_with_what_is_known() {
    let cpu = cpu();
    let child = started(&steps("50/s,60/s", "20s", &["--cpus", &cpu, "--work", "1"]));
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let mut worker = None;
    let is_worker = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("load-worker"))
    };
    wait_until(Duration::from_secs(30), || {
        let text = std::fs::read_to_string(&children).unwrap_or_default();
        worker = text.split_whitespace().filter_map(|w| w.parse::<i32>().ok()).find(is_worker);
        worker.is_some()
    });
    let worker = rustix::process::Pid::from_raw(worker.expect("no worker process appeared")).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    let (code, _, err) = ended(child);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("was killed (signal 9") && err.contains(&format!("CPUs {cpu}")), "{err}");
}

#[test]
fn an_interruption_keeps_the_levels_that_ended() {
    let cpu = cpu();
    let child = started(&steps("20/s,idle,30/s", "3s", &["--cpus", &cpu, "--work", "1", "--json"]));
    let pid = rustix::process::Pid::from_child(&child);
    // One level takes less than 4 s; the machine may be slow, so any number of levels but all is right.
    std::thread::sleep(Duration::from_millis(7_500));
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, out, err) = ended(child);
    assert_eq!(code, Some(130), "{err}");
    if out.is_empty() {
        assert!(err.contains("before the first level ended"), "{err}");
    } else {
        let json = assert_valid(&validator("load"), "interrupted", &out);
        assert!((1..3).contains(&json["run"]["levels"].as_array().unwrap().len()), "{out}");
    }
}

#[test]
fn levels_are_repeated_and_the_report_shows_them_over_time() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, page, cpu) = (dir.path().join("r.run"), dir.path().join("r.html"), cpu());
    let (kept, page) = (kept.to_str().unwrap(), page.to_str().unwrap());
    let more = ["--work", "1", "--cpus", &cpu, "--repeat", "3", "--save", kept];
    let json = document(&steps("200/s,idle", "200ms", &more));
    let levels = json["run"]["levels"].as_array().unwrap();
    let asks: Vec<bool> = levels.iter().map(|l| l["ask"] == "idle").collect();
    assert_eq!((asks, &json["overall"]), (vec![false, true, false, true, false, true], &Value::Null));
    assert!(json["run"]["changes"].is_array());
    let said = run(&["report", kept, "-o", page]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("timeline-0") && page.contains("for proof"), "no timeline");
}

#[test]
fn bad_input_is_refused_with_a_way_out() {
    for (args, word) in [
        (&["load"][..], "load steps"),
        (&["load", "steps", "--service", "1us"], "10us"),
        (&["load", "steps", "--service", "1s", "--interval", "2s"], "at most 100ms"),
        (&["load", "steps", "--cpus", "4095"], "this process may use"),
        (&["load", "steps", "--levels", "50,50"], "50 % twice"),
        (&["load", "steps", "--levels", "150"], "more than 100 %"),
        (&["load", "steps", "--levels", "much"], "is not a level"),
        (&["load", "steps", "--quick", "--spec-like"], "cannot be used with"),
        (&["load", "--metric", "score", "--", "true"], "into a group"),
        (&["load", "--metric-json", "x", "--", "true"], "begins with /"),
        (&["load", "--repeat", "0", "--", "true"], "--repeat"),
        (&["load", "--", "/no/such/program"], "could not be started"),
    ] {
        let said = run(args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?} should say {word:?}: {}", said.err);
    }
}

#[test]
fn a_command_is_run_so_often_and_its_figure_is_found() {
    let busy = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo score: 12.5";
    let args = ["--json", "--repeat", "3", "--metric", "score: ([0-9.]+)", "--", "sh", "-c", busy];
    let said = command(&args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.err.matches("score: 12.5").count(), 3, "its output goes to standard error: {}", said.err);
    let json = assert_valid(&validator("load"), "command", &said.out);
    assert_eq!(json["run"]["kind"], "command");
    let levels = json["run"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 3);
    for level in levels {
        assert_eq!((&level["figure"]["value"], &level["n_done"]), (&12.5.into(), &1.into()));
        assert!(level["cpu_ns"].as_u64() > level["system_ns"].as_u64(), "{level}");
    }
}

#[test]
fn a_commands_code_and_output_pass_through() {
    let said = command(&["--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!((said.code, said.out.as_str()), (Some(7), "hello\n"), "{}", said.err);
    let said = command(&["--metric", "score: (.*)", "--", "echo", "nothing"]);
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains("found nothing in its 1 line of standard output"), "{}", said.err);
    let said = command(&["--repeat", "2", "--metric", "score: (.*)", "--", "echo", "score: 5"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = said.out;
    assert!(said.starts_with("score: 5\nscore: 5\nLoad, measured: 2 runs of \"echo score: 5\""), "{said}");
    assert!(said.contains("Figure: median 5 (from 5 to 5, n = 2); watts are unmeasured."), "{said}");
}

/// `load -- CMD` without a meter.
fn command(args: &[&str]) -> Said {
    run(&[&["load", "--meter", "redfish"], args].concat())
}
