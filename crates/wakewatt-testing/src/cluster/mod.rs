//! A cluster for tests: an API server in memory behind a program that passes for kubectl, and a kubelet that writes logs.
//!
//! It keeps objects, their versions and its word about them as the real one does: 409 for what is there or was changed, 404,
//! 403 where a right was taken, lists in pages and by label, merge patches, logs that stay open. It loses answers and goes away
//! when told to. The kubelet turns every Job into a pod whose log a function of the test writes. It knows no wakewatt, only
//! `kubectl proxy --unix-socket=PATH`. What the real server thinks of the same requests is proved by `make prove-fleet`.

mod http;
mod objects;

use serde_json::Value;
use std::collections::VecDeque;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the answer is lost.
    Lost,
    /// 503, and it is not done.
    Away,
    /// 403 by a server that has not read its rules yet.
    NotYet,
}

/// What becomes of a Job: given its manifest, the pod's status and its log; the log stays open where the status says `Running`.
pub type Kubelet = Box<dyn Fn(&Value) -> (Value, String) + Send + Sync>;

/// What it is.
pub(crate) struct State {
    pub(crate) objects: objects::Objects,
    /// Method and path of every request, with its body.
    pub(crate) asked: Vec<(String, String, Value)>,
    /// For the next writing requests, one each.
    pub(crate) faults: VecDeque<Fault>,
    /// Beginnings of `METHOD path` that nobody may.
    pub(crate) forbidden: Vec<String>,
    pub(crate) kubelet: Arc<Kubelet>,
}

/// A running cluster; it ends with the process.
pub struct Cluster {
    state: Arc<Mutex<State>>,
    folder: PathBuf,
}

impl Cluster {
    /// Starts one in a folder of the test's.
    pub fn start(folder: &Path, kubelet: Kubelet) -> std::io::Result<Cluster> {
        let socket = folder.join("server.sock");
        let listener = UnixListener::bind(&socket)?;
        let state = State {
            objects: objects::Objects::default(),
            asked: Vec::new(),
            faults: VecDeque::new(),
            forbidden: Vec::new(),
            kubelet: Arc::new(kubelet),
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || http::serve(stream, &shared));
            }
        });
        Ok(Cluster { state, folder: folder.into() })
    }

    /// The program that passes for kubectl.
    pub fn kubectl(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cluster/kubectl")
    }

    /// What that one takes for its kubeconfig: the folder of this cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.clone()
    }

    /// What it was started with, a word a line.
    pub fn arguments(&self) -> String {
        std::fs::read_to_string(self.folder.join("arguments")).unwrap_or_default()
    }

    /// Puts an object there.
    pub fn add(&self, path: &str, object: Value) {
        self.state().objects.put(path, object);
    }

    /// An object as it is.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path)
    }

    /// The paths of all objects with this beginning.
    pub fn paths(&self, prefix: &str) -> Vec<String> {
        self.state().objects.paths(prefix)
    }

    /// For the next writing requests, one each.
    pub fn spoil(&self, faults: &[Fault]) {
        self.state().faults.extend(faults);
    }

    /// Takes a right: the beginning of `METHOD path`.
    pub fn forbid(&self, what: &str) {
        self.state().forbidden.push(what.into());
    }

    /// What was asked so far: method, path, body.
    pub fn asked(&self) -> Vec<(String, String, Value)> {
        self.state().asked.clone()
    }

    /// Waits until something holds; false after two minutes.
    pub fn wait_for(&self, is: impl Fn(&Cluster) -> bool) -> bool {
        (0..12_000).any(|_| {
            let holds = is(self);
            if !holds {
                std::thread::sleep(Duration::from_millis(10));
            }
            holds
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
