//! Arms of a plan on a machine in memory: what is written per arm, what is skipped, limits held, all put back.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use wakewatt_core::samples::{IdleDelta, StateDelta};
use wakewatt_core::units::LatencyLimit;
use wakewatt_host::simulated::{Event, SimulatedMachine, cpus};
use wakewatt_lab::experiment::Arms;
use wakewatt_lab::plan;
use wakewatt_lab::setting_arms::{LimitHolder, ReadyArm, SettingArms, resolve_arms};
use wakewatt_tune::hands::Hands;
use wakewatt_tune::journal::{Journal, Owner};
use wakewatt_tune::knob::Host;
use wakewatt_tune::profile::{self, Profile};
use wakewatt_tune::session::Session;

const STATE: &str = "/var/lib/wakewatt/open";
const CPU: &str = "/sys/devices/system/cpu";
const PLAN: &str = r#"
format = 1
name = "test"
question = "Which?"
[[arm]]
name = "found"
[[arm]]
name = "fast"
profile = "k4-performance"
max_latency = "10us"
[[arm]]
name = "tuned"
profile = "k4-conservative"
[[arm]]
name = "no-c6"
set = ["idle.state.C6=off"]
[[arm]]
name = "missing"
set = ["freq.governor=interactive"]
[[arm]]
name = "stopped"
command = ["stop", "it"]
undo_command = ["start", "it"]
[[workload]]
kind = "wakeup"
"#;

fn machine() -> SimulatedMachine {
    let text = cpus::policies("acpi-cpufreq", &[]) + &cpus::idle_states();
    SimulatedMachine::new(&(text + "//- /dev/cpu_dma_latency\n2000000000\n"))
}

struct FakeLimit(Rc<RefCell<Option<LatencyLimit>>>);

impl LimitHolder for FakeLimit {
    fn hold(&mut self, limit: Option<LatencyLimit>) -> Result<(), String> {
        *self.0.borrow_mut() = limit;
        Ok(())
    }
    fn effective(&self) -> Option<String> {
        Some(self.0.borrow().map_or("none".into(), |l| l.to_string()))
    }
}

fn profile(name: &str) -> Result<Profile, String> {
    Profile::parse(profile::shipped(name)?)
}

fn hands(machine: &SimulatedMachine) -> Hands<'_> {
    Hands { source: machine, sink: machine, store: machine, runner: machine }
}

fn begin<'a>(
    machine: &'a SimulatedMachine,
    owner: &Owner,
    host: &Host<'_>,
    ready: Vec<ReadyArm>,
    limits: Box<dyn LimitHolder>,
) -> SettingArms<'a> {
    let sets = SettingArms::sets(&ready);
    let session = Session::begin(hands(machine), owner, Path::new(STATE), "test", sets, None, "").unwrap();
    SettingArms::new(ready, &host.facts, Some(session), limits)
}

#[test]
fn arms_write_what_they_say_and_everything_goes_back() {
    let machine = machine();
    let value = |path: &str| machine.snapshot("/var").get(&format!("{CPU}/{path}")).cloned().unwrap_or_default();
    let sys = || machine.snapshot("/var").into_iter().filter(|(p, _)| p.starts_with("/sys")).collect::<Vec<_>>();
    let before = sys();
    let host = Host::read(&machine);
    let (ready, skipped) = resolve_arms(&host, &plan::parse(PLAN, &profile).unwrap().arms);
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].what == "arm missing" && skipped[0].why.contains("interactive"), "{skipped:?}");
    assert_eq!(ready[0].arm.settings, ["nothing is written"]);
    let fast = ready[1].arm.settings.join("\n");
    assert!(
        fast.contains("freq.governor on CPUs 0-1: schedutil -> performance") && fast.contains("held open at 10 us"),
        "{fast}"
    );
    assert!(
        ready[2].arm.settings.join("\n").contains("up_threshold = 98 (appears once freq.governor=conservative is set)")
    );
    let held = Rc::new(RefCell::new(None));
    let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
    let limits = Box::new(FakeLimit(held.clone()));
    let mut arms = begin(&machine, &owner, &host, ready, limits);
    assert_eq!(Journal::all(&machine, Path::new(STATE)).0.len(), 1, "journaled before anything is written");
    assert_eq!(arms.rehearse().unwrap(), []);
    assert_eq!(sys(), before, "a rehearsal leaves nothing");
    arms.enter(1).unwrap();
    assert_eq!(value("cpufreq/policy1/scaling_governor"), "performance");
    assert_eq!(held.borrow().map(|l| l.to_string()).as_deref(), Some("10us"));
    arms.enter(2).unwrap();
    assert_eq!((value("cpufreq/conservative/down_threshold").as_str(), *held.borrow()), ("95", None));
    arms.enter(3).unwrap();
    assert_eq!(
        (value("cpu1/cpuidle/state2/disable").as_str(), value("cpufreq/policy0/scaling_governor").as_str()),
        ("1", "schedutil")
    );
    let idle = |n_usage: u64| {
        let state = |index, name: &str, n_usage| StateDelta { index, name: name.into(), n_usage, time_ns: 0 };
        [IdleDelta { cpu: 1, states: vec![state(1, "C1", 100), state(2, "C6", n_usage)] }]
    };
    assert_eq!(arms.contradiction(3, &idle(2)), None);
    assert!(arms.contradiction(3, &idle(40)).unwrap().contains("switched off"));
    assert!(arms.contradiction(1, &idle(40)).unwrap().contains("above 10us"));
    arms.enter(4).unwrap();
    arms.enter(0).unwrap();
    assert_eq!(sys(), before);
    arms.leave().unwrap();
    assert_eq!(machine.ran(), ["stop it", "start it", "stop it", "start it"]);
    assert_eq!((sys(), Journal::all(&machine, Path::new(STATE)).0.len()), (before, 0));
}

#[test]
fn an_arm_that_the_kernel_refuses_is_taken_out_at_the_rehearsal() {
    let machine = machine();
    machine.on(&format!("{CPU}/cpu1/cpuidle/state2/disable"), Event::Refuse("Operation not permitted".into()));
    let host = Host::read(&machine);
    let (ready, _) = resolve_arms(&host, &plan::parse(PLAN, &profile).unwrap().arms);
    let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
    let limits = Box::new(FakeLimit(Rc::default()));
    let mut arms = begin(&machine, &owner, &host, ready, limits);
    let failed = arms.rehearse().unwrap();
    assert!(
        failed.len() == 1 && failed[0].what == "arm no-c6" && failed[0].why.contains("not permitted"),
        "{failed:?}"
    );
    let ids: Vec<String> = arms.arms().into_iter().map(|a| a.id).collect();
    assert_eq!(ids, ["found", "fast", "tuned", "stopped"]);
    arms.enter(3).unwrap();
    assert_eq!(machine.ran().last().unwrap(), "stop it");
    arms.leave().unwrap();
}

#[test]
fn a_limit_that_excludes_nothing_is_no_arm() {
    let machine = machine();
    let plan = |limit: &str, more: &str| {
        format!(
            "format = 1\nname = \"t\"\nquestion = \"Q?\"\n[[arm]]\nname = \"found\"\n[[arm]]\nname = \"c1\"\n\
             max_latency = \"{limit}\"\n{more}\n[[workload]]\nkind = \"wakeup\"\n"
        )
    };
    let skipped = |text: &str| resolve_arms(&Host::read(&machine), &plan::parse(text, &profile).unwrap().arms).1;
    let wide = skipped(&plan("10ms", ""));
    assert!(wide.len() == 1 && wide[0].why.contains("the machine as it is"), "{wide:?}");
    assert_eq!(skipped(&plan("1us", "")), []);
    assert_eq!(skipped(&plan("10ms", "set = [\"idle.state.C6=off\"]")), [], "the setting makes it one");
}
