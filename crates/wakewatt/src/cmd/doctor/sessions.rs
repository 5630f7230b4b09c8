//! `doctor --sessions N`: short sessions spread over an hour, each kept, and at the end what they say together.
//!
//! One session says how its minutes were. Several, apart from each other, say how the machine is; so each gets less time, and
//! the sessions more. Every session is judged and saved as doctor does alone; only the joined verdict is shown.

use super::{code, measure};
use crate::cli::DoctorArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::progress::Progress;
use crate::report::{self, Report, replication};
use crate::saved;
use crate::sessions::{Given, joined};
use crate::view::Style;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::rules::judge;
use wakewatt_core::units::show_ns;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_words::{say, spoken, word};

/// The files when none is named.
const DEFAULT_NAME: &str = "wakewatt-session.run";

/// Runs them.
pub(super) fn run(args: &DoctorArgs, n: u32, colour: Colour) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    let src = crate::cmd::open(&args.from)?;
    let name = args.save.clone().unwrap_or_else(|| DEFAULT_NAME.into());
    let files: Vec<PathBuf> = (1..=n).map(|at| numbered(&name, at)).collect();
    if let Some(there) = files.iter().find(|file| file.exists()) {
        let why = spoken(|| {
            say!("{path} is there already; name other files with --save, nothing was measured", path = there.display())
        });
        return Err(Failure::error(Code::BadFile, why));
    }
    let start_at_ns = monotonic_ns();
    let (mut worst, mut kept) = (Code::Fine, Vec::new());
    for (at, file) in (0u32..).zip(&files) {
        let begin_at_ns = start_at_ns + begins_after_ns(args.sessions_over, n, at);
        wait(&interrupt, &*src, begin_at_ns, at);
        if interrupt.is_set() {
            worst = Code::Interrupted;
            break;
        }
        let saving = saved::start(Some(file), "doctor", &*src)?;
        let mut evidence = Evidence {
            facts: saving.as_ref().map(|saving| saving.masking().facts()).unwrap_or_default(),
            ..Evidence::default()
        };
        measure(&DoctorArgs { quick: true, ..args.clone() }, monotonic_ns(), &*src, &mut evidence, &interrupt);
        let rulings = judge(&evidence);
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let report = Report::new(report::title(&evidence.facts), now, evidence, rulings);
        let own = code(args, &report, true, &interrupt);
        let own = saving.map_or(own, |saving| saving.finish_with(&report.evidence, own));
        kept.push(Given::ours(file.clone()));
        // A setting that was not put back must not be measured on.
        if matches!(own, Code::NotRestored | Code::Interrupted | Code::BadFile) {
            worst = own;
            break;
        }
    }
    if kept.len() < 2 && worst != Code::Fine {
        return Ok(worst);
    }
    let found = joined(&kept)?;
    let shown = match args.json {
        true => output::json("replicate", &found).and_then(|text| output::print(&text)),
        false => output::print(&replication::text(&found, Style { is_on: colour.is_on() }, output::width())),
    };
    Ok(output::settled(shown, worst))
}

fn wait(interrupt: &Interrupt, src: &dyn wakewatt_core::source::Source, begin_at_ns: u64, at: u32) {
    let left_ns = begin_at_ns.saturating_sub(monotonic_ns());
    if at > 0 && left_ns > 1_000_000_000 {
        let left = show_ns(left_ns / 1_000_000_000 * 1_000_000_000);
        output::remark(&spoken(|| say!("The next session begins in {left}.")));
    }
    let bar = Progress::start(spoken(|| word!("waiting")));
    interrupt.lab(src, &bar).wait_until(begin_at_ns);
}

/// Evenly from the first to the last.
fn begins_after_ns(over_ns: u64, n: u32, at: u32) -> u64 {
    over_ns / u64::from(n.saturating_sub(1).max(1)) * u64::from(at)
}

/// `db7.run` is `db7-1.run`.
fn numbered(name: &Path, at: u32) -> PathBuf {
    let stem = name.file_stem().map_or("session".into(), |s| s.to_string_lossy().into_owned());
    let ending = name.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    name.with_file_name(format!("{stem}-{at}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_spread_and_numbered() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!([0, 1, 2].map(|at| begins_after_ns(hour_ns, 3, at)), [0, hour_ns / 2, hour_ns]);
        assert_eq!(numbered(Path::new("runs/db7.run"), 2), PathBuf::from("runs/db7-2.run"));
        assert_eq!(numbered(Path::new("db7"), 1), PathBuf::from("db7-1"));
    }
}
