//! Kernel modules and what they need, in the order insmod wants them.
//!
//! `modules.dep` is made by depmod when a kernel is installed, and ours is not. So dependencies come from where depmod
//! has them: the strings of the `.modinfo` section, `depends=a,b`. What is compiled in stands in `modules.builtin`.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module to load.
#[derive(Debug)]
pub(super) struct Module {
    /// Name, underscores only.
    pub name: String,
    /// Parameters for insmod, as written in the machine file.
    pub parameters: String,
    /// The file, not compressed.
    pub bytes: Vec<u8>,
}

/// All modules for these wishes (`name` or `name key=value`), needed ones first, each once.
pub(super) fn ordered(wishes: &[String], folder: &Path) -> Result<Vec<Module>> {
    let mut index = BTreeMap::new();
    collect(&folder.join("kernel"), &mut index)?;
    let builtin = std::fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
    let builtin: BTreeSet<String> = builtin.lines().filter_map(|line| name_of(Path::new(line))).collect();
    let mut order = Order { index, builtin, done: BTreeSet::new(), modules: Vec::new() };
    for wish in wishes {
        let (name, parameters) = wish.split_once(' ').unwrap_or((wish, ""));
        order.add(&name.replace('-', "_"), parameters.trim())?;
    }
    Ok(order.modules)
}

struct Order {
    index: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
    done: BTreeSet<String>,
    modules: Vec<Module>,
}

impl Order {
    fn add(&mut self, name: &str, parameters: &str) -> Result<()> {
        if self.builtin.contains(name) || !self.done.insert(name.to_string()) {
            return Ok(());
        }
        let Some(path) = self.index.get(name).cloned() else {
            bail!("modules: {name}: this kernel has no such module");
        };
        let bytes = read(&path)?;
        for needed in depends(&bytes) {
            self.add(&needed, "").with_context(|| format!("needed by {name}"))?;
        }
        self.modules.push(Module { name: name.to_string(), parameters: parameters.to_string(), bytes });
        Ok(())
    }
}

fn collect(folder: &Path, index: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}: not readable", folder.display()))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            collect(&path, index)?;
        } else if let Some(name) = name_of(&path) {
            index.insert(name, path);
        }
    }
    Ok(())
}

/// `kernel/drivers/cpufreq/acpi-cpufreq.ko.xz` is `acpi_cpufreq`.
fn name_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (name, packing) = file.split_once(".ko")?;
    ["", ".xz"].contains(&packing).then(|| name.replace('-', "_"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|e| e == "xz") {
        let output = Command::new("xz").arg("-dc").arg(path).output();
        let output = output.context("xz could not be run; install it: sudo apt-get install xz-utils")?;
        if !output.status.success() {
            bail!("xz -dc {}: {}", path.display(), output.status);
        }
        return Ok(output.stdout);
    }
    std::fs::read(path).with_context(|| format!("{}: not readable", path.display()))
}

/// The names behind `depends=`. The section's strings each end with a zero byte, so the text between two is one of them.
fn depends(bytes: &[u8]) -> Vec<String> {
    let strings = bytes.split(|byte| *byte == 0);
    let lists = strings.filter_map(|text| std::str::from_utf8(text.strip_prefix(b"depends=")?).ok());
    lists.flat_map(|list| list.split(',')).filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_modules_come_first_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &[u8]| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("kernel/a/top-one.ko", b"\x7fELF\0name=top_one\0depends=low,mid-dle\0\0");
        write("kernel/b/mid-dle.ko", b"\0depends=low\0");
        write("kernel/b/low.ko", b"\0depends=\0");
        write("modules.builtin", b"kernel/c/inside.ko\n");
        let wishes = ["inside", "top-one key=1", "low"].map(String::from);
        let found = ordered(&wishes, folder.path()).unwrap();
        let names: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.parameters.as_str())).collect();
        assert_eq!(names, [("low", ""), ("mid_dle", ""), ("top_one", "key=1")]);
        let error = ordered(&["nothing".to_string()], folder.path()).unwrap_err();
        assert!(error.to_string().contains("nothing: this kernel has no such module"));
    }
}
