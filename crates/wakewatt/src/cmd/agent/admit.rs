//! Where an agent answers and pushes, who is let in, and what it may do once it has started: from the words of its command line.

use super::failed;
use crate::cli::agent::{AgentArgs, Listen};
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::path::PathBuf;
use wakewatt_agent::{Admission, Beside, Confine, Door, Files, OTLP_PATH, Teller, is_private, listen};
use wakewatt_host::door;
use wakewatt_host::push::{Push, PushError};

/// Who may ask at a socket where nobody else was named.
const OWNER_ONLY: u32 = 0o600;

/// What is asked of those who ask; refused where others could ask without being asked anything.
pub(super) fn admission(args: &AgentArgs, teller: &Teller) -> Result<Admission> {
    let admission = Admission::open(files(args), args.token_file.as_deref(), teller.clone())?;
    let Listen::Tcp(address) = &args.listen else {
        // Who can open the file is on this machine, and its mode says who can; keys would add nothing.
        if admission.is_encrypted() {
            let why = "--tls-cert: a socket in the file system is not encrypted; --socket-mode says who may ask there";
            return Err(Failure::error(Code::Usage, why));
        }
        return Ok(admission);
    };
    if args.socket_mode.is_some() {
        let why = "--socket-mode: says who may open a socket in the file system, such as --listen unix:/run/wakewatt/agent.sock";
        return Err(Failure::error(Code::Usage, why));
    }
    match lacking(&admission).filter(|_| !is_private(address)) {
        None => Ok(admission),
        Some(why) => {
            let why = format!("{address}: others could ask there, and {why}; or listen on 127.0.0.1 or ::1");
            Err(Failure::error(Code::Refused, why))
        }
    }
}

fn files(args: &AgentArgs) -> Option<Files> {
    let (chain, key) = (args.tls_cert.clone()?, args.tls_key.clone()?);
    Some(Files { chain, key, clients: args.client_ca.clone() })
}

/// What is missing before others may ask, and what to do.
fn lacking(admission: &Admission) -> Option<&'static str> {
    match (admission.is_encrypted(), admission.has_token() || admission.has_clients()) {
        (true, true) => None,
        (false, false) => Some(
            "answers are neither encrypted nor behind a password: give --tls-cert, --tls-key, and --token-file or --client-ca",
        ),
        (false, true) => Some("the token would be sent for all to read: give --tls-cert and --tls-key"),
        (true, false) => Some("everybody would be answered: give --token-file or --client-ca"),
    }
}

/// Where pages are pushed to.
pub(super) fn push(args: &AgentArgs) -> Result<Option<Push>> {
    let Some(url) = &args.otlp else { return Ok(None) };
    let opened = Push::open(url, OTLP_PATH, args.otlp_ca.as_deref(), args.otlp_header_file.as_deref());
    opened.map(Some).map_err(|why| {
        let code = match &why {
            PushError::Url(_) => Code::Usage,
            PushError::Exposed(_) => Code::Refused,
            PushError::Trust(_) | PushError::Secret(_) | PushError::NoHeader(_) => Code::BadFile,
        };
        Failure::error(code, format!("--otlp: {why}"))
    })
}

pub(super) fn confine(args: &AgentArgs) -> Confine {
    match args.confine.as_str() {
        "none" => Confine::No,
        "holders" => Confine::Holders,
        _ => Confine::Full,
    }
}

/// What is needed beside the machine once the agent has given up everything else.
pub(super) fn beside(args: &AgentArgs, push: Option<&Push>) -> Beside {
    let renewed = files(args).into_iter().flat_map(|files| [Some(files.chain), Some(files.key), files.clients]);
    let renewed: Vec<PathBuf> = renewed.flatten().collect();
    Beside { renewed, port: push.map(Push::port) }
}

/// Opens the way in; and what is said of it.
pub(super) fn door(args: &AgentArgs, is_encrypted: bool) -> Result<(Door, String)> {
    Ok(match &args.listen {
        Listen::Unix(path) => {
            let opened = door::listen(path, args.socket_mode.unwrap_or(OWNER_ONLY));
            let listener = opened.map_err(|why| Failure::error(Code::Refused, format!("--listen: {why}")))?;
            let path = path.display();
            let place =
                format!("this node at unix:{path}, for example: curl --unix-socket {path} http://localhost/metrics");
            (Door::Unix(listener), place)
        }
        Listen::Tcp(asked) => {
            let listener = listen(*asked).map_err(failed)?;
            let address = listener.local_addr().unwrap_or(*asked);
            let scheme = if is_encrypted { "https" } else { "http" };
            let place = format!("this node at {scheme}://{address}/, metrics at {scheme}://{address}/metrics");
            (Door::Tcp(listener), place)
        }
    })
}
