//! The agent's life: a thread that reads and answers, and whoever started it waiting for the end.
//!
//! A thread that ends by itself wakes who waits, and the process ends with an error, so that whoever keeps it running
//! starts a new one. An agent that goes on and answers "not now" for ever would look alive.

use crate::confined::{Confined, Guarded};
use crate::engine::{Ask, Engine, Plan};
use crate::http::{self, Admission, Door, PageMaker, Shared};
use crate::otlp::{self, Outbox};
use crate::pulse::Pulse;
use crate::trouble::Teller;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use thiserror::Error;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;
use wakewatt_host::push::Push;
use wakewatt_host::service_manager::ServiceManager;
use wakewatt_lab::refusal::Refusal;

/// Questions that wait for a reading; who comes later is told so.
const MOST_ASKS: usize = 64;

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
    Read(Refusal),
    /// No thread runs with more than it was to keep: the one that pushes is made by the one that waits.
    #[error(
        "the thread that waits could not give up what the one that reads gave up: {0}; --confine none runs without"
    )]
    Unconfined(String),
    /// No clock could be had to wait by.
    #[error("the agent has no clock to wait by: {0}; are there file descriptors left (ulimit -n)?")]
    Clock(io::Error),
    /// A thread ended by itself.
    #[error("the thread that {0} ended, and the agent with it; this is a fault of the agent, please report it")]
    Ended(&'static str),
}

/// Takes an address; before anything is read, so that a wrong one is told at once.
pub fn listen(address: SocketAddr) -> Result<TcpListener, Trouble> {
    TcpListener::bind(address).map_err(|source| Trouble::Listen { address, source })
}

/// What an agent that has started cannot do although it was asked to.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// Why wake-ups are not traced.
    pub not_traced_because: Option<String>,
    /// What the probe could not attach.
    pub trace_gaps: Vec<String>,
    /// Why it cannot be told who pays.
    pub no_payers_because: Option<String>,
    /// Why the past is not kept.
    pub no_history_because: Option<String>,
    /// Segments of the history that others can write, and that are passed over.
    pub doubted_history: Vec<String>,
    /// What was given up.
    pub guards: Arc<[Guarded]>,
}

/// What the caller lends to a running agent.
pub struct Lent<W> {
    /// Makes the page `/`.
    pub page: PageMaker,
    /// What is asked of those who ask.
    pub admission: Admission,
    /// Where pages are pushed to, and who hears what goes wrong.
    pub push: Option<(Push, Teller)>,
    /// Returns when the agent shall end.
    pub wait: W,
    /// Makes that return; called from another thread.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

/// Reads and answers until `wait` returns; `told` hears first how the start went.
pub fn run(plan: Plan, door: Door, told: impl FnOnce(&Started), lent: Lent<impl FnOnce()>) -> Result<(), Trouble> {
    let history = plan.history.as_ref().map(|(folder, _)| folder.clone());
    let answering = Answering { version: plan.version, history, door, outbox: plan.outbox.clone() };
    // Opened where it is used: what it keeps open belongs to one thread.
    let open = move || {
        let engine = Engine::open(plan)?;
        let started = Started {
            not_traced_because: engine.not_traced_because().map(str::to_string),
            trace_gaps: engine.trace_gaps().to_vec(),
            no_payers_because: engine.no_payers_because().map(str::to_string),
            no_history_because: engine.no_history_because().map(str::to_string),
            doubted_history: engine.doubted_history(),
            guards: engine.confined().map(|confined| confined.guards.clone()).unwrap_or_default(),
        };
        let confined = engine.confined().cloned();
        let pulse = Pulse::of(ServiceManager::find());
        Ok((started, confined, async move |asked: Receiver<Ask>| engine.serve(asked, pulse).await))
    };
    let manager = ServiceManager::find();
    let Lent { page, admission, push, wait, wake } = lent;
    let wait = || {
        // All threads run by now. A manager that does not hear it kills us, and says so.
        let _ = manager.as_ref().map(ServiceManager::ready);
        wait();
        let _ = manager.as_ref().map(ServiceManager::stopping);
    };
    live(open, answering, told, Lent { page, admission, push, wait, wake })
}

/// What answers.
struct Answering {
    version: &'static str,
    history: Option<PathBuf>,
    door: Door,
    outbox: Option<Outbox>,
}

/// Wakes the waiter when a thread ends, however it does.
struct AtEnd(Arc<dyn Fn() + Send + Sync>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The same with anything that reads.
fn live<R: AsyncFnOnce(Receiver<Ask>) -> io::Result<()>>(
    open: impl FnOnce() -> Result<(Started, Option<Confined>, R), Refusal> + Send + 'static,
    answering: Answering,
    told: impl FnOnce(&Started),
    lent: Lent<impl FnOnce()>,
) -> Result<(), Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Trouble::Start)?;
    let (ready, started) = channel();
    let (open_door, may_open) = channel();
    let at_end = AtEnd(Arc::clone(&lent.wake));
    let serving = thread::Builder::new().name("serve".into()).spawn(move || {
        let _at_end = at_end;
        let (said, read) = match open() {
            Ok((started, confined, read)) => (Ok((started, confined)), Some(read)),
            Err(refusal) => (Err(refusal), None),
        };
        let is_heard = ready.send(said).is_ok();
        match (read, may_open.recv()) {
            (Some(read), Ok(open)) if is_heard => runtime.block_on(serve(read, open)),
            _ => Ok(()),
        }
    });
    let serving = serving.map_err(Trouble::Start)?;
    let (started, confined) = started.recv().map_err(|_| Trouble::Ended(SERVES))?.map_err(Trouble::Read)?;
    // Threads are made with what their maker holds: the one that pushes comes after this.
    confined.as_ref().map_or(Ok(()), Confined::here_too).map_err(Trouble::Unconfined)?;
    told(&started);
    let outbox = answering.outbox.unwrap_or_default();
    let pushing = lent.push.map(|push| pushed(push, outbox.clone(), Arc::clone(&lent.wake))).transpose()?;
    let (stop, stopped) = oneshot::channel();
    let (asks, asked) = mpsc::channel(MOST_ASKS);
    let shared = Shared::new(asks.clone(), lent.page, lent.admission, answering.version, answering.history);
    // Had it ended, who waits is woken and finds that out.
    let _ = open_door.send(Open { door: answering.door, shared, asks, asked, stopped });
    (lent.wait)();
    // One that still waits for a server is not waited for: the process ends.
    let is_pushing = pushing.is_none_or(|living| living.strong_count() > 0);
    outbox.close();
    let _ = stop.send(());
    serving.join().unwrap_or(Err(Trouble::Ended(SERVES)))?;
    if is_pushing { Ok(()) } else { Err(Trouble::Ended("pushes")) }
}

/// What the thread that serves does.
const SERVES: &str = "reads and answers";

/// What it needs to open the door.
struct Open {
    door: Door,
    shared: Arc<Shared>,
    asks: mpsc::Sender<Ask>,
    asked: Receiver<Ask>,
    stopped: oneshot::Receiver<()>,
}

/// Reads and answers until it is stopped.
async fn serve(read: impl AsyncFnOnce(Receiver<Ask>) -> io::Result<()>, open: Open) -> Result<(), Trouble> {
    let Open { door, shared, asks, asked, stopped } = open;
    let ended = async {
        let _ = stopped.await;
    };
    let reading = read(asked);
    tokio::pin!(reading);
    let served = tokio::select! {
        served = http::serve(door, shared, ended) => served,
        read = &mut reading => return Err(read.map_or_else(Trouble::Clock, |()| Trouble::Ended(SERVES))),
    };
    // Nobody may ask any more. What was asked before is gone through, and the past is finished.
    let (_, read) = tokio::join!(asks.send(Ask::Stop), reading);
    served.map_err(Trouble::Start).and(read.map_err(Trouble::Clock))
}

/// Starts the thread that pushes; it wakes the waiter should it end by itself, and is not living any more by then.
fn pushed(
    (push, teller): (Push, Teller),
    outbox: Outbox,
    wake: Arc<dyn Fn() + Send + Sync>,
) -> Result<Weak<()>, Trouble> {
    let (at_end, life) = (AtEnd(wake), Arc::new(()));
    let living = Arc::downgrade(&life);
    let pushing = thread::Builder::new().name("push".into()).spawn(move || {
        // Dropped in reverse.
        let (_at_end, _life) = (at_end, life);
        otlp::send_all(&push, &outbox, &teller);
    });
    pushing.map(|_| living).map_err(Trouble::Start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    /// Lives with this reader until somebody wakes who waits; a question is asked on the way.
    fn lived(read: impl AsyncFnOnce(Receiver<Ask>) -> io::Result<()> + Send + 'static) -> Result<(), Trouble> {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let (wake, woken) = channel();
        let wake = std::sync::Mutex::new(wake);
        let asking = thread::spawn(move || {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(60)).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        });
        let lent = Lent {
            page: Arc::new(|_, _| Ok(String::new())),
            admission: Admission::default(),
            push: None,
            wait: move || woken.recv_timeout(Duration::from_secs(60)).expect("a dead thread wakes who waits"),
            wake: Arc::new(move || {
                if let Ok(wake) = wake.lock() {
                    let _ = wake.send(());
                }
            }),
        };
        let answering = Answering { version: "1", history: None, door: Door::Tcp(listener), outbox: None };
        let ended = live(move || Ok((Started::default(), None, read)), answering, |_| {}, lent);
        let answer = asking.join().unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.0 503"), "{answer}");
        ended
    }

    #[test]
    fn a_reader_that_dies_ends_the_agent_with_an_error() {
        let died = lived(async |mut asked| {
            drop(asked.recv().await);
            panic!("on purpose");
        });
        assert!(matches!(died, Err(Trouble::Ended(SERVES))), "{died:?}");
        // Without a panic, too.
        let left = lived(async |mut asked| {
            drop(asked.recv().await);
            Ok(())
        });
        assert!(matches!(left, Err(Trouble::Ended(SERVES))), "{left:?}");
    }
}
