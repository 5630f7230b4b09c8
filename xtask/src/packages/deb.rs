//! A package for Debian and its kin, by `dpkg-deb`, which every one of them has.
//!
//! cargo-deb would make the same from a table in Cargo.toml. It costs 171 s of CPU time to install, builds the binary itself, and
//! knows nothing of the other formats; `dpkg-deb` makes a folder into a package, sorts it and takes its times from
//! SOURCE_DATE_EPOCH. What is left to say is one control file. Scripts of the package: packaging/debian.

use super::content::repository_file;
use super::tool::{filter, gzip, run, tool};
use super::tree::Tree;
use super::{MAINTAINER, Release};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What runs when the package comes and goes.
pub(super) const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes it; the file.
pub(super) fn write(release: &Release, common: &Tree, folder: &Path) -> Result<PathBuf> {
    let tree = whole(release, common)?;
    let stage = tempfile::tempdir()?;
    let root = stage.path().join("root");
    let mut laid = tree.clone();
    for (name, text) in control_files(release, &tree)? {
        match SCRIPTS.contains(&name) {
            true => laid.add_program(format!("DEBIAN/{name}"), text),
            false => laid.add(format!("DEBIAN/{name}"), text),
        }
    }
    laid.lay(&root, release.epoch_s)?;
    let file = folder.join(format!("wakewatt_{}_{}.deb", release.version, release.arch.of_debian()));
    let mut build = tool("dpkg-deb", release.epoch_s);
    // One thread: xz cuts its input into as many blocks as it has threads.
    build.args(["--build", "--root-owner-group", "-Zxz", "-z6", "--threads-max=1"]).arg(&root).arg(&file);
    run(build)?;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644))?;
    Ok(file)
}

/// What is installed: the common files and those that only Debian wants.
pub(super) fn whole(release: &Release, common: &Tree) -> Result<Tree> {
    let mut tree = common.clone();
    tree.add("usr/share/doc/wakewatt/copyright", copyright()?);
    let mut date = tool("date", release.epoch_s);
    date.args(["-u", "-R", "-d", &format!("@{}", release.epoch_s)]);
    let date = String::from_utf8(run(date)?)?;
    let changes = format!(
        "wakewatt ({}) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md.gz beside this file.\n\n -- {MAINTAINER}  {date}",
        release.version
    );
    tree.add("usr/share/doc/wakewatt/changelog.gz", gzip(changes.as_bytes())?);
    tree.add("usr/share/lintian/overrides/wakewatt", repository_file("packaging/debian/lintian-overrides")?);
    Ok(tree)
}

/// The files that dpkg keeps for itself.
pub(super) fn control_files(release: &Release, tree: &Tree) -> Result<Vec<(&'static str, String)>> {
    let mut sums = String::new();
    for (path, file) in &tree.files {
        let line = String::from_utf8(filter("md5sum", &[], &file.bytes)?)?;
        sums += &format!("{}  {path}\n", line.split_whitespace().next().context("md5sum said nothing")?);
    }
    let mut files = vec![("control", control(release, tree)), ("md5sums", sums)];
    for name in SCRIPTS {
        files.push((name, repository_file(&format!("packaging/debian/{name}"))?));
    }
    Ok(files)
}

/// No dependencies: the binary is static. What it can use is suggested.
fn control(release: &Release, tree: &Tree) -> String {
    let kibibytes = tree.files.values().map(|file| file.bytes.len().div_ceil(1024)).sum::<usize>();
    format!(
        "Package: wakewatt\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {kibibytes}\nSuggests: prometheus\n\
         Section: admin\nPriority: optional\nHomepage: {}\nDescription: {}\n{}",
        release.version,
        release.arch.of_debian(),
        super::HOMEPAGE,
        super::SUMMARY,
        super::ABOUT
            .lines()
            .map(|line| if line.is_empty() { " .\n".into() } else { format!(" {line}\n") })
            .collect::<String>()
    )
}

/// In Debian's own form (copyright-format 1.0).
fn copyright() -> Result<String> {
    let mit = repository_file("LICENSE-MIT")?;
    let mit = mit.split_once("\n\nPermission").map(|(_, rest)| format!("Permission{rest}")).context("LICENSE-MIT")?;
    let indented: String = mit
        .lines()
        .map(|line| if line.trim().is_empty() { " .\n".to_string() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: wakewatt\nSource: {}\n\
         Comment: One static binary. What others wrote of it, and under which terms, is in third-party.txt.gz\n beside this file.\n\n\
         Files: *\nCopyright: 2026 The wakewatt authors\nLicense: MIT or Apache-2.0\n\n\
         License: MIT or Apache-2.0\n At your option, Apache-2.0 (/usr/share/common-licenses/Apache-2.0) or MIT:\n .\n{indented}",
        super::HOMEPAGE
    ))
}
