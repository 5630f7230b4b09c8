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
    if root.is_dir() {
        walk(root, root, &mut tree);
    }
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
    ("grub-bls-fedora-41", "grub-bls"),
    ("grub-bls-rhel-8", "grub-bls"),
    ("rpm-ostree-silverblue-41", "rpm-ostree"),
    ("bootc-fedora-43", "bootc"),
    ("flatcar-3033-usr-share-oem", "flatcar"),
    ("flatcar-3975-oem", "flatcar"),
    ("systemd-boot-debian-13", "systemd-boot"),
];

/// Cases in which nothing may be planned; `plan.txt` is the message.
const REFUSED: &[&str] = &[
    "refused-uki",
    "refused-uki-drop-in",
    "refused-proxmox",
    "refused-systemd-boot-no-cmdline",
    "refused-both-installed",
    "refused-firecracker",
    "refused-container",
    "refused-later-drop-in",
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

/// A person's work on every file that a plan writes: undo takes our words out and leaves that as it is.
#[test]
fn a_hand_edited_file_loses_our_words_and_nothing_else() {
    let wanted = Argument::parse_all(WANTED).unwrap();
    let (first, last) = ("intel_idle.max_cstate=1", "processor.max_cstate=1");
    let mut n_files = 0;
    for (case, _) in CASES {
        let before = load(&fixtures().join(case).join("before"));
        let plan = choose(&before).unwrap().0.plan(&before, &wanted).unwrap();
        for edit in &plan.edits {
            let text = |bytes: &Option<Vec<u8>>| bytes.clone().map(|b| String::from_utf8(b).unwrap());
            let (was, ours) = (text(&edit.before), text(&edit.after).unwrap());
            let out = |now: &str| take_out::take_out(&edit.path, was.as_deref(), Some(&ours), now);
            let about = format!("{case}: {}", edit.path);
            let base = was.clone().unwrap_or_default();
            // Lines before and after, a comment that names our word among them.
            let around = |inside: &str| format!("# {first} is what I wanted\n{inside}# last\n");
            assert_eq!(out(&around(&ours)), Some(Some(around(&base))), "{about}");
            n_files += 1;
            if edit.path == record::RECORD {
                continue;
            }
            // A word between ours, one before and one after them.
            let edited = ours.replacen(&format!("{first} {last}"), &format!("quiet {first} debug {last} splash"), 1);
            assert_ne!(edited, ours, "{about}");
            let left = out(&edited).unwrap_or_else(|| panic!("{about}: {edited}")).unwrap();
            assert!(!left.contains(first) && !left.contains(last), "{about}: {left}");
            assert!(left.contains("quiet debug splash"), "{about}: {left}");
            let theirs: String = left.replace(" quiet debug splash", "");
            let kept: Vec<&str> = base.lines().filter(|l| !theirs.contains(l)).collect();
            assert!(kept.is_empty(), "{about}: {kept:?} is gone from {left}");
            // Twice the same word is nobody's to judge.
            assert_eq!(out(&edited.replace("debug", last)), None, "{about}");
        }
    }
    assert!(n_files >= 8, "{n_files}");
}

/// The same machine after the commands of a plan, as far as the next plan can see it: what the tools keep.
fn pretend_commands(tree: &mut Tree, plan: &BootPlan) {
    let entries: Vec<String> = tree.files.keys().filter(|p| p.starts_with("/boot/loader/entries/")).cloned().collect();
    for command in &plan.commands {
        for path in &entries {
            let is_hit = match command.argv[0].as_str() {
                "grubby" => {
                    let kernel = command.argv[1].trim_start_matches("--update-kernel=");
                    kernel == "ALL" || path.contains("rescue")
                }
                "rpm-ostree" => path.ends_with("ostree-2.conf"),
                "bootc" => true,
                _ => false,
            };
            if is_hit {
                let text = String::from_utf8(tree.files[path].clone().unwrap()).unwrap();
                tree.files.insert(path.clone(), Ok(pretend_one(&text, &command.argv).into_bytes()));
            }
        }
        if command.argv[0] == "grubby" && tree.files.contains_key("/boot/grub2/grubenv") {
            let text = String::from_utf8(tree.files["/boot/grub2/grubenv"].clone().unwrap()).unwrap();
            let text = text.lines().map(|l| match l.strip_prefix("kernelopts=") {
                Some(rest) => format!("kernelopts={}\n", pretend_line(rest, &command.argv)),
                None => format!("{l}\n"),
            });
            tree.files.insert("/boot/grub2/grubenv".into(), Ok(text.collect::<String>().into_bytes()));
        }
    }
}

fn pretend_one(text: &str, argv: &[String]) -> String {
    let mut out = String::new();
    for line in text.lines().filter(|l| argv[0] != "bootc" || !l.starts_with("x-options-source-wakewatt")) {
        match line.strip_prefix("options ") {
            Some(rest) if !rest.contains("$kernelopts") => {
                // bootc takes the source's old words out first.
                let old = text.lines().find_map(|l| l.strip_prefix("x-options-source-wakewatt ")).unwrap_or_default();
                let ours = Argument::parse_all(if argv[0] == "bootc" { old } else { "" }).unwrap();
                let rest = line::without(&line::words(rest), &ours).join(" ");
                out.push_str(&format!("options {}\n", pretend_line(&rest, argv)));
            }
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    if let Some(at) = argv.iter().position(|w| w == "--options") {
        out.push_str(&format!("x-options-source-wakewatt {}\n", argv[at + 1]));
    }
    out
}

/// grubby replaces a value; the others append.
fn pretend_line(text: &str, argv: &[String]) -> String {
    let mut line = line::words(text);
    let mut is_next = false;
    for option in argv {
        let (out, add) = match option.split_once('=') {
            Some(("--remove-args" | "--delete-if-present", words)) => (words, ""),
            Some(("--args" | "--append-if-missing", words)) => ("", words),
            _ if is_next => ("", option.as_str()),
            _ => ("", ""),
        };
        is_next = option == "--options";
        line.retain(|word| !out.split(' ').any(|o| o == word));
        for word in add.split(' ').filter(|w| !w.is_empty()) {
            let key = argument::split_word(word).0;
            match line.iter_mut().find(|w| argv[0] == "grubby" && argument::split_word(w).0 == key) {
                Some(there) => *there = word.into(),
                None => line.push(word.into()),
            }
        }
    }
    line.join(" ")
}

#[test]
fn planning_twice_changes_nothing_another_replaces_and_none_removes() {
    let wanted = Argument::parse_all(WANTED).unwrap();
    let other = Argument::parse_all("intel_idle.max_cstate=2 nosmt").unwrap();
    for (case, _) in CASES {
        let before = load(&fixtures().join(case).join("before"));
        let (loader, _) = choose(&before).unwrap();
        let follow = |tree: &Tree, arguments: &[Argument]| {
            let plan = loader.plan(tree, arguments).unwrap_or_else(|e| panic!("{case}: {e}"));
            let mut tree = tree.clone();
            carry_out(&mut tree, &plan.edits);
            pretend_commands(&mut tree, &plan);
            (plan, tree)
        };
        let (_, first) = follow(&before, &wanted);
        let (again, same) = follow(&first, &wanted);
        assert!(again.is_empty(), "{case}: the second plan is {}", show(&again));
        assert_eq!(same, first, "{case}");
        let (changed, second) = follow(&first, &other);
        assert!(!changed.is_empty(), "{case}");
        assert!(matches!(changed.try_once, Some(TryOnce::Refused { .. })), "{case}: a copy would keep the old words");
        let text = |t: &Tree| {
            let files = t.files.iter().filter(|(p, _)| !p.starts_with("/proc"));
            files.map(|(_, b)| String::from_utf8_lossy(b.as_ref().unwrap()).into_owned()).collect::<String>()
        };
        assert!(text(&second).contains("nosmt") && !text(&second).contains("intel_idle.max_cstate=1 "), "{case}");
        let (nothing_new, _) = follow(&second, &other);
        assert!(nothing_new.is_empty(), "{case}: {}", show(&nothing_new));
        let (_, gone) = follow(&second, &[]);
        let words = |t: &Tree| {
            let mut lines: Vec<(String, Vec<String>)> = Vec::new();
            for (path, bytes) in &t.files {
                let mut words = line::words(&String::from_utf8_lossy(bytes.as_ref().unwrap()));
                words.sort();
                lines.push((path.clone(), words));
            }
            lines
        };
        assert_eq!(words(&gone), words(&before), "{case}: taking ours away leaves a trace");
        let (nothing, _) = follow(&before, &[]);
        assert!(nothing.is_empty(), "{case}: nothing to take away");
    }
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    let wanted = Argument::parse_all(WANTED).unwrap();
    for case in REFUSED {
        let folder = fixtures().join(case);
        let before = load(&folder.join("before"));
        let error = match choose(&before) {
            Err(error) => error,
            Ok((loader, _)) => loader.plan(&before, &wanted).expect_err(case),
        };
        compare_text(&folder.join("plan.txt"), &format!("{error}\n"));
    }
}

#[test]
fn every_fixture_is_used() {
    for entry in fs::read_dir(fixtures()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        assert!(CASES.iter().any(|(c, _)| *c == name) || REFUSED.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn ids_are_unique_and_found() {
    for loader in LOADERS {
        assert_eq!(by_id(loader.about().id).unwrap().about(), loader.about());
    }
}

#[test]
fn no_damaged_file_makes_a_planner_panic() {
    use wakewatt_core::source::{ErrorKind, ReadError};
    let wanted = Argument::parse_all(WANTED).unwrap();
    let damage: &[&[u8]] = &[
        b"",
        b"\n",
        b"\xff\xfe\x00",
        b"\"",
        b"options",
        b"options \"",
        b"kernelopts",
        b"title\noptions $kernelopts $x\nlinux\n",
        b"menuentry 'x' {\nmenuentry {\n next_entry custom.cfg linux",
        b"set linux_append=\"$linux_append",
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"${",
        "loader grub-bls\nadded \u{e4}\n".as_bytes(),
        b"layout=\nlayout=uki",
    ];
    let folders = CASES.iter().map(|(case, _)| *case).chain(REFUSED.iter().copied());
    for tree in folders.map(|case| load(&fixtures().join(case).join("before"))) {
        for path in tree.files.keys() {
            let broken = damage.iter().map(|b| Ok(b.to_vec()));
            for content in broken.chain([Err(ReadError::new(ErrorKind::Denied, "Permission denied"))]) {
                let mut damaged = tree.clone();
                damaged.files.insert(path.clone(), content);
                for loader in LOADERS {
                    let _ = loader.detect(&damaged);
                    for arguments in [&wanted[..], &[]] {
                        let Ok(plan) = loader.plan(&damaged, arguments) else { continue };
                        // Whatever it plans fits the files it was planned for.
                        carry_out(&mut damaged.clone(), &plan.edits);
                    }
                }
            }
        }
    }
}
