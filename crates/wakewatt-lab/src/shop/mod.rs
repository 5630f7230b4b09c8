//! The online shop: what a web application with a database does to a machine, or a machine to it, at so many clients.
//!
//! Case K4: 500, 1000 and 2000 clients of a shop (web, application, database), requests per second, latency, watts; case K0:
//! the same requests cost one core on one node and three on another. The shop here is small and real: axum, and SQLite or
//! PostgreSQL, in a process of its own; clients that think and have sessions; or a shop of the user's by its URL. Every
//! latency counts from the planned start. Method: docs/methods/load.md, after the public descriptions of SPECpower and
//! TPC-W; nothing here is a result of either.
//!
//! Async code stays inside this folder: thousands of connections are what it is for. A `Shop` is started once, then asked
//! for levels; a block of an experiment is one level against a running server.

pub mod client;
pub mod level;
pub mod levels;
pub mod places;
pub mod process;
mod rules;
pub mod server;
pub mod target;
pub mod usage;

pub use level::{Ran, default_phases};
pub use usage::{CpuOf, GeneratorUse};

use crate::load::settings::settings;
use crate::meters::Meters;
use client::{Mix, Target};
use places::Places;
use process::Server;
use server::{ServerSpec, Storage};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Kind, LoadRun, Worker};
use wakewatt_core::source::Source;
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::clock::realtime_ns;
use wakewatt_host::open_files;

/// Connections in an open loop, at most.
pub const MOST_OPEN: u32 = 4096;
/// Where SQLite's files lie when nothing is said: on a disk, by the file system hierarchy's own rules.
const ON_DISK: &str = "/var/tmp";
/// What is so when nothing is said; the command line's defaults are the same.
const PRODUCTS: u32 = 10_000;
const THINK_NS: u64 = 1_000_000_000;
const TIMEOUT_NS: u64 = 10_000_000_000;

/// A folder on a disk.
pub fn on_disk() -> PathBuf {
    match Path::new(ON_DISK).is_dir() {
        true => PathBuf::from(ON_DISK),
        false => std::env::temp_dir(),
    }
}

/// Who serves.
#[derive(Clone, Debug)]
pub enum Serving {
    /// A server of our own, started for it.
    Own {
        /// This program, which has the hidden command.
        program: PathBuf,
        /// Products in the catalogue.
        n_products: u32,
        /// Web threads; one per CPU of the server when not given.
        n_workers: Option<usize>,
        /// Where its data lies.
        storage: Storage,
    },
    /// Whatever answers there.
    Elsewhere {
        /// `http://host:port/path`.
        url: String,
        /// What to ask for; that of our own shop where the server is one, else only the URL itself.
        mix: Option<Mix>,
    },
}

/// What to start.
#[derive(Clone)]
pub struct ShopSpec {
    /// Who serves.
    pub serving: Serving,
    /// CPUs of the server; chosen when not given.
    pub cpus: Option<CpuSet>,
    /// CPUs of the clients; chosen when not given.
    pub client_cpus: Option<CpuSet>,
    /// Clients that must fit.
    pub n_clients: u32,
    /// Mean think time.
    pub think_ns: u64,
    /// Later answers count as failures.
    pub timeout_ns: u64,
    /// Seed of catalogue, think times and choices. The same seed asks the same of two settings.
    pub seed: u64,
    /// Which meters to read during levels; none: no watts.
    pub meters: Option<Meters>,
}

impl ShopSpec {
    /// A shop on this machine with everything as when nothing is said, for so many clients: a workload of an experiment.
    pub fn own(n_clients: u32, seed: u64, meters: Meters) -> Result<ShopSpec, String> {
        let program = std::env::current_exe().map_err(|e| format!("cannot find out where this program lies: {e}"))?;
        let storage = Storage::Sqlite { folder: on_disk(), is_durable: false };
        Ok(ShopSpec {
            serving: Serving::Own { program, n_products: PRODUCTS, n_workers: None, storage },
            cpus: None,
            client_cpus: None,
            n_clients,
            think_ns: THINK_NS,
            timeout_ns: TIMEOUT_NS,
            seed,
            meters: Some(meters),
        })
    }
}

/// A shop that is open.
pub struct Shop {
    server: Option<Server>,
    target: Target,
    mix: Mix,
    /// Who runs where.
    pub places: Places,
    /// Whose CPU time levels count.
    pub cpu_of: CpuOf,
    /// Is the server on this machine?
    pub is_here: bool,
    /// What keeps its data, or the URL.
    pub title: String,
    /// What to know about the whole.
    pub remarks: Vec<String>,
    /// Clients that fit.
    pub n_fit: u32,
    n_levels: u64,
    first_session: u64,
    spec: ShopSpec,
}

impl Shop {
    /// Opens the shop, or looks whether the one named is open. Setting the flag gives up.
    pub fn start(spec: ShopSpec, stop: &AtomicBool, src: &dyn Source) -> Result<Shop, String> {
        let allowed = allowed_cpus().map_err(|e| format!("asking which CPUs may be used: {e}"))?;
        let is_own = matches!(spec.serving, Serving::Own { .. });
        let mut places = places::divide(src, &allowed, spec.cpus.as_ref(), spec.client_cpus.as_ref(), is_own);
        let unknown = places.server.union(&places.clients).minus(&allowed);
        if !unknown.is_empty() {
            return Err(format!("CPUs {unknown} are not available to this process (it may use {allowed})"));
        }
        let mut remarks: Vec<String> = places.remark.iter().cloned().collect();
        let n_fit = open_files::make_room(u64::from(spec.n_clients));
        let mut shop = match &spec.serving {
            Serving::Own { .. } => Shop::own(spec, places, stop)?,
            Serving::Elsewhere { url, mix } => {
                let target = target::parse(url)?;
                let about = target::look(&target)?;
                let is_here = target::is_here(target.at.ip());
                if is_here {
                    places.server = allowed;
                    remarks.push("clients and server are on one machine and not kept apart: latency holds the clients' work too; give --client-cpus".into());
                }
                let cpu_of = match &about {
                    Some(about) if about.is_whole => CpuOf::ServerProcess,
                    Some(_) => CpuOf::WebProcess,
                    None if is_here => CpuOf::Machine,
                    None => CpuOf::Unknown,
                };
                let own = || about.as_ref().map(|about| Mix::own(about.n_products));
                let mix = mix.clone().or_else(own).unwrap_or_else(Mix::one_page);
                let title = about.map_or_else(|| url.clone(), |a| format!("{url} (wakewatt's shop, {})", a.storage));
                Shop::of(None, target, mix, places, title, cpu_of, spec).with_is_here(is_here)
            }
        };
        let n_fit = shop.server.as_ref().map_or(n_fit, |s| n_fit.min(s.about.n_fit));
        shop.n_fit = u32::try_from(n_fit).unwrap_or(u32::MAX);
        if shop.n_fit < shop.spec.n_clients {
            remarks.push(format!(
                "only {} of {} clients fit, one open file each: raise the hard limit (ulimit -Hn, LimitNOFILE=)",
                shop.n_fit, shop.spec.n_clients
            ));
        }
        if !shop.is_here {
            remarks.push("the server is on another host: idle states, load and CPU use of this one say nothing about it and are left out; watts only from meters that were named".into());
        }
        if !shop.is_here {
            shop.spec.meters = shop.spec.meters.and_then(|meters| meters.elsewhere());
        }
        remarks.extend(shop.spec.meters.as_mut().and_then(Meters::settle));
        shop.remarks = remarks;
        Ok(shop)
    }

    fn own(spec: ShopSpec, places: Places, stop: &AtomicBool) -> Result<Shop, String> {
        let Serving::Own { program, n_products, n_workers, storage } = &spec.serving else {
            return Err("no server of our own was asked for".into());
        };
        let n_workers = n_workers.unwrap_or(places.server.len()).max(1);
        let server = ServerSpec {
            listen: ([127, 0, 0, 1], 0).into(),
            n_products: *n_products,
            seed: spec.seed,
            n_workers,
            n_connections: n_workers * 2,
            n_clients: spec.n_clients,
            storage: storage.clone(),
        };
        let server = Server::start(program, &places.server, &server, stop)?;
        let at = server.about.listen.ok_or("the shop's server does not say where it listens")?;
        let target = Target { host: at.to_string(), at, prefix: String::new() };
        let mix = Mix::own(*n_products);
        let title = format!("{n_products} products in {}", server.about.storage);
        let cpu_of = if server.about.is_whole { CpuOf::ServerProcess } else { CpuOf::Machine };
        Ok(Shop::of(Some(server), target, mix, places, title, cpu_of, spec))
    }

    fn of(
        server: Option<Server>,
        target: Target,
        mix: Mix,
        places: Places,
        title: String,
        cpu_of: CpuOf,
        spec: ShopSpec,
    ) -> Shop {
        // Sessions of this run collide with none of an earlier one against the same server: seconds go on top.
        let first_session = ((realtime_ns() >> 30) & 0x3_ffff) << 44;
        Shop {
            server,
            target,
            mix,
            places,
            cpu_of,
            is_here: true,
            title,
            remarks: Vec::new(),
            n_fit: 0,
            n_levels: 1,
            first_session,
            spec,
        }
    }

    fn with_is_here(mut self, is_here: bool) -> Shop {
        self.is_here = is_here;
        self
    }

    /// Think times and choices are drawn from this seed from the next level on; what is sold stays what it is.
    pub fn reseed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    /// Names of the pages that are asked for.
    pub fn pages(&self) -> Vec<String> {
        self.mix.names()
    }

    /// A run without levels yet.
    pub fn run(&self, src: &dyn Source) -> LoadRun {
        let worker = |cpus: &CpuSet| (!cpus.is_empty()).then(|| Worker { node: None, cpus: cpus.clone() });
        LoadRun {
            kind: Kind::Shop,
            title: format!("shop, {}", self.title),
            seed: self.spec.seed,
            settings: if self.is_here { settings(src) } else { Vec::new() },
            workers: [worker(&self.places.server), worker(&self.places.clients)].into_iter().flatten().collect(),
            remarks: self.remarks.clone(),
            ..LoadRun::default()
        }
    }
}
