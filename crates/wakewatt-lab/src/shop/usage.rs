//! Whose CPU time a request cost, and how busy the CPUs were meanwhile.
//!
//! A request costs what its CPUs were busy for, and not only what its server's process was charged: a part of the network
//! stack runs in soft interrupts, which belong to no process. So where the server has CPUs of its own here, their busy time
//! counts (/proc/stat, to the tick of 10 ms); where clients share them, the busy time of the machine less this program's
//! own. A server of ours elsewhere says what its process has used (`getrusage`), and of any other there nobody here can know.
//! Which of these it was is told beside the number.

use super::client::Target;
use super::server::{NAME, ServerDescription};
use crate::load::usage;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::facts::load::parse_stat;
use wakewatt_core::samples::load::CpuUse;
use wakewatt_core::source::Source;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::own_usage;

/// What the clients themselves did in a level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorUse {
    /// How many threads the clients had.
    pub n_threads: u32,
    /// CPU time of this program in the window, meters included; none where the kernel does not say.
    pub cpu_ns: Option<u64>,
    /// The part of it in the kernel.
    pub system_ns: Option<u64>,
    /// From the planned to the real start of requests.
    pub late: Distribution,
    /// Failures by kind, in words.
    pub failures: Vec<(String, u64)>,
}

/// Whose CPU time is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuOf {
    /// The shop's server, its database inside.
    ServerProcess,
    /// The shop's server; its database is another process, whose time is not in it.
    WebProcess,
    /// All that ran on this machine but this program.
    Machine,
    /// Nobody's: the server is elsewhere and does not say.
    #[default]
    Unknown,
}

impl CpuOf {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            CpuOf::ServerProcess => "the server's process, database included",
            CpuOf::WebProcess => "the server's process without its database, which is elsewhere",
            CpuOf::Machine => "everything on this machine but the clients",
            CpuOf::Unknown => "unavailable: the server is on another host and does not say",
        }
    }
}

/// Readings at one moment.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// All of the server, and its part in the kernel.
    server: Option<(u64, u64)>,
    /// This program.
    own: Option<(u64, u64)>,
    /// Everything on this machine but this program.
    machine: Option<(u64, u64)>,
    /// The CPUs asked for.
    cpus: usage::Usage,
    /// When all this was read. A server that is full answers late, and what it says is of then.
    at_ns: u64,
}

/// What happened between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// The server's time: all, and in the kernel.
    pub server: Option<(u64, u64)>,
    /// This program's: the clients', mostly.
    pub own: Option<(u64, u64)>,
    /// Everything on this machine but this program: all, and in the kernel.
    pub machine: Option<(u64, u64)>,
    /// Per CPU.
    pub cpus: Vec<CpuUse>,
    /// Those CPUs together: all, and in the kernel; none where not one could be read.
    pub busy: Option<(u64, u64)>,
    /// Between the readings.
    pub took_ns: u64,
}

impl Used {
    /// CPU time as it is for a window of this length, where the readings lay further apart.
    pub fn within(self, window_ns: u64) -> Used {
        let took_ns = u128::from(self.took_ns.max(window_ns).max(1));
        let part = |ns: u64| u64::try_from(u128::from(ns) * u128::from(window_ns) / took_ns).unwrap_or(ns);
        let both = |of: Option<(u64, u64)>| of.map(|(all, system)| (part(all), part(system)));
        let busy = both(self.busy);
        Used { server: both(self.server), own: both(self.own), machine: both(self.machine), busy, ..self }
    }
}

impl Usage {
    /// Reads now, and how busy these CPUs are.
    pub fn read(of: CpuOf, target: &Target, cpus: &CpuSet, src: &dyn Source) -> Usage {
        // The line for all CPUs: it keeps what a CPU had used that is offline now.
        let text = src.read("/proc/stat").unwrap_or_default();
        let all = parse_stat(&String::from_utf8_lossy(&text)).ok().map(|stat| stat.total);
        let all = all.map(|all| (all.busy_ns(), all.kernel_ns()));
        let own = own_usage::cpu_ns();
        let machine = all.zip(own).map(|(all, own)| (all.0.saturating_sub(own.0), all.1.saturating_sub(own.1)));
        let server = match of {
            CpuOf::ServerProcess | CpuOf::WebProcess => {
                ask(target).ok().and_then(|about| about.cpu_ns.zip(about.system_ns))
            }
            CpuOf::Machine => machine,
            CpuOf::Unknown => None,
        };
        let at_ns = monotonic_ns();
        Usage { server, own, machine, cpus: usage::Usage::read(src, cpus, at_ns), at_ns }
    }

    /// The CPUs asked for.
    pub fn cpus(&self) -> &usage::Usage {
        &self.cpus
    }

    /// CPU time of server and clients together, where no part of it is anybody else's and nothing is missing.
    pub fn ours_ns(&self, of: CpuOf) -> Option<u64> {
        let ((server, _), (own, _)) = self.server.filter(|_| of == CpuOf::ServerProcess).zip(self.own)?;
        Some(server.saturating_add(own))
    }

    /// What happened since.
    pub fn since(&self, before: &Usage) -> Used {
        let between = |now: Option<(u64, u64)>, then: Option<(u64, u64)>| {
            now.zip(then).map(|(now, then)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1)))
        };
        let usage::Used { cpus, cpu_ns, system_ns } = self.cpus.since(&before.cpus);
        Used {
            server: between(self.server, before.server),
            own: between(self.own, before.own),
            machine: between(self.machine, before.machine),
            busy: (!cpus.is_empty()).then_some((cpu_ns, system_ns)),
            cpus,
            took_ns: self.at_ns.saturating_sub(before.at_ns),
        }
    }
}

/// Asks a server whether it is a shop of ours; an error is one of the connection or says that it is not.
pub fn ask(target: &Target) -> Result<ServerDescription, String> {
    let wait = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&target.at, wait).map_err(|e| e.to_string())?;
    let limits = stream.set_read_timeout(Some(wait)).and_then(|()| stream.set_write_timeout(Some(wait)));
    limits.map_err(|e| e.to_string())?;
    let Target { host, prefix, .. } = target;
    let request = format!("GET {prefix}/about HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    // A stranger may send without end.
    stream.take(1 << 16).read_to_end(&mut text).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&text);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let about: Option<ServerDescription> =
        serde_json::from_str(body).ok().filter(|about: &ServerDescription| about.shop == NAME);
    about.ok_or_else(|| "not a shop of wakewatt".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shop::server::tests::Open;
    use wakewatt_core::source::Tree;

    #[test]
    fn an_answer_that_came_late_is_of_a_longer_time_than_the_window() {
        let used = Used { server: Some((330, 110)), own: Some((u64::MAX, 0)), took_ns: 11_000, ..Used::default() };
        let within = used.clone().within(10_000);
        assert_eq!((within.server, within.own), (Some((300, 100)), Some((u64::MAX / 11 * 10 + 3, 0))));
        assert_eq!(used.clone().within(11_000).server, used.server);
        assert_eq!(used.clone().within(12_000).server, used.server, "never more than was read");
        assert_eq!(Used::default().within(0), Used::default());
    }

    #[test]
    fn our_server_says_what_it_used_and_others_are_what_is_left() {
        let shop = Open::shop();
        let target = Target { host: "x".into(), at: shop.at, prefix: String::new() };
        let host =
            |busy: u64| Tree::from_text(&format!("//- /proc/stat\ncpu  {busy} 0 0 0\ncpu0 {busy} 0 100 900 0 0 0 0\n"));
        let (one, none) = (CpuSet::parse("0").unwrap(), CpuSet::new());
        let before = Usage::read(CpuOf::ServerProcess, &target, &one, &host(100));
        let used = Usage::read(CpuOf::ServerProcess, &target, &one, &host(300)).since(&before);
        assert!(used.server.is_some() && used.own.is_some());
        assert!((used.cpus[0].user_ratio - 1.0).abs() < 1e-9);
        let before = Usage::read(CpuOf::Machine, &target, &none, &host(10_000));
        let used = Usage::read(CpuOf::Machine, &target, &none, &host(10_200)).since(&before);
        let (all, own) = (used.server.unwrap(), used.own.unwrap());
        assert_eq!((all.0 + own.0, used.cpus.len()), (2_000_000_000, 0));
        assert_eq!(Usage::read(CpuOf::Unknown, &target, &none, &host(1)).server, None);
    }
}
