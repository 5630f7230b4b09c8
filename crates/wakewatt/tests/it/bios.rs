//! `bios` at its border: documents, exit codes, texts, and that a password goes nowhere.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, run, said, wakewatt};
use std::path::Path;
use wakewatt_testing::bmc::{Emulator, PASSWORD, USER, Vendor};

/// Runs a verb against a BMC, with the password in the environment.
fn bios(bmc: &Emulator, words: &[&str]) -> Said {
    let url = bmc.url();
    let args = [&["bios"], words, &["--redfish", &url, "--redfish-user", USER]].concat();
    let said = said(wakewatt(&args).env("WAKEWATT_REDFISH_PASSWORD", PASSWORD));
    assert!(!format!("{said:?}").contains(PASSWORD), "{words:?}: {said:?}");
    assert_eq!(bmc.n_open_sessions(), 0, "{words:?}: {said:?}");
    said
}

#[test]
fn from_show_to_undo_every_document_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let journals = folder.path().join("kept");
    let kept = ["--journals", journals.to_str().unwrap()];
    let bmc = Emulator::start(Vendor::Dell).unwrap();
    let with = |words: &[&'static str]| bios(&bmc, &[words, &kept[..]].concat());
    let document = |command: &str, said: &Said| assert_valid(&validator(command), command, &said.out);

    let shown = bios(&bmc, &["show", "--all", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = document("bios-show", &shown);
    let all = shown["concepts"].as_array().unwrap();
    let c_states = all.iter().find(|c| c["id"] == "bios.c-states").unwrap();
    assert_eq!((c_states["word"].as_str(), c_states["words"][1].as_str()), (Some("on"), Some("off")));
    assert!(!shown.to_string().contains("SysPassword"), "passwords are no settings");

    let planned = bios(&bmc, &["plan", "bios.c-states=off", "--json"]);
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let planned = document("bios-plan", &planned);
    assert_eq!(
        (planned["steps"][0]["attribute"].as_str(), planned["steps"][0]["is_gate"].as_bool()),
        (Some("SysProfile"), Some(true))
    );

    let applied = with(&["apply", "bios.c-states=off", "--json"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let applied = document("bios-apply", &applied);
    assert_eq!((applied["id"].as_str(), applied["job"]["state"].as_str()), (Some("bios-1"), Some("Scheduled")));
    assert!(bmc.resets().is_empty());

    let waiting = with(&["verify", "--json"]);
    assert_eq!((waiting.code, document("bios-verify", &waiting)["held"][0]["hold"].as_str()), (Some(0), Some("waits")));
    bmc.boot();
    let host = crate::tool::host("icx2s0");
    let beside = with(&["verify"]);
    assert!(beside.out.contains("ProcCStates=Disabled: holds"), "{beside:?}");
    let args: Vec<&str> = ["verify", "--json", "--host", host.to_str().unwrap()].into_iter().chain(kept).collect();
    let beside = bios(&bmc, &args);
    let beside_document = document("bios-verify", &beside);
    let seen = beside_document["seen"].as_array().unwrap();
    assert!(
        seen.iter()
            .any(|s| s["id"] == "bios.c-states" && s["says"].as_str().unwrap().contains("intel_idle ignores it")),
        "{seen:?}"
    );
    assert_eq!(beside.code, Some(6), "BIOS and Linux differ");

    bmc.set_current("ProcCStates", "Autonomous".into());
    assert_eq!(with(&["verify"]).code, Some(6), "drift");
    assert_eq!(with(&["undo"]).code, Some(5), "somebody else's value is left alone");
    let undone = with(&["undo", "--force", "--json"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    document("bios-undo", &undone);
    bmc.boot();
    assert!(with(&["undo"]).out.contains("everything is as before"));
    assert!(with(&["undo"]).out.contains("Nothing to undo"));
}

/// A BMC may answer 200 and keep nothing: what Settings does not show is no success, and nobody is restarted for it.
#[test]
fn what_the_bmc_does_not_show_is_not_called_staged() {
    for vendor in [Vendor::Dell, Vendor::Hpe, Vendor::Lenovo, Vendor::Supermicro] {
        let folder = tempfile::tempdir().unwrap();
        let journals = folder.path().join("kept");
        let kept = ["--journals", journals.to_str().unwrap()];
        let bmc = Emulator::start(vendor).unwrap();
        let with = |words: &[&'static str]| bios(&bmc, &[words, &kept[..]].concat());
        bmc.forget_changes(true);
        let applied = with(&["apply", "bios.c-states=off", "--reboot"]);
        assert_eq!(applied.code, Some(6), "{vendor:?} {applied:?}");
        assert!(
            applied.out.contains("NOT confirmed") && applied.out.contains("NOT restarted"),
            "{vendor:?} {applied:?}"
        );
        assert!(bmc.resets().is_empty(), "{vendor:?}");
        // The journal stays until somebody knows: here that nothing waits, and nothing changed.
        bmc.forget_changes(false);
        assert_eq!(with(&["undo"]).code, Some(0), "{vendor:?}");
        let applied = with(&["apply", "bios.c-states=off"]);
        assert_eq!(applied.code, Some(0), "{vendor:?} {applied:?}");
        bmc.boot();
        bmc.forget_changes(true);
        let undone = with(&["undo"]);
        assert_eq!(undone.code, Some(5), "{vendor:?} {undone:?}");
        assert!(undone.out.contains("NOT confirmed"), "{vendor:?} {undone:?}");
    }
}

#[test]
fn what_is_refused_says_why_and_ends_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().to_str().unwrap();
    let bmc = Emulator::start(Vendor::Hpe).unwrap();
    let unknown = bios(&bmc, &["plan", "bios.cstate=off"]);
    assert!(unknown.code == Some(7) && unknown.out.contains("bios.c-states"), "{unknown:?}");
    let refused = bios(&bmc, &["apply", "bios.smt=off", "bios.uncore=max", "--journals", kept]);
    assert!(refused.code == Some(7) && refused.err.contains("nothing is staged"), "{refused:?}");
    let partial = bios(&bmc, &["apply", "bios.smt=off", "bios.uncore=max", "--keep-going", "--journals", kept]);
    assert!(partial.code == Some(9) && partial.out.contains("left out"), "{partial:?}");
    let url = bmc.url();
    let wrong = said(
        wakewatt(&["bios", "show", "--redfish", &url, "--redfish-user", USER])
            .env("WAKEWATT_REDFISH_PASSWORD", "nope4711"),
    );
    assert!(wrong.code == Some(7) && !format!("{wrong:?}").contains("nope4711"), "{wrong:?}");
    assert_eq!(run(&["bios", "show"]).code, Some(2));
    assert_eq!(run(&["bios", "plan", "smt", "--from", "/"]).code, Some(2));
    assert_eq!(run(&["bios", "show", "--from", "/nonexistent"]).code, Some(4));
    let exposed = said(
        wakewatt(&["bios", "show", "--redfish", "http://bmc.invalid", "--redfish-user", "u"])
            .env("WAKEWATT_REDFISH_PASSWORD", "x"),
    );
    assert!(exposed.code == Some(2) && exposed.err.contains("unencrypted"), "{exposed:?}");
}

#[test]
fn hostile_text_of_a_bmc_commands_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let place = folder.path().join(path);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("index.json"), text).unwrap();
    };
    write("redfish/v1", r#"{"Systems":{"@odata.id":"/redfish/v1/Systems"}}"#);
    write("redfish/v1/Systems", r#"{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}"#);
    write(
        "redfish/v1/Systems/1",
        r#"{"Id":"1","Model":"\u001b[2J\u202e","Bios":{"@odata.id":"/redfish/v1/Systems/1/Bios"}}"#,
    );
    write("redfish/v1/Systems/1/Bios", r#"{"Attributes":{"LogicalProc":"\u001b]0;x\u0007","\u001b[31m":"y"}}"#);
    let from = folder.path().to_str().unwrap();
    for words in [
        &["show", "--all"][..],
        &["show", "--json"],
        &["plan", "bios.smt=off"],
        &["verify", "--journals", "/nonexistent"],
    ] {
        let said = run(&[&["bios"], words, &["--from", from]].concat());
        assert!(!said.out.contains(['\u{1b}', '\u{202e}', '\u{7}']) && !said.out.is_empty(), "{words:?}: {said:?}");
    }
    assert!(!Path::new("/nonexistent").exists());
}
