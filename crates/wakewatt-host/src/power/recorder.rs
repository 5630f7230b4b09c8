//! Reads meters from start to stop, each in its own thread, so that a BMC that takes seconds delays nobody else.
//!
//! `start` returns when every meter has been read once (or has had its first seconds for it), and `stop` reads each once more:
//! so the window of what is measured between them lies inside the readings. Threads sleep until absolute times, so the
//! interval does not drift by what reading costs. The measuring itself wakes one CPU per interval and meter: watts of an
//! idle machine contain that.

use super::witnesses::{self, Witnesses};
use super::{Found, Machine, Meter};
use crate::clock::monotonic_ns;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::series::Series;
use wakewatt_core::samples::energy::{EnergySample, MeterSample};
use wakewatt_core::samples::{Label, Window};

/// How long the first readings may take: Redfish over TLS to a slow BMC takes seconds.
const FIRST_NS: u64 = 10_000_000_000;

/// A recording under way.
pub struct Recorder {
    start_at_ns: u64,
    interval_ns: u64,
    preferred: Vec<String>,
    meters: Vec<Result<Running, Box<MeterSample>>>,
    witnesses: Option<(Sender<()>, JoinHandle<Witnesses>)>,
}

struct Running {
    name: &'static str,
    stop: Sender<()>,
    thread: JoinHandle<Read>,
}

/// What the thread of a meter brings home.
struct Read {
    meter: Box<dyn Meter>,
    series: Vec<Series>,
    costs_ns: Vec<u64>,
}

impl Recorder {
    /// Starts reading what was found. Meters named in `preferred` are quoted before the others.
    pub fn start(found: Vec<Found>, machine: Option<Machine>, interval_ns: u64, preferred: &[String]) -> Recorder {
        let (ready, all_ready) = channel();
        let begin_at_ns = monotonic_ns();
        let meters: Vec<Result<Running, Box<MeterSample>>> = found
            .into_iter()
            .map(|(name, meter)| {
                let meter = meter.map_err(|why| unavailable(name, why))?;
                let (stop, stopped) = channel();
                let ready = ready.clone();
                let run = move || record(meter, interval_ns, &ready, &stopped);
                let thread = std::thread::Builder::new().name(format!("meter-{name}")).spawn(run);
                let thread = thread.map_err(|e| unavailable(name, format!("no thread: {e}")))?;
                Ok(Running { name, stop, thread })
            })
            .collect();
        drop(ready);
        let witnesses = machine.and_then(watch_witnesses);
        for _ in meters.iter().filter(|m| m.is_ok()) {
            let left = (begin_at_ns + FIRST_NS).saturating_sub(monotonic_ns());
            if all_ready.recv_timeout(Duration::from_nanos(left)).is_err() {
                break;
            }
        }
        Recorder { start_at_ns: monotonic_ns(), interval_ns, preferred: preferred.to_vec(), meters, witnesses }
    }

    /// Reads everything once more and says what it came to.
    pub fn stop(self) -> EnergySample {
        let window = Window { start_at_ns: self.start_at_ns, end_at_ns: monotonic_ns() };
        self.finish(window)
    }

    /// The same about a part of what was recorded; what lies before the first readings is left out.
    pub fn stop_within(self, window: Window) -> EnergySample {
        let start_at_ns = self.start_at_ns.max(window.start_at_ns);
        self.finish(Window { start_at_ns, end_at_ns: window.end_at_ns.max(start_at_ns) })
    }

    fn finish(self, window: Window) -> EnergySample {
        let running = |m: &Result<Running, Box<MeterSample>>| m.as_ref().ok().map(|r| r.stop.clone());
        // All first, so that their last readings lie close together.
        self.meters.iter().filter_map(running).for_each(|stop| {
            let _ = stop.send(());
        });
        if let Some((stop, _)) = &self.witnesses {
            let _ = stop.send(());
        }
        let meters: Vec<MeterSample> =
            self.meters.into_iter().map(|m| m.map_or_else(|s| *s, |r| r.finish(window))).collect();
        let works = |name: &&MeterSample| name.label == Label::Measured && name.total.is_some();
        let named = self.preferred.iter().find_map(|name| meters.iter().filter(works).find(|m| m.meter == *name));
        // A card's meter says nothing about the machine; only who names it wants it quoted.
        let of_machine = |m: &&MeterSample| m.total.as_ref().is_some_and(|t| t.covers != "gpu");
        let chosen = named.or_else(|| meters.iter().filter(works).find(of_machine)).map(|m| m.meter.clone());
        let witnesses = self.witnesses.and_then(|(_, thread)| thread.join().ok());
        EnergySample {
            window,
            interval_ns: self.interval_ns,
            chosen,
            meters,
            witnesses: witnesses.map(Witnesses::said).unwrap_or_default(),
        }
    }
}

impl Running {
    fn finish(self, window: Window) -> MeterSample {
        let Ok(read) = self.thread.join() else {
            return MeterSample::unavailable(self.name, "its reader failed; please report this");
        };
        let mut costs_ns = read.costs_ns;
        costs_ns.sort_unstable();
        let cost_ns = costs_ns.get(costs_ns.len() / 2).copied();
        let channels = read.series.iter().map(|s| s.within(window)).collect();
        MeterSample::of(self.name, read.meter.reach(), cost_ns, channels).averaged(read.meter.averaging())
    }
}

fn unavailable(name: &str, why: impl Into<MeterGap>) -> Box<MeterSample> {
    Box::new(MeterSample::unavailable(name, why))
}

/// The thread of one meter.
fn record(mut meter: Box<dyn Meter>, interval_ns: u64, ready: &Sender<()>, stopped: &Receiver<()>) -> Read {
    let interval_ns = interval_ns.min(meter.longest_interval_ns()).max(1_000_000);
    let mut series: Vec<Series> = meter.channels().into_iter().map(|c| Series::new(c, interval_ns)).collect();
    let mut costs_ns = Vec::new();
    let mut next_at_ns = monotonic_ns();
    loop {
        let start_ns = monotonic_ns();
        meter.read(&mut |at, at_ns, value| {
            if let Some(series) = series.get_mut(at) {
                series.push(at_ns, value);
            }
        });
        costs_ns.push(monotonic_ns() - start_ns);
        let _ = ready.send(());
        // Times that passed while reading are left out, not made up for.
        let late = monotonic_ns().saturating_sub(next_at_ns) / interval_ns;
        next_at_ns += (late + 1) * interval_ns;
        let wait_ns = next_at_ns.saturating_sub(monotonic_ns());
        if !matches!(stopped.recv_timeout(Duration::from_nanos(wait_ns)), Err(RecvTimeoutError::Timeout)) {
            break;
        }
    }
    meter.read(&mut |at, at_ns, value| {
        if let Some(series) = series.get_mut(at) {
            series.push(at_ns, value);
        }
    });
    Read { meter, series, costs_ns }
}

fn watch_witnesses(machine: Machine) -> Option<(Sender<()>, JoinHandle<Witnesses>)> {
    let (stop, stopped) = channel();
    let run = move || {
        let mut witnesses = Witnesses::find(machine);
        loop {
            witnesses.read();
            let wait = Duration::from_nanos(witnesses::INTERVAL_NS);
            if !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
                break;
            }
        }
        witnesses.read();
        witnesses
    };
    let thread = std::thread::Builder::new().name("witnesses".into()).spawn(run).ok()?;
    Some((stop, thread))
}
