//! A rollout of firmware over emulated BMCs on loopback: staged and taken back, restarted where the plan says so, with BMCs that are dark, foreign or
//! of another maker, and an operator who is killed before and at every write.
//!
//! The BMCs are `wakewatt-testing`'s, which judge requests as their makers' do and know nothing of wakewatt. What is real is everything from
//! the conductor down to HTTP; no machine boots but in the emulator's books.

mod memory;

use memory::{Memory, Says};
use std::cell::Cell;
use std::path::Path;
use wakewatt_carry::bmc::{Bmcs, list};
use wakewatt_carry::book::BookError;
use wakewatt_carry::rollout::{Conductor, Halt, World, look};
use wakewatt_carry::{Firmware as _, NodeName};
use wakewatt_fleet::rollout::gate::Word;
use wakewatt_fleet::rollout::machine;
use wakewatt_fleet::rollout::plan::{Plan, parse};
use wakewatt_fleet::rollout::state::{Beginning, End, Is, Rollout};
use wakewatt_host::bmc::BmcAccount;
use wakewatt_host::secret::Secret;
use wakewatt_testing::bmc::{Attributes, Emulator, PASSWORD, USER, Vendor};

const PLAN: &str = r#"
format = 1
name = "fw"
MORE
[change]
bios = ["bios.c-states=off"]
REBOOT
[targets]
all = true
[[stage]]
canary = 1
pause = "10s"
[[stage]]
percent = 100
[[gate]]
name = "g"
command = ["true"]
hold = "0s"
"#;

/// Plan with keys of its own at the top and beside the change.
fn plan(more: &str, reboot: &str) -> Plan {
    parse(&PLAN.replace("MORE", more).replace("REBOOT", reboot)).expect("a plan")
}

/// Time goes by only where somebody sleeps; something happens at the first sleep.
struct Now<'a> {
    ms: Cell<u64>,
    at_sleep: &'a dyn Fn(),
}

impl World for Now<'_> {
    fn now_ms(&self) -> u64 {
        self.ms.get()
    }
    fn sleep_ms(&self, ms: u64) {
        (self.at_sleep)();
        self.ms.set(self.ms.get() + ms);
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn tell(&self, _: &Rollout, line: &str) {
        assert!(!line.contains(PASSWORD), "{line}");
    }
}

struct Fleet {
    bmcs: Vec<Option<Emulator>>,
    carrier: Bmcs,
    _dir: tempfile::TempDir,
}

fn fleet(vendors: &[Vendor]) -> Fleet {
    let bmcs: Vec<Emulator> = vendors.iter().map(|vendor| Emulator::start(*vendor).expect("an emulator")).collect();
    let text: String = bmcs.iter().enumerate().map(|(at, bmc)| format!("n{at} bmc={}\n", bmc.url())).collect();
    let dir = tempfile::tempdir().expect("a folder");
    let carrier = carrier(&text, dir.path());
    Fleet { bmcs: bmcs.into_iter().map(Some).collect(), carrier, _dir: dir }
}

fn carrier(text: &str, journals: &Path) -> Bmcs {
    let account = BmcAccount {
        user: Some(USER.into()),
        password: Some(Secret::first_line(PASSWORD).expect("a password")),
        ..BmcAccount::default()
    };
    Bmcs::new(list::parse(text).expect("a list"), account, journals.join("bios"))
}

impl Fleet {
    fn begun(&self, plan: &Plan) -> Rollout {
        let names = (0..self.bmcs.len()).map(|n| format!("n{n}")).collect();
        let beginning = Beginning { id: "fw-1".into(), carrier: "bmc".into(), ..Beginning::default() };
        Rollout::new(plan, PLAN, names, beginning)
    }

    fn conducted(&self, plan: &Plan, word: Word, r: &mut Rollout) -> Result<Halt, BookError> {
        self.conducted_in(plan, word, r, (&mut Memory::default(), &|| {}))
    }

    fn conducted_in(
        &self,
        plan: &Plan,
        word: Word,
        r: &mut Rollout,
        (book, at_sleep): (&mut Memory, &dyn Fn()),
    ) -> Result<Halt, BookError> {
        let world = Now { ms: Cell::new(r.began_ms), at_sleep };
        let ended =
            Conductor { plan, carrier: &self.carrier, book, judge: &Says(word), world: &world, by: "ann" }.conduct(r);
        r.began_ms = world.ms.get();
        ended
    }

    fn alive(&self) -> impl Iterator<Item = &Emulator> {
        self.bmcs.iter().flatten()
    }

    fn current(&self) -> Vec<Attributes> {
        self.alive().map(Emulator::current).collect()
    }

    fn boot(&self) {
        self.alive().for_each(Emulator::boot);
    }

    fn is_nothing_waiting(&self) -> bool {
        self.alive().all(|bmc| bmc.pending().is_empty())
    }
}

fn n_patches(bmc: &Emulator) -> usize {
    bmc.log().iter().filter(|line| line.starts_with("PATCH")).count()
}

fn states(r: &Rollout) -> Vec<Is> {
    r.nodes.iter().map(|n| n.is).collect()
}

#[test]
fn staged_everywhere_and_nobody_restarted_then_taken_back() {
    let (fleet, plan) = (fleet(&[Vendor::Dell, Vendor::Dell, Vendor::Dell]), plan("", ""));
    let before = fleet.current();
    let looked =
        look(&fleet.carrier, &plan, &(0..3).map(|n| NodeName::new(format!("n{n}")).unwrap()).collect::<Vec<_>>());
    assert!(looked.iter().all(|l| l.left_out.is_none() && l.plan.is_some()), "{looked:?}");
    assert!(fleet.is_nothing_waiting() && fleet.alive().all(|bmc| n_patches(bmc) == 0), "a dry run changes nothing");
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert_eq!((r.end, states(&r)), (Some(End::Done), vec![Is::Confirmed; 3]), "{:?}", r.why);
    assert!(r.sentence().contains("3 nodes at the next boot, nobody was restarted"), "{}", r.sentence());
    assert!(r.nodes.iter().all(|n| n.undone_by_ms.is_none()), "a BMC undoes nothing by itself");
    for bmc in fleet.alive() {
        assert_eq!(bmc.pending()["ProcCStates"], "Disabled");
        assert_eq!((n_patches(bmc), bmc.resets().len(), bmc.n_open_sessions()), (1, 0, 0));
    }
    assert_eq!(fleet.current(), before);
    // Before anybody booted, everything goes at once.
    machine::undo_all(&mut r, "ann".into());
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert_eq!((r.end, states(&r)), (Some(End::AllUndone), vec![Is::Undone; 3]), "{r:?}");
    assert!(fleet.is_nothing_waiting());
    fleet.boot();
    assert_eq!(fleet.current(), before);
}

/// Yes to every change, and none kept: nothing is called changed, and no old value is said to come back.
#[test]
fn a_bmc_that_keeps_nothing_is_not_believed() {
    let (fleet, plan) = (fleet(&[Vendor::Dell, Vendor::Hpe]), plan("", ""));
    fleet.alive().for_each(|bmc| bmc.forget_changes(true));
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert_ne!(r.end, Some(End::Done), "{:?}", r.nodes);
    assert!(!states(&r).contains(&Is::Confirmed), "{:?}", r.nodes);
    let said = format!("{:?} {:?}", r.why, r.nodes);
    // Asked once more, it holds what it held before.
    assert!(said.contains("NOT confirmed: the BMC does not show") || said.contains("was dropped"), "{said}");
    // The same of the way back.
    let (fleet, plan) = (self::fleet(&[Vendor::Hpe]), self::plan("", ""));
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    fleet.boot();
    fleet.alive().for_each(|bmc| bmc.forget_changes(true));
    machine::undo_all(&mut r, "ann".into());
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert!(!states(&r).contains(&Is::UndoWaits) && !states(&r).contains(&Is::Undone), "{:?}", r.nodes);
}

#[test]
fn what_is_in_force_comes_back_at_a_boot_and_is_not_called_undone_before() {
    let (fleet, plan) = (fleet(&[Vendor::Hpe, Vendor::Hpe]), plan("", ""));
    let before = fleet.current();
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    fleet.boot();
    assert_ne!(fleet.current(), before);
    for round in 0..3 {
        machine::undo_all(&mut r, "ann".into());
        fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
        assert_eq!(r.end, Some(End::AllUndone), "round {round}: {:?}", r.nodes);
        if states(&r) == [Is::Undone; 2] {
            break;
        }
        assert_eq!(states(&r), [Is::UndoWaits; 2]);
        assert!(r.sentence().contains("come back at their next boot"), "{}", r.sentence());
        fleet.boot();
    }
    assert_eq!(states(&r), [Is::Undone; 2], "the second round is the last");
    assert_eq!(fleet.current(), before);
    assert!(fleet.alive().all(|bmc| bmc.resets().is_empty()), "nobody is restarted unless the plan says so");
}

#[test]
fn a_plan_that_restarts_is_verified_and_a_gate_that_fails_brings_all_back() {
    let (fleet, plan) = (fleet(&[Vendor::Dell, Vendor::Dell]), plan("", "reboot = \"gently\""));
    let before = fleet.current();
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Failed, &mut r).unwrap();
    assert_eq!((r.end, states(&r)), (Some(End::AllUndone), vec![Is::Undone; 2]), "{:?}", r.nodes);
    assert!(r.why.as_deref().unwrap().contains("gate g"), "{:?}", r.why);
    assert_eq!(fleet.current(), before);
    assert!(fleet.alive().all(|bmc| bmc.resets() == ["GracefulRestart", "GracefulRestart"]), "there and back");
    // The same with a gate that passes: what the BIOS holds is looked at before the gate is asked.
    let mut r = fleet.begun(&plan);
    r.id = "fw-2".into();
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert_eq!(r.end, Some(End::Done), "{:?}", r.why);
    assert!(!r.sentence().contains("next boot") && fleet.current().iter().all(|c| c["ProcCStates"] == "Disabled"));
}

#[test]
fn who_is_dark_foreign_or_of_another_maker_is_left_out_and_said_why() {
    let mut fleet = fleet(&[Vendor::Dell, Vendor::Dell, Vendor::Hpe, Vendor::Dell, Vendor::Dell]);
    fleet.bmcs[1] = None;
    fleet.bmcs[3].as_ref().unwrap().set_pending("LogicalProc", "Disabled".into());
    let plan = plan("max_left_out = 3", "");
    let mut r = fleet.begun(&plan);
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    let wanted = [Is::Confirmed, Is::Refused, Is::Refused, Is::Refused, Is::Confirmed];
    assert_eq!((r.end, &states(&r)[..]), (Some(End::Done), &wanted[..]), "{:?}", r.nodes);
    let why = |at: usize| r.nodes[at].why.clone().unwrap();
    assert!(why(2).contains("another kind than the canary's") && why(2).contains("MinProcIdlePower"), "{}", why(2));
    assert!(why(3).contains("somebody else's changes wait for its next boot: LogicalProc=Disabled"), "{}", why(3));
    assert_eq!(fleet.bmcs[2].as_ref().map(n_patches), Some(0));
    // With no more left out than one, nothing of the second stage is begun, and the canary goes back.
    let strict = self::plan("max_left_out = 1", "");
    let fleet = self::fleet(&[Vendor::Dell, Vendor::Hpe, Vendor::Hpe]);
    let mut r = fleet.begun(&strict);
    fleet.conducted(&strict, Word::Passed, &mut r).unwrap();
    assert_eq!(r.end, Some(End::AllUndone), "{:?}", r.nodes);
    assert!(fleet.is_nothing_waiting());
}

#[test]
fn a_bmc_that_goes_dark_while_it_is_watched_fails_the_stage_and_is_never_called_undone() {
    let fleet = fleet(&[Vendor::Dell, Vendor::Dell]);
    let plan = plan("", "");
    let mut r = fleet.begun(&plan);
    // The emulator answers 429 to everything from the first pause on: nobody is reached.
    let dark = || fleet.bmcs[0].as_ref().unwrap().be_busy(u32::MAX);
    fleet.conducted_in(&plan, Word::Passed, &mut r, (&mut Memory::default(), &dark)).unwrap();
    assert_eq!(r.end, Some(End::NotUndone), "{:?}", r.nodes);
    assert_eq!(r.nodes[0].is, Is::Lost);
    assert_eq!(fleet.bmcs[1].as_ref().map(n_patches), Some(0), "nobody else was changed");
    // It is back: the old values still lie here.
    fleet.bmcs[0].as_ref().unwrap().be_busy(0);
    machine::undo_all(&mut r, "ann".into());
    fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
    assert_eq!((r.end, r.nodes[0].is), (Some(End::AllUndone), Is::Undone), "{:?}", r.nodes);
    assert!(fleet.is_nothing_waiting());
}

#[test]
fn what_a_boot_drops_is_seen() {
    let fleet = fleet(&[Vendor::Hpe]);
    let (plan, node) = (plan("", ""), NodeName::new("n0").unwrap());
    let bmc = fleet.bmcs[0].as_ref().unwrap();
    let before = bmc.current();
    let staged = fleet.carrier.stage(&node, "fw-1", &plan.change);
    let waits = fleet.carrier.found(&node, "fw-1").unwrap().unwrap();
    assert!(waits.broken.is_none() && waits.waits == machine::Waits::Change, "{staged:?} {waits:?}");
    // Somebody puts the profile back before the boot, which then locks the rest.
    for (name, value) in bmc.pending() {
        if before[&name] != value && name != "MinProcIdlePower" {
            bmc.set_pending(&name, before[&name].clone());
        }
    }
    bmc.boot();
    let found = fleet.carrier.found(&node, "fw-1").unwrap().unwrap();
    let why = found.broken.unwrap();
    assert!(why.contains("was dropped") && why.contains("PropertyNotWritable"), "{why}");
    assert_eq!(fleet.carrier.take_back(&node, "fw-1", &plan.change), machine::Outcome::Done);
    assert_eq!(fleet.carrier.found(&node, "fw-1").unwrap(), None);
}

/// A fleet of one on which a change was staged by somebody who died before noting so.
fn unnoted(vendor: Vendor) -> (Fleet, Plan, NodeName, std::path::PathBuf) {
    let (fleet, plan, node) = (fleet(&[vendor]), plan("", ""), NodeName::new("n0").expect("a name"));
    let journal = fleet._dir.path().join("bios/fw-1/n0/bios-1.json");
    assert!(matches!(fleet.carrier.stage(&node, "fw-1", &plan.change), machine::Outcome::Changed(_)));
    let mut noted: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&journal).expect("a journal")).expect("JSON");
    (noted["phase"], noted["job"]) = ("open".into(), serde_json::Value::Null);
    std::fs::write(&journal, noted.to_string()).expect("written");
    (fleet, plan, node, journal)
}

#[test]
fn killed_after_the_bmc_took_it_and_before_that_was_noted() {
    for vendor in [Vendor::Dell, Vendor::Hpe, Vendor::Supermicro] {
        let (fleet, plan, node, journal) = unnoted(vendor);
        let bmc = fleet.bmcs[0].as_ref().unwrap();
        let before = bmc.current();
        // Looked at by whoever goes on, then taken back.
        let found = fleet.carrier.found(&node, "fw-1").unwrap().unwrap();
        assert!(found.broken.is_none() && found.waits == machine::Waits::Change, "{found:?}");
        assert_eq!(fleet.carrier.take_back(&node, "fw-1", &plan.change), machine::Outcome::Done, "{vendor:?}");
        assert!(fleet.is_nothing_waiting() && !journal.exists());
        bmc.boot();
        assert_eq!(bmc.current(), before);
    }
}

#[test]
fn what_no_job_would_apply_is_a_failed_stage_and_what_cannot_be_read_is_not_known() {
    let (fleet, _, node, _) = unnoted(Vendor::Dell);
    let bmc = fleet.bmcs[0].as_ref().unwrap();
    let broken = || fleet.carrier.found(&node, "fw-1").map(|found| found.unwrap().broken);
    bmc.lose_list_of_jobs(true);
    assert!(broken().unwrap_err().contains("503"), "{:?}", broken());
    bmc.lose_list_of_jobs(false);
    assert_eq!(broken(), Ok(None));
    bmc.set_job(Some("Failed"));
    assert!(broken().unwrap().unwrap().contains("has failed"));
    bmc.set_job(None);
    assert!(broken().unwrap().unwrap().contains("no job would apply them"));
}

#[test]
fn a_job_that_holds_more_than_ours_is_left_alone() {
    let (fleet, plan, node, _) = unnoted(Vendor::Dell);
    let bmc = fleet.bmcs[0].as_ref().unwrap();
    bmc.set_pending("LogicalProc", "Disabled".into());
    let came = fleet.carrier.take_back(&node, "fw-1", &plan.change);
    assert!(matches!(came, machine::Outcome::Unsure(_)), "{came:?}");
    assert!(bmc.log().iter().all(|line| !line.starts_with("DELETE") || line.contains("/Sessions/")), "{:?}", bmc.log());
    assert_eq!(bmc.pending()["LogicalProc"], "Disabled");
}

#[test]
fn killed_before_and_at_every_write_it_is_gone_on_with_and_nothing_is_staged_twice() {
    let run = |n_left: usize| {
        let (fleet, plan) = (
            fleet(&[Vendor::Dell]),
            parse(&PLAN.replace("MORE", "").replace("REBOOT", "").replace("[[stage]]\npercent = 100\n", "")).unwrap(),
        );
        let mut book = Memory { n_left: Some(n_left), ..Memory::default() };
        let mut r = fleet.begun(&plan);
        let is_killed = fleet.conducted_in(&plan, Word::Passed, &mut r, (&mut book, &|| {})).is_err();
        let mut r = match &book.state {
            Some(state) => Rollout::from_bytes(state).unwrap(),
            None => fleet.begun(&plan),
        };
        if is_killed {
            let now_ms = r.began_ms;
            machine::resume(&mut r, now_ms);
            fleet.conducted(&plan, Word::Passed, &mut r).unwrap();
        }
        let bmc = fleet.bmcs[0].as_ref().unwrap();
        assert_eq!((r.end, r.nodes[0].is), (Some(End::Done), Is::Confirmed), "killed at write {n_left}: {:?}", r.nodes);
        assert_eq!(
            (n_patches(bmc), bmc.pending()["ProcCStates"].clone()),
            (1, "Disabled".into()),
            "killed at write {n_left}"
        );
        is_killed
    };
    let n_killed = std::thread::scope(|scope| {
        let all: Vec<_> = (0..24).map(|n| scope.spawn(move || run(n))).collect();
        all.into_iter().map(|one| one.join().unwrap()).filter(|is_killed| *is_killed).count()
    });
    assert!((8..24).contains(&n_killed), "killed {n_killed} times, and the last was not");
}
