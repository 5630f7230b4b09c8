//! A BMC for tests: a Redfish service on loopback with a BIOS that stages, boots, and behaves as one maker's does.
//!
//! What no emulator that can be had does together: changes that wait for a boot, apply times, a registry that fits, and makers'
//! ways. Dell makes a job and takes no second PATCH while it waits; HPE and Lenovo take anything and judge at boot, HPE with
//! messages; Supermicro speaks in display names, has no `Attributes` while nothing waits and answers 202 without a place;
//! AMI's MegaRAC insists on `If-Match` and gives a weak tag of which it takes the strong form only. Written from vendors'
//! documentation and recorded answers, not from anybody's code. It judges requests; it does not know wakewatt.

mod http;
mod message;
mod models;
mod state;

pub use message::Attributes;
pub use models::Vendor;

use serde_json::Value;
use state::State;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The user that it lets in.
pub const USER: &str = "operator";
/// The password of that user.
pub const PASSWORD: &str = "correct horse";

/// A running BMC; it ends when it is dropped.
pub struct Emulator {
    at: SocketAddr,
    state: Arc<Mutex<State>>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Starts one on a free port of loopback.
    pub fn start(vendor: Vendor) -> std::io::Result<Emulator> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let at = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::new(vendor)));
        let is_ending = Arc::new(AtomicBool::new(false));
        let (shared, ending) = (Arc::clone(&state), Arc::clone(&is_ending));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ending.load(Ordering::Relaxed) {
                    break;
                }
                http::serve(stream, &shared);
            }
        });
        Ok(Emulator { at, state, is_ending, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The BIOS's values of the moment.
    pub fn current(&self) -> Attributes {
        self.state().current.clone()
    }

    /// What waits for the next boot.
    pub fn pending(&self) -> Attributes {
        self.state().pending.clone()
    }

    /// Somebody at the console changes a value.
    pub fn set_current(&self, name: &str, value: Value) {
        self.state().current.insert(name.into(), value);
    }

    /// Somebody else stages a value.
    pub fn set_pending(&self, name: &str, value: Value) {
        let mut state = self.state();
        state.pending.insert(name.into(), value);
        state.touch();
    }

    /// The settings object gets another tag at each PATCH that comes, without a change: what a busy BMC does.
    pub fn make_tags_stale(&self, n_times: u32) {
        self.state().n_stale = n_times;
    }

    /// Answers 429 to so many requests, and asks for no time.
    pub fn be_busy(&self, n_times: u32) {
        self.state().n_busy = n_times;
    }

    /// Says yes to every change from now on, and keeps none.
    pub fn forget_changes(&self, is_forgetful: bool) {
        self.state().is_forgetful = is_forgetful;
    }

    /// The list of jobs cannot be read.
    pub fn lose_list_of_jobs(&self, is_lost: bool) {
        self.state().is_list_lost = is_lost;
    }

    /// The job that waits comes to this; none: somebody has deleted it, and what it held still waits.
    pub fn set_job(&self, word: Option<&'static str>) {
        let mut state = self.state();
        state.job = word.and_then(|word| Some((state.job?.0, word)));
    }

    /// The machine boots: what waits is judged and applied.
    pub fn boot(&self) {
        self.state().boot();
    }

    /// Every request: method, path, and the condition if there was one.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// Sessions that were opened and not closed.
    pub fn n_open_sessions(&self) -> usize {
        self.state().sessions.len()
    }

    /// How the machine was restarted, each time.
    pub fn resets(&self) -> Vec<String> {
        self.state().resets.clone()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a caller.
        let _ = TcpStream::connect_timeout(&self.at, Duration::from_secs(1));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
