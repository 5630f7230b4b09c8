//! From the inputs and five numbers to a server file, and from its simulation to what a request took.
//!
//! A shop has two machines: its clients sleep until a request is due, and again until the answer comes, and what leaving those sleeps costs is
//! part of what they see. Their own work is in the time elsewhere. Every CPU also wakes for itself now and then, which at few requests is much of its time.

use super::Took;
use super::by_length::ExitAfter;
use super::cold::Cold;
use super::inputs::{FitError, Inputs};
use super::loads::{Loaded, Loads};
use crate::law::{Family, Law, LawBucket};
use crate::server::{After, Arrivals, Hop, Idle, Machine, Placement, Server, Timers, Workload};
use crate::span::Span;
use serde::{Deserialize, Serialize};
use wakewatt_core::samples::load::Kind;

/// Requests that a level is simulated for, in each replication.
const REQUESTS: f64 = 20_000.0;
const REPLICATIONS: u32 = 2;
const SEED: u64 = 20_261_122;
/// No sleep costs more CPU time.
const MOST_PER_SLEEP_NS: f64 = 1e7;
/// A CPU's own timers: how often they come; what they cost is fitted.
const OWN_EVERY: Span = Span(10_000_000);
/// No own timer takes longer.
const MOST_OWN_NS: f64 = 5e6;
/// Lengths of sleep at which a straight line is told, each half as long again: from 10 us to 75 ms.
const SHORTEST_NS: f64 = 10_000.0;
const LENGTHS: i32 = 23;
/// What a client does for itself, at least.
const CLIENT: Span = Span(1_000);

/// What is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Numbers {
    /// Work of a request, in nanoseconds of CPU time.
    pub work_ns: f64,
    /// CPU time that a sleep adds to the request that ends it, in nanoseconds: the kernel's way in and out, cold caches. Where the first work after
    /// pauses was measured: what a pause adds at most, when all is cold.
    pub per_sleep_ns: f64,
    /// Time of a request in which no CPU of the server works for it, in nanoseconds: a late timer, a network, a client.
    pub elsewhere_ns: f64,
    /// What each CPU does for itself every 10 ms (ticks, daemons, interrupts of others), in nanoseconds of CPU time.
    #[serde(default)]
    pub own_ns: f64,
    /// The work of a request grows cold so many times as soon as the piece of work that was measured; none without the law of `Cold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sooner: Option<f64>,
}

/// Among nanoseconds, which is what `least_squares` takes its steps in, 1 is a thousand of these.
const SOONER: f64 = 1_000.0;
/// No work grows cold so many times as late, or as soon.
const MOST_SOONER: f64 = 32.0;

impl Numbers {
    pub(super) fn of(theta: &[f64]) -> Numbers {
        let at = |i: usize| theta.get(i).copied().unwrap_or(0.0);
        let sooner = theta.get(4).map(|number| (number / SOONER).clamp(1.0 / MOST_SOONER, MOST_SOONER));
        Numbers { work_ns: at(0), per_sleep_ns: at(1), elsewhere_ns: at(2), own_ns: at(3), sooner }
    }

    pub(super) fn list(self) -> Vec<f64> {
        let four = [self.work_ns, self.per_sleep_ns, self.elsewhere_ns, self.own_ns];
        four.into_iter().chain(self.sooner.map(|sooner| sooner * SOONER)).collect()
    }

    /// To begin with: the least CPU time of any level, what is left of the median, and the rest as it was measured.
    pub(super) fn guess(subject: &Subject<'_>) -> Numbers {
        let levels = &subject.load.levels;
        let cpu = levels.iter().filter_map(|l| l.took.cpu_ns).fold(f64::INFINITY, f64::min);
        let p50 = levels.iter().filter_map(|l| l.took.p50_ns).fold(f64::INFINITY, f64::min);
        let work_ns = if cpu.is_finite() { cpu } else { p50 };
        let elsewhere_ns = (p50 - work_ns).max(1_000.0);
        let own_ns = subject.own_ns().unwrap_or(0.0);
        let sooner = subject.cold.as_ref().and_then(|cold| cold.soon_ns.as_ref()).map(|_| 1.0);
        Numbers { work_ns, per_sleep_ns: subject.per_sleep_ns(), elsewhere_ns, own_ns, sooner }
    }
}

/// What is modelled: a machine, its loads of one kind, and how the work of those grows cold.
pub(super) struct Subject<'a> {
    inputs: &'a Inputs,
    pub(super) load: &'a Loads,
    /// None where it was not measured.
    pub(super) cold: Option<Cold>,
}

impl<'a> Subject<'a> {
    pub(super) fn of(inputs: &'a Inputs, load: &'a Loads) -> Subject<'a> {
        let cold = Cold::of(inputs.exits.iter().map(|exit| exit.cold(load.kind)));
        Subject { inputs, load, cold }
    }

    /// What a pause adds at most to the piece of work that was measured; 0 where none was.
    pub(super) fn per_sleep_ns(&self) -> f64 {
        self.cold.as_ref().map_or(0.0, |cold| cold.most_ns)
    }

    /// What each CPU does for itself every 10 ms; none where it was not measured.
    pub(super) fn own_ns(&self) -> Option<f64> {
        self.inputs.least_own_ratio().map(|ratio| ratio * OWN_EVERY.ns() as f64)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A saturating cast of a time.
fn span(ns: f64) -> Span {
    Span(ns.max(0.0).round() as u64)
}

/// The server that a level ran on, as the numbers have it.
pub(super) fn server(subject: &Subject<'_>, level: &Loaded, numbers: &Numbers) -> Server {
    let Subject { inputs, load, cold: law } = subject;
    // By the measured law, at the size, and as soon, as the loads show.
    let per_sleep_ns = numbers.per_sleep_ns.min(MOST_PER_SLEEP_NS);
    let cold =
        |at: usize| law.as_ref().map_or_else(Vec::new, |law| law.rows(at, per_sleep_ns, numbers.sooner.unwrap_or(1.0)));
    let state = |(at, (state, exit)): (usize, (&crate::server::IdleState, &super::Exit))| crate::server::IdleState {
        exit: (!state.polling).then(|| Law::fixed(Span(exit.ns))),
        after: after(&exit.after),
        after_ipi: after(&exit.after_ipi),
        overhead: overhead(exit, &exit.busy, load.kind, inputs.least_own_ratio()),
        // None of its own where only a timer's was measured.
        overhead_ipi: if exit.busy_ipi.is_empty() {
            Vec::new()
        } else {
            overhead(exit, &exit.busy_ipi, load.kind, inputs.least_own_ratio())
        },
        send: Span(exit.send_ns.unwrap_or(0)),
        // A state without, beside others with, has none: what is coldest comes after no short sleep.
        cold: if state.polling || law.is_some() { Span(0) } else { span(per_sleep_ns) },
        cold_after: after(&cold(at)),
        ..state.clone()
    };
    let usual = Machine::default();
    let is_steps = load.kind == Kind::Steps;
    let own = span(numbers.own_ns.min(MOST_OWN_NS));
    let machine = Machine {
        cores: level.n_cpus,
        kernel: inputs.kernel.clone().unwrap_or_else(|| usual.kernel.clone()),
        // In the work: it is paid by every request.
        wake_cost: Span(0),
        // The generator has a thread on each CPU with arrivals of its own, and nobody helps the other.
        placement: if is_steps { Placement::Random } else { Placement::Kernel },
        pull: !is_steps,
        timers: (own > Span(0)).then_some(Timers { every: OWN_EVERY, work: own }),
        idle: Idle {
            governor: inputs.governor,
            halt_poll: inputs.halt_poll_ns.map(Span),
            state: inputs.states.iter().zip(&inputs.exits).enumerate().map(state).collect(),
            ..Idle::default()
        },
        ..usual
    };
    let elsewhere = Some(Law::fixed(span(numbers.elsewhere_ns)));
    let served = Hop::of(service(level, numbers.work_ns));
    // An answer is sent by the CPU that made it, so the time elsewhere lies before.
    let hop = if is_steps {
        vec![Hop { wait: elsewhere, ..served }]
    } else {
        vec![Hop { wait: elsewhere, ..client() }, served, client()]
    };
    let workload = Workload { arrivals: Arrivals::poisson(level.per_s), hop, rounds: None, limit: None };
    let clients = (!is_steps).then(|| {
        let mut clients = Machine { name: CLIENTS.into(), cores: 1, timers: None, ..machine.clone() };
        clients.idle.state.iter_mut().for_each(|state| state.cold = Span(0));
        clients
    });
    let mut server = Server::of(machine, workload);
    server.machine.extend(clients);
    server.name = "fitted".into();
    server.run.seed = SEED;
    server.run.replications = REPLICATIONS;
    server.run.duration = Some(span(REQUESTS / level.per_s * 1e9));
    server.run.warmup = Some(span(REQUESTS / 20.0 / level.per_s * 1e9));
    server
}

fn after(rows: &[ExitAfter]) -> Vec<After> {
    rows.iter().map(|row| After { asleep: Span(row.asleep_ns), exit: Span(row.ns) }).collect()
}

/// CPU time of a sleep by its length, and what the state lets a CPU do for itself beyond what it does in any.
fn overhead(exit: &super::Exit, busy: &[ExitAfter], kind: Kind, least_own_ratio: Option<f64>) -> Vec<After> {
    // Where cold work is modelled by itself, what a longer sleep takes more is that, and mostly noise: rounds that were disturbed are those that all show some.
    let has_cold = !exit.cold(kind).is_empty();
    let measured = after(if has_cold { busy.get(..1).unwrap_or_default() } else { busy });
    let more = exit.own_ratio.zip(least_own_ratio).map_or(0.0, |(own, least)| own - least);
    if more <= 0.0 {
        return measured;
    }
    let at = |n: i32| {
        let asleep_ns = SHORTEST_NS * 1.5f64.powi(n);
        let ns = After::exit_ns(&measured, span(asleep_ns).ns()) + more * asleep_ns;
        After { asleep: span(asleep_ns), exit: span(ns) }
    };
    (0..LENGTHS).map(at).collect()
}

/// Where the clients are.
const CLIENTS: &str = "clients";

/// A client at its own CPU: it is woken there.
fn client() -> Hop {
    Hop { machine: Some(CLIENTS.into()), ..Hop::of(Law::fixed(CLIENT)) }
}

/// Shaped as measured, with the mean of the work; else exponential.
fn service(level: &Loaded, work_ns: f64) -> Law {
    let measured = level.service.as_ref().filter(|d| d.n > 0 && d.buckets.len() > 1);
    match measured {
        Some(d) => Law {
            law: Family::Histogram,
            mean: Some(span(work_ns.max(1.0))),
            cv: None,
            buckets: d.buckets.iter().map(|b| LawBucket { upto: Span(b.upto_ns), n: b.n as f64 }).collect(),
        },
        None => Law::exponential(span(work_ns.max(1.0))),
    }
}

/// What its requests took.
pub(super) fn took(server: &Server, n_threads: usize) -> Result<Took, FitError> {
    let outcome = crate::simulate(server, n_threads).map_err(|e| FitError::Model(e.to_string()))?;
    let p50 = outcome.quantiles.iter().find(|q| (q.q - 0.5).abs() < 1e-9).map(|q| q.ns.value);
    Ok(Took {
        p50_ns: p50.filter(|_| !outcome.is_saturated),
        cpu_ns: outcome.machines.first().map(|m| m.cpu_per_request_ns.value),
    })
}
