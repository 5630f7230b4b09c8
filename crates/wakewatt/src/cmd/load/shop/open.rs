//! The shop without clients: for whoever started this process (the hidden command), or open to others with `--listen`.

use crate::cli::shop::ShopArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::{Interrupt, Wait};
use crate::output;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wakewatt_host::affinity;
use wakewatt_lab::shop::server::{self, ServerSpec, Storage};
use wakewatt_lab::shop::{self, MOST_OPEN};

/// The hidden command: a server for whoever started it.
pub fn serve_for_parent() -> Result<Code> {
    // Its process group is its own, so Ctrl-C in the terminal reaches its parent only, which decides when it ends. The
    // kernel's word that the parent is gone is not needed: then its input ends, and it can clear up.
    let passed_over = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, passed_over).context("cannot listen for signals")?;
    shop::process::child().map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}

/// Open on this address until interrupted.
pub(super) fn only_serve(args: &ShopArgs, listen: SocketAddr, storage: Storage, interrupt: &Interrupt) -> Result<Code> {
    let allowed = affinity::allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let cpus = args.cpus.clone().unwrap_or(allowed);
    // Before any thread is started: they inherit it.
    affinity::confine(&cpus).map_err(|e| Failure::error(Code::Usage, format!("--cpus {cpus}: {e}")))?;
    let n_workers = args.workers.map_or(cpus.len(), |n| n as usize).max(1);
    let spec = ServerSpec {
        listen,
        n_products: args.products,
        seed: args.seed,
        n_workers,
        n_connections: n_workers * 2,
        n_clients: args.clients.iter().copied().max().unwrap_or(1).max(MOST_OPEN),
        storage,
    };
    let wait = Wait::listen()?;
    let (end, ended) = server::end();
    let flag = interrupt.clone();
    std::thread::spawn(move || {
        while !flag.is_set() {
            wait.wait(u64::MAX);
        }
        drop(end);
    });
    let ready = |about: &server::ServerDescription| {
        let at = about.listen.unwrap_or(listen);
        let warning = if at.ip().is_loopback() { "" } else { "; whoever reaches it may use it" };
        let products = about.n_products;
        output::remark(&format!("{products} products in {}, {n_workers} web threads on CPUs {cpus}", about.storage));
        output::remark(&format!("open at http://{at} until interrupted{warning}"));
    };
    server::serve(&spec, ready, ended).map_err(|why| Failure::error(Code::CouldNotMeasure, why))?;
    Ok(Code::Fine)
}
