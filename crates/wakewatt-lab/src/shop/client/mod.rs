//! The shop's clients: who asks for what, when, and how long it took them.
//!
//! A few threads, each with a runtime of its own and its share of the clients (`worker.rs`); when requests are planned is
//! `thinking.rs`, what they ask for `mix.rs`, how `connection.rs`, and what comes of it `tally.rs`. The clients cost CPU
//! time too; who runs them on the server's CPUs must be told.

pub mod alarm;
pub mod connection;
pub mod mix;
pub mod tally;
mod template;
pub mod thinking;
pub mod worker;

pub use connection::{Failure, Target};
pub use mix::Mix;
pub use tally::Tally;
pub use worker::{Pace, Shared, ThreadPlace};

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_host::affinity;

/// Clients at work.
#[derive(Debug)]
pub struct Generator {
    shared: Arc<Shared>,
    halt: watch::Sender<bool>,
    threads: Vec<JoinHandle<Result<Tally, String>>>,
}

/// What clients need.
#[derive(Debug)]
pub struct GeneratorSpec {
    /// Whom to ask.
    pub target: Target,
    /// For what.
    pub mix: Mix,
    /// How.
    pub pace: Pace,
    /// Seed of all streams.
    pub seed: u64,
    /// First session number.
    pub first_session: u64,
    /// Later answers count as failures.
    pub timeout_ns: u64,
    /// CPUs of the threads; empty: wherever this process may run.
    pub cpus: CpuSet,
    /// How many threads.
    pub n_threads: u32,
}

/// One thread per so many clients, at most one per CPU.
const CLIENTS_PER_THREAD: u32 = 250;

/// The clients of a shop.
pub(super) fn client_spec(shop: &super::Shop, pace: Pace) -> GeneratorSpec {
    let most = u32::try_from(shop.places.clients.len()).unwrap_or(1).max(1);
    let n_clients = match pace {
        Pace::Clients { n, .. } => n,
        Pace::Rate { per_s, .. } => clients_for(per_s),
    };
    GeneratorSpec {
        target: shop.target.clone(),
        mix: shop.mix.clone(),
        pace,
        seed: shop.spec.seed,
        first_session: shop.first_session + (shop.n_levels << 44),
        timeout_ns: shop.spec.timeout_ns,
        cpus: shop.places.clients.clone(),
        n_threads: n_clients.div_ceil(CLIENTS_PER_THREAD).clamp(1, most),
    }
}

/// Clients with a second of think time ask about once a second.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A float as an integer saturates.
fn clients_for(per_s: f64) -> u32 {
    per_s as u32
}

impl Generator {
    /// Starts the threads; the first client asks at once.
    pub fn start(spec: GeneratorSpec) -> Result<Generator, String> {
        let shared = Arc::new(Shared {
            target: spec.target,
            mix: spec.mix,
            pace: spec.pace,
            seed: spec.seed,
            first_session: spec.first_session,
            timeout: Duration::from_nanos(spec.timeout_ns),
            recorded: tally::Recorded::default(),
            is_closing: false.into(),
            n_good: 0.into(),
            n_bad: 0.into(),
            n_under_way: 0.into(),
            n_displaced: 0.into(),
        });
        let (halt, halted) = watch::channel(false);
        let mut generator = Generator { shared, halt, threads: Vec::new() };
        let n_threads = spec.n_threads.max(1);
        for at in 0..n_threads {
            let (shared, halted, cpus) = (Arc::clone(&generator.shared), halted.clone(), spec.cpus.clone());
            let run = move || {
                // None of them may be online under an arm: then the level says so.
                if !cpus.is_empty() && affinity::confine(&cpus).is_err() {
                    shared.n_displaced.fetch_add(1, Relaxed);
                }
                worker::run(&shared, ThreadPlace { at, n_threads }, halted)
            };
            let thread = std::thread::Builder::new().name("shop-clients".into()).spawn(run);
            generator.threads.push(thread.map_err(|e| format!("no thread for the clients: {e}"))?);
        }
        Ok(generator)
    }

    /// What may be seen from outside while it runs.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Has a thread ended by itself? It must not.
    pub fn is_broken(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// No new requests from now on.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Relaxed);
    }

    /// Halts at once; requests under way count as unfinished.
    pub fn halt(mut self) -> Result<Tally, String> {
        self.close();
        let _ = self.halt.send(true);
        let timeout_ns = u64::try_from(self.shared.timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut all = Tally::new(self.shared.mix.names().len(), timeout_ns);
        for thread in std::mem::take(&mut self.threads) {
            let tally =
                thread.join().map_err(|_| "a thread of the clients crashed; please report it".to_string())??;
            all.add(&tally);
        }
        Ok(all)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.close();
        let _ = self.halt.send(true);
        self.threads.drain(..).for_each(|t| drop(t.join()));
    }
}

#[cfg(test)]
mod tests;
