//! The agent's life: a thread that reads, a thread that answers, and whoever started it waiting for the end.

use crate::engine::{Ask, Engine, Plan};
use crate::http;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::channel;
use std::thread;
use thiserror::Error;

/// Why the agent does not run.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The address is taken, or not of this machine.
    #[error("{address}: cannot listen there; name another with --listen: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// No thread or no runtime could be had.
    #[error("cannot start the agent's threads: {0}")]
    Start(std::io::Error),
    /// The machine could not be read at all.
    #[error("{0}")]
    Read(String),
    /// The thread that reads ended by itself.
    #[error("the reading thread ended; this is a fault of the agent, please report it")]
    Ended,
}

/// Takes an address; before anything is read, so that a wrong one is told at once.
pub fn listen(address: SocketAddr) -> Result<TcpListener, Trouble> {
    let listener = TcpListener::bind(address).map_err(|source| Trouble::Listen { address, source })?;
    listener.set_nonblocking(true).map_err(Trouble::Start)?;
    Ok(listener)
}

/// What an agent that has started cannot do although it was asked to.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// Why wake-ups are not traced.
    pub not_traced_because: Option<String>,
    /// Why the past is not kept.
    pub no_history_because: Option<String>,
}

/// Reads and answers until `wait` returns; `told` hears first how the start went.
pub fn run(plan: Plan, listener: TcpListener, told: impl FnOnce(&Started), wait: impl FnOnce()) -> Result<(), Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Trouble::Start)?;
    let (asks, asked) = channel();
    let (ready, started) = channel();
    // Opened where it is used: what it keeps open belongs to one thread.
    let reading = thread::Builder::new().name("read".into()).spawn(move || {
        let opened = Engine::open(plan);
        let said = opened.as_ref().map_err(ToString::to_string).map(|engine| Started {
            not_traced_because: engine.not_traced_because().map(str::to_string),
            no_history_because: engine.no_history_because().map(str::to_string),
        });
        if ready.send(said).is_ok()
            && let Ok(engine) = opened
        {
            engine.serve(&asked);
        }
    });
    let reading = reading.map_err(Trouble::Start)?;
    told(&started.recv().map_err(|_| Trouble::Ended)?.map_err(Trouble::Read)?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let of_http = asks.clone();
    let answering = thread::Builder::new().name("http".into()).spawn(move || {
        runtime.block_on(async move {
            let ended = async {
                let _ = stopped.await;
            };
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                http::serve(listener, of_http, ended).await;
            }
        });
    });
    let answering = answering.map_err(Trouble::Start)?;
    wait();
    // Either may have ended before; then nobody is left to tell.
    let is_reading = asks.send(Ask::Stop).is_ok();
    let _ = stop.send(());
    let (read, answered) = (reading.join(), answering.join());
    if is_reading && read.is_ok() && answered.is_ok() { Ok(()) } else { Err(Trouble::Ended) }
}
