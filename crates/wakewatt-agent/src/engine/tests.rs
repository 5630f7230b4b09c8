//! The engine on trees that change under it.

use super::*;
use crate::history::Limits;
use crate::metric::{Metric, Sample, Value, names};
use std::fs;
use std::sync::mpsc::{Sender, channel};
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::watch::Sources;

/// An engine on a tree.
fn engine(root: &std::path::Path) -> Engine {
    Engine::open(Plan::of(Machine::Tree(root.into()), Sources::Quiet, "1")).unwrap()
}

/// One that keeps what it read, each second.
fn keeping_engine(root: &std::path::Path, history: &std::path::Path) -> Engine {
    put(root, "proc/stat", "cpu  1 0 0 900\ncpu0 1 0 0 900\n");
    let mut engine = engine(root);
    let kept = (history.to_path_buf(), Limits { most_bytes: 1 << 20, free_share: 0.0 });
    engine.history = Keeping::open(Some(&kept));
    (engine.plan.interval, engine.plan.history) = (Some(FRESH), Some(kept));
    engine
}

fn put(root: &std::path::Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn setting(page: &Page, name: &str) -> Option<String> {
    let settings = page.families.iter().find(|family| std::ptr::eq(family.metric, &names::SETTINGS))?;
    settings.samples[0].labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value.to_string())
}

#[test]
fn no_reading_is_kept_twice() {
    let (dir, history) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut engine = keeping_engine(dir.path(), history.path());
    assert!(engine.due() <= FRESH);
    // Read by whoever asked, half a second before the interval ends: that one is kept, and the next not before there can be another.
    engine.kept_at = Instant::now().checked_sub(FRESH).unwrap();
    assert!(engine.due().is_zero());
    // Fresh for as long as this test takes.
    engine.read_at = Instant::now() + 60 * FRESH;
    engine.keep();
    assert!(!engine.due().is_zero(), "the same again");
    let wall_ms = engine.now().clocks.wall_at_ns / 1_000_000;
    let bytes = fs::read(crate::history::segments(history.path()).remove(0)).unwrap();
    let mut reader = crate::history::Reader::new(&bytes).unwrap();
    assert_eq!(reader.next_moment().map(|moment| moment.wall_ms), Some(wall_ms), "when it was read");
}

#[test]
fn who_stops_it_finds_what_was_asked_answered_and_the_past_kept() {
    let (dir, history) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut engine = keeping_engine(dir.path(), history.path());
    engine.kept_at = Instant::now().checked_sub(FRESH).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (asks, asked) = tokio::sync::mpsc::channel(2);
        let (answer, answered) = tokio::sync::oneshot::channel();
        asks.try_send(Ask::Page(answer)).unwrap();
        asks.try_send(Ask::Stop).unwrap();
        engine.serve(asked, Pulse::of(None)).await.unwrap();
        assert!(!answered.await.unwrap().page().families.is_empty());
    });
    let bytes = fs::read(crate::history::segments(history.path()).remove(0)).unwrap();
    assert!(crate::history::Reader::new(&bytes).unwrap().next_moment().is_some());
    // Its folder is free for the next one.
    let again = Keeping::open(Some(&(history.path().to_path_buf(), Limits { most_bytes: 1 << 20, free_share: 0.0 })));
    assert_eq!(again.trouble(), None);
}

#[test]
fn where_nothing_is_kept_a_minute_goes_by_from_whatever_was_read() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "proc/stat", "cpu  1 0 0 900\ncpu0 1 0 0 900\n");
    let mut engine = engine(dir.path());
    let ago = |s: u32| Instant::now().checked_sub(s * FRESH).unwrap();
    // Somebody asked ten seconds ago; nobody has kept anything for an hour.
    (engine.read_at, engine.kept_at) = (ago(10), ago(3600));
    assert!((40 * FRESH..=50 * FRESH).contains(&engine.due()), "{:?}", engine.due());
    engine.read_at = ago(61);
    assert!(engine.due().is_zero());
    engine.plan.is_traced = true;
    (engine.read_at, engine.kept_at) = (ago(5), ago(5));
    assert!(engine.due() <= 5 * FRESH, "wake-ups are told by the ten seconds");
}

#[test]
fn smt_and_microcode_are_looked_at_again() {
    const CPU: &str = "sys/devices/system/cpu";
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| put(dir.path(), path, text);
    put(&format!("{CPU}/online"), "0\n");
    put(&format!("{CPU}/present"), "0\n");
    put(&format!("{CPU}/smt/active"), "1\n");
    put(&format!("{CPU}/cpu0/cpuidle/state0/name"), "C1\n");
    put("proc/stat", "cpu  1 0 0 900\ncpu0 1 0 0 900\n");
    put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmicrocode\t: 0x10\n");
    let mut engine = engine(dir.path());
    let seen = |engine: &Engine| (setting(engine.page(), "smt"), setting(engine.page(), "microcode"));
    assert_eq!(seen(&engine), (Some("on".into()), Some("0x10".into())));
    put(&format!("{CPU}/smt/active"), "0\n");
    put(&format!("{CPU}/cpu0/microcode/version"), "0x12\n");
    engine.read();
    assert_eq!(seen(&engine).0.as_deref(), Some("on"), "not before a minute is over");
    engine.settings_at = None;
    engine.read();
    assert_eq!(seen(&engine), (Some("off".into()), Some("0x12".into())));
}

/// A number of a page.
fn number(page: &Page, metric: &Metric, labels: &[(&str, &str)]) -> Option<f64> {
    let family = page.families.iter().find(|family| std::ptr::eq(family.metric, metric))?;
    let has = |sample: &Sample, (name, value): &(&str, &str)| {
        sample.labels.iter().any(|label| (label.0, label.1.as_str()) == (*name, *value))
    };
    let found = family.samples.iter().find(|sample| labels.iter().all(|label| has(sample, label)))?;
    if let Value::Number(n) = found.value { Some(n) } else { None }
}

/// A driver with these states on one CPU, each entered so often.
fn drive(root: &std::path::Path, driver: &str, states: &[(&str, u32, u64)]) {
    const CPU: &str = "sys/devices/system/cpu";
    let _ = fs::remove_dir_all(root.join(format!("{CPU}/cpu0/cpuidle")));
    put(root, &format!("{CPU}/cpuidle/current_driver"), &format!("{driver}\n"));
    for (index, (name, exit_us, usage)) in states.iter().enumerate() {
        let at = format!("{CPU}/cpu0/cpuidle/state{index}");
        put(root, &format!("{at}/name"), &format!("{name}\n"));
        put(root, &format!("{at}/latency"), &format!("{exit_us}\n"));
        put(root, &format!("{at}/usage"), &format!("{usage}\n"));
        put(root, &format!("{at}/time"), &format!("{}\n", usage * 10));
    }
}

fn bare(root: &std::path::Path) {
    const CPU: &str = "sys/devices/system/cpu";
    put(root, &format!("{CPU}/online"), "0\n");
    put(root, &format!("{CPU}/present"), "0\n");
    put(root, "proc/stat", "cpu  1 0 0 900\ncpu0 1 0 0 900\ncpu1 1 0 0 900\n");
}

type Step = Box<dyn FnOnce(&mut Engine) + Send>;

/// An engine in a thread of its own, confined as an agent's is; the test's own may still write.
struct Apart(Sender<Step>);

impl Apart {
    fn open(root: &std::path::Path, sources: Sources) -> Apart {
        let plan = Plan { confine: Some(Confine::Full), ..Plan::of(Machine::Tree(root.into()), sources, "1") };
        let (steps, taken) = channel::<Step>();
        std::thread::spawn(move || {
            let mut engine = Engine::open(plan).unwrap();
            taken.into_iter().for_each(|step| step(&mut engine));
        });
        let apart = Apart(steps);
        apart.with(|engine| assert!(engine.confined().is_some_and(|all| !all.guards.is_empty())));
        apart
    }

    fn with<T: Send + 'static>(&self, step: impl FnOnce(&mut Engine) -> T + Send + 'static) -> T {
        let (answer, answered) = channel();
        self.0.send(Box::new(move |engine| drop(answer.send(step(engine))))).unwrap();
        answered.recv().unwrap()
    }

    fn read(&self) {
        self.with(Engine::read);
    }

    /// As a minute later.
    fn look(&self) {
        self.with(|engine| {
            engine.settings_at = None;
            engine.read();
        });
    }

    fn number(&self, metric: &'static Metric, labels: &'static [(&'static str, &'static str)]) -> Option<f64> {
        self.with(move |engine| number(engine.page(), metric, labels))
    }

    fn entries(&self, labels: &'static [(&'static str, &'static str)]) -> Option<f64> {
        self.number(&names::IDLE_ENTRIES, labels)
    }
}

const HALTPOLL: &[(&str, &str)] = &[("state", "haltpoll"), ("index", "1")];
const C1E: &[(&str, &str)] = &[("state", "C1E"), ("index", "1")];
const C6: &[(&str, &str)] = &[("state", "C6"), ("index", "2")];

#[test]
fn another_driver_begins_its_own_series() {
    let dir = tempfile::tempdir().unwrap();
    let halting = |usage| drive(dir.path(), "haltpoll", &[("POLL", 0, 3), ("haltpoll", 1, usage)]);
    let idling =
        |n: u64| drive(dir.path(), "intel_idle", &[("POLL", 0, 3), ("C1E", 10, 500 + n), ("C6", 133, 700 + n)]);
    bare(dir.path());
    halting(100);
    let agent = Apart::open(dir.path(), Sources::Quiet);
    halting(104);
    agent.read();
    assert_eq!((agent.entries(HALTPOLL), agent.entries(C6)), (Some(4.0), None));
    idling(0);
    agent.look();
    idling(9);
    agent.read();
    assert_eq!(agent.entries(C1E), Some(9.0));
    assert_eq!((agent.entries(HALTPOLL), agent.entries(C6)), (Some(4.0), Some(9.0)), "what went keeps what it had");
    let claimed = |state| agent.number(&names::EXIT_LATENCY, state);
    assert_eq!((claimed(C6), claimed(HALTPOLL)), (Some(133e-6), None));
    // Back within a minute, with counts that are less: seen before they are counted.
    halting(110);
    agent.read();
    halting(111);
    agent.read();
    assert_eq!((agent.entries(HALTPOLL), agent.entries(C1E)), (Some(5.0), Some(9.0)));
    assert_eq!(agent.number(&names::STEPS_BACK, &[]), Some(0.0));
}

#[test]
fn what_comes_later_is_read() {
    const CPU: &str = "sys/devices/system/cpu";
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| put(dir.path(), path, text);
    bare(dir.path());
    put(&format!("{CPU}/cpuidle/current_driver"), "none\n");
    put("proc/sys/kernel/osrelease", "6.12.0\n");
    let agent = Apart::open(dir.path(), Sources::Package);
    assert_eq!(agent.number(&names::CPUS_ONLINE, &[]), Some(1.0));
    assert_eq!(agent.entries(C1E), None);
    drive(dir.path(), "intel_idle", &[("POLL", 0, 3), ("C1E", 10, 5)]);
    agent.look();
    assert_eq!(agent.entries(C1E), Some(0.0));
    // Each by itself: one would not be seen for the other.
    put(&format!("{CPU}/present"), "0-1\n");
    put(&format!("{CPU}/online"), "0-1\n");
    agent.look();
    assert_eq!(agent.number(&names::CPUS_ONLINE, &[]), Some(2.0));
    agent.look();
    let zone = "sys/class/powercap/intel-rapl:0";
    put(&format!("{zone}/name"), "package-0\n");
    put(&format!("{zone}/max_energy_range_uj"), "262143328850\n");
    put(&format!("{zone}/energy_uj"), "1000000\n");
    agent.look();
    assert_eq!(agent.number(&names::ENERGY, &[("zone", "intel-rapl:0")]), Some(0.0));
    put(&format!("{zone}/energy_uj"), "3000000\n");
    agent.look();
    assert_eq!(agent.number(&names::ENERGY, &[("zone", "intel-rapl:0")]), Some(2.0));
    put("sys/class/hwmon/hwmon0/name", "k10temp\n");
    put("sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    agent.look();
    assert_eq!(agent.number(&names::TEMPERATURE, &[]), Some(45.0));
    agent.look();
    put(&format!("{CPU}/cpufreq/policy0/scaling_governor"), "schedutil\n");
    put(&format!("{CPU}/cpu0/cpufreq/scaling_cur_freq"), "2000000\n");
    agent.look();
    assert_eq!(agent.number(&names::FREQUENCY, &[("stat", "mean")]), Some(2e9));
}

#[test]
fn a_state_that_comes_after_its_driver_is_found_a_minute_later() {
    let dir = tempfile::tempdir().unwrap();
    bare(dir.path());
    put(dir.path(), "sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n");
    let agent = Apart::open(dir.path(), Sources::Quiet);
    agent.look();
    put(dir.path(), "sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
    agent.look();
    // A sensor of a chip that is known already: no telltale.
    put(dir.path(), "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n");
    agent.look();
    assert_eq!(agent.number(&names::THROTTLES, &[("scope", "core")]), Some(0.0));
}

#[test]
fn pressure_is_read_with_every_reading() {
    let dir = tempfile::tempdir().unwrap();
    bare(dir.path());
    let waited = |us: u64| {
        let line = |share| format!("{share} avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
        put(dir.path(), "proc/pressure/cpu", &format!("{}{}", line("some"), line("full")));
    };
    waited(7_000_000);
    let agent = Apart::open(dir.path(), Sources::Quiet);
    for (us, seconds) in [(7_250_000, 0.25), (8_000_000, 1.0)] {
        waited(us);
        agent.read();
        assert_eq!(agent.number(&names::PRESSURE, &[("resource", "cpu"), ("share", "full")]), Some(seconds));
    }
    assert_eq!(agent.number(&names::PRESSURE, &[("resource", "io")]), None);
}

#[test]
fn a_probe_that_is_not_attached_tells_no_payers() {
    let dir = tempfile::tempdir().unwrap();
    bare(dir.path());
    let mut engine = engine(dir.path());
    engine.plan.is_traced = true;
    engine.plan.payers = Some(NamedPayers { by: PayerKind::Pod, n_places: 1 });
    engine.feed = Err(Some("no BTF here".into()));
    engine.read();
    for source in ["trace", "payers"] {
        let labels = [("source", source), ("why", "no BTF here")];
        assert_eq!(number(engine.page(), &names::SOURCE_UP, &labels), Some(0.0), "{source}");
    }
    assert_eq!(engine.no_payers_because(), Some("no BTF here"));
    engine.plan.payers = None;
    assert_eq!(engine.no_payers_because(), None);
}

#[test]
fn energy_is_read_before_it_can_turn() {
    let dir = tempfile::tempdir().unwrap();
    bare(dir.path());
    for (zone, range) in [("0", "262143328850\n"), ("0:0", "65532610987\n")] {
        let at = format!("sys/class/powercap/intel-rapl:{zone}");
        put(dir.path(), &format!("{at}/name"), "package-0\n");
        put(dir.path(), &format!("{at}/max_energy_range_uj"), range);
        put(dir.path(), &format!("{at}/energy_uj"), "1\n");
    }
    let every = |sources| {
        let plan = Plan { interval: Some(3600 * FRESH), ..Plan::of(Machine::Tree(dir.path().into()), sources, "1") };
        let engine = Engine::open(plan).unwrap();
        assert!(engine.energy_due() <= energy_every(&engine.sampler.layout).unwrap_or(Duration::MAX));
        energy_every(&engine.sampler.layout).map(|every| every.as_secs())
    };
    assert_eq!((every(Sources::Package), every(Sources::Quiet)), (Some(32), None));
}
