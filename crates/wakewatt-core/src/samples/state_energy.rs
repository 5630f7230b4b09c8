//! From when on an idle state saves energy: the break-even that follows from measured watts.
//!
//! A core that is woken f times a second out of one idle state lets its machine draw R + E·f: R at rest, E more for every time
//! the state is left and entered again. Two unknowns, so each state is held with a short and with a long pause, which are two
//! equations: E is the difference of the watts over that of the rates, R what is left. Everything else in the machine, the
//! waking thread included, is in R and E of all states alike and falls out of their differences. A stretch of idle time of
//! length T takes R·T + E, so a deeper state takes as much as the shallower one before it at T = (E' - E) / (R - R'): the
//! *target residency* of the kernel's tables (Documentation/admin-guide/pm/cpuidle.rst).
//!
//! Every round holds every state once with both pauses, so each gives one break-even; the interval is the least to the most of
//! six rounds, which covers the median with 97 % (1 - 2 / 2^6) whatever the noise, as for the exit latencies (`state_cost`).
//! It cannot be told where any of the rounds does not show the deeper state to rest at less, where the rounds disagree, where the
//! meter averages for longer than a state is held, and where it says one number all the time. One core of a package is seen here:
//! what a package saves beyond that when all of its cores sleep is in neither unknown.

use super::energy::Averaging;
use crate::covers::Covers;
use serde::{Deserialize, Serialize};

/// Rounds that an interval needs: with six the range covers the median with 97 %.
pub const MIN_ROUNDS: usize = 6;
/// A state must have this share of the CPU's idle entries: watts are of all of them.
pub const MIN_ENTERED_RATIO: f64 = 0.9;
/// Rounds that disagree by more than this factor say no residency: neighbouring states of a table are about that far apart.
pub const MOST_SPREAD: f64 = 4.0;

/// Energy of the idle states of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergyOfStates {
    /// The meter: powercap, hwmon, command; none where none worked.
    pub meter: Option<String>,
    /// What it covers: "package + dram", "wall".
    pub meter_covers: String,
    /// Over what time a reading of it averages.
    pub averaging: Averaging,
    /// The short pause before each wake-up.
    pub short_gap_ns: u64,
    /// The long pause.
    pub long_gap_ns: u64,
    /// How long watts were read with each state and pause in each round.
    pub counted_ns: u64,
    /// The states, shallowest first.
    pub states: Vec<StateEnergy>,
    /// Why there is nothing of any state; none where something was measured.
    pub why_not: Option<NoBreakEven>,
}

/// One state's part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateEnergy {
    /// Name of the state, as the driver calls it.
    pub name: String,
    /// The exit latency that is claimed: no residency is shorter.
    pub claimed_exit_ns: Option<u64>,
    /// What was read, round by round; none where a round has no such reading.
    pub rounds: Vec<Option<TwoPauses>>,
    /// From when on it takes less energy than the next shallower one; none where that cannot be told.
    pub break_even: Option<BreakEven>,
    /// Why it cannot be told; none where it can, and for the shallowest state.
    pub why_not: Option<NoBreakEven>,
}

/// A state held with both pauses, in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwoPauses {
    /// With the short pause.
    pub short: Held,
    /// With the long one.
    pub long: Held,
}

/// A state held with one pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Mean power meanwhile, in microwatts.
    pub mean_uw: f64,
    /// Idle entries of the CPU per second: how often the state was left.
    pub entries_per_s: f64,
    /// Which share of the idle entries was into this state, 0 to 1.
    pub entered_ratio: f64,
    /// Did the meter say one number all the time?
    pub is_coarse: bool,
}

/// From when on a state pays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakEven {
    /// The next shallower state, which it is compared with.
    pub over: String,
    /// Idle time at which both take the same energy: the median of the rounds; 0 where the deeper one pays at once.
    pub median_ns: f64,
    /// The least of the rounds.
    pub low_ns: f64,
    /// The most of the rounds.
    pub high_ns: f64,
    /// What the interval covers.
    #[serde(default = "Covers::run")]
    pub covers: Covers,
    /// How many rounds it rests on.
    pub n_rounds: usize,
    /// How much less power the machine draws while the core rests in it, in microwatts: median of the rounds.
    pub saves_uw: f64,
    /// How much more energy each entry and exit takes, in microjoules: median of the rounds.
    pub costs_uj: f64,
}

/// Why a break-even cannot be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoBreakEven {
    /// No meter works here.
    NoMeter {
        /// What does not work, and why.
        why: String,
    },
    /// The meter averages for longer than states are held.
    Slow {
        /// Over so long.
        averages_ns: u64,
        /// The longest that is measured with.
        longest_ns: u64,
    },
    /// Nobody knows over what time the meter averages.
    UnknownAveraging,
    /// The meter's steps are coarser than what the states differ by.
    Coarse,
    /// The CPU was not in the state for nearly all of its idle entries.
    NotEntered {
        /// Name of the state that it was not nearly always in.
        state: String,
    },
    /// Too few rounds.
    FewRounds {
        /// How many had both states with both pauses.
        n: usize,
    },
    /// The rounds do not all show that the deeper state rests at less.
    NotLess {
        /// Least power saved of the rounds, in microwatts; negative where the deeper state drew more.
        low_uw: f64,
        /// Most power saved of the rounds, in microwatts.
        high_uw: f64,
    },
    /// The rounds disagree.
    Wide {
        /// The least break-even of the rounds.
        low_ns: f64,
        /// The most break-even of the rounds.
        high_ns: f64,
    },
}

impl TwoPauses {
    /// Rest power in microwatts, and energy per entry in microjoules; none where both pauses came at the same rate.
    fn solved(&self) -> Option<(f64, f64)> {
        let by_rate = (self.short.mean_uw - self.long.mean_uw) / (self.short.entries_per_s - self.long.entries_per_s);
        let rest_uw = self.long.mean_uw - by_rate * self.long.entries_per_s;
        (by_rate.is_finite() && rest_uw.is_finite()).then_some((rest_uw, by_rate))
    }

    fn both(&self, is_so: impl Fn(&Held) -> bool) -> bool {
        is_so(&self.short) && is_so(&self.long)
    }
}

impl EnergyOfStates {
    /// Nothing, for this reason.
    pub fn none(why: NoBreakEven) -> EnergyOfStates {
        EnergyOfStates { why_not: Some(why), ..EnergyOfStates::default() }
    }

    /// The state of that name.
    pub fn state(&self, name: &str) -> Option<&StateEnergy> {
        self.states.iter().find(|s| s.name == name)
    }

    /// Fills in every state's break-even over the one before it, or why there is none.
    pub fn judge(&mut self) {
        for at in 1..self.states.len() {
            let (shallower, deeper) = (&self.states[at - 1], &self.states[at]);
            let (break_even, why_not) = match break_even(shallower, deeper) {
                Ok(found) => (Some(found), None),
                Err(why) => (None, Some(why)),
            };
            (self.states[at].break_even, self.states[at].why_not) = (break_even, why_not);
        }
    }
}

fn break_even(shallower: &StateEnergy, deeper: &StateEnergy) -> Result<BreakEven, NoBreakEven> {
    for state in [shallower, deeper] {
        let mut rounds = state.rounds.iter().flatten();
        if !rounds.all(|r| r.both(|held| held.entered_ratio >= MIN_ENTERED_RATIO)) {
            return Err(NoBreakEven::NotEntered { state: state.name.clone() });
        }
        if state.rounds.iter().flatten().any(|r| !r.both(|held| !held.is_coarse)) {
            return Err(NoBreakEven::Coarse);
        }
    }
    let pairs = shallower.rounds.iter().zip(&deeper.rounds);
    let solved = pairs.filter_map(|(a, b)| a.as_ref()?.solved().zip(b.as_ref()?.solved()));
    // Power saved at rest, energy lost by each entry.
    let rounds: Vec<(f64, f64)> = solved.map(|(a, b)| (a.0 - b.0, b.1 - a.1)).collect();
    if rounds.len() < MIN_ROUNDS {
        return Err(NoBreakEven::FewRounds { n: rounds.len() });
    }
    let sorted = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (saves, costs) = (sorted(&|r| r.0), sorted(&|r| r.1));
    if saves[0] <= 0.0 {
        return Err(NoBreakEven::NotLess { low_uw: saves[0], high_uw: saves[saves.len() - 1] });
    }
    // Microjoules by microwatts are seconds.
    let times = sorted(&|r| (r.1 / r.0 * 1e9).max(0.0));
    let (low_ns, high_ns) = (times[0], times[times.len() - 1]);
    let exit_ns = deeper.claimed_exit_ns.unwrap_or(0) as f64;
    if high_ns > exit_ns && high_ns > MOST_SPREAD * low_ns {
        return Err(NoBreakEven::Wide { low_ns, high_ns });
    }
    Ok(BreakEven {
        over: shallower.name.clone(),
        median_ns: middle(&times),
        low_ns,
        high_ns,
        covers: Covers::Run,
        n_rounds: rounds.len(),
        saves_uw: middle(&saves),
        costs_uj: middle(&costs),
    })
}

/// The median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], sorted[half]) } else { sorted[half] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core at rest in a state draws `rest_w`, each entry takes `entry_uj`; all else 40 W.
    fn state(name: &str, rest_w: f64, entry_uj: f64, noise_w: &[f64]) -> StateEnergy {
        let held = |rate: f64, noise_w: f64| Held {
            mean_uw: (40.0 + rest_w + noise_w) * 1e6 + entry_uj * rate,
            entries_per_s: rate,
            entered_ratio: 1.0,
            is_coarse: false,
        };
        let round = |noise_w: &f64| Some(TwoPauses { short: held(2000.0, *noise_w), long: held(40.0, -*noise_w) });
        let rounds = noise_w.iter().map(round).collect();
        StateEnergy { name: name.into(), claimed_exit_ns: Some(1_000), rounds, ..StateEnergy::default() }
    }

    fn judged(states: Vec<StateEnergy>) -> EnergyOfStates {
        let mut energy = EnergyOfStates { states, ..EnergyOfStates::default() };
        energy.judge();
        energy
    }

    const QUIET: [f64; 6] = [0.01, -0.01, 0.02, 0.0, -0.02, 0.005];

    #[test]
    fn two_pauses_give_back_what_the_states_were_made_of() {
        // 1.5 W less for 1200 uJ more: 800 us.
        let energy = judged(vec![state("C1", 2.0, 100.0, &QUIET), state("C6", 0.5, 1300.0, &[0.0; 6])]);
        let found = energy.state("C6").unwrap().break_even.as_ref().unwrap();
        assert!((found.median_ns - 800_000.0).abs() < 20_000.0, "{found:?}");
        assert!(found.low_ns < 800_000.0 && found.high_ns > 800_000.0 && found.n_rounds == 6, "{found:?}");
        assert!((found.saves_uw - 1.5e6).abs() < 5e4 && (found.costs_uj - 1200.0).abs() < 20.0);
        assert_eq!(found.over, "C1");
        assert!(energy.states[0].break_even.is_none() && energy.states[0].why_not.is_none(), "nothing is shallower");
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let why = |states| judged(states).states.pop().unwrap().why_not;
        let c1 = || state("C1", 2.0, 100.0, &[0.0; 6]);
        let noisy = [1.5, -1.9, 2.0, 0.3, -2.1, 1.0];
        assert!(matches!(why(vec![c1(), state("C6", 0.5, 1300.0, &noisy)]), Some(NoBreakEven::NotLess { .. })));
        let unsteady = [0.6, -0.6, 0.5, 0.0, -0.2, 0.1];
        assert!(matches!(why(vec![c1(), state("C6", 0.5, 300.0, &unsteady)]), Some(NoBreakEven::Wide { .. })));
        assert_eq!(why(vec![c1(), state("C6", 0.5, 1300.0, &QUIET[..5])]), Some(NoBreakEven::FewRounds { n: 5 }));
        let mut coarse = c1();
        coarse.rounds[3].as_mut().unwrap().long.is_coarse = true;
        assert_eq!(why(vec![coarse, state("C6", 0.5, 1300.0, &QUIET)]), Some(NoBreakEven::Coarse));
        let mut other = state("C6", 0.5, 1300.0, &QUIET);
        other.rounds[0].as_mut().unwrap().short.entered_ratio = 0.8;
        assert_eq!(why(vec![c1(), other]), Some(NoBreakEven::NotEntered { state: "C6".into() }));
        let mut still = state("C6", 0.5, 1300.0, &QUIET);
        still.rounds[0].as_mut().unwrap().short.entries_per_s = 40.0;
        assert_eq!(why(vec![c1(), still]), Some(NoBreakEven::FewRounds { n: 5 }), "one rate is one equation");
    }

    #[test]
    fn a_state_that_pays_at_once_has_no_doubt_about_that() {
        // Polling draws more and each entry into C1 takes less than the noise: anything up to the exit latency is the same.
        let energy = judged(vec![state("POLL", 9.0, 100.0, &QUIET), state("C1", 2.0, 99.0, &QUIET)]);
        let found = energy.states[1].break_even.as_ref().unwrap();
        assert!(found.low_ns.abs() < 1.0 && found.high_ns < 1_000.0, "{found:?}");
    }
}
