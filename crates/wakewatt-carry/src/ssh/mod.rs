//! Other machines by ssh(1): the system's own, with the user's keys, agent and configuration, and never a question asked.
//!
//! This program is copied to a node once, into a folder that only the login user may look into, named after its own SHA-256,
//! and checked there each time. What is run there is one line for a POSIX shell (`script.rs`), every argument quoted. ssh ends with
//! 255 where it could not connect or the connection broke: whether an order was carried out is then not known. Keys are
//! checked as the user's configuration says; nothing is forwarded; a host that is silent for four seconds is gone.

mod script;

use crate::audit::hex;
use crate::carrier::{Carrier, CarryError, Order, Reply};
use crate::child::{self, Ended, Input, Trouble};
use crate::node::{Node, NodeName};
use ring::digest::{Context, SHA256};
use script::Copy;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wakewatt_host::environment;

const WORD: &str = "ssh";
/// ssh's own exit code for itself.
const OF_SSH: i32 = 255;
/// Longest that copying may take.
const COPYING: Duration = Duration::from_secs(300);
/// What the options mean: ssh_config(5). Anything that asks, forwards or runs something here is off.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=2",
    "ServerAliveCountMax=2",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RequestTTY=no",
    "ControlPath=none",
    "LogLevel=ERROR",
];

/// How it is done.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A configuration for ssh instead of the user's own: `-F`.
    pub config: Option<PathBuf>,
    /// Become root there by `sudo -n`.
    pub is_sudo: bool,
    /// A wakewatt that is there already, by its path; none is copied then.
    pub program: Option<String>,
    /// What is copied instead of this very program: another architecture's.
    pub copied: Option<PathBuf>,
    /// Leave the copy there at the end.
    pub is_kept: bool,
}

/// The machines of a list.
#[derive(Debug)]
pub struct Ssh {
    nodes: Vec<Node>,
    options: Options,
    program: script::Program,
    copied_to: Mutex<BTreeSet<NodeName>>,
}

impl Ssh {
    /// To these machines; nothing is connected yet.
    pub fn new(nodes: Vec<Node>, options: Options) -> Result<Ssh, CarryError> {
        let refuse = |why: String| CarryError::Carrier { carrier: WORD, why };
        environment::foreign(WORD).map_err(|e| refuse(e.to_string()))?;
        let program = match &options.program {
            Some(path) if path.starts_with('/') => script::Program::There(path.clone()),
            Some(path) => return Err(refuse(format!("{path}: give the whole path of wakewatt on the nodes"))),
            None => {
                let file = open_copied(&options).map_err(|e| refuse(format!("this program cannot be read: {e}")))?;
                script::Program::Copied(Copy::new(&digest(file).map_err(|e| refuse(e.to_string()))?))
            }
        };
        Ok(Ssh { nodes, options, program, copied_to: Mutex::default() })
    }

    fn ssh(&self, node: &NodeName, script: &str) -> Result<Command, CarryError> {
        let mut command =
            environment::foreign(WORD).map_err(|e| CarryError::Carrier { carrier: WORD, why: e.to_string() })?;
        // The agent that holds the user's keys; a path, no secret.
        command.envs(std::env::var_os("SSH_AUTH_SOCK").map(|path| ("SSH_AUTH_SOCK", path)));
        if let Some(config) = &self.options.config {
            command.arg("-F").arg(config);
        }
        command.args(OPTIONS.iter().flat_map(|o| ["-o", *o])).args(["-T", "--", node.as_str(), script]);
        Ok(command)
    }

    fn asked(
        &self,
        node: &NodeName,
        script: &str,
        input: Input,
        (within, at_most): (Duration, usize),
    ) -> Result<Ended, CarryError> {
        let unreachable = |why: String| CarryError::Unreachable { node: node.clone(), why };
        let ended = child::run(self.ssh(node, script)?, input, within, at_most).map_err(|e| match e {
            Trouble::NotStarted(e) => CarryError::Carrier { carrier: WORD, why: e.to_string() },
            Trouble::TimedOut(within) => CarryError::TimedOut { node: node.clone(), within },
            Trouble::TooLong(at_most) => CarryError::TooLong { node: node.clone(), at_most },
        })?;
        let refused = |why: &str| CarryError::Refused { node: node.clone(), why: why.into() };
        match ended.code {
            Some(OF_SSH) => Err(unreachable(if ended.said.is_empty() { "no connection".into() } else { ended.said })),
            None => Err(unreachable("ssh was ended by a signal".into())),
            Some(script::NO_SUDO) => {
                Err(refused("sudo asks for a password there, or does not let this user; sudo -n must work"))
            }
            Some(script::FOREIGN) => {
                Err(refused("the folder for the copy belongs to somebody else there, or could not be made"))
            }
            Some(script::OTHER) => Err(refused("what was copied is not what arrived")),
            Some(_) => Ok(ended),
        }
    }

    /// This program is there afterwards, whole.
    fn copy(&self, node: &NodeName, copy: &Copy, within: Duration) -> Result<(), CarryError> {
        if self.copied_to.lock().is_ok_and(|all| all.contains(node)) {
            return Ok(());
        }
        let began = Instant::now();
        let none = || Input::Bytes(Vec::new());
        if self.asked(node, &copy.is_there(), none(), (within, 4096))?.code != Some(0) {
            let file = open_copied(&self.options)
                .map_err(|e| CarryError::Carrier { carrier: WORD, why: format!("this program cannot be read: {e}") })?;
            let left = COPYING.saturating_sub(began.elapsed());
            let sent = self.asked(node, &copy.take(), Input::File(file), (left, 4096))?;
            if sent.code != Some(0) {
                return Err(CarryError::Refused { node: node.clone(), why: format!("the copy failed: {}", sent.said) });
            }
        }
        if let Ok(mut all) = self.copied_to.lock() {
            all.insert(node.clone());
        }
        Ok(())
    }
}

fn open_copied(options: &Options) -> std::io::Result<File> {
    File::open(options.copied.clone().unwrap_or_else(|| "/proc/self/exe".into()))
}

fn digest(mut file: File) -> std::io::Result<String> {
    let (mut sum, mut part) = (Context::new(&SHA256), [0u8; 64 * 1024]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hex(sum.finish().as_ref())),
            n => sum.update(&part[..n]),
        }
    }
}

impl Carrier for Ssh {
    fn word(&self) -> &'static str {
        WORD
    }

    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(self.nodes.clone())
    }

    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        let script = self.program.run(&order.arguments, self.options.is_sudo);
        let began = Instant::now();
        let once = || {
            let left = order.within.saturating_sub(began.elapsed());
            if let script::Program::Copied(copy) = &self.program {
                self.copy(node, copy, left)?;
            }
            self.asked(node, &script, Input::Bytes(order.input.clone()), (left, order.at_most))
        };
        let mut ended = once()?;
        if ended.code == Some(script::GONE) {
            // Another wakewatt of the same bytes has tidied up there; nothing was begun, so it is begun again.
            if let Ok(mut all) = self.copied_to.lock() {
                all.remove(node);
            }
            ended = once()?;
        }
        match ended.code {
            Some(script::GONE) => Err(CarryError::Unreachable {
                node: node.clone(),
                why: "the copied program is taken away there".into(),
            }),
            code => Ok(Reply { code: code.unwrap_or(OF_SSH), output: ended.output, said: ended.said }),
        }
    }

    fn leave(&self, node: &NodeName) -> Result<(), CarryError> {
        let script::Program::Copied(copy) = &self.program else { return Ok(()) };
        if self.options.is_kept || !self.copied_to.lock().is_ok_and(|mut all| all.remove(node)) {
            return Ok(());
        }
        let left = self.asked(node, &copy.remove(), Input::Bytes(Vec::new()), (Duration::from_secs(30), 4096))?;
        match left.code {
            Some(0) => Ok(()),
            _ => Err(CarryError::Refused { node: node.clone(), why: format!("the copy stays there: {}", left.said) }),
        }
    }
}
