//! Who pays, with as many names as were asked for and no more: what the series of payers are made of, for months.
//!
//! A payer that has a place keeps it. A free place goes, once a minute, to whoever lost most lately; where all are taken the weakest gives way to one
//! that lost twice as much, at most one a minute, and not in its first hour unless it fell silent for ten minutes. So names come and go slowly, whatever
//! the cgroups do. A payer counts from 0 when it gets its place; what it lost before, and what everybody without a place loses, is one sum ("other"). What a
//! payer counted before it left moves to a sum of its own ("retired"), since added to the others it would look like growth. No sum ever steps back, and at
//! any time named + other + retired is what all wake-ups lost, or ahead of it by what happened while the probe was being read once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::visible;
use wakewatt_lab::trace::{Lost, Paid, StateKey};

/// Places are given so often; marks for the last minutes are set then, too.
const EVERY: Duration = Duration::from_secs(60);
/// A place is kept so long against a stronger one.
const TENURE: Duration = Duration::from_secs(3600);
/// Who lost nothing for so long has left.
const SILENCE: Duration = Duration::from_secs(600);
/// What was lost lately fades by half in ten minutes.
const FADING: f64 = 0.933;
/// So much stronger must one be to take a place.
const STRONGER: f64 = 2.0;
/// Whoever lost less lately is forgotten, in nanoseconds.
const FORGOTTEN_NS: f64 = 1_000.0;
/// Payers without a place that are watched.
const MOST_WATCHED: usize = 4_096;
/// Longer names are cut: a path may have four thousand bytes.
const LONGEST: usize = 200;

/// What everybody without a place is called. No path, pod or container has brackets at both ends.
pub(crate) const OTHERS: &str = "(other)";

/// Sums by idle state.
pub(crate) type States = BTreeMap<StateKey, Lost>;
/// Sums by payer (none: all others) and idle state.
pub(crate) type Sums = BTreeMap<(Option<String>, StateKey), Lost>;

/// One with a name.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    since: Instant,
    last: Instant,
    recent_ns: f64,
    sums: States,
}

/// The named, and everybody else.
#[derive(Clone, Debug)]
pub(crate) struct Payers {
    pub(crate) by: PayerKind,
    n_places: usize,
    places: Vec<Place>,
    others: States,
    retired: States,
    /// Wake-ups whose payer could be told, named or not.
    n_told: u64,
    n_untold: u64,
    watched: BTreeMap<String, f64>,
    judged: Instant,
    older: (Instant, Sums),
    newer: (Instant, Sums),
}

impl Payers {
    /// Nobody yet.
    pub(crate) fn new(by: PayerKind, n_places: usize, now: Instant) -> Payers {
        Payers {
            by,
            n_places,
            places: Vec::new(),
            others: States::new(),
            retired: States::new(),
            n_told: 0,
            n_untold: 0,
            watched: BTreeMap::new(),
            judged: now,
            older: (now, Sums::new()),
            newer: (now, Sums::new()),
        }
    }

    /// Takes the next reading.
    pub(crate) fn advance(&mut self, now: Instant, paid: &Paid) {
        for ((name, state), more) in &paid.grown {
            let name = shown(name);
            self.n_told = self.n_told.saturating_add(more.n);
            match self.places.iter_mut().find(|place| place.name == name) {
                Some(place) => {
                    place.sums.entry(state.clone()).or_default().add(*more);
                    (place.last, place.recent_ns) = (now, place.recent_ns + more.ns as f64);
                }
                None if self.watched.len() < MOST_WATCHED || self.watched.contains_key(&name) => {
                    *self.watched.entry(name).or_default() += more.ns as f64;
                }
                None => {}
            }
        }
        for (state, total) in &paid.totals {
            let named = self.places.iter().filter_map(|place| place.sums.get(state)).chain(self.retired.get(state));
            let named = named.fold(Lost::default(), |mut sum, more| {
                sum.add(*more);
                sum
            });
            let (others, left) = (self.others.entry(state.clone()).or_default(), total.less(named));
            (others.n, others.ns) = (others.n.max(left.n), others.ns.max(left.ns));
            self.retired.entry(state.clone()).or_default();
        }
        let n_all: u64 = paid.totals.values().map(|lost| lost.n).sum();
        self.n_untold = self.n_untold.max(n_all.saturating_sub(self.n_told));
        if now.saturating_duration_since(self.judged) >= EVERY {
            self.judged = now;
            self.judge(now);
            let newest = (now, self.sums());
            self.older = std::mem::replace(&mut self.newer, newest);
        }
    }

    /// Gives places.
    fn judge(&mut self, now: Instant) {
        let mut waiting: Vec<(String, f64)> = std::mem::take(&mut self.watched).into_iter().collect();
        waiting.arrange_by(|a, b| b.1.total_cmp(&a.1));
        waiting.truncate(MOST_WATCHED / 2);
        let mut waiting = waiting.into_iter().peekable();
        while self.places.len() < self.n_places
            && let Some((name, recent_ns)) = waiting.next()
        {
            self.admit(name, recent_ns, now);
        }
        if let Some((at, weakest_ns)) = self.weakest(now)
            && waiting.peek().is_some_and(|(_, recent_ns)| *recent_ns >= STRONGER * weakest_ns)
            && let Some((name, recent_ns)) = waiting.next()
        {
            for (state, sum) in self.places.remove(at).sums {
                self.retired.entry(state).or_default().add(sum);
            }
            self.admit(name, recent_ns, now);
        }
        self.places.iter_mut().for_each(|place| place.recent_ns *= FADING);
        let fading = waiting.map(|(name, recent_ns)| (name, recent_ns * FADING));
        self.watched = fading.filter(|(_, recent_ns)| *recent_ns >= FORGOTTEN_NS).collect();
    }

    fn admit(&mut self, name: String, recent_ns: f64, now: Instant) {
        // From 0 in every state that is known, so that a store sees its growth from the first wake-up on.
        let sums = self.others.keys().map(|state| (state.clone(), Lost::default())).collect();
        self.places.push(Place { name, since: now, last: now, recent_ns, sums });
    }

    /// Who would give way, and what it lost lately.
    fn weakest(&self, now: Instant) -> Option<(usize, f64)> {
        let of = |(at, place): (usize, &Place)| {
            let is_silent = now.saturating_duration_since(place.last) >= SILENCE;
            let is_old = now.saturating_duration_since(place.since) >= TENURE;
            (is_silent || is_old).then_some((at, if is_silent { 0.0 } else { place.recent_ns }))
        };
        self.places.iter().enumerate().filter_map(of).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// By payer with a place, and of all others.
    pub(crate) fn sums(&self) -> Sums {
        let named = self
            .places
            .iter()
            .flat_map(|place| place.sums.iter().map(|(state, sum)| ((Some(place.name.clone()), state.clone()), *sum)));
        named.chain(self.others.iter().map(|(state, sum)| ((None, state.clone()), *sum))).collect()
    }

    /// Of payers that had a place.
    pub(crate) fn retired(&self) -> &States {
        &self.retired
    }

    /// Wake-ups among the others whose payer could not be told.
    pub(crate) fn n_untold(&self) -> u64 {
        self.n_untold
    }

    /// What came in the last one to two minutes, and how long that is.
    pub(crate) fn recent(&self, now: Instant) -> (Sums, Duration) {
        let (at, then) = &self.older;
        let grown = self.sums().into_iter().map(|(key, sum)| {
            let before = then.get(&key).copied().unwrap_or_default();
            (key, sum.less(before))
        });
        (grown.collect(), now.saturating_duration_since(*at))
    }
}

/// A foreign name as a label or in a table: visible, and not endless. Of a path that is cut the end tells more.
fn shown(name: &str) -> String {
    let name = visible::line(name);
    match name.char_indices().rev().nth(LONGEST - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &name[at..]),
        _ => name.into_owned(),
    }
}

#[cfg(test)]
mod tests;
