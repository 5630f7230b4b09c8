//! The memory of an agent: played, asked for as tables, compared; what a kill and a full disk leave of it, and who held a limit that changed.

use crate::agent::{Agent, soon, tree, value, write};
use crate::tool::{NOBODY, Said, is_root, run, wakewatt};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use wakewatt_agent::history::week::{INTERVAL_MS, Week};
use wakewatt_agent::history::{Limits, Ring, segments};
use wakewatt_testing::{Lacks, skipped};

/// 2026-11-20 10:00 UTC.
const TEN_MS: u64 = 1_795_168_800_000;

/// From ten o'clock on, twenty minutes of one agent and, an hour later, twenty of another, under another governor.
fn kept(folder: &Path) {
    let mut week = Week::of(8);
    for (begin_ms, governor) in [(TEN_MS, "menu"), (TEN_MS + 4_800_000, "teo")] {
        let mut ring = Ring::open(folder, Limits { most_bytes: 16 << 20, free_share: 0.0 }).unwrap();
        week.governor = governor;
        for n in 0..120 {
            ring.push(begin_ms + n * INTERVAL_MS, &week.next_page()).unwrap();
        }
    }
}

fn fine(args: &[&str]) -> Said {
    let said = run(args);
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    said
}

fn documents(said: &Said) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_history_plays_like_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path());
    let folder = dir.path().to_str().unwrap();
    let play = |more: &[&str]| fine(&[&["watch", "--play", folder], more].concat());
    let all = play(&["--json"]);
    let validator = crate::schemas::validator("watch");
    let first = all.out.lines().next().unwrap();
    crate::schemas::assert_valid(&validator, "watch --play", first);
    let intervals = documents(&all);
    assert_eq!(intervals.len(), 119 + 1 + 119);
    assert_eq!(intervals[0]["machine"]["n_online"], 8);
    assert_eq!(intervals[0]["places"].as_array().map(Vec::len), Some(2));
    assert_eq!(intervals[0]["machine"]["asleep_ratio"], "not_recorded");
    let notes = |at: usize| intervals[at]["notes"].to_string();
    assert!(notes(119).contains("nothing was kept for") && notes(119).contains("menu -> teo"), "{}", notes(119));
    assert_eq!(intervals[119]["machine"]["busy_ratio"], "not_recorded");
    let part = play(&["--json", "--since", "2026-11-20 10:05", "--until", "2026-11-20T11:06:00+01:00"]);
    assert_eq!(documents(&part).len(), 6);
    let csv = play(&["--csv"]).out;
    let n_columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(n_columns.len() == 1 + intervals.len() && n_columns.iter().all(|n| *n == n_columns[0]), "{n_columns:?}");
    let text = play(&["--once"]).out;
    for part in ["up to 2026-11-20 11:39:50 UTC", "pkg 0 node 0", "not known of each CPU", "RAPL: ", "C6"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let none = run(&["watch", "--json", "--play", folder, "--since", "2026-11-21"]);
    assert!(none.code != Some(0) && none.err.contains("--since"), "{}", none.err);

    // Damage in the first segment: what is before it, and the other segment.
    let damaged = segments(dir.path()).remove(0);
    let mut bytes = fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let rest = play(&["--json"]);
    let n = documents(&rest).len();
    assert!(rest.err.contains("damaged") && (121..238).contains(&n), "{n}: {}", rest.err);
}

/// Reading is free, also what another user's agent wrote; who else may have written it is said once.
#[test]
fn a_history_that_others_can_write_is_read_and_said_so() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path());
    let folder = dir.path().to_str().unwrap();
    let asked: [&[&str]; 3] = [
        &["agent", "query", "wakewatt_pressure_ratio", "--history", folder, "--until", "2026-11-20T11:30:00Z"],
        &["compare", "--at", "2026-11-20 10:10", "--and", "2026-11-20T11:30:00Z", "--history", folder],
        &["watch", "--once", "--play", folder],
    ];
    let warnings = || asked.map(|args| fine(args).err.matches("others can write in").count());
    assert_eq!(warnings(), [0, 0, 0]);
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(warnings(), [1, 1, 1]);
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    if is_root() && std::os::unix::fs::chown(dir.path(), Some(NOBODY), None).is_ok() {
        for segment in segments(dir.path()) {
            std::os::unix::fs::chown(segment, Some(NOBODY), None).unwrap();
        }
        assert_eq!(warnings(), [0, 0, 0], "the agent of another user");
    }
}

#[test]
fn two_moments_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path());
    let folder = dir.path().to_str().unwrap();
    let asked = ["compare", "--at", "2026-11-20 10:10", "--and", "2026-11-20T11:30:00Z", "--history", folder];
    let text = fine(&asked).out;
    for part in [
        "A 2026-11-20 10:10:00 UTC: 60 intervals, 600s, of 2026-11-20 10:05:00 UTC to 2026-11-20 10:15:00 UTC",
        "idle governor",
        "A menu",
        "B teo",
        "between 2026-11-20 10:19:50 UTC and 2026-11-20 11:20:00 UTC: idle_governor: menu -> teo",
        "share of C6",
        "power, package-0",
        "p99 wake-up, at most",
        "What cannot be concluded",
        "`wakewatt experiment`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document = fine(&[&asked[..], &["--json", "--window", "2min"]].concat());
    let validator = crate::schemas::validator("compare-past");
    let document = crate::schemas::assert_valid(&validator, "compare --at", &document.out);
    assert_eq!((&document["window_ms"], &document["a"]["n_intervals"]), (&120_000.into(), &12.into()));
    assert_eq!(document["settings"][0]["what"], "idle_governor");
    // Of now the history holds nothing, and says so.
    let now = fine(&["compare", "--at", "2026-11-20 10:10", "--history", folder]).out;
    assert!(now.contains("B: nothing was kept in its window"), "{now}");
    let without = run(&["compare", "--at", "2026-11-20", "--history", "/proc/nothing"]);
    assert!(without.code == Some(4) && without.err.contains("holds no history"), "{}", without.err);
    assert_eq!(run(&["compare"]).code, Some(2));
    assert_eq!(run(&["compare", "--at", "yesterday"]).code, Some(2));
    assert_eq!(run(&["compare", "--at", "-1h", "some.host"]).code, Some(2));
}

#[test]
fn an_answer_is_a_table_for_other_programs() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    kept(&history);
    let table = dir.path().join("c6.parquet");
    let ask = |more: &[&str]| {
        let until = ["--until", "2026-11-20 12:00", "--last", "3h", "--history", history.to_str().unwrap()];
        run(&[
            &["agent", "query", "wakewatt_cpuidle_time_seconds_total", "--label", "state=C6", "--rate"],
            &until[..],
            more,
        ]
        .concat())
    };
    let said = ask(&["--output", table.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let bytes = fs::read(&table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1") && said.err.contains("rows"), "{}", said.err);
    let csv = ask(&["--csv"]).out;
    assert!(csv.starts_with("time,series,value,seen_s,least,most") && csv.lines().count() > 40, "{csv}");
    assert_eq!(ask(&["--json", "--output", "x.parquet"]).code, Some(2));
}

/// However it ends, at most the interval that was being written is missing.
#[test]
fn kill_9_loses_at_most_one_interval() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 4, 1000);
    let history = history.to_str().unwrap();
    let n_kept = || {
        let said = run(&["agent", "query", "x", "--last", "1h", "--history", history, "--json"]);
        serde_json::from_str::<Value>(&said.out).ok().and_then(|document| document["n_moments"].as_u64()).unwrap_or(0)
    };
    for round in 0..3 {
        let before = n_kept();
        let mut agent =
            Agent::start(&["--sysroot", tree_at.to_str().unwrap(), "--interval", "1s", "--history", history]);
        soon("two moments more", || n_kept() >= before + 2);
        let seen = n_kept();
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
        assert!(n_kept() >= seen, "round {round}: what was kept stays");
        let said = run(&["agent", "query", "x", "--history", history]);
        assert!(said.code == Some(0) && said.err.is_empty(), "{}", said.err);
    }
}

/// Copies a history that an agent is writing, and asks the copy how many CPUs were online.
fn query_a_copy(history: &Path, copy: &Path) -> Said {
    for path in segments(history) {
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    run(&["agent", "query", "wakewatt_cpus_online", "--history", copy.to_str().unwrap(), "--json"])
}

/// A file system of its own, filled by somebody else: the history ends and says why, the agent goes on, what was kept can be read.
#[test]
fn a_full_disk_ends_the_history_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, mount, copy) = (dir.path().join("tree"), dir.path().join("mount"), dir.path().join("copy"));
    [&mount, &copy].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let can = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none"]).arg(&mount).output();
    if !can.is_ok_and(|out| out.status.success()) {
        skipped("past::full_disk", Lacks::Here, "no mount of one's own to be filled");
        return;
    }
    const N_CPUS: usize = 16;
    tree(&tree_at, N_CPUS, 1000);
    // Gone with its process.
    let script = "mount -t tmpfs -o size=256k none \"$1\" && shift && exec \"$@\"";
    let own = wakewatt(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).arg(&mount).arg(own.get_program());
    command.args(["agent", "--listen", "127.0.0.1:0", "--interval", "1s", "--per-cpu", "--history-free", "0"]);
    command.args(["--history-limit", "1MiB", "--sysroot"]).arg(&tree_at).arg("--history").arg(mount.join("history"));
    let agent = Agent::of(&mut command);
    let inside =
        Path::new("/proc").join(agent.child.id().to_string()).join("root").join(mount.strip_prefix("/").unwrap());
    let kept = || query_a_copy(&inside.join("history"), &copy);
    // A file begins before its first moment is in it.
    soon("a moment is kept", || {
        serde_json::from_str(&kept().out).is_ok_and(|said: Value| said["n_moments"].as_u64() >= Some(1))
    });
    let filled = fs::write(inside.join("filler"), vec![1; 1 << 20]);
    assert!(filled.is_err(), "the disk is full");
    let mut usage = 1000;
    soon("the history ends", || {
        usage += 12_345;
        tree(&tree_at, N_CPUS, usage);
        agent.text().contains("wakewatt_agent_source_up{source=\"history\"")
            && agent.text().lines().any(|line| line.contains("source=\"history\",why=") && line.ends_with(" 0"))
    });
    let page = agent.text();
    let why = page.lines().find(|line| line.contains("source=\"history\"")).unwrap();
    assert!(why.contains("No space left") && why.contains("the agent goes on"), "{why}");
    let said = kept();
    let is_whole = said.code == Some(0) && said.err.is_empty() && documents_moments(&said) >= 1;
    assert!(is_whole, "whole as far as it goes: {said:?}");
    assert_eq!(agent.end(), Some(130));
}

/// A disk whose file system finds an error and turns read-only under the agent (ext4, errors=remount-ro): the same.
#[test]
fn a_disk_that_turns_read_only_ends_the_history_and_nothing_else() {
    let name = "past::read_only_disk";
    if !is_root() {
        return skipped(name, Lacks::Root, "mounts an image and breaks it");
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, mount, image) = (dir.path().join("tree"), dir.path().join("mount"), dir.path().join("image"));
    fs::create_dir(&mount).unwrap();
    let script = "truncate -s 8M \"$1\" && mkfs.ext4 -q \"$1\" && mount -o loop,errors=remount-ro \"$1\" \"$2\"";
    let prepare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(&image).arg(&mount);
        command
    };
    if !prepare(&format!("({script}) >/dev/null 2>&1")).status().is_ok_and(|status| status.success()) {
        return skipped(name, Lacks::Here, "no ext4 image can be mounted");
    }
    tree(&tree_at, 2, 1000);
    // Gone with its process.
    let mut command = prepare("mount -o loop,errors=remount-ro \"$1\" \"$2\" && shift 2 && exec \"$@\"");
    command.arg(wakewatt(&[]).get_program());
    command.args(["agent", "--listen", "127.0.0.1:0", "--interval", "1s", "--history-free", "0", "--sysroot"]);
    let agent = Agent::of(command.arg(&tree_at).arg("--history").arg(mount.join("history")));
    let root = Path::new("/proc").join(agent.child.id().to_string());
    let inside = root.join("root").join(mount.strip_prefix("/").unwrap());
    let copy = dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    let kept = || query_a_copy(&inside.join("history"), &copy);
    soon("a moment is kept", || {
        serde_json::from_str(&kept().out).is_ok_and(|said: Value| said["n_moments"].as_u64() >= Some(1))
    });
    let mounts = fs::read_to_string(root.join("mounts")).unwrap();
    let device = mounts.lines().find(|line| line.contains(mount.to_str().unwrap())).unwrap();
    let device = device.split(' ').next().unwrap().trim_start_matches("/dev/");
    fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "1").unwrap();
    assert!(fs::write(inside.join("more"), "1").is_err(), "the disk is read-only");
    let mut usage = 1000;
    soon("the history ends", || {
        usage += 12_345;
        tree(&tree_at, 2, usage);
        agent.text().lines().any(|line| line.contains("source=\"history\",why=") && line.ends_with(" 0"))
    });
    let page = agent.text();
    let why = page.lines().find(|line| line.contains("source=\"history\"")).unwrap();
    assert!(why.contains("the agent goes on"), "{why}");
    let said = kept();
    assert!(said.code == Some(0) && documents_moments(&said) >= 1, "whole as far as it goes: {said:?}");
    assert_eq!(agent.end(), Some(130));
}

fn documents_moments(said: &Said) -> u64 {
    serde_json::from_str::<Value>(&said.out).unwrap()["n_moments"].as_u64().unwrap()
}

/// The second agent goes on without a past and says why; who asks is answered while the first one writes.
#[test]
fn a_folder_is_kept_by_one_agent() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 2, 1000);
    let (tree_at, history) = (tree_at.to_str().unwrap(), history.to_str().unwrap());
    let args = ["--sysroot", tree_at, "--interval", "1s", "--history", history];
    let mut first = Agent::start(&args);
    let second = Agent::start(&args);
    let page = second.text();
    let why = page.lines().find(|line| line.contains("source=\"history\"")).unwrap();
    assert!(why.ends_with(" 0") && why.contains(history) && why.contains("another agent keeps"), "{why}");
    let n_kept = || {
        let said = run(&["agent", "query", "wakewatt_cpus_online", "--history", history, "--json"]);
        serde_json::from_str::<Value>(&said.out).ok()?["n_moments"].as_u64()
    };
    soon("the first one keeps", || n_kept() >= Some(2));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // Nothing is left of the lock.
    let third = Agent::start(&args);
    assert_eq!(value(&third.text(), "wakewatt_agent_source_up{source=\"history\"}"), Some(1.0));
    assert_eq!((second.end(), third.end()), (Some(130), Some(130)));
}

/// The limit of a tree is a file; who holds it, a link of a process.
#[test]
fn a_limit_that_changed_says_who_held_it() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 2, 1000);
    fs::create_dir_all(tree_at.join("dev")).unwrap();
    let limit = |us: i32| fs::write(tree_at.join("dev/cpu_dma_latency"), us.to_ne_bytes()).unwrap();
    limit(2_000_000_000);
    write(&tree_at, "proc/900/comm", "tuned");
    fs::create_dir_all(tree_at.join("proc/900/fd")).unwrap();
    write(&tree_at, "proc/42/comm", "db");
    fs::create_dir_all(tree_at.join("proc/42/fd")).unwrap();
    let (at, history) = (tree_at.to_str().unwrap(), history.to_str().unwrap());
    let agent = Agent::start(&["--sysroot", at, "--interval", "1s", "--history", history]);
    let ask = || run(&["agent", "query", "wakewatt_latency_limit_seconds", "--history", history, "--json"]);
    soon("a moment without a limit", || ask().out.contains("+Inf"));
    std::os::unix::fs::symlink("/dev/cpu_dma_latency", tree_at.join("proc/42/fd/3")).unwrap();
    limit(50);
    let mut change = Value::Null;
    soon("the change is kept", || {
        let document: Value = serde_json::from_str(&ask().out).unwrap();
        let changes = document["changes"].as_array().cloned().unwrap_or_default();
        let found = changes.into_iter().find(|change| change["what"] == "latency_limit");
        change = found.unwrap_or_default();
        !change.is_null()
    });
    assert_eq!((&change["from"], &change["to"]), (&"none".into(), &"50us".into()), "{change}");
    assert_eq!((&change["held_by"][0], &change["may_be_by"][0]), (&"db".into(), &"TuneD".into()), "{change}");
    let text = run(&["agent", "query", "wakewatt_latency_limit_seconds", "--history", history]).out;
    assert!(text.contains("latency_limit: none -> 50us, held by db"), "{text}");
    assert_eq!(agent.end(), Some(130));
}

/// The limit that nobody set has no end, and JSON has no number for that.
#[test]
fn a_limit_that_nobody_set_is_told_in_json() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 2, 1000);
    fs::create_dir_all(tree_at.join("dev")).unwrap();
    fs::write(tree_at.join("dev/cpu_dma_latency"), 2_000_000_000i32.to_ne_bytes()).unwrap();
    let (tree_at, history) = (tree_at.to_str().unwrap(), history.to_str().unwrap());
    let agent = Agent::start(&["--sysroot", tree_at, "--interval", "1s", "--history", history]);
    let validator = crate::schemas::validator("agent-query");
    let mut told = Value::Null;
    soon("the limit is kept", || {
        let said = run(&["agent", "query", "wakewatt_latency_limit_seconds", "--history", history, "--json"]);
        if said.code == Some(0) {
            told = crate::schemas::assert_valid(&validator, "agent query", &said.out);
        }
        told["series"].as_array().is_some_and(|series| !series.is_empty())
    });
    assert_eq!(told["series"][0]["points"][0]["value"], "+Inf");
    assert_eq!(agent.end(), Some(130));
}

#[test]
fn a_killed_agent_keeps_its_past_and_it_can_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (tree_at, history) = (dir.path().join("tree"), dir.path().join("history"));
    tree(&tree_at, 4, 1000);
    let args = ["--sysroot", tree_at.to_str().unwrap(), "--interval", "1s", "--history", history.to_str().unwrap()];
    let mut agent = Agent::start(&args);
    let ask = |more: &[&str]| {
        let all = [
            &["agent", "query", "wakewatt_cpuidle_entries_total", "--history", history.to_str().unwrap(), "--json"],
            more,
        ]
        .concat();
        let said = run(&all);
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str::<Value>(&said.out).unwrap()
    };
    let is_begun = || run(&["agent", "query", "x", "--history", history.to_str().unwrap()]).code == Some(0);
    soon("two moments are kept", || is_begun() && ask(&[])["n_moments"].as_u64() >= Some(2));
    tree(&tree_at, 4, 4000);
    let grown = |document: &Value| {
        let points = document["series"].as_array()?.iter().flat_map(|s| s["points"].as_array().into_iter().flatten());
        let grown: f64 = points.filter_map(|p| Some(p["value"].as_f64()? * p["seen_ms"].as_f64()? / 1e3)).sum();
        Some(grown.round())
    };
    soon("the growth is kept", || grown(&ask(&["--rate", "--label", "state=C6"])) == Some(12_000.0));
    // And a moment after it, which is the one that will be cut.
    let n_kept = ask(&[])["n_moments"].as_u64();
    soon("a moment more is kept", || ask(&[])["n_moments"].as_u64() > n_kept);
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    let kept = segments(&history);
    assert_eq!(kept.len(), 1);
    // Half of a frame, as a kill in the middle of a write leaves it.
    let whole = fs::read(&kept[0]).unwrap();
    fs::write(&kept[0], &whole[..whole.len() - 3]).unwrap();
    drop(agent);
    let again = Agent::start(&args);
    soon("a second segment is there", || segments(&history).len() == 2);
    assert_eq!(grown(&ask(&["--rate", "--label", "state=C6"])), Some(12_000.0));
    let csv =
        run(&["agent", "query", "wakewatt_latency_limit_seconds", "--history", history.to_str().unwrap(), "--csv"]);
    assert!(csv.out.starts_with("time,series,value,seen_s"), "{}", csv.out);
    assert_eq!(again.end(), Some(130));
    let none = run(&["agent", "query", "x", "--history", dir.path().to_str().unwrap()]);
    assert!(none.code == Some(4) && none.err.contains("holds no history"), "{}", none.err);
}
