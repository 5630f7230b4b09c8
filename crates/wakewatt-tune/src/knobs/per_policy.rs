//! Knobs that are one file in every cpufreq policy: the sites, made once for all of them.

use crate::knob::{Host, Site, Valid, text};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// Where policies are.
pub(super) const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

/// The site of `file` in every policy that has it; `valid` says what that policy (its folder) takes. A policy whose CPUs
/// are all offline stays listed and answers EBUSY to everything; it is left out as its CPUs are, also where they go
/// while it is read.
pub(super) fn sites(
    host: &Host<'_>,
    name: &str,
    file: &str,
    valid: impl Fn(&str) -> Result<Valid, String>,
) -> Result<Vec<Site>, String> {
    let root = Folder::list(host.source, ROOT);
    let policies = root.numbered("policy");
    if policies.is_empty() {
        return Err(say!("{ROOT}: no policies, so no cpufreq driver (in a guest the hypervisor sets the clock)"));
    }
    let mut sites = Vec::new();
    let online = host.online();
    for policy in policies {
        let mut left = TRIES;
        let site = loop {
            let cpus = cpus(host, &format!("{ROOT}/policy{policy}"), policy);
            let is_away = |online: &CpuSet| !online.is_empty() && cpus.and(online).is_empty();
            if is_away(&online) {
                break None;
            }
            left -= 1;
            match site(host, (name, file), policy, &cpus, &valid) {
                Ok(site) if site.as_ref().is_none_or(|site| site.unread.is_none()) => break site,
                // It is read again: its CPUs may have gone and come back.
                _ if online_now(host).is_some_and(|online| is_away(&online)) => break None,
                found if left == 0 => break found?,
                _ => {}
            }
        };
        sites.extend(site);
    }
    if sites.is_empty() { Err(say!("{ROOT}/policy*: no {file} with this driver")) } else { Ok(sites) }
}

/// How often a policy is read that cannot be read, although its CPUs are online.
const TRIES: u32 = 3;

/// The file of one policy; none where the policy has none.
fn site(
    host: &Host<'_>,
    (name, file): (&str, &str),
    policy: u32,
    cpus: &CpuSet,
    valid: &impl Fn(&str) -> Result<Valid, String>,
) -> Result<Option<Site>, String> {
    let folder = Folder::list(host.source, format!("{ROOT}/policy{policy}"));
    if let Some(gap) = folder.gap() {
        return Err(gap.to_string());
    }
    if !folder.has(file) {
        return Ok(None);
    }
    let path = format!("{}/{file}", folder.path);
    let (valid, place) = (valid(&folder.path)?, format!("policy{policy}"));
    Ok(Some(Site::at(host.source, name, place, cpus.clone(), path, valid)))
}

/// Which CPUs are online by now; the facts are older.
fn online_now(host: &Host<'_>) -> Option<CpuSet> {
    CpuSet::parse(host.text("/sys/devices/system/cpu/online")?.trim()).ok()
}

/// The CPUs of a policy: its own word, else the CPU it is named after.
pub(super) fn cpus(host: &Host<'_>, folder: &str, policy: u32) -> CpuSet {
    // Files list CPUs with blanks between; a CpuSet parses commas.
    let listed =
        host.text(&format!("{folder}/affected_cpus")).map(|t| t.split_whitespace().collect::<Vec<_>>().join(","));
    listed.and_then(|t| CpuSet::parse(&t).ok()).filter(|c| !c.is_empty()).unwrap_or_else(|| {
        let mut own = CpuSet::new();
        own.insert(policy);
        own
    })
}

/// A list of words in a policy's file.
pub(super) fn word_list(host: &Host<'_>, folder: &str, file: &str) -> Result<Vec<String>, String> {
    let path = format!("{folder}/{file}");
    let words = text(host.source, &path).map_err(|e| format!("{path}: {e}"))?;
    Ok(words.split_whitespace().map(str::to_string).collect())
}

/// A number in a policy's file.
pub(super) fn number(host: &Host<'_>, folder: &str, file: &str) -> Result<u64, String> {
    let path = format!("{folder}/{file}");
    let text = text(host.source, &path).map_err(|e| format!("{path}: {e}"))?;
    text.trim().parse().map_err(|_| say!("{path}: expected a number, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::{ErrorKind, Read, ReadError, Source, Tree};

    /// A machine whose CPU 1 goes once its policy is looked at; `n_busy` of those looks fail, and it is back after them.
    struct Going {
        tree: Tree,
        n_busy: std::cell::Cell<u32>,
        comes_back: bool,
    }

    impl Source for Going {
        fn read(&self, path: &str) -> Read<Vec<u8>> {
            if path.starts_with(&format!("{ROOT}/policy1/")) && !path.ends_with("affected_cpus") {
                if self.comes_back && self.n_busy.get() == 0 {
                    return self.tree.read(path);
                }
                self.n_busy.set(if self.comes_back { self.n_busy.get() - 1 } else { 1 });
                return Err(ReadError::new(ErrorKind::Failed, "Device or resource busy (os error 16)"));
            }
            let is_gone = !self.comes_back && self.n_busy.get() > 0;
            match path {
                "/sys/devices/system/cpu/online" if is_gone => Ok(b"0\n".to_vec()),
                _ => self.tree.read(path),
            }
        }
        fn list(&self, path: &str) -> Read<Vec<String>> {
            self.tree.list(path)
        }
        fn link(&self, path: &str) -> Read<String> {
            self.tree.link(path)
        }
        fn msr(&self, cpu: wakewatt_core::units::Cpu, address: u32) -> Read<u64> {
            self.tree.msr(cpu, address)
        }
        fn origin(&self) -> String {
            self.tree.origin()
        }
    }

    #[test]
    fn a_cpu_that_goes_while_its_policy_is_read_hides_no_other() {
        for (comes_back, n_busy, expected) in [(false, 0, &["policy0"][..]), (true, 1, &["policy0", "policy1"])] {
            let tree = Tree::from_text(&format!(
                "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n\
                 //- {ROOT}/policy0/affected_cpus\n0\n//- {ROOT}/policy0/x\n1\n\
                 //- {ROOT}/policy1/affected_cpus\n1\n//- {ROOT}/policy1/x\n1\n"
            ));
            let source = Going { tree, n_busy: n_busy.into(), comes_back };
            let facts = Host::read(&source);
            source.n_busy.set(n_busy);
            let valid = |folder: &str| number(&facts, folder, "x").map(|max| Valid::Number { min: 0, max });
            let found = sites(&facts, "freq.x", "x", valid).unwrap();
            assert_eq!(found.iter().map(|s| s.place.as_str()).collect::<Vec<_>>(), expected);
            assert!(found.iter().all(|site| site.unread.is_none()));
        }
    }

    #[test]
    fn a_policy_without_running_cpus_does_not_hide_the_others() {
        let tree = Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/present\n0-1\n\
             //- {ROOT}/policy0/affected_cpus\n0\n//- {ROOT}/policy0/x\n1\n\
             //- {ROOT}/policy1/x!busy\n"
        ));
        let host = Host::read(&tree);
        let valid = |folder: &str| number(&host, folder, "x").map(|max| Valid::Number { min: 0, max });
        let found = sites(&host, "freq.x", "x", valid).unwrap();
        assert_eq!(found.iter().map(|s| s.place.as_str()).collect::<Vec<_>>(), ["policy0"]);
    }
}
