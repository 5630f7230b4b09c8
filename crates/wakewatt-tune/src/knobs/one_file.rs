//! Knobs that are one file for the whole machine, or one file per CPU: the sites, made once for all of them.

use crate::knob::{Host, Site, Valid, text};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::fact::Gap;
use wakewatt_core::source::ErrorKind;
use wakewatt_words::say;

/// A site at a file, none where the file is not there; one that is there and cannot be read is a site all the same.
pub(super) fn find(
    host: &Host<'_>,
    name: &str,
    place: impl Into<String>,
    cpus: CpuSet,
    path: String,
    valid: Valid,
) -> Option<Site> {
    let (now, unread) = match text(host.source, &path) {
        Ok(now) => (Some(now), None),
        Err(e) if matches!(e.kind, ErrorKind::Absent | ErrorKind::NotRecorded) => return None,
        Err(e) => (None, Some(e.detail)),
    };
    Some(Site { name: name.into(), place: place.into(), cpus, path, now, unread, valid, refusal: None, kind: None })
}

/// The one site of the machine, or why there is none: what the source says of the file, and what that means.
pub(super) fn machine(
    host: &Host<'_>,
    name: &str,
    path: &str,
    valid: Valid,
    absent_because: &str,
) -> Result<Vec<Site>, String> {
    match find(host, name, "machine", host.online(), path.into(), valid) {
        Some(site) => Ok(vec![site]),
        None => Err(missing(host, path, absent_because)),
    }
}

/// `path: no such file (what that means)`; of what was not recorded nothing follows.
pub(super) fn missing(host: &Host<'_>, path: &str, because: &str) -> String {
    let read = text(host.source, path);
    // Named after the maker's driver, or after a register that only its processors have.
    let is_intels = path.contains("/intel_") || path.ends_with("/energy_perf_bias");
    if is_intels && host.facts.topology.processor().is_some_and(|processor| !processor.is_intel()) {
        return say!("{path}: for Intel's processors only");
    }
    match read {
        Err(e) if e.kind == ErrorKind::NotRecorded => Gap::from_read(path, &e).to_string(),
        Err(e) => say!("{gap} ({because})", gap = Gap::from_read(path, &e)),
        Ok(_) => format!("{path}: {because}"),
    }
}

/// One CPU as a set.
pub(super) fn only(cpu: u32) -> CpuSet {
    std::iter::once(cpu).collect()
}

/// The CPUs of a package that run.
pub(super) fn package(host: &Host<'_>, id: u32) -> CpuSet {
    let packages = host.facts.topology.packages();
    packages.iter().find(|(package, _)| *package == id).map(|(_, cpus)| cpus.and(&host.online())).unwrap_or_default()
}
