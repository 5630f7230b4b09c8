//! What `tune apply` came to: the document, the text for people, and one sentence for those whom neither reached.

use crate::exit::Code;
use crate::output;
use crate::view::Style;
use crate::view::wrap::wrap;
use serde::Serialize;
use std::fmt::Write as _;
use wakewatt_tune::apply::{Outcome, SettingOutcome, SettingResult};
use wakewatt_words::{say, word};

/// The document of `tune apply`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// The transaction; none when nothing stays changed.
    pub id: Option<String>,
    /// Every setting: requested, read back, effective.
    pub settings: Vec<SettingOutcome>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Why everything was taken back.
    pub failed: Option<String>,
    /// What could not be taken back.
    pub not_restored: Vec<String>,
    /// Seconds within which it must be confirmed.
    pub confirm_within_s: Option<u64>,
    /// What a guard saw.
    pub guard: Option<String>,
    /// What to know: kernel parameters wait for a reboot.
    pub notes: Vec<String>,
}

impl Applied {
    /// Of this outcome.
    pub(super) fn of(
        outcome: &Outcome,
        confirm_within_s: Option<u64>,
        guard: Option<String>,
        notes: Vec<String>,
    ) -> Applied {
        Applied {
            id: outcome.id.clone(),
            failed: outcome.failed.as_ref().map(|(why, _)| why.clone()),
            not_restored: outcome.failed.as_ref().map_or_else(Vec::new, |(_, report)| report.left()),
            settings: outcome.settings.clone(),
            left_out: outcome.left_out.clone(),
            confirm_within_s,
            guard,
            notes,
        }
    }

    /// How the command ends.
    pub(super) fn code(&self, is_partial: bool, is_journal_left: bool) -> Code {
        match (&self.failed, self.not_restored.is_empty()) {
            (_, false) => Code::NotRestored,
            (Some(_), _) if is_journal_left => Code::BadFile,
            (Some(_), _) => Code::Refused,
            (None, _) if is_partial => Code::Partial,
            (None, _) => Code::Fine,
        }
    }
}

/// For somebody whom the report did not reach.
pub(super) fn in_a_sentence(applied: &Applied) -> String {
    match (&applied.id, &applied.failed) {
        (Some(id), _) => match applied.confirm_within_s {
            Some(s) => say!("{id} is applied; it is undone in {s} s unless confirmed: wakewatt tune confirm"),
            None => say!("{id} is applied and stays; wakewatt tune undo {id} takes it back"),
        },
        (None, Some(why)) if applied.not_restored.is_empty() => say!("nothing stays changed: {why}"),
        (None, Some(why)) => say!("NOT everything could be put back: {why}"),
        (None, None) => say!("nothing had to be changed"),
    }
}

/// For people.
pub(super) fn text(applied: &Applied, outcome: &Outcome, style: Style) -> String {
    let mut out = String::new();
    let width = output::width();
    let n_of = |test: fn(&SettingResult) -> bool| applied.settings.iter().filter(|s| test(&s.result)).count();
    let n_set = n_of(|r| matches!(r, SettingResult::Set | SettingResult::Clamped(_)));
    let n_so = n_of(|r| *r == SettingResult::WasSo);
    let n_out = applied.left_out.len();
    let mut lines: Vec<(String, String, usize, String)> = Vec::new();
    for setting in &applied.settings {
        let what = match &setting.result {
            SettingResult::WasSo => continue,
            SettingResult::Set => String::new(),
            SettingResult::Clamped(how) => format!(" ({how})"),
            SettingResult::Refused(why) => say!(" REFUSED: {why}"),
        };
        let force = setting.effective.as_ref().map_or(String::new(), |e| say!("; in force: {e}"));
        let (from, to) = (&setting.before_shown, &setting.requested_shown);
        let said = format!("{from} -> {to}{what}{force}");
        // A 512-CPU machine has one line per kind of change, not per CPU.
        match lines.last_mut().filter(|l| l.0 == setting.name && l.1 == said) {
            Some(line) => line.2 += 1,
            None => lines.push((setting.name.clone(), said, 1, setting.place.clone())),
        }
    }
    for (name, said, n, place) in lines {
        let at = if n > 1 { say!("{n} places from {place} on") } else { place };
        let _ = writeln!(out, "{}", wrap("  ", "      ", &say!("{name} at {at}: {said}"), width));
    }
    for why in &applied.left_out {
        let _ = writeln!(out, "{}", wrap(&say!("  left out: "), "      ", why, width));
    }
    if let Some(why) = &applied.failed {
        let all = if applied.not_restored.is_empty() {
            word!("everything is as before")
        } else {
            word!("NOT everything could be put back")
        };
        let _ = writeln!(out, "{}", style.red(&wrap(word!("Taken back: "), "  ", &format!("{why}; {all}"), width)));
        return out;
    }
    if let Some(said) = &applied.guard {
        let _ = writeln!(out, "{}", wrap(word!("Guard: "), "  ", said, width));
    }
    for note in &applied.notes {
        let _ = writeln!(out, "{}", wrap(word!("Note: "), "  ", note, width));
    }
    let _ = match &outcome.id {
        Some(id) => {
            let name = style.bold(id);
            let said = say!(
                "{name} applied: {n_set} settings written and read back, {n_so} were so already, {n_out} left out. Undo: wakewatt tune undo {id}"
            );
            writeln!(out, "{said}")
        }
        None => writeln!(out, "{}", say!("Nothing to do: {n_so} settings are so already.")),
    };
    out
}
