//! A measured slice: the sample as it is reported, with the raw histograms, so that short slices can be pooled.

use super::idle_counters;
use hdrhistogram::Histogram;
use wakewatt_core::samples::network::{NetworkSample, Split};
use wakewatt_core::samples::wakeup::WakeupSample;
use wakewatt_core::stats::distribution::{Distribution, histogram};

/// Some wake-ups.
#[derive(Clone, Debug)]
pub struct WakeupSlice {
    /// As reported; `latency` is made from `hist`.
    pub sample: WakeupSample,
    /// Every counted sample, in nanoseconds.
    pub hist: Histogram<u64>,
    /// Remote wake-ups that found the sleeper still awake; not counted.
    pub n_not_asleep: u64,
    /// Planned events the waking side was itself too late for; not counted, since they say nothing of the woken CPU.
    pub n_skipped: u64,
}

impl WakeupSlice {
    /// Adds a later slice of the same arm. Counts and counters add up, the window covers both.
    pub fn absorb(&mut self, later: WakeupSlice) {
        add(&mut self.hist, &later.hist);
        self.sample.latency = Distribution::of(&self.hist);
        self.sample.n_late_starts += later.sample.n_late_starts;
        self.sample.window.end_at_ns = self.sample.window.end_at_ns.max(later.sample.window.end_at_ns);
        self.n_not_asleep += later.n_not_asleep;
        self.n_skipped += later.n_skipped;
        let mut idle: Vec<_> = self.sample.idle.take().into_iter().collect();
        idle_counters::add(&mut idle, later.sample.idle.into_iter().collect());
        self.sample.idle = idle.into_iter().next();
    }
}

/// The histograms of a round trip.
#[derive(Clone, Debug)]
pub struct RoundTripHists {
    /// Send to receive.
    pub round_trip: Histogram<u64>,
    /// The requester's part.
    pub requester: Histogram<u64>,
    /// The responder's part.
    pub responder: Histogram<u64>,
    /// The rest.
    pub wire: Histogram<u64>,
}

impl RoundTripHists {
    pub(crate) fn new() -> RoundTripHists {
        RoundTripHists { round_trip: histogram(), requester: histogram(), responder: histogram(), wire: histogram() }
    }

    pub(crate) fn split(&self) -> Option<Split> {
        (!self.wire.is_empty()).then(|| Split {
            requester: Distribution::of(&self.requester),
            responder: Distribution::of(&self.responder),
            wire: Distribution::of(&self.wire),
        })
    }
}

/// Some round trips.
#[derive(Clone, Debug)]
pub struct NetworkSlice {
    /// As reported.
    pub sample: NetworkSample,
    /// Every counted sample.
    pub hists: RoundTripHists,
    /// Replies without usable kernel stamps: in the round trip, not in the split.
    pub n_unsplit: u64,
}

impl NetworkSlice {
    /// Adds a later slice of the same arm.
    pub fn absorb(&mut self, later: NetworkSlice) {
        add(&mut self.hists.round_trip, &later.hists.round_trip);
        add(&mut self.hists.requester, &later.hists.requester);
        add(&mut self.hists.responder, &later.hists.responder);
        add(&mut self.hists.wire, &later.hists.wire);
        let sample = &mut self.sample;
        sample.round_trip = Distribution::of(&self.hists.round_trip);
        if let Some(split) = self.hists.split() {
            sample.split = Ok(split);
        }
        sample.n_sent += later.sample.n_sent;
        sample.n_lost += later.sample.n_lost;
        sample.n_late_starts += later.sample.n_late_starts;
        sample.window.end_at_ns = sample.window.end_at_ns.max(later.sample.window.end_at_ns);
        idle_counters::add(&mut sample.idle, later.sample.idle);
        self.n_unsplit += later.n_unsplit;
    }
}

fn add(total: &mut Histogram<u64>, more: &Histogram<u64>) {
    // All our histograms have the same bounds, so nothing is out of range.
    let _ = total.add(more);
}
