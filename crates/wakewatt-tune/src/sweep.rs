//! What a sweep came to, for whoever asked for it: what was done, what is left, whether anything is in the way of a new run.

use crate::journal::JournalError;
use crate::recovery::Swept;
use std::fmt;

/// A look at all journals, and what was undone of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// What was done, line by line.
    pub lines: Vec<String>,
    /// What is left, line by line.
    pub complaints: Vec<String>,
    /// Something stands changed, or a journal cannot be read that may name it.
    is_left: bool,
    /// Something is out of reach.
    is_away: bool,
    /// A journal could not be removed.
    is_journal_left: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepEnd {
    /// Nothing of a killed run is left.
    Settled,
    /// All settings are put back; a journal is still there.
    JournalLeft,
    /// Something is not put back.
    NotRestored,
}

/// Why nothing new may be begun: what was left would be taken for what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTheWay {
    /// An earlier run is not undone.
    NotUndone,
    /// It is, but its journal is still there.
    Journal,
}

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InTheWay::NotUndone => {
                "an earlier run is not undone yet; see wakewatt recover and wakewatt tune status, and for what can \
                 never be undone wakewatt recover --forget"
            }
            InTheWay::Journal => {
                "an earlier run is undone, but its journal is still there and would be undone again later"
            }
        })
    }
}

impl Sweep {
    /// From what became of each journal, and those that could not be read.
    pub(crate) fn of(swept: Vec<Swept>, unreadable: &[JournalError]) -> Sweep {
        let mut end = Sweep { is_left: !unreadable.is_empty(), ..Sweep::default() };
        end.complaints.extend(unreadable.iter().map(ToString::to_string));
        for one in swept {
            end.lines.push(format!("{}: {}", one.what, one.why));
            end.is_left |= one.is_doubtful;
            let Some(report) = one.report else { continue };
            end.lines.extend(report.entries.iter().map(|(path, result)| format!("{path}: {result}")));
            end.is_left |= !report.is_settled();
            end.is_away |= !report.is_complete();
            end.is_journal_left |= report.kept_journal.is_some();
            end.complaints.extend(report.remains());
        }
        end
    }

    /// How it ended.
    pub fn end(&self) -> SweepEnd {
        match (self.is_left || self.is_away, self.is_journal_left) {
            (true, _) => SweepEnd::NotRestored,
            (false, true) => SweepEnd::JournalLeft,
            (false, false) => SweepEnd::Settled,
        }
    }

    /// May nothing new be begun? What is out of reach is in nobody's way.
    pub fn in_the_way(&self) -> Option<InTheWay> {
        match (self.is_left, self.is_journal_left) {
            (true, _) => Some(InTheWay::NotUndone),
            (false, true) => Some(InTheWay::Journal),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_nobody_can_tell_the_end_of_is_in_the_way() {
        let swept = |is_doubtful| Swept { what: "x".into(), why: "left".into(), report: None, is_doubtful };
        let sweep = Sweep::of(vec![swept(false)], &[]);
        assert_eq!((sweep.end(), sweep.in_the_way(), sweep.lines.len()), (SweepEnd::Settled, None, 1));
        let sweep = Sweep::of(vec![swept(false), swept(true)], &[]);
        assert_eq!((sweep.end(), sweep.in_the_way()), (SweepEnd::NotRestored, Some(InTheWay::NotUndone)));
    }

    #[test]
    fn what_is_out_of_reach_is_not_restored_and_in_nobodys_way() {
        let away = Sweep { is_away: true, ..Sweep::default() };
        assert_eq!((away.end(), away.in_the_way()), (SweepEnd::NotRestored, None));
        let journal = Sweep { is_journal_left: true, ..Sweep::default() };
        assert_eq!((journal.end(), journal.in_the_way()), (SweepEnd::JournalLeft, Some(InTheWay::Journal)));
    }
}
