//! Plan, apply, boot, verify and undo against a BMC with each maker's ways.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;
use wakewatt_bios::apply::stage::StageError;
use wakewatt_bios::apply::{Applied, ApplyError, Order, apply};
use wakewatt_bios::journal::{Journal, Phase};
use wakewatt_bios::live::LiveService;
use wakewatt_bios::plan::{Plan, plan};
use wakewatt_bios::service::{Answer, Change, Document, NoDocument, Service};
use wakewatt_bios::setting::Setting;
use wakewatt_bios::undo::{UndoError, Undone, undo};
use wakewatt_bios::verify::{Hold, verify};
use wakewatt_bios::walk::{Machine, machine};
use wakewatt_bios::wish::Wish;
use wakewatt_host::bmc::{BmcAccount, BmcError};
use wakewatt_host::secret::Secret;
use wakewatt_testing::bmc::{Emulator, PASSWORD, USER, Vendor};

const PAUSE: Duration = Duration::from_millis(1);

fn account(bmc: &Emulator, password: &str) -> BmcAccount {
    let password = Secret::first_line(password).ok();
    BmcAccount { url: bmc.url(), user: Some(USER.into()), password, ..BmcAccount::default() }
}

fn enter(bmc: &Emulator) -> LiveService {
    LiveService::enter(&account(bmc, PASSWORD)).unwrap()
}

fn order(journals: &Path) -> Order<'_> {
    Order {
        journals,
        wishes: &[],
        made_at: "now",
        is_keeping_going: false,
        is_unvalidated_allowed: false,
        is_waiting_allowed: false,
        reboot: None,
        pause: PAUSE,
    }
}

fn wishes(words: &[&str]) -> Vec<Wish> {
    words.iter().map(|word| Wish::parse(word).unwrap()).collect()
}

fn look(bmc: &Emulator) -> Machine {
    machine(&mut enter(bmc), None).unwrap()
}

fn planned(bmc: &Emulator, words: &[&str]) -> Plan {
    let machine = look(bmc);
    plan(&machine, machine.bios.as_ref().unwrap(), &wishes(words))
}

fn applied(bmc: &Emulator, words: &[&str], order: Order<'_>) -> Result<Applied, ApplyError> {
    let mut service = enter(bmc);
    let machine = machine(&mut service, None).unwrap();
    let bios = machine.bios.as_ref().unwrap();
    apply(&mut service, &machine, bios, &plan(&machine, bios, &wishes(words)), order)
}

fn only_journal(folder: &Path) -> Journal {
    let (mut all, bad) = Journal::all(folder);
    assert!(bad.is_empty() && all.len() == 1, "{all:?} {bad:?}");
    all.remove(0)
}

fn undone(bmc: &Emulator, folder: &Path, is_forced: bool) -> Result<Undone, UndoError> {
    undo(&mut enter(bmc), &mut only_journal(folder), is_forced, PAUSE)
}

fn holds(bmc: &Emulator, folder: &Path) -> Vec<Hold> {
    let machine = look(bmc);
    let verified = verify(&machine, machine.bios.as_ref().unwrap(), Some(&only_journal(folder)), None);
    verified.held.iter().map(|held| held.hold).collect()
}

#[test]
fn every_maker_is_walked_and_its_session_closed() {
    for vendor in [Vendor::Dell, Vendor::Hpe, Vendor::Lenovo, Vendor::Supermicro, Vendor::Ami] {
        let bmc = Emulator::start(vendor).unwrap();
        let machine = look(&bmc);
        let bios = machine.bios.as_ref().unwrap();
        assert!(bios.registry.is_ok() && bios.pending.is_empty() && !bios.current.is_empty(), "{vendor:?}: {bios:?}");
        assert_eq!(bmc.n_open_sessions(), 0, "{vendor:?}");
        let log = bmc.log();
        assert!(
            log[0].starts_with("POST /redfish/v1/SessionService") && log.last().unwrap().starts_with("DELETE"),
            "{log:?}"
        );
        assert_eq!(bmc.current().len(), bios.current.len());
    }
}

/// Wishes, applied, looked at, booted, verified, undone, booted, and the journal ended.
fn there_and_back(vendor: Vendor, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(vendor).unwrap();
    let before = bmc.current();
    let plan = planned(&bmc, words);
    assert!(plan.refused.is_empty(), "{vendor:?}: {:?}", plan.refused);
    assert_eq!(bmc.current(), before, "a plan changes nothing");
    assert!(!bmc.log().iter().any(|line| line.starts_with("PATCH")));
    let done = applied(&bmc, words, order(folder.path())).unwrap();
    assert!(done.staged.iter().all(|s| s.read_back.as_ref() == Some(&s.requested)), "{vendor:?}: {:?}", done.staged);
    assert_eq!((bmc.current(), done.restarted), (before.clone(), None), "{vendor:?}: nothing changes before a boot");
    assert!(holds(&bmc, folder.path()).contains(&Hold::Waits));
    bmc.boot();
    assert!(holds(&bmc, folder.path()).iter().all(|hold| *hold == Hold::Holds), "{vendor:?}: {:?}", bmc.current());
    for step in plan.changes() {
        assert_eq!(Setting::of(&bmc.current()[&step.attribute]).as_ref(), Some(&step.wished), "{vendor:?}");
    }
    let mut n_boots = 0;
    while !undone(&bmc, folder.path(), false).map(|back| back.is_complete && back.left.is_empty()).unwrap() {
        assert_eq!(only_journal(folder.path()).phase, Phase::UndoStaged);
        bmc.boot();
        n_boots += 1;
        assert!(n_boots <= 2, "{vendor:?}: {:?}", bmc.current());
    }
    // A registry that says what its profile forces lets all go back at once.
    let has_forced_all = vendor == Vendor::Dell || vendor == Vendor::Ami;
    assert_eq!(n_boots, if has_forced_all { 1 } else { 2 }, "{vendor:?}");
    assert_eq!(bmc.current(), before, "{vendor:?}");
    assert!(Journal::all(folder.path()).0.is_empty(), "{vendor:?}");
    assert_eq!((bmc.resets().len(), bmc.n_open_sessions()), (0, 0), "{vendor:?}: nobody asked for a reboot");
}

#[test]
fn dell_there_and_back() {
    there_and_back(Vendor::Dell, &["bios.c-states=off", "bios.uncore=max"]);
    there_and_back(Vendor::Dell, &["bios.profile=performance"]);
}

#[test]
fn hpe_there_and_back() {
    there_and_back(Vendor::Hpe, &["bios.c-states=off", "bios.smt=off"]);
}

#[test]
fn lenovo_there_and_back() {
    there_and_back(Vendor::Lenovo, &["bios.c-states=off", "attr:Quiet=false"]);
}

#[test]
fn supermicro_there_and_back() {
    there_and_back(Vendor::Supermicro, &["bios.c-states=off", "bios.smt=off"]);
}

#[test]
fn ami_there_and_back() {
    there_and_back(Vendor::Ami, &["bios.package-c-states=off"]);
}

#[test]
fn dell_has_a_job_that_undo_deletes_before_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Dell).unwrap();
    let before = bmc.current();
    let done = applied(&bmc, &["bios.smt=off"], order(folder.path())).unwrap();
    let job = done.job.unwrap();
    assert_eq!(job.state.as_deref(), Some("Scheduled"));
    // A second one is refused, by us because something foreign waits.
    let second = applied(&bmc, &["bios.c-states=off"], order(folder.path()));
    assert!(matches!(second, Err(ApplyError::Waiting { .. })), "{second:?}");
    // And by the BMC, when told to go on all the same.
    let forced = Order { is_waiting_allowed: true, ..order(folder.path()) };
    let second = applied(&bmc, &["bios.c-states=off"], forced);
    assert!(matches!(second, Err(ApplyError::Stage(StageError::Committed { .. }))), "{second:?}");
    let back = undone(&bmc, folder.path(), false).unwrap();
    assert!(back.is_complete && back.cancelled_job == Some(job.path), "{back:?}");
    bmc.boot();
    assert_eq!(bmc.current(), before);
}

#[test]
fn what_never_came_into_force_is_taken_back_at_once() {
    for vendor in [Vendor::Hpe, Vendor::Lenovo, Vendor::Supermicro] {
        let folder = tempfile::tempdir().unwrap();
        let bmc = Emulator::start(vendor).unwrap();
        let before = bmc.current();
        let done = applied(&bmc, &["bios.c-states=off"], order(folder.path())).unwrap();
        assert!(done.staged.len() >= 2, "{vendor:?}: with what unlocks it");
        assert!(undone(&bmc, folder.path(), false).unwrap().is_complete, "{vendor:?}: {:?}", bmc.pending());
        bmc.boot();
        assert_eq!(bmc.current(), before, "{vendor:?}");
    }
}

/// A BMC that fails when asked what waits.
struct Failing(LiveService);

impl Service for Failing {
    fn get(&mut self, path: &str) -> Result<Document, NoDocument> {
        match path.trim_end_matches('/').ends_with("/bios/settings") {
            true => Err(NoDocument::Status { path: path.into(), status: 500, said: String::new() }),
            false => self.0.get(path),
        }
    }
    fn origin(&self) -> String {
        self.0.origin()
    }
}

impl Change for Failing {
    fn patch(&mut self, path: &str, body: &str, if_match: Option<&str>) -> Result<Answer, BmcError> {
        self.0.patch(path, body, if_match)
    }
    fn post(&mut self, path: &str, body: &str) -> Result<Answer, BmcError> {
        self.0.post(path, body)
    }
    fn delete(&mut self, path: &str) -> Result<Answer, BmcError> {
        self.0.delete(path)
    }
}

#[test]
fn what_waits_unread_is_neither_undone_nor_lost() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Hpe).unwrap();
    applied(&bmc, &["bios.smt=off"], order(folder.path())).unwrap();
    let mut service = Failing(enter(&bmc));
    let refused = undo(&mut service, &mut only_journal(folder.path()), false, PAUSE);
    assert!(matches!(refused, Err(UndoError::WaitingUnknown(_))), "{refused:?}");
    let journal = only_journal(folder.path());
    let machine = machine(&mut service, None).unwrap();
    let verified = verify(&machine, machine.bios.as_ref().unwrap(), Some(&journal), None);
    assert!(verified.held.iter().all(|held| held.hold == Hold::Waits) && !verified.has_drift(), "{verified:?}");
    assert!(verified.notes.iter().any(|note| note.contains("is not known")), "{verified:?}");
}

#[test]
fn hpe_says_yes_and_drops_at_boot_what_verify_then_finds() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Hpe).unwrap();
    applied(&bmc, &["bios.p-states=performance"], order(folder.path())).unwrap();
    // Between staging and boot somebody at the console goes back to a preset.
    bmc.set_pending("WorkloadProfile", "LowLatency".into());
    bmc.boot();
    assert_eq!(bmc.current()["PowerRegulator"], "DynamicPowerSavings");
    assert!(holds(&bmc, folder.path()).contains(&Hold::Dropped));
    let machine = look(&bmc);
    let bios = machine.bios.as_ref().unwrap();
    assert!(bios.messages.iter().any(|m| m == "Base.1.0.PropertyNotWritable (PowerRegulator)"), "{:?}", bios.messages);
    // Not ours any more: undo asks.
    assert!(matches!(undone(&bmc, folder.path(), false), Err(UndoError::Foreign { .. })));
    assert!(undone(&bmc, folder.path(), true).is_ok());
}

#[test]
fn a_stale_tag_is_read_again_and_one_that_hides_a_change_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Lenovo).unwrap();
    bmc.make_tags_stale(1);
    applied(&bmc, &["bios.smt=off"], order(folder.path())).unwrap();
    let patches = bmc.log().iter().filter(|line| line.starts_with("PATCH")).count();
    assert_eq!(patches, 2);
    // Always stale: given up after one more try, and nothing is kept.
    let other = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Lenovo).unwrap();
    bmc.make_tags_stale(9);
    let refused = applied(&bmc, &["bios.smt=off"], order(other.path()));
    assert!(matches!(refused, Err(ApplyError::Stage(StageError::Refused { status: 412, .. }))), "{refused:?}");
    assert!(Journal::all(other.path()).0.is_empty(), "a plain no leaves no journal");
    // Somebody stages something between plan and PATCH.
    let mut service = enter(&bmc);
    let machine = machine(&mut service, None).unwrap();
    let bios = machine.bios.as_ref().unwrap();
    let plan = plan(&machine, bios, &wishes(&["bios.smt=off"]));
    bmc.set_pending("Quiet", false.into());
    let late = apply(&mut service, &machine, bios, &plan, order(other.path()));
    assert!(matches!(late, Err(ApplyError::Stage(StageError::Changed(_)))), "{late:?}");
}

#[test]
fn ami_gets_the_strong_form_of_its_weak_tag() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Ami).unwrap();
    applied(&bmc, &["bios.turbo=off"], order(folder.path())).unwrap();
    let patches: Vec<String> = bmc.log().into_iter().filter(|line| line.starts_with("PATCH")).collect();
    assert_eq!(patches.len(), 2, "{patches:?}");
    assert!(patches[0].contains("If-Match: W/\"") && patches[1].contains("If-Match: \""), "{patches:?}");
    assert!(!bmc.log().iter().any(|line| line.starts_with("POST") && line.contains("If-Match")));
}

#[test]
fn nothing_is_staged_in_part_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Supermicro).unwrap();
    let refused = applied(&bmc, &["bios.smt=off", "bios.epb=performance"], order(folder.path()));
    assert!(matches!(refused, Err(ApplyError::Refused { .. })));
    assert!(bmc.pending().is_empty() && Journal::all(folder.path()).0.is_empty());
    let keep = Order { is_keeping_going: true, ..order(folder.path()) };
    let done = applied(&bmc, &["bios.smt=off", "bios.epb=performance"], keep).unwrap();
    assert_eq!((done.staged.len(), done.left_out.len(), done.status), (1, 1, Some(202)));
    assert_eq!(bmc.pending()["Hyper_Threading_ALL__F27F"], "Disable", "as the BMC speaks, not its number");
}

#[test]
fn a_reboot_is_for_those_who_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Hpe).unwrap();
    let restart = Order { reboot: Some(None), ..order(folder.path()) };
    let done = applied(&bmc, &["bios.smt=off"], restart).unwrap();
    assert_eq!(
        (done.restarted.as_deref(), bmc.resets()),
        (Some("GracefulRestart"), vec!["GracefulRestart".to_string()])
    );
    assert_eq!(bmc.current()["ProcSMT"], "Disabled");
    let odd = Order { reboot: Some(Some("Explode")), ..order(folder.path()) };
    let done = applied(&bmc, &["bios.smt=on"], odd).unwrap();
    assert!(done.restarted.is_none() && done.not_restarted.is_some(), "{done:?}");
    assert_eq!(bmc.resets().len(), 1);
}

#[test]
fn without_a_journal_nothing_is_sent() {
    let bmc = Emulator::start(Vendor::Hpe).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = applied(&bmc, &["bios.smt=off"], order(&file.path().join("below-a-file")));
    assert!(matches!(refused, Err(ApplyError::Journal(_))), "{refused:?}");
    assert!(bmc.pending().is_empty() && !bmc.log().iter().any(|line| line.starts_with("PATCH")));
}

#[test]
fn a_busy_bmc_is_given_time_and_a_wrong_password_ends_it() {
    let bmc = Emulator::start(Vendor::Dell).unwrap();
    let mut service = enter(&bmc);
    bmc.be_busy(2);
    assert!(machine(&mut service, None).is_ok());
    bmc.be_busy(99);
    assert!(machine(&mut service, None).unwrap_err().to_string().contains("busy"));
    bmc.be_busy(0);
    let refused = LiveService::enter(&account(&bmc, "wrong")).err();
    assert!(matches!(&refused, Some(BmcError::NotLetIn { status: 401, .. })), "{refused:?}");
    assert!(!format!("{refused:?}").contains("wrong"));
}
