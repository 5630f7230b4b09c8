//! A tar archive for machines whose packages we do not make: the tree of `make install`, below one folder.
//!
//! Unpacked with `--strip-components=1 -C /usr/local` everything lies where an administrator's own programs lie; the units name that place.

use super::Release;
use super::content::{ZSH_OF_DEBIAN, repository_file, units};
use super::tool::{gzip, tar};
use super::tree::Tree;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Writes it; the file.
pub(super) fn write(release: &Release, common: &Tree, folder: &Path) -> Result<PathBuf> {
    let name = format!("wakewatt-{}-{}-linux", release.version, release.arch.of_rpm());
    let stage = tempfile::tempdir()?;
    whole(common)?.lay(&stage.path().join(&name), release.epoch_s)?;
    let file = folder.join(format!("{name}.tar.gz"));
    std::fs::write(&file, gzip(&tar(stage.path(), &name, release.epoch_s)?)?)
        .with_context(|| format!("{}", file.display()))?;
    Ok(file)
}

/// As below /usr, with the licences, and units for /usr/local.
pub(super) fn whole(common: &Tree) -> Result<Tree> {
    let mut tree = Tree::default();
    for (path, file) in &common.files {
        let path = if path == ZSH_OF_DEBIAN { "usr/share/zsh/site-functions/_wakewatt" } else { path };
        let short = path.strip_prefix("usr/").context("a file outside of /usr")?;
        tree.files.insert(short.to_string(), file.clone());
    }
    for (path, text) in units("/usr/local/bin/wakewatt")? {
        tree.add(path.replacen("usr/", "", 1), text);
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(format!("share/doc/wakewatt/{name}"), repository_file(name)?);
    }
    Ok(tree)
}
