//! Firmware of many nodes at the border: `fleet compare` over documents of `bios show`, and `fleet rollout --bmc` over emulated BMCs, with an
//! operator who is killed.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, run, said, wait_until, wakewatt};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wakewatt_testing::bmc::{Emulator, PASSWORD, USER, Vendor};

/// What `bios show` says of an emulated machine.
fn shown(bmc: &Emulator, more: &[&str]) -> String {
    let url = bmc.url();
    let args = [&["bios", "show", "--json", "--redfish", &url, "--redfish-user", USER], more].concat();
    let said = said(wakewatt(&args).env("WAKEWATT_REDFISH_PASSWORD", PASSWORD));
    assert_eq!(said.code, Some(0), "{said:?}");
    said.out
}

#[test]
fn three_of_two_hundred_have_another_profile_and_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let bmc = Emulator::start(Vendor::Dell).unwrap();
    let usual = shown(&bmc, &["--all"]);
    bmc.set_current("SysProfile", "Custom".into());
    let other = shown(&bmc, &["--all"]);
    bmc.set_pending("LogicalProc", "Disabled".into());
    let waiting = shown(&bmc, &[]);
    for node in 0..200 {
        let text = match node {
            7 | 11 => &other,
            23 => &waiting,
            _ => &usual,
        };
        fs::write(dir.path().join(format!("n{node:03}.bios.json")), text).unwrap();
    }
    fs::write(dir.path().join("broken.bios.json"), "{").unwrap();
    fs::write(dir.path().join("index.json"), "{}").unwrap();
    let folder = dir.path().to_str().unwrap();
    let page = dir.path().join("page.html");
    let compare = |more: &[&str]| run(&[&["fleet", "compare", "--files", folder], more].concat());
    let told = compare(&["-o", page.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("broken.bios.json"), "{}", told.err);
    let text = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "3 of 200 nodes have another bios.profile (SysProfile): ";
    assert!(text.contains(wanted) && text.contains("on n007, n011, n023; the other 197 have"), "{}", told.out);
    assert!(
        text.contains("1 of 200 nodes has another bios.smt (LogicalProc): on, off at the next boot on n023"),
        "{}",
        told.out
    );
    let document = assert_valid(&validator("fleet-compare"), "fleet compare", &compare(&["--json"]).out);
    let profile =
        document["firmware"]["uneven"].as_array().unwrap().iter().find(|u| u["what"] == "bios.profile").unwrap();
    assert_eq!((profile["n_usual"].as_u64(), profile["n_known"].as_u64()), (Some(197), Some(200)));
    assert_eq!(profile["others"][0]["nodes"], serde_json::json!(["n007", "n011", "n023"]));
    assert!(
        document["nodes"].as_array().unwrap().iter().all(|n| n["word"] == "cannot_tell"),
        "nobody is accused of a cost"
    );
    let csv = compare(&["--csv"]).out;
    let row = csv.lines().find(|line| line.starts_with("n007,")).unwrap();
    assert!(row.contains("bios.profile: ") && row.contains("(usual: "), "{row}");
    assert!(csv.lines().find(|line| line.starts_with("n000,")).unwrap().ends_with(','), "{csv}");
    let html = fs::read_to_string(page).unwrap().replace('\u{a0}', " ");
    assert!(
        html.contains("bios.profile (SysProfile)") && html.contains("n007, n011, n023") && html.contains("197 of 200")
    );
}

const PLAN: &str = r#"
format = 1
name = "firmware"
max_left_out = 1
[change]
bios = ["bios.c-states=off"]
[targets]
groups = ["here"]
[[stage]]
canary = 1
pause = "20s"
[[stage]]
percent = 100
[[gate]]
name = "fine"
command = ["true"]
hold = "0s"
"#;

fn rollout(dir: &Path, args: &[&str]) -> Command {
    let place = |name: &str| dir.join(name).display().to_string();
    let (list, book) = (place("bmcs"), place("book"));
    let mut command =
        wakewatt(&[&["fleet", "rollout", "--book", &book, "--bmc", &list, "--bmc-user", USER], args].concat());
    command.env("WAKEWATT_REDFISH_PASSWORD", PASSWORD);
    command
}

fn ended(dir: &Path, args: &[&str]) -> Said {
    let said = said(&mut rollout(dir, args));
    assert!(!format!("{said:?}").contains(PASSWORD), "{said:?}");
    said
}

/// Is the password anywhere below?
fn holds_password(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| match entry.path() {
        path if path.is_dir() => holds_password(&path),
        path => String::from_utf8_lossy(&fs::read(path).unwrap()).contains(PASSWORD),
    })
}

#[test]
fn an_operator_of_firmware_is_killed_and_another_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let bmcs: Vec<Emulator> = (0..3).map(|_| Emulator::start(Vendor::Dell).unwrap()).collect();
    let other = Emulator::start(Vendor::Hpe).unwrap();
    let mut list: String =
        bmcs.iter().enumerate().map(|(at, bmc)| format!("n{at} bmc={} group=here\n", bmc.url())).collect();
    list += &format!("odd bmc={} group=here\n", other.url());
    fs::write(dir.path().join("bmcs"), list).unwrap();
    let plan = dir.path().join("plan.toml").display().to_string();
    fs::write(&plan, PLAN).unwrap();
    let by_ssh = dir.path().join("hosts").display().to_string();
    fs::write(&by_ssh, "n0 group=here\n").unwrap();
    let wrong = run(&["fleet", "rollout", &plan, "--dry-run", "--ssh", &by_ssh]);
    assert!(wrong.code == Some(2) && wrong.err.contains("--bmc LIST"), "{wrong:?}");
    let misspelt = dir.path().join("misspelt.toml").display().to_string();
    fs::write(&misspelt, PLAN.replace("c-states", "c-state")).unwrap();
    let misspelt = ended(dir.path(), &[&misspelt]);
    assert!(misspelt.code == Some(4) && misspelt.err.contains("did you mean bios.c-states?"), "{misspelt:?}");

    let dry = ended(dir.path(), &[&plan, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
    assert!(
        dry.out.contains("nobody is restarted") && dry.out.contains("ProcCStates: Enabled -> Disabled"),
        "{}",
        dry.out
    );
    let dry = ended(dir.path(), &[&plan, "--dry-run", "--json"]);
    assert_valid(&validator("fleet-rollout-plan"), "fleet rollout --dry-run", &dry.out);
    assert!(bmcs.iter().all(|bmc| bmc.pending().is_empty()));

    let captures = dir.path().join("captures").display().to_string();
    let list = dir.path().join("bmcs").display().to_string();
    let collected = said(
        wakewatt(&["fleet", "collect", "--bmc", &list, "--bmc-user", USER, "-o", &captures])
            .env("WAKEWATT_REDFISH_PASSWORD", PASSWORD),
    );
    assert_eq!(collected.code, Some(0), "{collected:?}");
    let compared = run(&["fleet", "compare", "--files", &captures]);
    assert!(compared.out.contains("Nothing differs within a class"), "{}", compared.out);

    let mut first = rollout(dir.path(), &[&plan]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = || serde_json::from_str::<Value>(&ended(dir.path(), &["--status", "--json"]).out).unwrap_or_default();
    assert!(wait_until(Duration::from_secs(60), || status()["phase"].get("pausing").is_some()));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(bmcs[0].pending().contains_key("ProcCStates"), "what is staged stays staged");
    let done = ended(dir.path(), &["--resume", "--json"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let told = assert_valid(&validator("fleet-rollout"), "fleet rollout", &done.out);
    assert_eq!((told["end"].as_str(), told["carrier"].as_str()), (Some("done"), Some("bmc")));
    let odd = told["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "odd").unwrap();
    assert!(odd["is"] == "refused" && odd["why"].as_str().unwrap().contains("another kind"), "{odd}");
    for bmc in &bmcs {
        let n = bmc.log().iter().filter(|line| line.starts_with("PATCH")).count();
        assert_eq!((n, bmc.resets().len()), (1, 0));
    }
    assert!(other.pending().is_empty() && !holds_password(&dir.path().join("book")));
    let status = ended(dir.path(), &["--status"]);
    assert!(status.out.contains("at the next boot, nobody was restarted"), "{}", status.out);
    let undone = ended(dir.path(), &["--undo"]);
    assert_eq!(undone.code, Some(0), "{}{}", undone.out, undone.err);
    assert!(bmcs.iter().all(|bmc| bmc.pending().is_empty()));
}
