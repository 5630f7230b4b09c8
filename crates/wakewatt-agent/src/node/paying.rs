//! Who paid for wake-ups lately, as people look at it: who has a place, the heaviest first, and everybody else last.

use super::{Parts, not_traced, trouble};
use serde::Serialize;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::payers::PayerKind;

/// Who paid in the last one to two minutes, or why it is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paying {
    /// Why nothing is known.
    pub none_because: Option<String>,
    /// What payers are: cgroups, pods or containers.
    pub by: Option<PayerKind>,
    /// The time over which wake-ups were counted.
    pub window_ns: u64,
    /// By payer and state, most time lost first; the others last.
    pub rows: Vec<PayingRow>,
}

/// What one payer lost to one idle state.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PayingRow {
    /// What people call it; none for all that have no name of their own here.
    pub payer: Option<String>,
    /// The state the CPU was leaving.
    pub state: String,
    /// Index of that state.
    pub index: u32,
    /// How many wake-ups, measured.
    pub n: u64,
    /// Their latency added up, in nanoseconds, measured.
    pub total_ns: u64,
}

pub(super) fn of(parts: &Parts<'_>) -> Paying {
    let Some(payers) = parts.payers else {
        let why = not_traced(parts).or_else(|| (!parts.is_by_payer).then(|| "the agent runs without --by".into()));
        let why = why.or_else(|| trouble(parts, "payers")).unwrap_or_else(|| "nothing was read yet".into());
        return Paying { none_because: Some(why), ..Paying::default() };
    };
    let (sums, window) = payers.recent(parts.read_at);
    let lost = sums.into_iter().filter(|(_, lost)| lost.n > 0);
    let mut rows: Vec<PayingRow> = lost
        .map(|((payer, (state, index)), lost)| PayingRow { payer, state, index, n: lost.n, total_ns: lost.ns })
        .collect();
    rows.arrange_by_key(|row| (row.payer.is_none(), std::cmp::Reverse(row.total_ns)));
    let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
    Paying { none_because: not_traced(parts), by: Some(payers.by), window_ns, rows }
}
