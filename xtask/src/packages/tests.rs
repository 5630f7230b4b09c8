//! Packages made of a binary that is none: the same bytes twice, the list of files, what the control files say.
//!
//! Programs of packagers are asked where they are; what needs a real binary, root or a booted system is in scripts/prove-packages.sh.

use super::*;
use crate::packages::tree::Tree;
use expect_test::expect;
use std::collections::BTreeSet;
use std::process::Output;
use std::sync::OnceLock;
use wakewatt_testing::{Lacks, skipped};

/// The head of a program for this machine's 64-bit kin, with what a bill of materials looks for.
fn binary(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    bytes.resize(18, 0);
    bytes.extend([machine, 0]);
    bytes.resize(4096, 0);
    bytes.extend(
        b"GNU C Library (Debian GLIBC 2.36-9) stable\0rustc version 1.95.0 (5980)\0GCC: (Debian 12.2.0-14) 12.2.0\0",
    );
    bytes
}

fn release(arch: Arch) -> Release {
    Release { version: "1.2.3".into(), epoch_s: 1_795_000_000, arch }
}

/// Asked of cargo once: it is the same for every test.
fn common(arch: Arch) -> &'static (Tree, linked::Linked) {
    static BOTH: [OnceLock<(Tree, linked::Linked)>; 2] = [OnceLock::new(), OnceLock::new()];
    BOTH[usize::from(arch == Arch::Arm)].get_or_init(|| {
        let linked = linked::Linked::of(arch.target()).unwrap();
        (content::common(&release(arch), &binary(62), &linked).unwrap(), linked)
    })
}

/// Names, with the many pages of the manual as one.
fn names(tree: &Tree) -> String {
    let is_page = |path: &&String| path.contains("/man1/wakewatt-");
    let n_pages = tree.files.keys().filter(is_page).count();
    assert!(n_pages > 40, "{n_pages} pages");
    let others = tree.files.iter().filter(|(path, _)| !is_page(path));
    others.map(|(path, file)| format!("{:o} {path}\n", file.mode)).collect()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn what_is_installed() {
    let (common, _) = common(Arch::X86);
    let deb = deb::whole(&release(Arch::X86), common).unwrap();
    expect![[r#"
        755 usr/bin/wakewatt
        644 usr/lib/systemd/system/wakewatt-agent.service
        644 usr/lib/systemd/system/wakewatt-apply.service
        644 usr/lib/systemd/system/wakewatt-confirm.service
        644 usr/lib/systemd/system/wakewatt-confirm.timer
        644 usr/lib/systemd/system/wakewatt-hold@.service
        644 usr/lib/udev/rules.d/90-wakewatt.rules
        644 usr/share/bash-completion/completions/wakewatt
        644 usr/share/doc/wakewatt/CHANGELOG.md.gz
        644 usr/share/doc/wakewatt/GUIDE.md.gz
        644 usr/share/doc/wakewatt/README.md
        644 usr/share/doc/wakewatt/agent-security.md.gz
        644 usr/share/doc/wakewatt/changelog.gz
        644 usr/share/doc/wakewatt/copyright
        644 usr/share/doc/wakewatt/install.md.gz
        644 usr/share/doc/wakewatt/third-party.txt.gz
        644 usr/share/doc/wakewatt/wakewatt.cdx.json.gz
        644 usr/share/fish/vendor_completions.d/wakewatt.fish
        644 usr/share/lintian/overrides/wakewatt
        644 usr/share/man/man1/wakewatt.1.gz
        644 usr/share/wakewatt/grafana/fleet.json
        644 usr/share/wakewatt/grafana/node.json
        644 usr/share/wakewatt/prometheus/wakewatt.rules.yml
        644 usr/share/zsh/vendor-completions/_wakewatt
    "#]]
    .assert_eq(&names(&deb));
    let moved = |other: &Tree, strip: &str| {
        let deb: BTreeSet<String> = deb.files.keys().map(|p| p.trim_start_matches(strip).to_string()).collect();
        let other: BTreeSet<String> = other.files.keys().cloned().collect();
        let lines = |a: &BTreeSet<String>, b: &BTreeSet<String>, mark: &str| -> String {
            a.difference(b).map(|path| format!("{mark} {path}\n")).collect()
        };
        lines(&deb, &other, "-") + &lines(&other, &deb, "+")
    };
    expect![[r#"
        - usr/share/doc/wakewatt/changelog.gz
        - usr/share/doc/wakewatt/copyright
        - usr/share/doc/wakewatt/third-party.txt.gz
        - usr/share/lintian/overrides/wakewatt
        - usr/share/zsh/vendor-completions/_wakewatt
        + usr/share/licenses/wakewatt/LICENSE-APACHE
        + usr/share/licenses/wakewatt/LICENSE-MIT
        + usr/share/licenses/wakewatt/third-party.txt.gz
        + usr/share/zsh/site-functions/_wakewatt
    "#]]
    .assert_eq(&moved(&rpm::whole(common).unwrap(), ""));
    expect![[r#"
        - share/doc/wakewatt/changelog.gz
        - share/doc/wakewatt/copyright
        - share/lintian/overrides/wakewatt
        - share/zsh/vendor-completions/_wakewatt
        + share/doc/wakewatt/LICENSE-APACHE
        + share/doc/wakewatt/LICENSE-MIT
        + share/zsh/site-functions/_wakewatt
    "#]]
    .assert_eq(&moved(&tarball::whole(common).unwrap(), "usr/"));
    expect![[r#"
        licences/LICENSE-APACHE
        licences/LICENSE-MIT
        licences/third-party.txt.gz
        wakewatt
    "#]]
    .assert_eq(&oci::layer(common).unwrap().files.keys().map(|path| format!("{path}\n")).collect::<String>());
}

#[test]
fn no_file_names_this_machine_or_the_wrong_program() {
    let (common, _) = common(Arch::X86);
    let here = crate::repository().display().to_string();
    for tree in [deb::whole(&release(Arch::X86), common).unwrap(), rpm::whole(common).unwrap()] {
        for (path, file) in &tree.files {
            let text = String::from_utf8_lossy(&file.bytes);
            assert!(!text.contains(&here), "{path} names the folder it was made in");
            assert!(!text.contains("/usr/local/bin/wakewatt"), "{path}: the program lies at {}", content::PROGRAM);
        }
    }
    for (path, text) in content::units("/opt/x/wakewatt").unwrap() {
        let is_program = |line: &&str| line.starts_with("Exec");
        assert!(text.lines().filter(is_program).all(|line| line.contains("/opt/x/wakewatt")), "{path}: {text}");
    }
}

#[test]
fn two_builds_in_two_folders_are_the_same_bytes() {
    let (common, linked) = common(Arch::X86);
    let release = release(Arch::X86);
    type Write = fn(&Release, &Tree, &Path) -> Result<PathBuf>;
    let writers: [(Format, Write); 4] = [
        (Format::Deb, deb::write),
        (Format::Rpm, rpm::write),
        (Format::Oci, oci::write),
        (Format::Tar, tarball::write),
    ];
    for (format, write) in writers {
        if let Some(program) = lacking(format) {
            skipped("packages::two_builds", Lacks::Program(program), "none of its packages was made");
            continue;
        }
        let made = |umask: u32| {
            let folder = tempfile::tempdir().unwrap();
            let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
            let file = write(&release, common, folder.path());
            rustix::process::umask(before);
            let file = file.unwrap();
            (file.file_name().unwrap().to_owned(), std::fs::read(&file).unwrap())
        };
        let (one, other) = (made(0o022), made(0o077));
        assert_eq!(one.0, other.0);
        assert!(one.1 == other.1, "{format:?}: two builds differ");
    }
    let bill = |moment: &str| sbom::document(linked, &binary(62), "1.2.3", moment).unwrap();
    assert_eq!(bill(&release.time()), bill(&release.time()));
}

#[test]
fn the_control_file_says_what_dpkg_asks_for() {
    let (common, _) = common(Arch::Arm);
    if let Some(program) = lacking(Format::Deb) {
        return skipped("packages::control", Lacks::Program(program), "no package to look into");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = deb::write(&release(Arch::Arm), common, folder.path()).unwrap();
    let ask = |words: &[&str]| {
        let output = Command::new("dpkg-deb").args(words).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let control: String = ask(&["--field"])
        .lines()
        .filter(|l| !l.starts_with("Installed-Size"))
        .take(9)
        .fold(String::new(), |all, line| all + line + "\n");
    expect![[r#"
        Package: wakewatt
        Version: 1.2.3
        Architecture: arm64
        Maintainer: The wakewatt authors <wakewatt@example.invalid>
        Suggests: prometheus
        Section: admin
        Priority: optional
        Homepage: https://example.invalid/wakewatt
        Description: weighs CPU wake-up latency against watts
    "#]]
    .assert_eq(&control);
    let contents = ask(&["--contents"]);
    assert!(contents.lines().all(|line| line.contains(" root/root ")), "{contents}");
    assert!(contents.lines().all(|line| line.contains("2026-11-18")), "one moment for all: {contents}");
    let scripts =
        String::from_utf8(Command::new("dpkg-deb").arg("--info").arg(&file).output().unwrap().stdout).unwrap();
    assert!(deb::SCRIPTS.iter().all(|name| scripts.contains(&format!(" *  {name} "))), "{scripts}");
}

/// What both kinds of package do before they go is the same, so one text is looked at: neither may go while a journal is there.
#[test]
fn scripts_are_shell_and_keep_what_can_be_undone() {
    for name in ["debian/postinst", "debian/prerm", "debian/postrm", "rpm/post", "rpm/preun", "rpm/postun"] {
        let path = crate::repository().join("packaging").join(name);
        let output = Command::new("sh").arg("-n").arg(&path).output().unwrap();
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
    for name in ["debian/prerm", "rpm/preun"] {
        let text = content::repository_file(&format!("packaging/{name}")).unwrap();
        for word in
            ["/var/lib/wakewatt/open/*.json", "/var/lib/wakewatt/bios/*.json", "wakewatt tune undo --all", "exit 1"]
        {
            assert!(text.contains(word), "{name}: {word}");
        }
    }
    let bios = content::repository_file("crates/wakewatt-bios/src/journal.rs").unwrap();
    assert!(bios.contains("STATE_DIR: &str = \"/var/lib/wakewatt/bios\""), "journals of firmware lie elsewhere now");
    assert_eq!(wakewatt_tune::journal::STATE_DIR, "/var/lib/wakewatt/open");
}

#[test]
fn the_bill_names_everything_that_is_linked_and_nothing_that_only_builds() {
    let (_, linked) = common(Arch::X86);
    let text = sbom::document(linked, &binary(62), "1.2.3", "2026-11-18T11:06:40Z").unwrap();
    let bill: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|c| c["name"] == name);
    for name in
        ["serde_json", "rustls", "ring", "libsqlite3-sys", "wakewatt-core", "glibc", "rust-std", "libgcc", "sqlite"]
    {
        assert!(named(name).is_some(), "{name} is linked in");
    }
    for name in ["serde_derive", "cc", "proptest", "xtask", "schemars"] {
        assert!(named(name).is_none(), "{name} is not in the binary");
    }
    assert_eq!(named("glibc").unwrap()["version"], "2.36-9");
    let mut references = BTreeSet::from([bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in components {
        let text = |key: &str| component[key].as_str().unwrap_or_else(|| panic!("{key}: {component}"));
        assert!(references.insert(text("bom-ref")), "{component} twice");
        assert!(text("purl").starts_with("pkg:") && !text("version").is_empty(), "{component}");
        assert!(component["licenses"][0]["expression"].as_str().is_some_and(|e| !e.is_empty()), "{component}");
    }
    for entry in bill["dependencies"].as_array().unwrap() {
        let on = entry["dependsOn"].as_array().unwrap().iter();
        assert!(on.chain([&entry["ref"]]).all(|name| references.contains(name.as_str().unwrap())), "{entry}");
    }
    let notices = linked.notices().unwrap();
    assert!(
        notices.contains("Apache License") && notices.contains("serde_json ") && notices.contains("LGPL-2.1-or-later")
    );
}

#[test]
fn a_file_that_is_no_program_is_refused() {
    assert_eq!((Arch::of(&binary(62)), Arch::of(&binary(183))), (Some(Arch::X86), Some(Arch::Arm)));
    assert_eq!((Arch::of(&binary(3)), Arch::of(b"#!/bin/sh\nexec true and more"), Arch::of(b"")), (None, None, None));
}
