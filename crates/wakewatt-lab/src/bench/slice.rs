//! A measured slice: the sample as it is reported, with the raw histograms, so that short slices can be pooled.

use super::idle_counters;
use wakewatt_core::samples::network::{NetworkSample, Split};
use wakewatt_core::samples::waker::Waker;
use wakewatt_core::samples::wakeup::WakeupSample;
use wakewatt_core::stats::distribution::{Distribution, Recorder};

/// Some wake-ups.
#[derive(Clone, Debug)]
pub struct WakeupSlice {
    /// As reported; `latency` is made from `hist`.
    pub sample: WakeupSample,
    /// Every counted sample, in nanoseconds.
    pub hist: Recorder,
    /// How late the waker rang after its plan; empty for kinds without a waker.
    pub late: Recorder,
}

impl WakeupSlice {
    /// Adds a later slice of the same arm. Counts and counters add up, the window covers both.
    pub fn absorb(&mut self, later: WakeupSlice) {
        self.hist.append(&later.hist);
        self.sample.latency = Distribution::recorded(&self.hist);
        self.sample.n_late_starts += later.sample.n_late_starts;
        self.sample.window.end_at_ns = self.sample.window.end_at_ns.max(later.sample.window.end_at_ns);
        self.late.append(&later.late);
        self.sample.waker = Waker::together(self.sample.waker.iter().chain(&later.sample.waker))
            .map(|waker| with_lateness(waker, &self.late));
        self.sample.clock_bound_ns = self.sample.clock_bound_ns.max(later.sample.clock_bound_ns);
        let mut idle: Vec<_> = self.sample.idle.take().into_iter().collect();
        idle_counters::add(&mut idle, later.sample.idle.into_iter().collect());
        self.sample.idle = idle.into_iter().next();
    }
}

/// The waker with the quantiles of these latenesses.
pub(crate) fn with_lateness(waker: Waker, late: &hdrhistogram::Histogram<u64>) -> Waker {
    let late = Distribution::of(late);
    Waker { late_p50_ns: late.p50_ns(), late_p99_ns: late.p99_ns(), ..waker }
}

/// The histograms of a round trip.
#[derive(Clone, Debug)]
pub struct RoundTripHists {
    /// Send to receive.
    pub round_trip: Recorder,
    /// The requester's part.
    pub requester: Recorder,
    /// The responder's part.
    pub responder: Recorder,
    /// The rest.
    pub wire: Recorder,
}

impl RoundTripHists {
    pub(crate) fn new() -> RoundTripHists {
        RoundTripHists {
            round_trip: Recorder::default(),
            requester: Recorder::default(),
            responder: Recorder::default(),
            wire: Recorder::default(),
        }
    }

    pub(crate) fn split(&self) -> Option<Split> {
        (!self.wire.is_empty()).then(|| Split {
            requester: Distribution::recorded(&self.requester),
            responder: Distribution::recorded(&self.responder),
            wire: Distribution::recorded(&self.wire),
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
        self.hists.round_trip.append(&later.hists.round_trip);
        self.hists.requester.append(&later.hists.requester);
        self.hists.responder.append(&later.hists.responder);
        self.hists.wire.append(&later.hists.wire);
        let sample = &mut self.sample;
        sample.round_trip = Distribution::recorded(&self.hists.round_trip);
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
