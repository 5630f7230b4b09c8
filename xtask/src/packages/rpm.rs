//! A package for Fedora, openSUSE and their kin, by `rpmbuild` (Debian's package `rpm` has it, too).
//!
//! cargo-generate-rpm costs 551 s of CPU time to install; a spec file of one page, packaging/rpm/wakewatt.spec, costs nothing. The files are
//! laid out before rpmbuild sees them, so it compiles and strips nothing, and an arm64 package is made on any machine.

use super::Release;
use super::content::{ZSH_OF_DEBIAN, repository_file};
use super::tool::{run, tool};
use super::tree::Tree;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const LICENCES: &str = "usr/share/licenses/wakewatt";

/// Writes it; the file.
pub(super) fn write(release: &Release, common: &Tree, folder: &Path) -> Result<PathBuf> {
    let tree = whole(common)?;
    let stage = tempfile::tempdir()?;
    let root = stage.path().join("laid");
    tree.lay(&root, release.epoch_s)?;
    let spec = stage.path().join("wakewatt.spec");
    std::fs::write(&spec, spec_text(release, &tree)?)?;
    let mut build = tool("rpmbuild", release.epoch_s);
    build.args(["-bb", "--quiet", "--target", &format!("{}-linux", release.arch.of_rpm())]);
    for (name, value) in [
        ("_topdir", stage.path().join("top").display().to_string()),
        ("laid", root.display().to_string()),
        ("_buildhost", "reproducible".into()),
        ("use_source_date_epoch_as_buildtime", "1".into()),
        ("clamp_mtime_to_source_date_epoch", "1".into()),
        ("_dbpath", stage.path().join("db").display().to_string()),
    ] {
        build.args(["--define", &format!("{name} {value}")]);
    }
    run({
        build.arg(&spec).env("HOME", stage.path());
        build
    })?;
    let name = format!("wakewatt-{}-1.{}.rpm", release.version, release.arch.of_rpm());
    let made = stage.path().join("top/RPMS").join(release.arch.of_rpm()).join(&name);
    let file = folder.join(name);
    std::fs::copy(&made, &file).with_context(|| format!("{}: rpmbuild did not make it", made.display()))?;
    Ok(file)
}

/// What is installed: licences and completions where these systems look for them.
pub(super) fn whole(common: &Tree) -> Result<Tree> {
    let mut tree = common.clone();
    if let Some(file) = tree.files.remove(ZSH_OF_DEBIAN) {
        tree.files.insert("usr/share/zsh/site-functions/_wakewatt".into(), file);
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(format!("{LICENCES}/{name}"), repository_file(name)?);
    }
    if let Some(file) = tree.files.remove("usr/share/doc/wakewatt/third-party.txt.gz") {
        tree.files.insert(format!("{LICENCES}/third-party.txt.gz"), file);
    }
    Ok(tree)
}

/// The spec with its list of files, sorted as the tree is. Folders of our own belong to the package, others to the system.
fn spec_text(release: &Release, tree: &Tree) -> Result<String> {
    let mut files = String::new();
    for folder in [
        "usr/share/doc/wakewatt",
        LICENCES,
        "usr/share/wakewatt",
        "usr/share/wakewatt/grafana",
        "usr/share/wakewatt/prometheus",
    ] {
        files += &format!("%dir /{folder}\n");
    }
    for path in tree.files.keys() {
        let kind = match path {
            path if path.starts_with(LICENCES) => "%license ",
            path if path.contains("/share/doc/") || path.contains("/share/man/") => "%doc ",
            _ => "",
        };
        files += &format!("{kind}/{path}\n");
    }
    let mut date = tool("date", release.epoch_s);
    date.args(["-u", "+%a %b %d %Y", "-d", &format!("@{}", release.epoch_s)]);
    let date = String::from_utf8(run(date)?)?;
    let script = |name: &str| repository_file(&format!("packaging/rpm/{name}"));
    Ok(repository_file("packaging/rpm/wakewatt.spec")?
        .replace("@VERSION@", &release.version)
        .replace("@SUMMARY@", &super::SUMMARY.replacen('w', "W", 1))
        .replace("@MAINTAINER@", super::MAINTAINER)
        .replace("@ABOUT@", super::ABOUT)
        .replace("@HOMEPAGE@", super::HOMEPAGE)
        .replace("@POST@", &script("post")?)
        .replace("@PREUN@", &script("preun")?)
        .replace("@POSTUN@", &script("postun")?)
        .replace("@DATE@", date.trim())
        .replace("@FILES@", &files))
}
