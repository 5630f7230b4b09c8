//! Replications side by side: which thread ran one leaves no trace in it, so the outcome does not depend on how many there are.

use crate::engine::{Counted, replicate};
use crate::outcome::Outcome;
use crate::server::{Refused, Server};
use std::sync::atomic::{AtomicUsize, Ordering};
use wakewatt_core::arrange::Arrange as _;

/// Runs a server's replications on so many threads.
pub fn simulate(server: &Server, n_threads: usize) -> Result<Outcome, Refused> {
    let mut outcomes = simulate_all(std::slice::from_ref(server), n_threads)?;
    outcomes.pop().ok_or_else(|| Refused { field: "machine".into(), why: "there is none".into() })
}

/// The same of several servers, such as the points of a sweep; all their replications are shared out among the threads.
pub fn simulate_all(servers: &[Server], n_threads: usize) -> Result<Vec<Outcome>, Refused> {
    servers.iter().try_for_each(Server::check)?;
    let tasks: Vec<(usize, u32)> =
        servers.iter().enumerate().flat_map(|(i, s)| (0..s.run.replications).map(move |r| (i, r))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((i, replication)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*i, *replication, replicate(&servers[*i], *replication)));
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
    done.arrange_by_key(|(i, replication, _)| (*i, *replication));
    let mut all: Vec<Vec<Counted>> = servers.iter().map(|_| Vec::new()).collect();
    for (i, _, counted) in done {
        all[i].push(counted?);
    }
    Ok(servers.iter().zip(&all).map(|(server, counted)| Outcome::of(server, counted)).collect())
}
