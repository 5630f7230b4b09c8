//! Debian's own Rust compiler with its arm64 library, for machines without rustup.
//!
//! rustc-web is the compiler Debian keeps recent for its browsers; its library is co-installable for a foreign
//! architecture, but the compiler conflicts with rustc and with rustup. So the packages are fetched with apt and
//! unpacked below the target folder, which needs neither root nor changes the machine. A wrapper sets the library
//! path, as the compiler looks for its driver in the system's folders. What the packages need beyond themselves (libxml2,
//! libedit2 and the like) is what Debian's clang needs too, and is expected to be there.

use anyhow::{Context, Result, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libstd-rust-web-dev:arm64";
/// What of the compiler's dependencies is unpacked beside it: their names hold a version.
const BESIDE: &[&str] = &["libstd-rust-web", "libllvm"];

/// The compiler as one program to run, fetched the first time.
pub(super) fn compiler() -> Result<PathBuf> {
    let home = crate::binary::target_folder().join("debian-rustc-web");
    let wrapper = home.join("rustc");
    if wrapper.exists() && super::has_library(&wrapper) {
        return Ok(wrapper);
    }
    if !output(Command::new("dpkg").arg("--print-foreign-architectures"))?.lines().any(|line| line == "arm64") {
        bail!("arm64 packages are not known here; as root: dpkg --add-architecture arm64 && apt-get update");
    }
    std::fs::create_dir_all(&home).with_context(|| format!("{}: not writable", home.display()))?;
    let mut packages = vec!["rustc-web".to_string()];
    let mut n_looked_at = 0;
    while let Some(package) = packages.get(n_looked_at).cloned() {
        n_looked_at += 1;
        for found in beside(&output(Command::new("apt-cache").args(["depends", &package]))?) {
            if !packages.contains(&found) {
                packages.push(found);
            }
        }
    }
    packages.push(LIBRARY.to_string());
    eprintln!("unpacking {} into {}", packages.join(" "), home.display());
    let archives = home.join("archives");
    std::fs::create_dir_all(&archives)?;
    output(Command::new("apt-get").args(["download", "-qq"]).args(&packages).current_dir(&archives))?;
    let root = home.join("root");
    for archive in std::fs::read_dir(&archives)? {
        output(Command::new("dpkg").arg("-x").arg(archive?.path()).arg(&root))?;
    }
    std::fs::remove_dir_all(&archives)?;
    write_wrapper(&wrapper, &root)?;
    if !super::has_library(&wrapper) {
        bail!("{}: unpacked, but it does not run or knows no arm64; see what it says", wrapper.display());
    }
    Ok(wrapper)
}

/// The dependencies to unpack, from what `apt-cache depends` says.
fn beside(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.filter(|name| BESIDE.iter().any(|front| name.starts_with(front))).map(str::to_string).collect()
}

fn write_wrapper(wrapper: &Path, root: &Path) -> Result<()> {
    let root = root.canonicalize()?;
    let root = root.to_str().context("the path of the target folder is not UTF-8")?.replace('\'', r"'\''");
    let machine = std::env::consts::ARCH;
    let text = format!(
        "#!/bin/sh\nroot='{root}'\nexport LD_LIBRARY_PATH=\"$root/usr/lib/{machine}-linux-gnu\"\nexec \"$root/usr/bin/rustc\" \"$@\"\n"
    );
    std::fs::write(wrapper, text)?;
    std::fs::set_permissions(wrapper, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Standard output of a command that has to succeed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().with_context(|| format!("{name}: could not be run; this way needs a Debian system"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_packages_of_the_compiler_are_unpacked() {
        let text = "rustc-web\n  Depends: libc6\n  Depends: libstd-rust-web-dev\n  Depends: gcc\n  Conflicts: rustc\n    libllvm-not\n  Depends: libllvm22\n";
        assert_eq!(super::beside(text), ["libstd-rust-web-dev", "libllvm22"]);
    }
}
