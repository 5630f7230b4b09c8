//! The main job on the machine this runs on: settings really turned, processes really killed.
//!
//! Only with `WAKEWATT_LIVE=1` and as root, because these tests keep CPUs busy for minutes and change settings (and put
//! them back, killed or not: that is what is tested). Otherwise each says on standard error that it was skipped and why.
//!
//! `WAKEWATT_LIVE=1 cargo test -p wakewatt --test it live`

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, is_root, said, wait_until, wakewatt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wakewatt_core::units::LatencyLimit;
use wakewatt_testing::{Lacks, skipped};
use wakewatt_tune::journal::STATE_DIR;
use wakewatt_tune::knobs::qos_global::GlobalLimit;

/// One live test at a time; they all disturb the same machine. The file keeps out those of another checkout.
static MACHINE: Mutex<()> = Mutex::new(());

/// The machine to oneself, if this is to run at all.
pub fn machine(test: &str) -> Option<(MutexGuard<'static, ()>, fs::File)> {
    if std::env::var("WAKEWATT_LIVE").is_ok_and(|v| v == "1") && is_root() {
        let here = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = fs::File::create(std::env::temp_dir().join("wakewatt-live-tests.lock")).unwrap();
        file.lock().unwrap();
        return Some((here, file));
    }
    let lacks = if is_root() { Lacks::Live } else { Lacks::Root };
    skipped(test, lacks, "needs WAKEWATT_LIVE=1 and root");
    None
}

fn limit_file(cpu: u32) -> PathBuf {
    PathBuf::from(wakewatt_core::facts::pm_qos::cpu_limit_path(cpu))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// What must be as it was: the limit in force, every CPU's own limit, no journal left.
pub fn state() -> Vec<(String, String)> {
    let held = GlobalLimit::hold(LatencyLimit::None).and_then(|limit| limit.effective());
    let mut state = vec![("global".to_string(), format!("{held:?}"))];
    state.extend((0..64).map(limit_file).filter(|f| f.exists()).map(|f| (f.display().to_string(), read(&f))));
    state.extend(journals().into_iter().map(|f| ("journal".to_string(), f.display().to_string())));
    state
}

fn journals() -> Vec<PathBuf> {
    fs::read_dir(STATE_DIR).into_iter().flatten().flatten().map(|e| e.path()).collect()
}

/// A per-CPU limit set by somebody else, as far as the program knows; put back whatever becomes of the test.
pub struct Limited {
    file: PathBuf,
    before: String,
}

impl Limited {
    /// Sets it.
    pub fn set(cpu: u32, value: &str) -> Limited {
        let file = limit_file(cpu);
        let before = read(&file);
        fs::write(&file, value).unwrap();
        Limited { file, before }
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        fs::write(&self.file, &self.before).unwrap();
    }
}

/// A running doctor that does not outlive the test.
struct Running(Child);

impl Running {
    fn doctor(more: &[&str]) -> Running {
        let mut command = wakewatt(&[&["doctor", "--quick", "--no-report", "--json", "--seed", "1"], more].concat());
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, signal: Signal) {
        signal_to(self.pid(), signal);
    }

    fn end(mut self) -> Said {
        let (out, err) = (self.0.stdout.take().unwrap(), self.0.stderr.take().unwrap());
        let out = std::io::read_to_string(out).unwrap();
        let err = std::io::read_to_string(err).unwrap();
        let code = self.0.wait().unwrap().code();
        assert!(!err.contains("panicked"), "{err}");
        Said { code, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal_to(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// The guard process of a doctor.
fn guard_of(parent: u32) -> Option<u32> {
    let is_it = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ppid = after_name.split_whitespace().nth(1).and_then(|p| p.parse().ok());
        ppid == Some(parent) && command.split(|b| *b == 0).any(|word| word == b"guard")
    };
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(is_it)
}

fn json(said: &Said) -> Value {
    assert_valid(&validator("doctor"), "doctor", &said.out)
}

fn not_done(document: &Value) -> String {
    document["evidence"]["not_done"].to_string()
}

/// Is the only thing a halt can cost here the hypervisor's? Then the effect is large and must be found.
fn is_haltpoll() -> bool {
    read(Path::new("/sys/devices/system/cpu/cpuidle/current_driver")) == "haltpoll"
}

#[test]
fn the_main_job_finds_the_cost_of_halting() {
    let Some(_machine) = machine("the_main_job_finds_the_cost_of_halting") else { return };
    let (before, start) = (state(), Instant::now());
    let said = Running::doctor(&[]).end();
    let took = start.elapsed();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(took < Duration::from_secs(60), "--quick took {took:?}");
    assert_eq!(state(), before);
    let document = json(&said);
    let run = &document["evidence"]["experiment"];
    assert!(run.is_object(), "no experiment: {}", not_done(&document));
    assert_eq!(run["before"], run["after"]);
    assert_eq!(run["seed"], 1);
    let primary = &run["metrics"][0]["id"];
    let blocks = run["blocks"].as_array().unwrap();
    let rejected: Vec<String> =
        blocks.iter().filter(|b| !b["is_rejected"].is_null()).map(|b| b["is_rejected"].to_string()).collect();
    let n_rejected = format!("{} of {} blocks did not count: {:?}", rejected.len(), blocks.len(), rejected.first());
    let effect = run["effects"].as_array().unwrap().iter().find(|e| &e["metric"] == primary);
    let effect = effect.unwrap_or_else(|| panic!("no whole round; is the machine quiet? {n_rejected}"));
    let _ = writeln!(std::io::stderr().lock(), "{took:?}; {n_rejected}; {}; {effect}", document["verdict"]);
    if is_haltpoll() {
        let (low, high) = (effect["ratio_low"].as_f64().unwrap(), effect["ratio_high"].as_f64().unwrap());
        assert!(low > 1.0 || high < 1.0, "the interval holds 1: {effect}");
        // With fewer rounds the exact test cannot exclude chance, however large the effect: other work kept the CPUs
        // busy and blocks did not count. The verdict then has to say so.
        let n_pairs = effect["n_pairs"].as_u64().unwrap();
        let is_proven = effect["verdict"] == "higher";
        assert!(
            is_proven || (n_pairs < 8 && document["verdict"].as_str().unwrap().contains("too few rounds")),
            "{effect}"
        );
    }
}

#[test]
fn an_interrupt_puts_back_and_prints_what_is_known() {
    let Some(_machine) = machine("an_interrupt_puts_back_and_prints_what_is_known") else { return };
    let before = state();
    let doctor = Running::doctor(&[]);
    std::thread::sleep(Duration::from_secs(8));
    doctor.signal(Signal::INT);
    let start = Instant::now();
    let said = doctor.end();
    assert!(start.elapsed() < Duration::from_secs(120), "it took {:?} to stop", start.elapsed());
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(state(), before);
    let document = json(&said);
    assert!(not_done(&document).contains("interrupted"), "{}", not_done(&document));
    assert!(!document["evidence"]["wakeups"].as_array().unwrap().is_empty());
}

/// A control group of its own, in the hierarchy of version 2.
struct Group(PathBuf);

impl Group {
    fn make(name: &str) -> Option<Group> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists())?;
        let group = Group(root.join(format!("wakewatt-{name}-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        group.0.join("cgroup.freeze").exists().then_some(group)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.freeze"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// A container is paused and goes on: no wake-up of seconds is taken for the machine's, and settings are put back.
#[test]
fn a_run_that_is_frozen_and_thawed_ends_as_any_other() {
    let name = "a_run_that_is_frozen_and_thawed_ends_as_any_other";
    let Some(_machine) = machine(name) else { return };
    let Some(group) = Group::make("frozen") else {
        return skipped(name, Lacks::Here, "no control groups of version 2 to freeze");
    };
    let before = state();
    let doctor = Running::doctor(&[]);
    group.write("cgroup.procs", &doctor.pid().to_string());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(4));
        group.write("cgroup.freeze", "1");
        std::thread::sleep(Duration::from_secs(3));
        group.write("cgroup.freeze", "0");
    }
    let said = doctor.end();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(state(), before);
    let document = json(&said);
    let blocks = document["evidence"]["experiment"]["blocks"].as_array().unwrap();
    let medians: Vec<f64> =
        blocks.iter().filter(|b| b["is_rejected"].is_null()).filter_map(|b| b["values"][0].as_f64()).collect();
    assert!(medians.len() >= 24, "{} of {} measurements count", medians.len(), blocks.len());
    assert!(medians.iter().all(|ns| *ns < 1e8), "{medians:?}");
}

/// The same of `experiment`, whose variants and workload are the plan's.
#[test]
fn an_experiment_that_is_frozen_and_thawed_ends_as_any_other() {
    let name = "an_experiment_that_is_frozen_and_thawed_ends_as_any_other";
    let Some(_machine) = machine(name) else { return };
    let Some(group) = Group::make("frozen-experiment") else {
        return skipped(name, Lacks::Here, "no control groups of version 2 to freeze");
    };
    let (dir, before) = (tempfile::tempdir().unwrap(), state());
    let run_dir = dir.path().join("run");
    let mut command = wakewatt(&["experiment", "idle", "--json", "--seed", "1", "--budget", "60s", "--run-dir"]);
    let experiment = Running(command.arg(&run_dir).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    group.write("cgroup.procs", &experiment.pid().to_string());
    // Once while it is prepared and twice while it measures.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(4));
        group.write("cgroup.freeze", "1");
        std::thread::sleep(Duration::from_secs(3));
        group.write("cgroup.freeze", "0");
    }
    let said = experiment.end();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(state(), before);
    let document = assert_valid(&validator("experiment"), "experiment", &said.out);
    let blocks = document["run"]["blocks"].as_array().unwrap();
    let values: Vec<f64> =
        blocks.iter().filter(|b| b["is_rejected"].is_null()).filter_map(|b| b["values"][0].as_f64()).collect();
    assert!(values.len() * 2 >= blocks.len() && !values.is_empty(), "{} of {} count", values.len(), blocks.len());
    assert!(values.iter().all(|ns| *ns < 1e8), "{values:?}");
}

/// Waits until the experiment has lifted the limit, so that a kill hits it at the worst moment.
fn wait_for_lifted(doctor: &Running) -> u32 {
    let file = limit_file(1);
    let is_lifted = wait_until(Duration::from_secs(120), || read(&file) == "0");
    assert!(is_lifted, "the limit was not lifted within 30 s");
    guard_of(doctor.pid()).expect("there is a guard process")
}

#[test]
fn a_limit_found_is_an_arm_and_survives_kill_9() {
    let Some(_machine) = machine("a_limit_found_is_an_arm_and_survives_kill_9") else { return };
    if !limit_file(1).exists() {
        return skipped("a_limit_found_is_an_arm_and_survives_kill_9", Lacks::Here, "CPU 1 has no latency limit file");
    }
    let untouched = state();
    let limited = Limited::set(1, "30");
    let before = state();

    // Killed while the limit is lifted: the guard puts it back.
    let doctor = Running::doctor(&[]);
    wait_for_lifted(&doctor);
    doctor.signal(Signal::KILL);
    let start = Instant::now();
    assert!(wait_until(Duration::from_secs(120), || state() == before), "after kill -9: {:?}", state());
    let _ = writeln!(std::io::stderr().lock(), "the guard took {:?}", start.elapsed());
    drop(doctor);

    // Killed together with its guard: the journal stays, is named, forbids another experiment, and is undone.
    let doctor = Running::doctor(&[]);
    let guard = wait_for_lifted(&doctor);
    signal_to(guard, Signal::KILL);
    doctor.signal(Signal::KILL);
    drop(doctor);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((read(&limited.file).as_str(), journals().len()), ("0", 1), "the kill came too late");
    let second = Running::doctor(&[]).end();
    let document = json(&second);
    assert!(document["evidence"]["experiment"].is_null());
    assert!(not_done(&document).contains("wakewatt recover"), "{}", not_done(&document));
    assert_eq!(read(&limited.file), "0", "a refused experiment changes nothing");
    let recovered = said(&mut wakewatt(&["recover"]));
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.out.contains("put back"), "{recovered:?}");
    assert_eq!(state(), before);
    assert!(said(&mut wakewatt(&["recover"])).out.contains("Nothing to recover"));

    // And left alone: the arm is there and all is put back.
    let doctor = Running::doctor(&[]);
    wait_for_lifted(&doctor);
    std::thread::sleep(Duration::from_secs(6));
    doctor.signal(Signal::TERM);
    let said = doctor.end();
    assert_eq!(said.code, Some(130), "{}", said.err);
    let arms = json(&said)["evidence"]["experiment"]["arms"].clone();
    assert!(arms.as_array().unwrap().iter().any(|a| a["id"] == "lifted"), "{arms}");
    assert_eq!(state(), before);
    drop(limited);
    assert_eq!(state(), untouched);
}

#[test]
fn two_doctors_do_not_disturb_each_other() {
    let Some(_machine) = machine("two_doctors_do_not_disturb_each_other") else { return };
    let before = state();
    let first = Running::doctor(&[]);
    std::thread::sleep(Duration::from_secs(4));
    let second = Running::doctor(&[]).end();
    let document = json(&second);
    assert!(not_done(&document).contains("another wakewatt is experimenting"), "{}", not_done(&document));
    assert!(document["evidence"]["experiment"].is_null());
    first.signal(Signal::INT);
    assert_eq!(first.end().code, Some(130));
    assert_eq!(state(), before);
}

#[test]
fn measure_documents_are_valid() {
    let Some(_machine) = machine("measure_documents_are_valid") else { return };
    let validator = validator("measure");
    for args in [
        &["measure", "wakeup", "--duration", "300ms", "--json"][..],
        &["measure", "network", "--duration", "300ms", "--json"],
        &["measure", "cores", "--json"],
        &["measure", "frequency", "--work", "2ms", "--json"],
        &["measure", "wakeup", "--cpu", "0", "--kind", "timer", "--gap", "5ms", "--duration", "300ms", "--json"],
    ] {
        let said = said(&mut wakewatt(args));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_valid(&validator, &args.join(" "), &said.out);
    }
    let none = said(&mut wakewatt(&["measure", "wakeup", "--cpu", "8191", "--kind", "timer", "--duration", "50ms"]));
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.out.contains("not measured: timer wake-up of CPU 8191"), "{none:?}");
}

/// Every limit and every state's switch.
fn idle_settings() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = (0..64).map(limit_file).collect();
    for cpu in 0..64 {
        files.extend((0..16).map(|n| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{n}/disable").into()));
    }
    files.into_iter().filter(|f| f.exists()).map(|f| (f.display().to_string(), read(&f))).collect()
}

#[test]
fn one_idle_state_at_a_time_is_put_back_killed_or_not() {
    let test = "one_idle_state_at_a_time_is_put_back_killed_or_not";
    let Some(_machine) = machine(test) else { return };
    if !Path::new("/sys/devices/system/cpu/cpu0/cpuidle/state1").exists() {
        return skipped(test, Lacks::Here, "this machine has no idle driver");
    }
    let (before, found) = (state(), idle_settings());
    let done = said(&mut wakewatt(&["measure", "idle", "--duration", "600ms", "--json"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    let costs = &assert_valid(&validator("measure"), "idle", &done.out)["idle_states"][0];
    assert!(costs["states"].as_array().unwrap().len() > 1 && costs["n_rounds"] == 6, "{costs}");
    assert_eq!((state(), idle_settings()), (before.clone(), found.clone()));
    for signal in [Signal::KILL, Signal::INT] {
        let mut command = wakewatt(&["measure", "idle", "--duration", "10s", "--json"]);
        let run = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert!(wait_until(Duration::from_secs(120), || idle_settings() != found), "nothing was ever set");
        run.signal(signal);
        let said = run.end();
        assert!(
            wait_until(Duration::from_secs(120), || idle_settings() == found && state() == before),
            "{signal:?}: {said:?}"
        );
    }
}

/// Two network namespaces with a cable between them; gone with the value.
struct TwoHosts;

const NEAR: &str = "wakewatt-test-near";
const FAR: &str = "wakewatt-test-far";

impl TwoHosts {
    fn make() -> Result<TwoHosts, String> {
        let hosts = TwoHosts;
        for line in [
            format!("netns add {NEAR}"),
            format!("netns add {FAR}"),
            format!("link add wwnear netns {NEAR} type veth peer name wwfar netns {FAR}"),
            format!("-n {NEAR} addr add 10.217.0.1/24 dev wwnear"),
            format!("-n {FAR} addr add 10.217.0.2/24 dev wwfar"),
            format!("-n {NEAR} link set wwnear up"),
            format!("-n {FAR} link set wwfar up"),
        ] {
            let output = Command::new("ip").args(line.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
            if !output.status.success() {
                return Err(format!("ip {line}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(hosts)
    }

    fn command(namespace: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, crate::tool::PROGRAM]).args(args).stdin(Stdio::null());
        command
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        for namespace in [NEAR, FAR] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
        }
    }
}

#[test]
fn a_round_trip_to_another_host() {
    let Some(_machine) = machine("a_round_trip_to_another_host") else { return };
    let _hosts = match TwoHosts::make() {
        Ok(hosts) => hosts,
        Err(why) => return skipped("a_round_trip_to_another_host", Lacks::Here, &why),
    };
    let peer = "10.217.0.2:7117";
    // Nobody answers yet: it says so, in time, with the code for it.
    let silent = TwoHosts::command(NEAR, &["measure", "network", "--peer", peer, "--duration", "300ms"]);
    let silent = said({ silent }.env("COLUMNS", "100"));
    assert_eq!(silent.code, Some(3), "{silent:?}");
    assert!(silent.out.contains("not measured:"), "{silent:?}");
    let mut respond = TwoHosts::command(FAR, &["respond", "--listen", peer, "--for", "20s"]);
    let _respond = Running(respond.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    let said =
        said(&mut TwoHosts::command(NEAR, &["measure", "network", "--peer", peer, "--duration", "1s", "--json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let document = assert_valid(&validator("measure"), "network", &said.out);
    let samples = document["network"].as_array().unwrap();
    assert_eq!(samples.len(), 2, "{}", document["not_done"]);
    for sample in samples {
        assert_eq!(sample["peer"], peer);
        assert!(sample["round_trip"]["n"].as_u64().unwrap() > 300, "{}", sample["round_trip"]["n"]);
        assert!(!sample["split"].is_null(), "neither a split nor the reason why not");
    }
}

/// Taking the lock twice once made this command refuse itself, and no test noticed.
#[test]
fn measuring_idle_states_waits_for_nobody_and_says_who_is_in_the_way() {
    let test = "measuring_idle_states_waits_for_nobody_and_says_who_is_in_the_way";
    let Some(_machine) = machine(test) else { return };
    if !Path::new("/sys/devices/system/cpu/cpu0/cpuidle/state1").exists() {
        return skipped(test, Lacks::Here, "this machine has no idle driver");
    }
    let (before, found) = (state(), idle_settings());
    let mut command = wakewatt(&["measure", "idle", "--duration", "20s", "--json"]);
    let first = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    // Not a changed setting: the first arm may be what was found.
    assert!(wait_until(Duration::from_secs(120), || !journals().is_empty()), "no journal was ever opened");
    let second = said(&mut wakewatt(&["measure", "idle", "--duration", "300ms"]));
    assert_eq!(second.code, Some(8), "{second:?}");
    assert!(second.err.contains("another wakewatt"), "{second:?}");
    first.signal(Signal::INT);
    let first = first.end();
    assert_eq!(first.code, Some(130), "{first:?}");
    assert_eq!((state(), idle_settings()), (before.clone(), found.clone()));
    let third = said(&mut wakewatt(&["measure", "idle", "--duration", "300ms", "--kind", "timer", "--json"]));
    assert_eq!(third.code, Some(0), "the lock is free again: {third:?}");
    assert_eq!((state(), idle_settings()), (before, found));
}
