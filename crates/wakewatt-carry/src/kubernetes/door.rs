//! The way to the API server: `kubectl proxy` on a socket of our own.
//!
//! kubectl and not a client library: it is what operators already have, with their contexts, certificates, OIDC and cloud
//! plug-ins, and the kube crate costs 154 crates and megabytes of a binary that may have 20. And `kubectl proxy` rather than a
//! kubectl for each question: one process instead of thousands on a large cluster, answers with a status and a reason that are
//! types and no wording, and a log that can be followed. The socket lies in a folder that only this user enters; kubectl's own
//! filter keeps `exec` and `attach` closed. A proxy that ends is started again, so long as there is time.

use super::http::{self, Answer, Request};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wakewatt_core::visible;
use wakewatt_host::environment;
use wakewatt_host::helper::{Helper, OwnFolder};

/// How long kubectl may take to open its socket: a plug-in may ask a cloud for credentials.
const START: Duration = Duration::from_secs(60);
/// How often is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// How kubectl is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubectl {
    /// The program, by name or path.
    pub program: OsString,
    /// A context of the kubeconfig; its current one when not given.
    pub context: Option<String>,
    /// The kubeconfig; what kubectl finds by itself when not given.
    pub kubeconfig: Option<PathBuf>,
}

impl Default for Kubectl {
    fn default() -> Self {
        Kubectl { program: "kubectl".into(), context: None, kubeconfig: None }
    }
}

/// The door, opened when first needed.
#[derive(Debug)]
pub(super) struct Door {
    kubectl: Kubectl,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    helper: Helper,
    // Last, so that it goes after the process that uses it.
    folder: OwnFolder,
}

impl Open {
    fn socket(&self) -> PathBuf {
        self.folder.path().join("api.sock")
    }
}

impl Door {
    pub(super) fn new(kubectl: Kubectl) -> Door {
        Door { kubectl, open: Mutex::new(None) }
    }

    /// Asks the API server.
    pub(super) fn ask(&self, request: Request<'_>, until: Instant) -> io::Result<Answer> {
        http::ask(&self.socket(until)?, request, until)
    }

    /// What kubectl said last, for errors.
    pub(super) fn last_words(&self) -> String {
        let Ok(open) = self.open.lock() else { return String::new() };
        let words = open.as_ref().map(|open| open.helper.last_words()).unwrap_or_default();
        visible::line(words.lines().last().unwrap_or_default()).into_owned()
    }

    fn socket(&self, until: Instant) -> io::Result<PathBuf> {
        let mut open = self.open.lock().map_err(|_| io::Error::other("a thread that opened the way has failed"))?;
        if let Some(open) = open.as_mut()
            && open.helper.is_running()
        {
            return Ok(open.socket());
        }
        *open = None;
        let began = self.start(until)?;
        let socket = began.socket();
        *open = Some(began);
        Ok(socket)
    }

    fn start(&self, until: Instant) -> io::Result<Open> {
        // Ours to mend, not worth asking again.
        let ours = |e: io::Error| io::Error::other(e.to_string());
        let folder = OwnFolder::make("wakewatt-kubectl").map_err(ours)?;
        // Plug-ins for credentials need the user's variables; our passwords are taken out.
        let mut command = environment::users(&self.kubectl.program).map_err(io::Error::other)?;
        for (option, value) in [
            ("--kubeconfig", self.kubectl.kubeconfig.as_ref().map(|p| p.as_os_str().to_os_string())),
            ("--context", self.kubectl.context.as_ref().map(OsString::from)),
        ] {
            if let Some(value) = value {
                let mut word = OsString::from(option);
                word.push("=");
                word.push(value);
                command.arg(word);
            }
        }
        let mut word = OsString::from("--unix-socket=");
        word.push(folder.path().join("api.sock"));
        command.arg("proxy").arg(word);
        let mut open = Open { helper: Helper::start(command).map_err(ours)?, folder };
        let until = until.min(Instant::now() + START);
        // Connected to, not only there: between bind and listen a connection is refused.
        while std::os::unix::net::UnixStream::connect(open.socket()).is_err() {
            if !open.helper.is_running() {
                // Its last words may still be on their way.
                std::thread::sleep(LOOK);
                let words = open.helper.last_words();
                return Err(io::Error::other(format!("kubectl proxy has ended: {}", visible::line(&words))));
            }
            if Instant::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "kubectl proxy did not open its socket"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(open)
    }
}
