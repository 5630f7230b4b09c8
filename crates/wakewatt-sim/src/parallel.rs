//! Replications side by side: which thread ran one leaves no trace in it, so the outcome does not depend on how many there are.

use crate::engine::{Counted, replicate};
use crate::outcome::{NoInterval, Outcome, recorded_ns};
use crate::server::{Refused, Server};
use crate::span::Span;
use std::sync::atomic::{AtomicUsize, Ordering};
use wakewatt_core::arrange::Arrange as _;

/// Runs a server's replications on so many threads.
pub fn simulate(server: &Server, n_threads: usize) -> Result<Outcome, Refused> {
    let mut outcomes = simulate_all(std::slice::from_ref(server), n_threads)?;
    outcomes.pop().ok_or_else(|| Refused { field: "machine".into(), why: "there is none".into() })
}

/// The same of several servers, such as the points of a sweep; all their replications are shared out among
/// the threads. Where a server leaves its duration open, it is run again, longer each time, until its times
/// have intervals.
pub fn simulate_all(servers: &[Server], n_threads: usize) -> Result<Vec<Outcome>, Refused> {
    servers.iter().try_for_each(Server::check)?;
    let mut servers: Vec<Server> = servers.iter().map(first_tried).collect();
    let is_open: Vec<bool> = servers.iter().map(|s| s.run.duration.is_none()).collect();
    let mut outcomes: Vec<Option<Outcome>> = servers.iter().map(|_| None).collect();
    let mut pending: Vec<usize> = (0..servers.len()).collect();
    while !pending.is_empty() {
        let counted = replications(&servers, &pending, n_threads)?;
        let mut again = Vec::new();
        for (i, counted) in pending.into_iter().zip(counted) {
            let outcome = Outcome::of(&servers[i], &counted);
            match longer(&servers[i], &outcome).filter(|_| is_open[i]) {
                Some(duration) => {
                    servers[i].run.duration = Some(duration);
                    again.push(i);
                }
                None => outcomes[i] = Some(outcome),
            }
        }
        pending = again;
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// A recording of arrivals is run for its own length: a longer run knows no more of them.
fn first_tried(server: &Server) -> Server {
    let mut server = server.clone();
    if server.run.duration.is_none() && server.workload.arrivals.is_resampled() {
        server.run.duration = Some(Span(recorded_ns(&server).max(1000)));
    }
    server
}

/// More events in a run that chooses its own length would take most of a minute.
const MOST_EVENTS: f64 = 2e7;

/// The duration to try next, where this one was too short for intervals and the next one takes no more than
/// is bearable.
fn longer(server: &Server, outcome: &Outcome) -> Option<Span> {
    let Some(NoInterval::TooShort { needed_ns }) = outcome.no_interval else { return None };
    let tried_ns = outcome.duration_ns;
    // The correlation of a run that is much too short says little: no more than eight times as long at once.
    let next_ns = needed_ns.clamp(2 * tried_ns, 8 * tried_ns);
    let mut next = server.clone();
    next.run.duration = Some(Span(next_ns));
    let seconds = (next_ns + next.run.before().ns()) as f64 / 1e9 * f64::from(next.run.replications);
    (next.check().is_ok() && next.most_events_per_s() * seconds <= MOST_EVENTS).then_some(Span(next_ns))
}

/// All replications of some of the servers.
fn replications(servers: &[Server], of: &[usize], n_threads: usize) -> Result<Vec<Vec<Counted>>, Refused> {
    let tasks: Vec<(usize, u32)> =
        of.iter().enumerate().flat_map(|(at, i)| (0..servers[*i].run.replications).map(move |r| (at, r))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, replication)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*at, *replication, replicate(&servers[of[*at]], *replication)));
        }
        done
    };
    let n_threads = n_threads.clamp(1, tasks.len().max(1));
    let mut done: Vec<(usize, u32, Result<Counted, Refused>)> = if n_threads == 1 {
        work()
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .flat_map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    };
    done.arrange_by_key(|(at, replication, _)| (*at, *replication));
    let mut all: Vec<Vec<Counted>> = of.iter().map(|_| Vec::new()).collect();
    for (at, _, counted) in done {
        all[at].push(counted?);
    }
    Ok(all)
}
