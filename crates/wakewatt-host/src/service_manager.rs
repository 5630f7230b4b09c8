//! Telling the service manager how a long-lived process is (sd_notify(3), the protocol that systemd promises to keep): ready, alive, about to end.
//!
//! One datagram of text to the socket that `NOTIFY_SOCKET` names, a path or, after an `@`, a name of the abstract namespace. Whoever was started without one has nobody to tell. The
//! manager that asks for signs of life (`WATCHDOG_USEC`) kills who gives none.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Whom to tell.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that started this process; none where none is named.
    pub fn find() -> Option<ServiceManager> {
        let var = |name: &str| std::env::var(name).ok();
        ServiceManager::of(&var("NOTIFY_SOCKET")?, var("WATCHDOG_USEC").as_deref(), var("WATCHDOG_PID").as_deref())
    }

    /// From the words of its variables.
    fn of(socket: &str, watchdog_us: Option<&str>, watchdog_pid: Option<&str>) -> Option<ServiceManager> {
        let address = match socket.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok()?,
            None if socket.starts_with('/') => SocketAddr::from_pathname(socket).ok()?,
            // Sockets to a hypervisor's host are not spoken to.
            None => return None,
        };
        // A process that our parent started may have inherited what was meant for the parent.
        let is_ours = watchdog_pid.is_none_or(|pid| pid.parse() == Ok(std::process::id()));
        let watchdog_us = watchdog_us.and_then(|us| us.parse().ok()).filter(|us| is_ours && *us > 0);
        let socket = UnixDatagram::unbound().ok()?;
        // Who manages us may be busy; we wait for nobody.
        socket.set_nonblocking(true).ok()?;
        Some(ServiceManager { socket, address, watchdog: watchdog_us.map(Duration::from_micros) })
    }

    /// How long it waits for a sign of life; none where it does not.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Started, and answering.
    pub fn ready(&self) -> io::Result<()> {
        self.tell("READY=1")
    }

    /// Still doing what it is there for.
    pub fn alive(&self) -> io::Result<()> {
        self.tell("WATCHDOG=1")
    }

    /// About to end.
    pub fn stopping(&self) -> io::Result<()> {
        self.tell("STOPPING=1")
    }

    fn tell(&self, text: &str) -> io::Result<()> {
        self.socket.send_to_addr(text.as_bytes(), &self.address).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut text = [0; 64];
        let n = socket.recv(&mut text).unwrap();
        String::from_utf8(text[..n].to_vec()).unwrap()
    }

    #[test]
    fn a_path_and_an_abstract_name_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("wakewatt-test-{}", std::process::id());
        let sockets = [
            (path.to_str().unwrap().to_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{name}"), UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap()),
        ];
        for (named, socket) in sockets {
            let manager = ServiceManager::of(&named, Some("3000000"), None).unwrap();
            assert_eq!(manager.watchdog(), Some(Duration::from_secs(3)));
            manager.ready().unwrap();
            manager.alive().unwrap();
            manager.stopping().unwrap();
            assert_eq!([heard(&socket), heard(&socket), heard(&socket)], ["READY=1", "WATCHDOG=1", "STOPPING=1"]);
        }
    }

    #[test]
    fn what_is_meant_for_others_is_left_alone() {
        assert!(
            ServiceManager::of("vsock:2:1234", None, None).is_none() && ServiceManager::of("", None, None).is_none()
        );
        let with = |us: Option<&str>, pid: Option<&str>| ServiceManager::of("/run/x", us, pid).unwrap().watchdog();
        let own = std::process::id().to_string();
        assert_eq!(with(Some("5"), Some(&own)), Some(Duration::from_micros(5)));
        assert_eq!((with(Some("5"), Some("1")), with(Some("0"), None), with(Some("x"), None)), (None, None, None));
        // Nobody listens there: an error, which nobody need look at.
        assert!(ServiceManager::of("/nowhere/x", None, None).unwrap().ready().is_err());
    }
}
