//! What a package holds: one list for every format, made from a binary and this repository.
//!
//! Programs and units lie where distributions put them (`/usr/bin`, `/usr/lib/systemd/system`). The units of settings that are kept
//! are those that `tune apply --persist` writes, as the package's own: each waits for a file that only a person makes, so an
//! installation changes nothing. `--persist` still writes its own into /etc, which overrule these.

use super::linked::Linked;
use super::tool::gzip;
use super::tree::Tree;
use super::{Release, sbom};
use anyhow::{Context, Result};
use clap_complete::Shell;

/// Where the packages put the program.
pub(super) const PROGRAM: &str = "/usr/bin/wakewatt";
/// Debian keeps this name for packages; elsewhere it is `site-functions`.
pub(super) const ZSH_OF_DEBIAN: &str = "usr/share/zsh/vendor-completions/_wakewatt";
const DOC: &str = "usr/share/doc/wakewatt";

/// Files that are taken as they are: in the repository, in the package.
const AS_THEY_ARE: [(&str, &str); 4] = [
    ("packaging/prometheus/wakewatt.rules.yml", "usr/share/wakewatt/prometheus/wakewatt.rules.yml"),
    ("packaging/grafana/node.json", "usr/share/wakewatt/grafana/node.json"),
    ("packaging/grafana/fleet.json", "usr/share/wakewatt/grafana/fleet.json"),
    ("README.md", "usr/share/doc/wakewatt/README.md"),
];

/// The same for every format; each adds its own.
pub(super) fn common(release: &Release, binary: &[u8], linked: &Linked) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.add_program(PROGRAM.trim_start_matches('/'), binary);
    for (name, page) in crate::dist::man_pages()? {
        tree.add(format!("usr/share/man/man1/{name}.gz"), gzip(&page)?);
    }
    for (shell, path) in [
        (Shell::Bash, "usr/share/bash-completion/completions/wakewatt"),
        (Shell::Zsh, ZSH_OF_DEBIAN),
        (Shell::Fish, "usr/share/fish/vendor_completions.d/wakewatt.fish"),
    ] {
        tree.add(path, crate::dist::completions(shell));
    }
    for (path, text) in units(PROGRAM)? {
        tree.add(path, text);
    }
    for (from, to) in AS_THEY_ARE {
        tree.add(to, repository_file(from)?);
    }
    for name in ["GUIDE.md", "docs/agent-security.md", "docs/install.md", "CHANGELOG.md"] {
        let short = name.rsplit('/').next().unwrap_or(name);
        tree.add(format!("{DOC}/{short}.gz"), gzip(repository_file(name)?.as_bytes())?);
    }
    tree.add(format!("{DOC}/third-party.txt.gz"), gzip(linked.notices()?.as_bytes())?);
    let bill = sbom::document(linked, binary, &release.version, &release.time())?;
    tree.add(format!("{DOC}/wakewatt.cdx.json.gz"), gzip(bill.as_bytes())?);
    Ok(tree)
}

/// The service, and what keeps settings, for a program at this path.
pub(super) fn units(program: &str) -> Result<Vec<(String, String)>> {
    let agent = repository_file("packaging/wakewatt-agent.service")?;
    let agent = agent.replace("/usr/local/bin/wakewatt", program);
    let mut units = vec![("usr/lib/systemd/system/wakewatt-agent.service".to_string(), agent)];
    for unit in wakewatt_tune::systemd::units(program) {
        let text = unit.text.replace("# Written by wakewatt.", "# Shipped with wakewatt.");
        units.push((unit.path.replacen("/etc/", "usr/lib/", 1), text));
    }
    Ok(units)
}

/// A text of this repository.
pub(super) fn repository_file(name: &str) -> Result<String> {
    let path = crate::repository().join(name);
    std::fs::read_to_string(&path).with_context(|| format!("{}: not readable", path.display()))
}
