//! What is asked becomes an order: parameters for the boot loader, a profile that keeps what was kept, units.

use super::*;
use crate::boot::{BootCommand, FileEdit, TryOnce};
use crate::profile::Profile;
use crate::request::Place;
use crate::systemd;
use wakewatt_core::source::Tree;

fn asked(to: &str) -> Asked {
    Asked {
        purpose: format!("governor {to}"),
        requests: vec![Request::new("freq.governor", Place::Everywhere, to)],
        arguments: Vec::new(),
    }
}

#[test]
fn settings_alone_need_neither_file_nor_command() {
    let made = asked("performance").order(Terms::default(), &Tree::default(), &[]).unwrap();
    assert_eq!(made.order.requests, asked("performance").requests);
    assert!(made.order.files.is_empty() && made.order.commands.is_empty() && made.notes.is_empty());
}

#[test]
fn a_boot_plan_is_carried_out_for_good_or_once_or_refused() {
    let edit = |text: &[u8]| FileEdit { path: "/x".into(), before: None, after: Some(text.to_vec()), mode: 0o644 };
    let step = |word: &str| BootCommand { argv: vec![word.into()], undo: vec![], why: String::new() };
    let mut plan = BootPlan { edits: vec![edit(b"x")], commands: vec![step("install")], ..BootPlan::default() };
    let made = |plan: &BootPlan, is_trying| {
        let mut steps = Steps::default();
        boot::add(plan, "GRUB", is_trying, &mut steps).map(|()| steps)
    };
    let steps = made(&plan, false).unwrap();
    assert_eq!((steps.files[0].to.as_deref(), steps.commands[0].0[0].as_str()), (Some("x"), "install"));
    plan.try_once = Some(TryOnce::Offered { edits: vec![edit(b"y")], commands: vec![], to_keep: "again".into() });
    let steps = made(&plan, true).unwrap();
    assert_eq!((steps.files[0].to.as_deref(), steps.commands.len()), (Some("y"), 0));
    plan.try_once = Some(TryOnce::Refused { why: "it cannot".into() });
    assert_eq!(made(&plan, true).unwrap_err(), OrderError::Refused("--try-once: it cannot".into()));
    plan.edits = vec![edit(&[0xff])];
    assert!(made(&plan, false).unwrap_err().to_string().contains("no text"));
}

#[test]
fn what_is_kept_stays_kept_unless_overruled() {
    let kept = Profile { about: "before".into(), requests: asked("powersave").requests, ..Profile::default() };
    let (about, all) = persist::together(&kept, &asked("performance"));
    assert_eq!((about.as_str(), all), ("governor performance", asked("performance").requests));
    let other = Asked { requests: vec![Request::new("freq.epb", Place::Everywhere, "0")], ..asked("x") };
    let (about, all) = persist::together(&kept, &other);
    assert_eq!((about.as_str(), all.len()), ("before; governor x", 2));
}

#[test]
fn without_systemd_the_profile_is_kept_and_what_else_to_do_is_said() {
    let (root, mut steps) = (tempfile::tempdir().unwrap(), Steps::default());
    persist::add(&asked("performance"), root.path(), &mut steps).unwrap();
    assert_eq!(steps.files[0].path, format!("file:{}", systemd::BOOT_PROFILE));
    assert!(steps.files.len() == 1 && steps.commands.is_empty() && steps.notes[0].contains("no systemd here"));
}

#[test]
fn a_boot_profile_that_others_may_write_is_not_added_to() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(systemd::BOOT_PROFILE.trim_start_matches('/'));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "format = 1\n[set]\n\"freq.epb\" = 0\n").unwrap();
    let add = || persist::add(&asked("performance"), root.path(), &mut Steps::default());
    assert!(add().is_ok());
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let why = add().unwrap_err().to_string();
    assert!(why.contains(systemd::BOOT_PROFILE) && why.contains("may be written by everybody"), "{why}");
}

#[test]
fn what_is_enabled_already_is_not_disabled_by_undo() {
    let root = tempfile::tempdir().unwrap();
    let under = |path: &str| root.path().join(path.trim_start_matches('/'));
    let wants = under("/etc/systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&wants).unwrap();
    assert_eq!(persist::enabling(under).len(), 2);
    std::os::unix::fs::symlink("nowhere", wants.join(systemd::APPLY_UNIT)).unwrap();
    let commands = persist::enabling(under);
    assert_eq!(commands.len(), 1);
    assert!(commands[0].0.contains(&"wakewatt-confirm.timer".to_string()), "{commands:?}");
}
