//! What of a run a model is made from: idle states, what leaving them costs, and loads by setting (`loads`).

use super::by_length::{BY_ANOTHER_CPU, BY_TIMER, ExitAfter, by_length};
use super::kernel_time;
use super::loads::{self, Loads};
use crate::server::{IdleGovernor, IdleState};
use crate::span::Span;
use serde::{Deserialize, Serialize};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::load::Kind;
use wakewatt_core::samples::state_cost::{Piece, StateCosts};
use wakewatt_core::samples::wakeup::WakeKind;

/// Usual exit as a part of what is claimed, where nobody measured it.
const USUAL_EXIT: u64 = 2;
/// Idle governors of the kernel that are modelled, as it calls them.
pub const MODELLED_GOVERNORS: [&str; 4] = ["menu", "teo", "ladder", "haltpoll"];

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// No load under that name.
    #[error(
        "no load was measured under `{asked}`; there are {known}. Make some with `wakewatt load steps --save` or an experiment with a load"
    )]
    NoLoad {
        /// As asked.
        asked: String,
        /// What there is.
        known: String,
    },
    /// No idle states in the facts.
    #[error("the facts name no idle states, so there is nothing that a setting could change")]
    NoStates,
    /// The model refuses what came out.
    #[error("the model cannot be made: {0}")]
    Model(String),
}

/// What leaving an idle state is taken to cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exit {
    /// Name of the state.
    pub state: String,
    /// So long, in nanoseconds.
    pub ns: u64,
    /// Was it measured here, or is it half of what is claimed?
    pub is_measured: bool,
    /// The same after sleeps of other lengths, shortest first, where that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ExitAfter>,
    /// The same where another CPU woke it, where that was measured: an interrupt that somebody sends costs more than a timer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_ipi: Vec<ExitAfter>,
    /// CPU time that a sleep adds by its length where a timer ended it, if that was measured: the kernel's way in and out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<ExitAfter>,
    /// The same where another CPU ended the sleep, where that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy_ipi: Vec<ExitAfter>,
    /// What a round trip over TCP takes longer as the first thing after a pause of this length, where that was measured: also after polling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold_trip: Vec<ExitAfter>,
    /// The same of a transaction of `load steps`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold_table: Vec<ExitAfter>,
    /// What a CPU does for itself while it is in it, as a part of the time, where that was measured: ticks that are kept, interrupts, daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ratio: Option<f64>,
    /// CPU time that waking a CPU out of it costs another one, in nanoseconds; none where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_ns: Option<u64>,
}

impl Exit {
    /// What the first work after a pause takes longer, by the piece that is most like the requests of a load.
    pub fn cold(&self, kind: Kind) -> &[ExitAfter] {
        if kind == Kind::Steps { &self.cold_table } else { &self.cold_trip }
    }
}

/// Everything that goes into a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// Idle states with what is claimed of them.
    pub states: Vec<IdleState>,
    /// Of each: what leaving it costs.
    pub exits: Vec<Exit>,
    /// Who chooses among them.
    pub governor: IdleGovernor,
    /// How long haltpoll spins at most before it halts, in nanoseconds; none where the facts do not say: as shipped.
    pub halt_poll_ns: Option<u64>,
    /// Whose rules; none where the facts do not say.
    pub kernel: Option<String>,
    /// All loads.
    pub loads: Vec<Loads>,
    /// What had to be assumed, in sentences.
    pub remarks: Vec<String>,
}

impl Inputs {
    /// From runs of one machine: facts of the first, samples of all.
    pub fn of(runs: &[Evidence]) -> Result<Inputs, FitError> {
        let first = runs.first().ok_or(FitError::NoStates)?;
        let (_, rows) = first.facts.idle.tables().into_iter().next().ok_or(FitError::NoStates)?;
        let costs: Vec<&StateCosts> = runs.iter().flat_map(|run| &run.samples.idle_states).collect();
        let mut remarks = Vec::new();
        let (mut states, mut exits) = (Vec::new(), Vec::new());
        for row in rows {
            let claimed_ns = row.exit_latency_ns.unwrap_or(0);
            let state = IdleState {
                polling: row.is_polling(),
                ..IdleState::claimed(&row.name, Span(claimed_ns), Span(row.target_residency_ns.unwrap_or(0)))
            };
            let of_state = |kinds: &[WakeKind]| -> Vec<(u64, u64)> {
                let one =
                    |c: &&StateCosts| Some((c.gap_ns, kinds.iter().find_map(|kind| extra_ns(c, &row.name, *kind))?));
                if state.polling { Vec::new() } else { costs.iter().filter_map(one).collect() }
            };
            let by_timer = of_state(&BY_TIMER);
            let usual_ns = by_timer.first().map(|(gap_ns, _)| *gap_ns);
            let of_usual: Vec<(u64, u64)> =
                by_timer.iter().copied().filter(|(gap, _)| Some(*gap) == usual_ns).collect();
            let measured_ns = by_length(of_usual, 1).first().map(|row| row.ns);
            let ns = if state.polling { 0 } else { measured_ns.unwrap_or(claimed_ns / USUAL_EXIT) };
            exits.push(Exit {
                state: row.name.clone(),
                ns,
                is_measured: state.polling || measured_ns.is_some(),
                after: by_length(by_timer, 2),
                after_ipi: by_length(of_state(&BY_ANOTHER_CPU), 1),
                busy: kernel_time::sleeps(&costs, &row.name),
                busy_ipi: kernel_time::sleeps_by_ipi(&costs, &row.name),
                own_ratio: kernel_time::own_ratio(&costs, &row.name),
                cold_trip: cold(&costs, &row.name, Piece::Trip),
                cold_table: cold(&costs, &row.name, Piece::Table),
                send_ns: kernel_time::sending_ns(&costs, &row.name),
            });
            states.push(state);
        }
        let claimed: Vec<&str> = exits.iter().filter(|e| !e.is_measured).map(|e| e.state.as_str()).collect();
        if !claimed.is_empty() {
            remarks.push(format!("What leaving {} costs was not measured: half of what is claimed is taken. `wakewatt measure idle --save` says better.", claimed.join(", ")));
        }
        let some = |is_known: fn(&Exit) -> bool| exits.iter().any(is_known) && !exits.iter().all(is_known);
        if some(|e| !e.cold_trip.is_empty()) || some(|e| !e.cold_table.is_empty()) || some(|e| e.own_ratio.is_some()) {
            remarks.push("What the first work after a pause takes, or what a CPU does for itself, was measured in some of the states only; the others are modelled without.".into());
        }
        let any = |is_known: fn(&Exit) -> bool| exits.iter().any(is_known);
        if any(|e| !e.cold_trip.is_empty()) != any(|e| !e.cold_table.is_empty()) {
            remarks.push("The first work after a pause was measured of one piece of work only: a load that is like the other (a round trip is like `shop`, a table like `steps`) is modelled without.".into());
        }
        let named = first.facts.idle.governor.get().map(String::as_str);
        let governor = match named {
            Some("teo") => IdleGovernor::Teo,
            Some("ladder") => IdleGovernor::Ladder,
            Some("haltpoll") => IdleGovernor::Haltpoll,
            Some("menu") => IdleGovernor::Menu,
            _ => {
                remarks.push("The facts name no idle governor that is known: menu is assumed.".into());
                IdleGovernor::Menu
            }
        };
        let halt_poll_ns = first.facts.idle.guest_halt_poll_ns.get().copied();
        if governor == IdleGovernor::Haltpoll && halt_poll_ns.is_none() {
            remarks.push("The facts do not tell how long haltpoll spins before it halts: 200us at most is assumed, as kernels are shipped.".into());
        }
        let kernel = first.facts.kernel.version.get().map(ToString::to_string);
        if kernel.is_none() {
            remarks.push("The facts do not name the kernel: the usual rules are assumed.".into());
        }
        let loads: Vec<Loads> = runs.iter().flat_map(loads::all).collect();
        let levels = || loads.iter().flat_map(|l| &l.levels);
        let broken: Vec<&String> = levels().filter_map(|l| l.broken.as_ref()).collect();
        if let Some(first) = broken.first() {
            remarks.push(format!(
                "{} of {} levels broke a rule when they were measured (the first: {first}): what rests on them is not to be trusted.",
                broken.len(),
                levels().count()
            ));
        }
        Ok(Inputs { states, exits, governor, halt_poll_ns, kernel, loads, remarks })
    }

    /// What a CPU does for itself in the state in which it does least, as a part of the time; none where that was not measured of each.
    pub(super) fn least_own_ratio(&self) -> Option<f64> {
        let all: Option<Vec<f64>> = self.exits.iter().map(|exit| exit.own_ratio).collect();
        all?.into_iter().min_by(f64::total_cmp)
    }

    /// Loads under a setting, by the arm's id or title, or by the run's title.
    pub fn under(&self, name: &str) -> Result<Vec<&Loads>, FitError> {
        let found: Vec<&Loads> =
            self.loads.iter().filter(|l| l.arm.as_deref() == Some(name) || l.title == name).collect();
        if found.is_empty() {
            let mut known: Vec<String> =
                self.loads.iter().map(|l| format!("`{}`", l.arm.as_ref().unwrap_or(&l.title))).collect();
            known.dedup();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(FitError::NoLoad { asked: name.into(), known });
        }
        Ok(found)
    }
}

/// What the first work after a pause in a state takes longer than at once again, by the pause.
fn cold(costs: &[&StateCosts], state: &str, piece: Piece) -> Vec<ExitAfter> {
    let longer = |costs: &&StateCosts| {
        let cost = costs.states.iter().find(|s| s.name == state && s.is_entered())?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within a second.
        Some((costs.gap_ns, cost.first_work(piece)?.extra()?.median_ns.clamp(0.0, 1e9) as u64))
    };
    by_length(costs.iter().filter_map(longer).collect(), 2)
}

/// An extra of a state over the floor, of one kind of wake-up.
fn extra_ns(costs: &StateCosts, state: &str, kind: WakeKind) -> Option<u64> {
    let cost = costs.states.iter().find(|s| s.name == state && s.not_entered.is_none())?;
    let extra = cost.wake(kind)?.extra?;
    // Below nothing is the noise of a state that costs nothing.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(extra.median_ns.clamp(0.0, 1e9) as u64)
}
