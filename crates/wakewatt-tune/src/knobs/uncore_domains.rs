//! The uncore domains whose files may be written, and their CPUs: shared by the uncore knobs.
//!
//! On TPMI parts (Xeon 6) `package_PP_die_DD` fans a write out to all clusters of the die, bounds it by each (EINVAL
//! half-way), and reads back one of them; so where a package has clusters (`uncoreNN`), only these are offered
//! (admin-guide/pm/intel_uncore_frequency_scaling.rst). There `compute` stands for all dies with cores and L3 and `io` for
//! those without, whatever their numbers. Domains go when the last CPU of their die goes offline.

use super::one_file;
use crate::knob::Host;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_core::facts::uncore::UncoreDomain;
use wakewatt_words::word;

/// Where they are.
pub(super) fn folder(domain: &UncoreDomain) -> String {
    format!("{ROOT}/intel_uncore_frequency/{}", domain.name)
}

/// Domains to write: clusters where there are any, else whole dies.
pub(super) fn writable<'a>(host: &'a Host<'_>) -> Result<Vec<&'a UncoreDomain>, String> {
    let found: Vec<&UncoreDomain> = host.facts.uncore.deciding().collect();
    if found.is_empty() {
        let path = format!("{ROOT}/intel_uncore_frequency");
        return Err(one_file::missing(host, &path, word!("Intel only, driver intel_uncore_frequency")));
    }
    Ok(found)
}

/// The running CPUs a domain serves: its die where the kernel numbers it alike, else its package.
pub(super) fn cpus(host: &Host<'_>, domain: &UncoreDomain) -> CpuSet {
    let package = domain.package_id.get().map(|id| one_file::package(host, *id)).unwrap_or_default();
    let die = domain.domain_id.get().map(|id| host.facts.topology.die_id.cpus_where(|die| die == id).and(&package));
    die.filter(|cpus| domain.is_whole_die() && !cpus.is_empty()).unwrap_or(package)
}
