//! The readers that need more than core.

use std::path::Path;
use wakewatt::report::{Report, text::Style};
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::rules::judge;
use wakewatt_core::source::Tree;
use wakewatt_host::simulated::SimulatedMachine;
use wakewatt_host::store::Store;
use wakewatt_tune::boot::{self, Argument};
use wakewatt_tune::journal::Journal;
use wakewatt_tune::profile::Profile;

/// Run file as every kind of report.
pub(crate) fn report(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(run) = RunFile::read(&text) else { return };
    let Ok(evidence) = run.evidence("fuzz") else { return };
    let rulings = judge(&evidence);
    let report = Report::new("fuzz", "never", evidence, rulings);
    let _ = (report.verdict(), report.to_text(Style::default()), report.to_markdown(), report.to_html().is_ok());
}

/// Profile.
pub(crate) fn profile(bytes: &[u8]) {
    if let Ok(profile) = Profile::parse(&String::from_utf8_lossy(bytes)) {
        let _ = profile.all_requests();
    }
}

/// Plan of an experiment; its profiles are the shipped ones.
pub(crate) fn plan(bytes: &[u8]) {
    let shipped = |name: &str| Profile::parse(wakewatt_tune::profile::shipped(name)?);
    let _ = wakewatt_lab::plan::parse(&String::from_utf8_lossy(bytes), &shipped);
}

/// Journal.
pub(crate) fn journal(bytes: &[u8]) {
    let (store, file) = (SimulatedMachine::default(), Path::new("/open/tune-1.json"));
    if store.write(file, bytes, 0o600).is_ok() {
        let _ = Journal::load(&store, file);
    }
}

/// Boot arguments, and files of a boot loader (the tests' mini-language).
pub(crate) fn boot(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Argument::parse_all(&text);
    let tree = Tree::from_text(&text);
    let Ok((loader, _)) = boot::choose(&tree) else { return };
    let wanted = Argument::parse("intel_idle.max_cstate=1").into_iter().collect::<Vec<_>>();
    let _ = (loader.plan(&tree, &wanted), loader.plan(&tree, &[]));
}
