//! Knobs that are one file in every cpufreq policy: the sites, made once for all of them.

use crate::knob::{Host, Site, Valid, text};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::folder::Folder;
use wakewatt_words::say;

/// Where policies are.
pub(super) const ROOT: &str = "/sys/devices/system/cpu/cpufreq";

/// The site of `file` in every policy that has it; `valid` says what that policy (its folder) takes. A policy whose CPUs
/// are all offline stays listed and answers EBUSY to everything; it is left out as its CPUs are.
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
        let folder = Folder::list(host.source, format!("{ROOT}/policy{policy}"));
        if let Some(gap) = folder.gap() {
            return Err(gap.to_string());
        }
        if folder.has(file) {
            let cpus = cpus(host, &folder.path, policy);
            if !online.is_empty() && cpus.and(&online).is_empty() {
                continue;
            }
            let path = format!("{}/{file}", folder.path);
            sites.push(Site::at(host.source, name, format!("policy{policy}"), cpus, path, valid(&folder.path)?));
        }
    }
    if sites.is_empty() { Err(say!("{ROOT}/policy*: no {file} with this driver")) } else { Ok(sites) }
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
    use wakewatt_core::source::Tree;

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
