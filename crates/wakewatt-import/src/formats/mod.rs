//! The formats, one file each. To add one: write the file (how likely a text is its own, and what its lines say), add a line here
//! and a row in `docs/import.md`.

mod corefreq;
mod cpupower_frequency;
mod cpupower_idle;
mod cpupower_monitor;
mod dmidecode;
mod energy_policy;
mod flags;
mod idle_table;
mod kernel_files;
mod kernel_log;
mod lscpu;
mod metrics;
mod numa;
mod pepc;
mod perf_sched;
mod smbios;
mod system;
mod tuned;
mod turbostat;
mod turbostat_header;

use crate::reading::Format;

/// Of a list whose line may go on beyond what the text has.
const MAY_BE_CUT: &str = "a list that may be cut here: the line ends at the edge of a screen, or the text ends in it";

/// Every format but events, which are read in time order over all texts ([`crate::events`]).
pub const FORMATS: &[&Format] = &[
    &kernel_files::FORMAT,
    &cpupower_idle::FORMAT,
    &cpupower_frequency::FORMAT,
    &cpupower_monitor::FORMAT,
    &turbostat::FORMAT,
    &turbostat_header::FORMAT,
    &lscpu::FORMAT,
    &numa::FORMAT,
    &numa::COUNTS,
    &kernel_log::FORMAT,
    &system::SYSCTL,
    &system::UNAME,
    &system::UPTIME,
    &corefreq::FORMAT,
    &perf_sched::FORMAT,
    &tuned::FORMAT,
    &energy_policy::FORMAT,
    &pepc::FORMAT,
    &metrics::FORMAT,
    &idle_table::FORMAT,
    // Behind the others: an open structure takes every field that follows.
    &dmidecode::FORMAT,
];

#[cfg(test)]
pub(crate) mod testing {
    //! A text through all formats, and what it came to.
    use crate::{Imported, Input, import};

    pub(crate) fn read(text: &str) -> Imported {
        import(vec![Input::Text { name: "a.txt".into(), path: None, bytes: text.as_bytes().to_vec() }])
    }

    /// What the machine says at this path.
    pub(crate) fn says(found: &Imported, path: &str) -> Option<String> {
        found.facts.value(path)
    }

    /// The formats found.
    pub(crate) fn formats(found: &Imported) -> Vec<String> {
        found.document.files.iter().flat_map(|f| &f.formats).map(|f| f.format.clone()).collect()
    }
}
