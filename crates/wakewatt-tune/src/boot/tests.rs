//! Every loader on recorded trees: plan, carry out in memory, compare with the tree it should give, undo, compare again.
//!
//! `fixtures/boot/<case>/before` and `/after` are trees; `plan.txt` is the plan as people would see it (written anew
//! with WAKEWATT_BLESS=1). Commands are not run here: what they would do is their own affair.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};
use wakewatt_core::source::Tree;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/boot")
}

/// A folder as a machine in memory. Empty folders are kept by a file `.keep`, which is not shown.
fn load(root: &Path) -> Tree {
    fn walk(root: &Path, folder: &Path, tree: &mut Tree) {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            let inside = format!("/{}", path.strip_prefix(root).unwrap().to_str().unwrap());
            if name == ".keep" {
                continue;
            }
            names.push(name);
            if path.is_dir() {
                walk(root, &path, tree);
            } else {
                tree.files.insert(inside, Ok(fs::read(&path).unwrap()));
            }
        }
        if names.is_empty() {
            let inside = format!("/{}", folder.strip_prefix(root).unwrap().to_str().unwrap());
            tree.folders.insert(inside, Ok(names));
        }
    }
    let mut tree = Tree { name: "test".into(), ..Tree::default() };
    walk(root, root, &mut tree);
    tree
}

fn set(tree: &mut Tree, path: &str, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => tree.files.insert(path.into(), Ok(bytes)),
        None => tree.files.remove(path),
    };
}

fn carry_out(tree: &mut Tree, edits: &[FileEdit]) {
    for edit in edits {
        assert_eq!(tree.files.get(&edit.path).cloned().and_then(Result::ok), edit.before, "{}", edit.path);
        set(tree, &edit.path, edit.after.clone());
    }
}

fn undo(tree: &mut Tree, edits: &[FileEdit]) {
    for edit in edits.iter().rev() {
        assert_eq!(tree.files.get(&edit.path).cloned().and_then(Result::ok), edit.after, "{}", edit.path);
        set(tree, &edit.path, edit.before.clone());
    }
}

fn show_edits(out: &mut String, edits: &[FileEdit]) {
    for edit in edits {
        let verb = match (&edit.before, &edit.after) {
            (None, _) => "create",
            (_, None) => "delete",
            _ => "change",
        };
        out.push_str(&format!("{verb} {}\n", edit.path));
    }
}

fn show_commands(out: &mut String, commands: &[BootCommand]) {
    for command in commands {
        out.push_str(&format!("run  {:?}\nundo {:?}\n", command.argv, command.undo));
    }
}

fn show(plan: &BootPlan) -> String {
    let mut out = format!("loader {}\n", plan.loader);
    show_edits(&mut out, &plan.edits);
    show_commands(&mut out, &plan.commands);
    plan.notes.iter().for_each(|n| out.push_str(&format!("note {n}\n")));
    match &plan.try_once {
        None => {}
        Some(TryOnce::Refused { why }) => out.push_str(&format!("no trial: {why}\n")),
        Some(TryOnce::Offered { edits, commands, to_keep }) => {
            out.push_str("trial:\n");
            show_edits(&mut out, edits);
            for edit in edits {
                out.push_str(&String::from_utf8_lossy(edit.after.as_deref().unwrap_or_default()));
            }
            show_commands(&mut out, commands);
            out.push_str(&format!("to keep it: {to_keep}\n"));
        }
    }
    out
}

fn compare_text(path: &Path, found: &str) {
    if std::env::var_os("WAKEWATT_BLESS").is_some() {
        fs::write(path, found).unwrap();
    }
    let wanted = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, wanted, "{}: WAKEWATT_BLESS=1 writes it anew", path.display());
}

fn compare_trees(case: &str, found: &Tree, wanted: &Tree) {
    let names = |t: &Tree| t.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(wanted), "{case}");
    for (path, bytes) in &found.files {
        let text = |b: &wakewatt_core::source::Read<Vec<u8>>| String::from_utf8_lossy(b.as_ref().unwrap()).into_owned();
        assert_eq!(text(bytes), text(&wanted.files[path]), "{case}: {path}");
    }
}

/// What every case asks for.
const WANTED: &str = "intel_idle.max_cstate=1 processor.max_cstate=1";

/// Case, loader, its id.
const CASES: &[(&str, &str)] = &[
    ("grub-debian-12", "grub-debian"),
    ("grub-ubuntu-24.04-cloud", "grub-debian"),
    ("systemd-boot-debian-13", "systemd-boot"),
];

#[test]
fn every_case_goes_there_and_back() {
    let wanted = Argument::parse_all(WANTED).unwrap();
    for (case, loader) in CASES {
        let folder = fixtures().join(case);
        let before = load(&folder.join("before"));
        let (chosen, because) = choose(&before).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_eq!(chosen.about().id, *loader, "{case}: {because}");
        let plan = chosen.plan(&before, &wanted).unwrap_or_else(|e| panic!("{case}: {e}"));
        compare_text(&folder.join("plan.txt"), &format!("because {because}\n{}", show(&plan)));

        let mut tree = before.clone();
        carry_out(&mut tree, &plan.edits);
        if std::env::var_os("WAKEWATT_BLESS").is_some() {
            for edit in &plan.edits {
                let path = folder.join("after").join(edit.path.trim_start_matches('/'));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, edit.after.as_ref().unwrap()).unwrap();
            }
        }
        let mut after = before.clone();
        after.files.extend(load(&folder.join("after")).files);
        compare_trees(case, &tree, &after);

        undo(&mut tree, &plan.edits);
        compare_trees(case, &tree, &before);

        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<BootPlan>(&json).unwrap(), plan, "{case}");
    }
}
