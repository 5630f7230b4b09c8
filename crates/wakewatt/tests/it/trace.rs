//! `trace` on the machine this runs on: whom it counts, what ends it, what it leaves behind, and whether its numbers add up.
//!
//! Live, as in `live.rs`. Whether anything stays attached is asked of the kernel: the ids of the programs a running trace
//! holds are read from its `fdinfo`, and afterwards nobody may hold one of them.

use crate::live::machine;
use crate::schemas::{assert_valid, validator};
use crate::tool::{ForNobody, PROGRAM, Said, said, wait_until, wakewatt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wakewatt_testing::{Lacks, skipped};

/// Says a figure past the harness.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A process that does not outlive the test.
pub struct Running(pub Child);

impl Running {
    /// A trace, with what it says kept.
    pub fn trace(args: &[&str]) -> Running {
        let mut command = wakewatt(&[&["trace"], args].concat());
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn other(program: &str, args: &[&str]) -> Running {
        Running(Command::new(program).args(args).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits until the programs are attached; their ids.
    pub fn attached(&self) -> BTreeSet<u64> {
        let is_there = || programs(self.0.id()).len() >= 6;
        assert!(wait_until(Duration::from_secs(120), is_there), "nothing was attached");
        std::thread::sleep(Duration::from_millis(300));
        programs(self.0.id())
    }

    /// What it said, once it has ended.
    pub fn end(mut self) -> Said {
        let mut said = Said { code: None, out: String::new(), err: String::new() };
        self.0.stdout.take().unwrap().read_to_string(&mut said.out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut said.err).unwrap();
        said.code = self.0.wait().unwrap().code();
        assert!(!said.err.contains("panicked"), "{}", said.err);
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// eBPF programs and links that a process holds open, by program id.
fn programs(pid: u32) -> BTreeSet<u64> {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let id = |text: String| text.lines().find_map(|l| l.strip_prefix("prog_id:")?.trim().parse().ok());
    infos.filter_map(|e| id(fs::read_to_string(e.path()).ok()?)).collect()
}

/// Nobody holds one of these, and the kernel, where it can be asked, knows none of them.
pub fn assert_detached(ids: &BTreeSet<u64>) {
    let held = || {
        let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.flat_map(programs).any(|id| ids.contains(&id))
    };
    assert!(!ids.is_empty() && wait_until(Duration::from_secs(120), || !held()), "still held: {ids:?}");
    let known = |id: &u64| Command::new("bpftool").args(["prog", "show", "id", &id.to_string()]).output();
    if known(&0).is_err() {
        return skipped("the kernel's own list of programs", Lacks::Program("bpftool"), "bpftool is not installed");
    }
    // The kernel frees them a moment after the last descriptor is closed.
    let is_gone = || ids.iter().all(|id| !known(id).unwrap().status.success());
    assert!(wait_until(Duration::from_secs(120), is_gone), "still loaded: {ids:?}");
}

/// Threads that sleep and wake for as long as the value lives.
pub struct Storm {
    is_over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Storm {
    /// So many threads, each asleep for so long at a time.
    pub fn of(n: usize, pause: Duration) -> Storm {
        let is_over = Arc::new(AtomicBool::new(false));
        let one = |_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(pause);
                }
            })
        };
        Storm { threads: (0..n).map(one).collect(), is_over }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|t| drop(t.join()));
    }
}

fn document(said: &Said) -> Value {
    assert_valid(&validator("trace"), "trace", &said.out)
}

fn n_of(rows: &Value) -> u64 {
    rows.as_array().unwrap().iter().map(|r| r["n"].as_u64().unwrap()).sum()
}

fn names(document: &Value) -> Vec<String> {
    let processes = document["processes"].as_array().unwrap();
    processes.iter().map(|p| p["name"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_command_keeps_its_code_and_its_output_and_its_children_count() {
    let Some(_machine) = machine("a_command_keeps_its_code_and_its_output_and_its_children_count") else { return };
    let script = "for i in 1 2 3 4; do sleep 0.03; done; (sleep 0.03; sleep 0.03); echo out; exit 7";
    let path = "PATH=/usr/bin:/bin";
    let said = Running::trace(&["--", "env", path, "sh", "-c", script]).end();
    assert_eq!((said.code, said.out.as_str()), (Some(7), "out\n"), "{}", said.err);
    assert!(said.err.contains("command env") && said.err.contains("wake-ups"), "{}", said.err);
    // With --json the document is the last line, after what the command wrote.
    let said = Running::trace(&["--json", "--", "env", path, "sh", "-c", script]).end();
    let line = said.out.strip_prefix("out\n").unwrap();
    let document = assert_valid(&validator("trace"), "trace", line);
    assert_eq!(said.code, Some(7));
    assert!(n_of(&document["rows"]) >= 12, "6 sleeps and 7 forks: {}", document["rows"]);
    let names = names(&document);
    // Out of idle only, so on a busy machine fewer; but nobody else's.
    assert!(names.iter().all(|n| ["sh", "sleep", "env", "wakewatt"].contains(&n.as_str())), "{names:?}");
    // Threads too: both of a futex ping.
    let futex = ["measure", "wakeup", "--kind", "futex", "--cpu", "1", "--duration", "500ms"];
    let said = Running::trace(&[&["--json", "--", PROGRAM], &futex[..]].concat()).end();
    let document: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    assert!(n_of(&document["rows"]) > 400, "{}", n_of(&document["rows"]));
    // A signal ends it as in a shell, and a program that is none is a wrong command line.
    assert_eq!(Running::trace(&["--", "/bin/sh", "-c", "kill -9 $$"]).end().code, Some(137));
    let none = Running::trace(&["--", "/no/such/program"]).end();
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("/no/such/program") && none.err.contains("after --"), "{none:?}");
}

#[test]
fn a_trace_that_ends_before_its_command_does_not_end_the_command() {
    let Some(_machine) = machine("a_trace_that_ends_before_its_command_does_not_end_the_command") else { return };
    let trace = Running::trace(&["--for", "2s", "--", "/bin/sh", "-c", "sleep 5; echo late; exit 4"]);
    let ids = trace.attached();
    assert!(wait_until(Duration::from_secs(4), || programs(trace.0.id()).is_empty()), "still attached after --for");
    assert_detached(&ids);
    let said = trace.end();
    assert_eq!((said.code, said.out.as_str()), (Some(4), "late\n"), "{}", said.err);
}

#[test]
fn its_own_wake_ups_are_kept_apart() {
    let Some(_machine) = machine("its_own_wake_ups_are_kept_apart") else { return };
    let trace = Running::trace(&["--json", "--for", "2s", "--window", "100ms"]);
    let pid = trace.0.id();
    let document = document(&trace.end());
    assert!(document["own"]["n"].as_u64().unwrap() >= 15, "{}", document["own"]);
    assert!(document["windows"].as_array().unwrap().len() >= 15);
    assert!(document["processes"].as_array().unwrap().iter().all(|p| p["tgid"] != pid));
}

#[test]
fn who_is_gone_ends_the_trace_and_is_named() {
    let Some(_machine) = machine("who_is_gone_ends_the_trace_and_is_named") else { return };
    let start = Instant::now();
    let sleeper = Running::other("sleep", &["1.5"]);
    let ended = Running::trace(&["--json", "--for", "60s", "--pid", &sleeper.pid()]).end();
    assert!(start.elapsed() < Duration::from_secs(120));
    let why = document(&ended)["ended_early"].to_string();
    assert!(ended.code == Some(0) && why.contains(&format!("process {} ended", sleeper.pid())), "{why}");
    // Of two, the other one is still traced.
    let (short, long) = (Running::other("sleep", &["0.5"]), Running::other("sleep", &["60"]));
    let both = Running::trace(&["--json", "--for", "2s", "--pid", &short.pid(), "--pid", &long.pid()]).end();
    let document = document(&both);
    assert!(document["ended_early"].is_null(), "{}", document["ended_early"]);
    assert!(document["remarks"].to_string().contains(&format!("process {} ended", short.pid())), "{document}");
    // Never there, or no process of its own.
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        send.send(rustix::thread::gettid().as_raw_nonzero().to_string()).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    });
    let tid = receive.recv().unwrap();
    let of_thread = said(&mut wakewatt(&["trace", "--for", "1s", "--pid", &tid]));
    let own = std::process::id();
    assert_eq!(of_thread.code, Some(2), "{of_thread:?}");
    assert!(of_thread.err.contains(&format!("thread of process {own}")), "{of_thread:?}");
    for (args, word) in [
        (["--pid", "4194304"], "no such process"),
        (["--pid", "0"], "no such process"),
        (["--cgroup", "no/such/group"], "cgroup"),
        (["--cgroup", "/etc"], "cgroup"),
        (["--cgroup", "../../../proc"], "cgroup"),
    ] {
        let refused = said(&mut wakewatt(&[&["trace", "--for", "1s"], &args[..]].concat()));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(args[1]) && refused.err.contains(word), "{refused:?}");
    }
    thread.join().unwrap();
}

/// A cgroup of version 2; gone with the value.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cgroup_is_traced_with_what_is_below_it_until_it_vanishes() {
    let test = "a_cgroup_is_traced_with_what_is_below_it_until_it_vanishes";
    let Some(_machine) = machine(test) else { return };
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let Some(root) = roots.iter().map(Path::new).find(|r| r.join("cgroup.controllers").exists()) else {
        return skipped(test, Lacks::Here, "no cgroup version 2 is mounted");
    };
    let outer = Group(root.join("wakewatt-test"));
    let inner = Group(outer.0.join("inner"));
    if let Err(why) = fs::create_dir(&outer.0).and_then(|()| fs::create_dir(&inner.0)) {
        return skipped(test, Lacks::Here, &format!("{}: {why}", inner.0.display()));
    }
    let enter =
        format!("echo $$ > {}/cgroup.procs; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done", inner.0.display());
    let trace = Running::trace(&["--json", "--for", "60s", "--window", "200ms", "--cgroup", "wakewatt-test"]);
    trace.attached();
    let mut inside = Running::other("/bin/sh", &["-c", &enter]);
    inside.0.wait().unwrap();
    drop(inner);
    assert!(wait_until(Duration::from_secs(120), || fs::remove_dir(&outer.0).is_ok()));
    let said = trace.end();
    let document = document(&said);
    let why = document["ended_early"].to_string();
    assert!(said.code == Some(0) && why.contains("wakewatt-test was removed"), "{why}");
    assert!(n_of(&document["rows"]) >= 10, "{}", document["rows"]);
    let names = names(&document);
    assert!(names.iter().all(|n| n == "sh" || n == "sleep"), "others were counted: {names:?}");
}

#[test]
fn whatever_ends_it_nothing_stays_attached() {
    let Some(_machine) = machine("whatever_ends_it_nothing_stays_attached") else { return };
    let dir = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        let file = dir.path().join(format!("{}.wtrace", signal.as_raw()));
        let trace = Running::trace(&["--json", "--for", "60s", "--record", file.to_str().unwrap()]);
        let ids = trace.attached();
        std::thread::sleep(Duration::from_millis(500));
        trace.signal(signal);
        let start = Instant::now();
        let said = trace.end();
        assert!(start.elapsed() < Duration::from_secs(120), "{signal:?}: took {:?}", start.elapsed());
        assert_detached(&ids);
        if signal == Signal::KILL {
            assert_eq!((said.code, said.out.as_str()), (None, ""));
            continue;
        }
        assert_eq!(said.code, Some(130), "{said:?}");
        let document = document(&said);
        assert!(document["ended_early"].as_str().unwrap().starts_with("interrupted after"), "{document}");
        assert!(!document["states"].as_array().unwrap().is_empty());
    }
    // And as text.
    let trace = Running::trace(&["--for", "60s"]);
    trace.attached();
    trace.signal(Signal::TERM);
    let said = trace.end();
    assert!(
        said.code == Some(130) && said.out.contains("ended early") && said.out.contains("interrupted after"),
        "{said:?}"
    );
}

#[test]
fn a_command_is_ended_by_the_signal_too() {
    let Some(_machine) = machine("a_command_is_ended_by_the_signal_too") else { return };
    for more in [&[][..], &["--for", "100ms"]] {
        let trace = Running::trace(&[more, &["--", "sleep", "60"]].concat());
        std::thread::sleep(Duration::from_millis(1500));
        trace.signal(Signal::TERM);
        let start = Instant::now();
        let said = trace.end();
        assert!(start.elapsed() < Duration::from_secs(120));
        assert_eq!(said.code, Some(143), "{said:?}");
        assert!(said.err.contains("command sleep"), "{said:?}");
    }
}

/// Always: nothing is attached, only refused.
#[test]
fn without_privilege_it_says_which() {
    let nobody = ForNobody::new();
    for args in [&["trace", "--for", "1s"][..], &["trace", "--json", "--", "sh", "-c", "echo no"]] {
        let said = said(&mut nobody.command(args));
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
        // A build without clang has nothing to refuse.
        let is_built = !said.err.contains("built without eBPF");
        assert!(!is_built || said.err.contains("CAP_BPF and CAP_PERFMON are missing"), "{said:?}");
        assert!(!is_built || said.err.contains("setcap"), "what to try: {said:?}");
    }
}

#[test]
fn one_capability_is_named_alone_and_both_suffice() {
    let test = "one_capability_is_named_alone_and_both_suffice";
    let Some(_machine) = machine(test) else { return };
    let with = |capabilities: &str| {
        let mut command = Command::new("setpriv");
        let sets = format!("-all,{capabilities}");
        command.args(["--inh-caps", &sets, "--bounding-set", &sets, PROGRAM, "trace", "--for", "300ms"]);
        command.stdin(Stdio::null()).output().ok()
    };
    let Some(lacking) = with("+bpf") else {
        return skipped(test, Lacks::Program("setpriv"), "setpriv is not installed");
    };
    let err = String::from_utf8_lossy(&lacking.stderr).into_owned();
    if err.contains("setpriv:") {
        return skipped(test, Lacks::Here, &format!("setpriv knows no such capability: {err}"));
    }
    assert!(lacking.status.code() == Some(3) && err.contains("CAP_PERFMON is missing"), "{err}");
    let both = with("+bpf,+perfmon").unwrap();
    assert_eq!(both.status.code(), Some(0), "{}", String::from_utf8_lossy(&both.stderr));
}

/// A process may call itself anything, and a terminal may be narrow, dumb, or want no colour.
#[test]
fn a_name_does_not_reach_the_terminal_raw_and_lines_fit() {
    let Some(_machine) = machine("a_name_does_not_reach_the_terminal_raw_and_lines_fit") else { return };
    // The name shown is the thread group leader's: a process of that name is needed.
    let dir = tempfile::tempdir().unwrap();
    let named = dir.path().join("\u{1b}[31mred\u{7}");
    fs::copy("/bin/sleep", &named).unwrap();
    let script = format!("while :; do '{}' 0.01; done", named.display());
    let loops = Running::other("/bin/sh", &["-c", &script]);
    let mut victim = Command::new(&named);
    let victim = Running(victim.arg("60").spawn().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    for (environment, args) in [
        (&[("COLUMNS", "80")][..], &["--for", "1s", "--by-cpu"][..]),
        (&[("COLUMNS", "80"), ("TERM", "dumb")], &["--for", "1s", "--window", "200ms"]),
        (&[("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "xterm")], &["--for", "500ms"]),
        (&[("COLUMNS", "80")], &["--for", "300ms", "--pid", &victim.pid()]),
    ] {
        let said = said(wakewatt(&[&["trace"], args].concat()).envs(environment.iter().copied()));
        let control = said.out.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!((said.code, control), (Some(0), None), "{args:?}: {said:?}");
        for line in said.out.lines() {
            assert!(line.chars().count() <= 80, "{args:?}, {} columns: {line}", line.chars().count());
        }
    }
    let page = dir.path().join("t.html");
    let said = said(&mut wakewatt(&["trace", "--for", "500ms", "-o", page.to_str().unwrap()]));
    assert!(said.code == Some(0) && !fs::read_to_string(&page).unwrap().contains('\u{1b}'), "{said:?}");
    drop(loops);
}

/// Not a test: with the variable this process is the one that is traced below.
#[test]
fn helper_ping_pong() {
    let Ok(seconds) = std::env::var("WAKEWATT_PING_PONG") else { return };
    let event = || Arc::new(rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap());
    let pin = |cpu: usize| {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).unwrap();
    };
    let (there, back) = (event(), event());
    let wait = |event: &rustix::fd::OwnedFd| rustix::io::read(event, &mut [0u8; 8]).unwrap();
    let ring = |event: &rustix::fd::OwnedFd| rustix::io::write(event, &1u64.to_ne_bytes()).unwrap();
    let (theirs, mine) = (Arc::clone(&there), Arc::clone(&back));
    let other = usize::from(std::env::var_os("WAKEWATT_ON_ONE_CPU").is_none());
    std::thread::spawn(move || {
        pin(other);
        loop {
            wait(&theirs);
            ring(&mine);
        }
    });
    pin(0);
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    let (mut sum, mut n) = (Duration::ZERO, 0u32);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        ring(&there);
        wait(&back);
        sum += start.elapsed();
        n += 1;
    }
    println!("round trips {n} {}", (sum / n).as_nanos());
}

/// What a trace of the helper says; how many round trips it made, and their mean in nanoseconds, as it saw them.
fn ping_pong(more: &[(&str, &str)]) -> (Value, f64, f64) {
    let mut helper = Command::new(std::env::current_exe().unwrap());
    helper.args(["--exact", "trace::helper_ping_pong", "--nocapture"]).env("WAKEWATT_PING_PONG", "4");
    helper.envs(more.iter().copied());
    let helper = Running(helper.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let document = document(&said(&mut wakewatt(&["trace", "--json", "--for", "30s", "--pid", &helper.pid()])));
    let out = helper.end().out;
    let line = out.lines().find_map(|l| Some(l.split_once("round trips ")?.1)).unwrap_or_else(|| panic!("{out}"));
    let (n, mean) = line.split_once(' ').unwrap();
    (document, n.parse().unwrap(), mean.parse().unwrap())
}

/// Both threads may run on one CPU only, and each wakes the other while it runs there: counted when it is woken, once, and one in eight timed.
#[test]
fn who_is_bound_to_a_busy_cpu_is_counted_once() {
    let Some(_machine) = machine("who_is_bound_to_a_busy_cpu_is_counted_once") else { return };
    let (document, round_trips, _) = ping_pong(&[("WAKEWATT_ON_ONE_CPU", "1")]);
    let rows = document["rows"].as_array().unwrap();
    let busy = rows.iter().find(|row| row["class"] == "busy").unwrap_or_else(|| panic!("{rows:?}"));
    let [counted, timed] = [&busy["n"], &busy["latency"]["n"]].map(|n| n.as_f64().unwrap());
    // Two of them each time; the third, a timer's, only where others kept the CPU from idling. The trace begins a moment after the helper.
    assert!((1.0..=3.1).contains(&(counted / round_trips)), "{counted} in {round_trips} round trips");
    assert!((0.5..=2.0).contains(&(8.0 * timed / counted)), "{timed} of {counted} are timed");
}

/// One attempt: mean round trip as the application sees it, and the mean of the attributed legs, with their count.
fn one_round_trip() -> (f64, f64, f64) {
    let (document, n, round_trip) = ping_pong(&[]);
    let remote = |cpu: u64| {
        let rows = document["by_cpu"].as_array().unwrap();
        let legs: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r["cpu"] == cpu && r["class"] == "remote")
            .map(|r| (r["latency"]["n"].as_f64().unwrap(), r["latency"]["mean_ns"].as_f64().unwrap()))
            .collect();
        let n: f64 = legs.iter().map(|l| l.0).sum();
        (n, legs.iter().map(|l| l.0 * l.1).sum::<f64>() / n.max(1.0))
    };
    let (n0, leg0) = remote(0);
    let (n1, leg1) = remote(1);
    say(&format!(
        "round trip {:.1} us (n {n}); attributed {:.1} us: CPU 1 {:.1} us (n {n1}) + CPU 0 {:.1} us (n {n0}); {:.1} %",
        round_trip / 1e3,
        (leg0 + leg1) / 1e3,
        leg1 / 1e3,
        leg0 / 1e3,
        100.0 * (leg0 + leg1) / round_trip
    ));
    (round_trip, leg0 + leg1, n0.min(n1) / n)
}

#[test]
fn attribution_explains_a_round_trip() {
    let test = "attribution_explains_a_round_trip";
    let Some(_machine) = machine(test) else { return };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skipped(test, Lacks::Here, "needs two CPUs");
    }
    let mut ratios: Vec<f64> = Vec::new();
    for _ in 0..8 {
        let (round_trip, attributed, share) = one_round_trip();
        // Traced from a moment after its start; busy CPUs take legs out of the classes compared here.
        if share > 0.8 {
            ratios.push(attributed / round_trip);
        }
        if ratios.len() == 3 {
            break;
        }
    }
    if ratios.len() < 3 {
        return skipped(test, Lacks::Quiet, "other work kept the CPUs from idling, in eight tries");
    }
    ratios.sort_by(f64::total_cmp);
    assert!((ratios[1] - 1.0).abs() <= 0.15, "attributed / measured: {ratios:?}");
}
