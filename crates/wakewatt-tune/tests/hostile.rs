//! What the kernel, the disk, other people and time do to a transaction.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop.

use std::path::Path;
use wakewatt_host::simulated::{Event, Fault, SimulatedMachine};
use wakewatt_host::sink::Sink;
use wakewatt_tune::apply::{ApplyError, Confirm, Order, Outcome, SettingResult, apply};
use wakewatt_tune::forget;
use wakewatt_tune::hands::Hands;
use wakewatt_tune::journal::{Command, Draft, Entry, Journal, Owner, OwnerNow, Phase};
use wakewatt_tune::put_back::undo_all;
use wakewatt_tune::recovery::{self, Due};
use wakewatt_tune::request::Request;
use wakewatt_tune::status::{Run, SettingVerdict, status};
use wakewatt_tune::undo::Undone;

const STATE: &str = "/var/lib/wakewatt/open";
const CPU: &str = "/sys/devices/system/cpu";

fn machine() -> SimulatedMachine {
    let mut text = format!("//- {CPU}/online\n0-1\n//- {CPU}/present\n0-1\n");
    for n in 0..2 {
        for (file, value) in [
            ("affected_cpus", n.to_string()),
            ("scaling_governor", "schedutil".into()),
            ("scaling_available_governors", "performance ondemand conservative schedutil".into()),
        ] {
            text += &format!("//- {CPU}/cpufreq/policy{n}/{file}\n{value}\n");
        }
        text += &format!("//- {CPU}/cpu{n}/power/pm_qos_resume_latency_us\n0\n");
        for (state, name, latency) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 170)] {
            for (file, value) in [
                ("name", name.to_string()),
                ("latency", latency.to_string()),
                ("residency", (3 * latency).to_string()),
                ("disable", "0".into()),
            ] {
                text += &format!("//- {CPU}/cpu{n}/cpuidle/state{state}/{file}\n{value}\n");
            }
        }
    }
    SimulatedMachine::new(&text)
}

fn hands(machine: &SimulatedMachine) -> Hands<'_> {
    Hands { source: machine, sink: machine, store: machine, runner: machine }
}

fn owner(machine: &SimulatedMachine) -> Owner {
    Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() }
}

fn order(requests: &[&str]) -> Order<'static> {
    Order {
        purpose: "test".into(),
        requests: requests.iter().map(|r| Request::parse(r).unwrap()).collect(),
        ..Order::default()
    }
}

fn run(machine: &SimulatedMachine, order: &Order<'_>) -> Result<Outcome, ApplyError> {
    apply(hands(machine), &owner(machine), Path::new(STATE), order)
}

fn journals(machine: &SimulatedMachine) -> Vec<Journal> {
    Journal::all(machine, Path::new(STATE)).0
}

#[test]
fn whatever_the_kernel_answers_everything_goes_back() {
    for answer in [
        "Device or resource busy",
        "Operation not permitted",
        "Invalid argument",
        "Read-only file system",
        "Input/output error",
    ] {
        let machine = machine();
        let before = machine.snapshot(STATE);
        machine.on(&format!("{CPU}/cpu1/cpuidle/state2/disable"), Event::Refuse(answer.into()));
        let outcome = run(&machine, &order(&["freq.governor=performance", "idle.state.C6=off"])).unwrap();
        let (why, report) = outcome.failed.unwrap();
        assert!(why.contains(answer) && why.contains("idle.state.C6 at cpu1"), "{why}");
        assert!(report.is_complete() && outcome.id.is_none());
        assert_eq!((machine.snapshot(STATE), journals(&machine).len()), (before, 0), "{answer}");
    }
}

#[test]
fn keeping_going_leaves_out_what_is_refused_and_says_so() {
    let machine = machine();
    machine.on(&format!("{CPU}/cpu1/cpuidle/state2/disable"), Event::Refuse("Operation not permitted".into()));
    let order = Order { is_keeping_going: true, ..order(&["idle.state.C6=off"]) };
    let outcome = run(&machine, &order).unwrap();
    assert!(outcome.failed.is_none() && outcome.left_out[0].contains("cpu1"), "{:?}", outcome.left_out);
    assert_eq!(Sink::read(&machine, &format!("{CPU}/cpu0/cpuidle/state2/disable")).unwrap(), "1");
}

#[test]
fn a_value_that_is_taken_and_not_kept_is_a_refusal() {
    let machine = machine();
    machine.on(&format!("{CPU}/cpu0/cpuidle/state2/disable"), Event::Ignore);
    let outcome = run(&machine, &order(&["idle.state.C6=off"])).unwrap();
    assert!(outcome.failed.unwrap().0.contains("reads back \"0\""));
}

#[test]
fn a_cpu_that_goes_offline_mid_way_is_named_and_its_entry_stays_in_the_journal() {
    let machine = machine();
    let before = machine.snapshot(STATE);
    // When CPU 0's state is written, CPU 1 goes; its own state has been written already by the governor's stage.
    machine.on(&format!("{CPU}/cpu0/cpuidle/state2/disable"), Event::Offline(1));
    let outcome = run(&machine, &order(&["qos.cpu=10us", "idle.state.C6=off"])).unwrap();
    let (why, report) = outcome.failed.unwrap();
    assert!(why.contains("cpu1"), "{why}");
    assert!(report.left().iter().any(|line| line.contains("cpu1")), "{:?}", report.left());
    // Back online: recovery from the journal that was left ends at the state before.
    machine.bring_online(1);
    let mut left = journals(&machine);
    assert_eq!(left.len(), 1, "what could not be put back must be on disk");
    let report = undo_all(hands(&machine), &mut left[0], &machine.boot_id(), false);
    assert!(report.is_complete(), "{:?}", report.left());
    left[0].finish(&machine).unwrap();
    assert_eq!(machine.snapshot(STATE), before);
}

#[test]
fn cpus_that_come_online_later_are_found_by_status() {
    let machine = machine();
    machine.take_offline(1);
    run(&machine, &order(&["idle.state.C6=off"])).unwrap();
    machine.bring_online(1);
    let states = status(hands(&machine), &journals(&machine), &machine.boot_id(), 0, None);
    let never: Vec<&str> =
        states[0].settings.iter().filter(|s| s.verdict == SettingVerdict::NeverSet).map(|s| s.path.as_str()).collect();
    assert_eq!(never, [format!("{CPU}/cpu1/cpuidle/state2/disable")]);
    assert!(!states[0].is_good());
}

#[test]
fn drift_names_who_may_have_done_it_and_undo_leaves_it_alone() {
    let machine = machine();
    run(&machine, &order(&["freq.governor=performance"])).unwrap();
    run(&machine, &order(&["freq.governor@policy0=ondemand"])).unwrap();
    machine.meddle(&format!("{CPU}/cpufreq/policy1/scaling_governor"), "schedutil");
    let all = journals(&machine);
    let states = status(hands(&machine), &all, &machine.boot_id(), 0, None);
    let by = |at: usize| match &states[0].settings[at].verdict {
        SettingVerdict::Drifted { by } => by.join("; "),
        other => panic!("{other:?}"),
    };
    assert!(by(0).contains("wakewatt itself: tune-2"), "{}", by(0));
    assert!(by(1).contains("its value from before"), "{}", by(1));
    let mut first = all[0].clone();
    let report = undo_all(hands(&machine), &mut first, &machine.boot_id(), false);
    assert!(report.left()[0].contains("somebody else has set it to \"ondemand\""));
    // In the right order everything goes back.
    for mut journal in all.into_iter().rev() {
        assert!(undo_all(hands(&machine), &mut journal, &machine.boot_id(), false).is_complete());
    }
    assert_eq!(Sink::read(&machine, &format!("{CPU}/cpufreq/policy0/scaling_governor")).unwrap(), "schedutil");
}

#[test]
fn after_a_reboot_settings_are_reset_and_only_files_are_undone() {
    let machine = machine();
    run(&machine, &order(&["idle.state.C6=off"])).unwrap();
    machine.power_cycle();
    let all = journals(&machine);
    let states = status(hands(&machine), &all, &machine.boot_id(), 0, None);
    assert!(states[0].settings.iter().all(|s| s.verdict == SettingVerdict::ResetByReboot), "{states:?}");
    // Somebody sets it in the new boot; that is none of this journal's business.
    machine.meddle(&format!("{CPU}/cpu0/cpuidle/state2/disable"), "1");
    let mut journal = all[0].clone();
    assert!(undo_all(hands(&machine), &mut journal, &machine.boot_id(), false).entries.is_empty());
    assert_eq!(Sink::read(&machine, &format!("{CPU}/cpu0/cpuidle/state2/disable")).unwrap(), "1");
}

#[test]
fn linked_thresholds_are_set_in_the_order_the_kernel_takes() {
    let machine = machine();
    let before = machine.snapshot(STATE);
    // 95 is refused while the upper one is 80.
    let wanted = [
        "freq.tunable.conservative.down_threshold=95",
        "freq.tunable.conservative.up_threshold=98",
        "freq.governor=conservative",
    ];
    let outcome = run(&machine, &order(&wanted)).unwrap();
    assert!(outcome.failed.is_none(), "{:?}", outcome.failed);
    assert!(outcome.settings.iter().all(|s| s.result == SettingResult::Set), "{:?}", outcome.settings);
    assert_eq!(Sink::read(&machine, &format!("{CPU}/cpufreq/conservative/down_threshold")).unwrap(), "95");
    let mut journal = journals(&machine).remove(0);
    assert!(undo_all(hands(&machine), &mut journal, &machine.boot_id(), false).is_complete());
    assert_eq!(machine.snapshot(STATE), before);
}

#[test]
fn other_versions_and_torn_journals_are_named_and_hurt_nobody() {
    let machine = machine();
    machine.put_file(&format!("{STATE}/tune-1.json"), "{\"format\": 99}");
    machine.put_file(&format!("{STATE}/tune-2.json"), "{\"format\": 2, \"boot_id\": \"bo");
    machine.put_file(&format!("{STATE}/tune-3.json"), "");
    machine.put_file(&format!("{STATE}/tune-4.json"), "[1, 2]");
    machine.put_file(&format!("{STATE}/tune-5.json"), "\u{0}\u{1}");
    let (good, bad) = Journal::all(&machine, Path::new(STATE));
    let words: Vec<String> = bad.iter().map(ToString::to_string).collect();
    assert_eq!((good.len(), bad.len()), (0, 5));
    assert!(words[0].contains("tune-1.json: journal format 99, this wakewatt knows 2"), "{}", words[0]);
    assert!(words[1].contains("tune-2.json: not a journal"), "{}", words[1]);
    // A new transaction gets a number of its own.
    let outcome = run(&machine, &order(&["idle.state.C6=off"])).unwrap();
    assert_eq!(outcome.id.as_deref(), Some("tune-6"));
}

#[test]
fn a_confirmation_that_never_comes_waits_on_the_boot_clock() {
    let machine = machine();
    let start = |_: &Path| Ok(());
    let confirm = Confirm { within_ns: 50, boottime_ns: &|| 10, start: &start };
    let wait = Order { confirm: Some(confirm), ..order(&["idle.state.C6=off"]) };
    let before = machine.snapshot(STATE);
    run(&machine, &wait).unwrap();
    let journal = &journals(&machine)[0];
    assert_eq!(journal.phase, Phase::Unconfirmed { until_boottime_ns: 60 });
    let states = status(hands(&machine), std::slice::from_ref(journal), &machine.boot_id(), 10, None);
    assert_eq!((states[0].phase.as_str(), states[0].undone_in_s), ("unconfirmed", Some(0)));
    assert!(matches!(recovery::due(journal, &machine.boot_id(), 59, OwnerNow::Gone), Due::NotYet(_)));
    assert!(matches!(recovery::due(journal, &machine.boot_id(), 60, OwnerNow::Gone), Due::Now(_)));
    let mut journal = journal.clone();
    assert!(recovery::close(hands(&machine), &mut journal, &machine.boot_id(), false).is_complete());
    assert_eq!((machine.snapshot(STATE), journals(&machine).len()), (before, 0));
    // Without a process that waits nothing is changed at all.
    let none = |_: &Path| Err("no process".to_string());
    let confirm = Confirm { within_ns: 50, boottime_ns: &|| 10, start: &none };
    let refused = run(&machine, &Order { confirm: Some(confirm), ..order(&["idle.state.C6=off"]) });
    assert!(refused.unwrap_err().to_string().contains("no process"));
    assert_eq!(journals(&machine).len(), 0);
}

#[test]
fn nothing_to_do_leaves_no_journal() {
    let machine = machine();
    let outcome = run(&machine, &order(&["freq.governor=schedutil"])).unwrap();
    assert_eq!((outcome.id, journals(&machine).len()), (None, 0));
    assert!(matches!(run(&machine, &order(&["freq.governor=nonsense"])), Err(ApplyError::Refused(_))));
}

#[test]
fn a_watch_that_turns_red_takes_everything_back() {
    let machine = machine();
    let before = machine.snapshot(STATE);
    let seen = std::cell::Cell::new(0);
    let watch = || {
        // While it watches the journal is still open: whoever finds it after a kill undoes it.
        seen.set(journals(&machine).iter().filter(|j| j.phase == Phase::Open).count());
        Err("latency up".to_string())
    };
    let outcome = run(&machine, &Order { watch: Some(&watch), ..order(&["idle.state.C6=off"]) }).unwrap();
    assert_eq!((outcome.failed.unwrap().0.as_str(), seen.get()), ("latency up", 1));
    assert_eq!((machine.snapshot(STATE), journals(&machine).len()), (before, 0));
}

#[test]
fn what_waits_for_nothing_is_refused() {
    let machine = machine();
    // Its CPU is online already, so nothing will appear.
    let refused = run(&machine, &order(&["cpu.online=on", "uncore.max=max"]));
    assert!(matches!(refused, Err(ApplyError::Refused(_))), "{refused:?}");
}

#[test]
fn a_program_that_is_not_there_is_said_before_anything_is_changed() {
    let machine = machine();
    let before = machine.snapshot(STATE);
    machine.lose_program("updat-grub");
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    for command in [("updat-grub now", "true"), ("true", "updat-grub back")] {
        let commands = vec![(words(command.0), words(command.1))];
        let refused = run(&machine, &Order { commands, ..order(&["idle.state.C6=off"]) });
        assert!(matches!(&refused, Err(ApplyError::Refused(why)) if why[0].contains("updat-grub")), "{refused:?}");
        assert_eq!((machine.snapshot(STATE), journals(&machine).len()), (before.clone(), 0));
    }
    // Every later change works.
    assert!(run(&machine, &order(&["idle.state.C6=off"])).unwrap().failed.is_none());
}

#[test]
fn a_device_that_vanished_for_good_ends_its_journal_and_one_out_of_reach_does_not() {
    let text = |cpus: &str| {
        format!(
            "//- {CPU}/present\n0-1\n//- {CPU}/online\n{cpus}\n//- /sys/class/nvme\nfolder\n\
             //- /sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us\n0\n\
             //- {CPU}/cpu1/power/pm_qos_resume_latency_us\n0\n"
        )
    };
    let machine = SimulatedMachine::new(&text("0-1"));
    let entry = |path: &str| Entry::new(path, Some("100".into()), vec![Some("0".into())]);
    let entries = vec![
        entry("/sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us"),
        entry(&format!("{CPU}/cpu1/power/pm_qos_resume_latency_us")),
    ];
    let draft = Draft { purpose: "test", entries, ..Draft::default() };
    let mut journal = Journal::create(&machine, Path::new(STATE), &owner(&machine), "tune", draft).unwrap();
    machine.lose_attributes("/sys/class/nvme/nvme0/");
    machine.take_offline(1);
    let report = recovery::close(hands(&machine), &mut journal, &machine.boot_id(), true);
    let is = |test: fn(&Undone) -> bool| report.entries.iter().filter(|(_, undone)| test(undone)).count();
    assert_eq!((is(|u| matches!(u, Undone::Gone(_))), is(|u| matches!(u, Undone::Away(_)))), (1, 1), "{report:?}");
    assert!(report.is_settled() && !report.is_complete());
    assert!(report.left()[0].contains("may come back with the value it had"), "{:?}", report.left());
    assert_eq!(journals(&machine).len(), 1, "what may come back stays on disk");
    machine.bring_online(1);
    let report = recovery::close(hands(&machine), &mut journal, &machine.boot_id(), false);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(journals(&machine).len(), 0, "what has gone keeps no journal");
    assert_eq!(Sink::read(&machine, &format!("{CPU}/cpu1/power/pm_qos_resume_latency_us")).unwrap(), "100");
}

#[test]
fn what_can_never_be_undone_can_be_looked_at_before_it_is_given_up() {
    let machine = machine();
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    let command = Command { run: words("start it"), undo: words("stop it"), is_started: true };
    let file = format!("{CPU}/cpu0/cpuidle/state2/disable");
    let entries = vec![Entry::new(&file, Some("0".into()), vec![Some("1".into())])];
    let draft = Draft { purpose: "test", entries, commands: vec![command], ..Draft::default() };
    let mut journal = Journal::create(&machine, Path::new(STATE), &owner(&machine), "run-1", draft).unwrap();
    machine.meddle(&file, "1");
    // As a version left it that did not look for its programs: no undo of it will ever be complete.
    machine.lose_program("stop");
    let lost = forget::losses(hands(&machine), &journal, &machine.boot_id());
    assert_eq!(lost.len(), 2);
    assert!(lost[0].contains("is \"1\", was \"0\" before") && lost[1].contains("stop it was not run"), "{lost:?}");
    let report = recovery::close(hands(&machine), &mut journal, &machine.boot_id(), true);
    assert!(report.left()[0].contains("stop: cannot be run"), "{report:?}");
    assert_eq!(Sink::read(&machine, &file).unwrap(), "0", "the rest is put back");
    assert_eq!(forget::losses(hands(&machine), &journal, &machine.boot_id()), lost[1..]);
}

#[test]
fn a_folder_that_cannot_be_synced_is_not_called_nothing_changed() {
    // The journal's create: folder, mode, names; then write, sync, rename, and the folder's sync.
    let whole = machine();
    whole.heal();
    let create = |machine: &SimulatedMachine| {
        Journal::create(machine, Path::new(STATE), &owner(machine), "tune", Draft::default()).map(|_| ())
    };
    create(&whole).unwrap();
    let last = whole.n_operations() - 1;
    for (fault, n_left, says) in
        [(Fault::Once, 0, "it was removed again"), (Fault::Forever, 1, "wakewatt recover does that")]
    {
        let machine = machine();
        machine.fail_at(last, fault);
        let error = create(&machine).unwrap_err();
        machine.heal();
        let words = error.to_string();
        assert!(error.is_in_place && words.contains(says) && !words.contains("nothing is changed"), "{words}");
        assert_eq!(journals(&machine).len(), n_left, "{words}");
    }
}

#[test]
fn an_owner_in_another_pid_namespace_is_neither_alive_nor_gone() {
    let machine = machine();
    let ours = Owner::this_process();
    let elsewhere = Owner { pid_namespace: ours.pid_namespace.map(|n| n + 1), ..ours.clone() };
    let reused = Owner { pid_start_ticks: Some(1), ..ours.clone() };
    let of = |owner: &Owner| {
        let journal = Journal::create(&machine, Path::new(STATE), owner, "run-1", Draft::default()).unwrap();
        Journal::load(&machine, journal.file()).unwrap()
    };
    assert!(ours.pid_namespace.is_some(), "this kernel has PID namespaces");
    assert_eq!(of(&ours).owner_now(), OwnerNow::Alive);
    assert_eq!(of(&reused).owner_now(), OwnerNow::Gone, "the number is another process's by now");
    let journal = of(&elsewhere);
    assert_eq!(journal.owner_now(), OwnerNow::Unseen, "the same number there is another process");
    let due = |owner| recovery::due(&journal, &ours.boot_id, 0, owner);
    assert!(matches!(due(journal.owner_now()), Due::NotYet(why) if why.contains("PID namespace")));
    // Whoever changes settings has the lock: who has it oneself knows that nobody does.
    assert!(matches!(due(journal.owner_now().seen_with(true)), Due::Now(_)));
}

#[test]
fn a_run_that_was_cut_short_is_seen_by_status() {
    let machine = machine();
    let file = format!("{CPU}/cpu0/cpuidle/state2/disable");
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    let command = Command { run: words("start it"), undo: words("stop it"), is_started: true };
    let entries = vec![Entry::new(&file, Some("0".into()), vec![Some("1".into())])];
    let draft = Draft { purpose: "test", entries, commands: vec![command], ..Draft::default() };
    Journal::create(&machine, Path::new(STATE), &owner(&machine), "run-1", draft).unwrap();
    machine.meddle(&file, "1");
    let states = status(hands(&machine), &journals(&machine), &machine.boot_id(), 0, None);
    assert_eq!((states[0].run, states[0].is_good()), (Some(Run::Ended), false));
    assert_eq!(states[0].settings[0].verdict, SettingVerdict::LeftChanged { before: Some("0".into()) });
    assert_eq!(states[0].commands_left, ["start it"]);
}
