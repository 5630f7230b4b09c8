//! `tune`: plans for every recorded host, refusals that help, and, live, settings really made, watched, killed, undone.

use crate::live::machine;
use crate::schemas::{assert_valid, validator};
use crate::tool::{NOBODY, PROGRAM, Said, fixtures, host, hosts, is_root, run, said, wait_until, wakewatt};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wakewatt_tune::journal::STATE_DIR;
use wakewatt_tune::profile::{Profile, SHIPPED};

/// A path that leads out of the cgroup tree would let its file choose the CPUs.
#[test]
fn a_cgroup_is_named_below_the_tree() {
    let host = host("sklep0");
    let at = host.to_str().unwrap();
    for path in ["../../../tmp/x", "a/../b", "./a"] {
        let said = run(&["tune", "plan", "--max-latency", "1us", "--cgroup", path, "--host", at]);
        assert!(said.code == Some(2) && said.err.contains(". and .. name no cgroup"), "{path}: {said:?}");
        let set = format!("qos.cpu@cgroup:{path}=1us");
        assert_eq!(run(&["tune", "plan", "--set", &set, "--host", at]).code, Some(2), "{path}");
    }
}

#[test]
fn every_shipped_profile_on_every_recorded_host() {
    let validator = validator("tune-plan");
    let mut wrong = Vec::new();
    for (name, file) in hosts() {
        let file = file.to_str().unwrap();
        let mut text = String::new();
        for (profile, _) in SHIPPED {
            let said = run(&["tune", "plan", profile, "--host", file]);
            assert!(matches!(said.code, Some(0 | 7)), "{profile} on {name}: {said:?}");
            text += &format!("$ wakewatt tune plan {profile}: ends with {:?}\n{}\n", said.code.unwrap(), said.out);
            let json = run(&["tune", "plan", profile, "--json", "--host", file]);
            assert_valid(&validator, &format!("{profile} on {name}"), &json.out);
        }
        wrong.extend(crate::matrix::compare(&fixtures().join(format!("golden/tune/{name}.txt")), &text));
    }
    assert!(
        wrong.is_empty(),
        "{}\naccept with: {}",
        wrong.join("\n"),
        "WAKEWATT_BLESS=1 cargo test -p wakewatt --test it tune"
    );
}

#[test]
fn the_published_profile_schema_takes_what_the_parser_takes() {
    let schema = wakewatt::schema::profile();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, text) in SHIPPED {
        let value: toml::Value = toml::from_str(text).unwrap();
        let value = serde_json::to_value(value).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty() && Profile::parse(text).is_ok(), "{name}: {errors:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({ "format": 1, "max_latancy": "1us" })));
}

#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    let file = host("sklep0");
    let plan = |args: &[&str]| {
        let mut all = vec!["tune", "plan", "--host", file.to_str().unwrap()];
        all.extend(args);
        run(&all)
    };
    for (args, code, says) in [
        (&["--set", "freq.governer=performance"][..], 7, "did you mean freq.governor?"),
        (&["--set", "freq.governor=ondemand"], 7, "is none of performance, powersave"),
        (&["--set", "idle.state.C7=off"], 7, "did you mean idle.state.C"),
        (&["--max-latency", "50"], 2, "has no unit"),
        (&["--max-latency", "1us"], 7, "poll"),
        (&["latancy"], 2, "did you mean latency?"),
        (&["./no-such-profile.toml"], 4, "no-such-profile.toml"),
        (&["--set", "freq.governor"], 2, "write NAME=VALUE"),
        (&["--boot-arg", "a b"], 2, "a b"),
        (&["--boot-arg", "systemd.debug-shell"], 7, "say --any-boot-argument"),
        (&["--boot-arg", "init=/bin/sh", "--any-boot-argument"], 2, "decides whether the machine boots"),
        (&["--cpus", "0", "--node", "0", "latency"], 2, "cannot be used"),
        (&[], 2, "say what is wanted"),
    ] {
        let said = plan(args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(format!("{}{}", said.out, said.err).contains(says), "{args:?}: {said:?}");
    }
}

#[test]
fn what_changes_nothing_says_so_first_and_prices_are_of_the_value_asked_for() {
    let file = host("clx2s0");
    let plan = |what: &[&str]| {
        let mut all = vec!["tune", "plan", "--host", file.to_str().unwrap()];
        all.extend(what);
        let said = run(&all);
        assert_eq!(said.code, Some(0), "{what:?}: {said:?}");
        said.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for nothing in [&["--max-latency", "1s"][..], &["--max-latency", "none"], &["--set", "freq.boost=on"]] {
        let said = plan(nothing);
        assert!(said.starts_with("No effect: this plan changes nothing here. Plan "), "{said}");
        assert!(!said.contains(" price ") && !said.contains(" risk "), "{said}");
    }
    assert!(plan(&["--max-latency", "1s"]).contains("No effect: it excludes no idle state"));
    let poll = plan(&["--max-latency", "poll"]);
    assert!(poll.contains("price idle CPUs spin on all 96 CPUs: full power, no turbo headroom"), "{poll}");
    let limit = plan(&["--max-latency", "20us"]);
    assert!(limit.contains("price C6 (92us) no longer entered on all 96 CPUs: more watts when idle"), "{limit}");
    let turbo = plan(&["--set", "freq.boost=off"]);
    assert!(turbo.contains("price 3.1GHz -> 2.4GHz on all cores, 3.9GHz -> 2.4GHz on few"), "{turbo}");
    let refused = run(&[
        "tune",
        "plan",
        "--set",
        "freq.governor=performance",
        "--set",
        "freq.epp=power",
        "--host",
        file.to_str().unwrap(),
    ]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(
        refused.out.contains("EBUSY") && refused.out.contains("freq.governor=powersave with it"),
        "{}",
        refused.out
    );
}

#[test]
fn nobody_may_look_and_is_told_what_changing_needs() {
    if !is_root() {
        return;
    }
    let as_nobody = |args: &[&str]| said(wakewatt(args).uid(NOBODY).gid(NOBODY));
    assert_eq!(
        as_nobody(&[
            "tune",
            "plan",
            "--set",
            "idle.governor=menu",
            "--host",
            host("vm-haltpoll-2cpu").to_str().unwrap()
        ])
        .code,
        Some(0)
    );
    let refused = as_nobody(&["tune", "apply", "--set", "idle.governor=menu"]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(refused.err.contains("use sudo"), "{refused:?}");
}

/// Everything that tune may change on this kind of machine, but for the journals themselves.
fn settings() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut read = |path: String| {
        if let Ok(text) = fs::read_to_string(&path) {
            all.insert(path, text);
        }
    };
    read("/sys/devices/system/cpu/cpuidle/current_governor".into());
    read("/proc/sys/kernel/numa_balancing".into());
    for cpu in 0..64 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        read(format!("{folder}/power/pm_qos_resume_latency_us"));
        (0..10).for_each(|state| read(format!("{folder}/cpuidle/state{state}/disable")));
    }
    all.insert("holder".into(), format!("{:?}", holders()));
    all
}

/// Command lines of living holders.
fn holders() -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| fs::read(e.path().join("cmdline")).ok());
    let words = lines.map(|l| String::from_utf8_lossy(&l).replace('\0', " ").trim().to_string());
    words.filter(|l| l.contains("wakewatt hold ")).collect()
}

fn journals() -> Vec<String> {
    let names = fs::read_dir(STATE_DIR).into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.ends_with(".json")).collect()
}

/// The deepest idle state's name, as a setting.
fn deepest() -> String {
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let last = (0..10).take_while(|n| Path::new(&format!("{folder}/state{n}/name")).exists()).last().unwrap();
    format!("idle.state.{}", fs::read_to_string(format!("{folder}/state{last}/name")).unwrap().trim())
}

/// Whatever a test that fails leaves applied must not spoil the next one.
struct Clean;

impl Drop for Clean {
    fn drop(&mut self) {
        run(&["tune", "undo", "--all", "--force"]);
    }
}

fn apply(args: &[&str]) -> Said {
    let mut all = vec!["tune", "apply"];
    all.extend(args);
    run(&all)
}

#[test]
fn live_governor_states_and_limit_are_set_hold_and_go_back() {
    let Some(_machine) = machine("tune::live_governor_states_and_limit_are_set_hold_and_go_back") else { return };
    let _clean = Clean;
    let before = settings();
    let deep = format!("{}=off", deepest());
    let done = apply(&["--max-latency", "poll", "--set", "idle.governor=menu", "--set", &deep, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = assert_valid(&validator("tune-apply"), "apply", &done.out);
    let id = document["id"].as_str().unwrap().to_string();
    assert_eq!(holders().len(), 1, "{:?}", holders());
    // The kernel really does as told: with sleep forbidden nothing but polling is entered.
    let entered = || -> u64 {
        let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1/usage");
        (0..64).filter_map(|cpu| fs::read_to_string(file(cpu)).ok()?.trim().parse::<u64>().ok()).sum()
    };
    std::thread::sleep(Duration::from_millis(50));
    let n_before = entered();
    std::thread::sleep(Duration::from_millis(500));
    let n_entered = entered() - n_before;
    assert!(n_entered <= 2, "{n_entered} entries into a state that is off");
    let status = run(&["tune", "status", "--json"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    assert_valid(&validator("tune-status"), "status", &status.out);
    let verify = run(&["tune", "verify"]);
    assert!(verify.code == Some(0) && verify.out.contains("Measured now:"), "{verify:?}");
    // Somebody turns it back: status says so and ends with 6.
    fs::write("/sys/devices/system/cpu/cpuidle/current_governor", "ladder").unwrap();
    let drift = run(&["tune", "status"]);
    assert!(drift.code == Some(6) && drift.out.contains("should be menu, is ladder"), "{drift:?}");
    let undone = run(&["tune", "undo", &id]);
    assert!(undone.code == Some(5) && undone.err.contains("somebody else"), "{undone:?}");
    let forced = run(&["tune", "undo", "--force"]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert_eq!((settings(), journals().len()), (before, 0));
}

#[test]
fn live_what_nobody_confirms_is_undone_and_what_is_confirmed_stays() {
    let Some(_machine) = machine("tune::live_what_nobody_confirms_is_undone_and_what_is_confirmed_stays") else {
        return;
    };
    let _clean = Clean;
    let before = settings();
    let arguments = ["--set", "idle.governor=menu", "--max-latency", "poll", "--confirm-within", "2s"];
    assert_eq!(apply(&arguments).code, Some(0));
    assert_ne!(settings(), before);
    assert!(
        wait_until(Duration::from_secs(120), || settings() == before && journals().is_empty()),
        "not undone in time"
    );
    assert_eq!(apply(&arguments).code, Some(0));
    assert_eq!(run(&["tune", "confirm"]).code, Some(0));
    std::thread::sleep(Duration::from_secs(3));
    assert_ne!(settings(), before, "undone though confirmed");
    assert_eq!(run(&["tune", "undo"]).code, Some(0));
    assert_eq!((settings(), journals().len()), (before, 0));
}

#[test]
fn live_guards_take_a_regression_back() {
    let Some(_machine) = machine("tune::live_guards_take_a_regression_back") else { return };
    let _clean = Clean;
    let before = settings();
    let refused = apply(&["--set", "idle.governor=menu", "--guard", "false"]);
    assert!(refused.code == Some(7) && refused.err.contains("fails before anything is changed"), "{refused:?}");
    // Green until the governor changes.
    let guard =
        "grep -q haltpoll /sys/devices/system/cpu/cpuidle/current_governor || { echo governor gone >&2; false; }";
    let taken_back = apply(&["--set", "idle.governor=menu", "--guard", guard, "--guard-for", "3s"]);
    assert!(taken_back.code == Some(7) && taken_back.out.contains("governor gone"), "{taken_back:?}");
    assert_eq!((settings(), journals().len()), (before.clone(), 0));
    // Polling makes wake-ups shorter, which no guard minds.
    let kept = apply(&["--max-latency", "poll", "--guard-wakeup"]);
    assert!(kept.code == Some(0) && kept.out.contains("wake-up median"), "{kept:?}");
    // Taking the limit away makes them longer, which this guard does; a busy machine hides it now and then.
    let longer = (0..5).map(|_| apply(&["--max-latency", "none", "--guard-wakeup"])).find(|said| {
        let is_taken_back = said.code == Some(7);
        if !is_taken_back {
            run(&["tune", "undo"]);
        }
        is_taken_back
    });
    let longer = longer.expect("five times no longer wake-ups without the limit");
    assert!(longer.out.replace("\n  ", " ").contains("longer beyond doubt"), "{longer:?}");
    assert_eq!(run(&["tune", "undo", "--all"]).code, Some(0));
    assert_eq!((settings(), journals().len()), (before, 0));
}

#[test]
fn live_a_second_instance_waits_its_turn() {
    let Some(_machine) = machine("tune::live_a_second_instance_waits_its_turn") else { return };
    let _clean = Clean;
    let before = settings();
    let mut first = Command::new(PROGRAM)
        .args(["tune", "apply", "--set", "idle.governor=menu", "--guard", "true", "--guard-for", "3s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(Duration::from_secs(120), || !journals().is_empty()));
    let second = apply(&["--set", "idle.governor=ladder"]);
    assert!(second.code == Some(8) && second.err.contains("another wakewatt"), "{second:?}");
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(run(&["tune", "undo"]).code, Some(0));
    assert_eq!((settings(), journals().len()), (before, 0));
}

#[test]
fn live_killed_at_any_moment() {
    let Some(_machine) = machine("tune::live_killed_at_any_moment") else { return };
    let _clean = Clean;
    let before = settings();
    let deep = format!("{}=off", deepest());
    let arguments = [
        "tune",
        "apply",
        "--set",
        "idle.governor=menu",
        "--set",
        &deep,
        "--set",
        "qos.cpu=poll",
        "--max-latency",
        "poll",
    ];
    let began = Instant::now();
    assert_eq!(run(&arguments).code, Some(0));
    let whole = began.elapsed();
    assert_eq!(run(&["tune", "undo"]).code, Some(0));
    let (mut n_applied, mut n_back, mut n_recovered) = (0, 0, 0);
    const N: u32 = 40;
    for n in 0..N {
        let mut child = Command::new(PROGRAM).args(arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * n / N);
        // Every other time its guard dies first, so that only the journal is left.
        if n % 2 == 1 {
            let _ = Command::new("pkill").args(["-9", "-f", "wakewatt guard"]).status();
        }
        let _ = child.kill();
        let _ = child.wait();
        let quiet = wait_until(Duration::from_secs(3), || settings() == before && journals().is_empty());
        if quiet {
            n_back += 1;
            continue;
        }
        let said = run(&["recover"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        if journals().is_empty() {
            n_recovered += 1;
        } else {
            n_applied += 1;
            assert_eq!(run(&["tune", "status"]).code, Some(0), "an applied transaction holds");
            assert_eq!(run(&["tune", "undo"]).code, Some(0));
        }
        assert_eq!((settings(), journals().len()), (before.clone(), 0), "kill {n}");
    }
    println!(
        "{N} kills over {whole:?}: {n_back} taken back by the guard or not begun, {n_recovered} by recover, {n_applied} had been applied"
    );
}

#[test]
fn live_no_place_for_the_journal_no_change() {
    let Some(_machine) = machine("tune::live_no_place_for_the_journal_no_change") else { return };
    let _clean = Clean;
    let before = settings();
    let in_namespace = |mount: &str| {
        let script =
            format!("mkdir -p /var/lib/wakewatt && {mount} && exec {PROGRAM} tune apply --set idle.governor=menu");
        said(Command::new("unshare").args(["-m", "sh", "-c", &script]).stdin(Stdio::null()))
    };
    let full = in_namespace(
        "mount -t tmpfs -o size=8k none /var/lib/wakewatt && mkdir /var/lib/wakewatt/open && (cat /dev/zero > /var/lib/wakewatt/fill; true) 2>/dev/null",
    );
    assert!(full.code == Some(4) && full.err.contains("nothing is changed"), "{full:?}");
    let read_only = in_namespace("mount -t tmpfs -o ro none /var/lib/wakewatt");
    assert!(read_only.code == Some(7) && read_only.err.contains("nothing is changed"), "{read_only:?}");
    let read_only_sys = in_namespace("mount -o remount,bind,ro /sys 2>/dev/null || mount -o bind,ro /sys /sys");
    assert!(read_only_sys.code == Some(7), "{read_only_sys:?}");
    assert_eq!((settings(), journals().len()), (before, 0));
}
