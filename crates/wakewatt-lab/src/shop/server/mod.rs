//! The shop's server: axum in front, a database behind, in a process of its own.
//!
//! A page goes from a web thread to a thread of the database and back (`pool.rs`), as in an ordinary shop. The process
//! ends when its standard input does, so that it cannot outlive whoever started it, not even one that was killed; its
//! specification comes as the first line of that input, because arguments and environment can be read by others and it may
//! hold a password.

pub mod catalogue;
pub mod database;
mod home;
mod pages;
mod pool;
pub mod postgres;
mod postgres_address;
pub mod sqlite;
pub mod store;

use pool::Pool;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::oneshot;

/// Where the shop keeps its data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Files in a folder, which vanish with the server.
    Sqlite {
        folder: PathBuf,
        /// Is every order synced to the disk before it is confirmed?
        is_durable: bool,
    },
    /// A PostgreSQL server.
    Postgres {
        /// Its connection string, without a password.
        url: String,
        password: Option<String>,
        /// Certificates of authorities, PEM; the distribution's when not given.
        ca: Option<PathBuf>,
        /// As above.
        is_durable: bool,
    },
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Sqlite { folder, is_durable } => write!(f, "Sqlite({}, {is_durable})", folder.display()),
            Storage::Postgres { is_durable, .. } => write!(f, "Postgres({is_durable})"),
        }
    }
}

/// What to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Where; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Products in the catalogue.
    pub n_products: u32,
    /// Seed of the catalogue.
    pub seed: u64,
    /// Web threads.
    pub n_workers: usize,
    /// Threads of the database, each with a connection.
    pub n_connections: usize,
    /// Clients that must fit.
    pub n_clients: u32,
    /// Where data lies.
    pub storage: Storage,
}

/// What the server says of itself, at `/about` and to whoever started it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// Always "wakewatt".
    pub shop: String,
    /// Version of the program.
    pub version: String,
    /// Where it listens; none in `/about`.
    pub listen: Option<SocketAddr>,
    /// Products in the catalogue.
    pub n_products: u32,
    /// Where its data lies, for people.
    pub storage: String,
    /// Is its database inside its process, so that `cpu_ns` holds all of its work?
    pub is_whole: bool,
    /// Connections that fit.
    pub n_fit: u64,
    /// CPU time of the process so far.
    pub cpu_ns: Option<u64>,
    /// The part of it in the kernel.
    pub system_ns: Option<u64>,
}

/// What [`ServerDescription::shop`] says.
pub const NAME: &str = "wakewatt";

/// Drop the first to end [`serve`].
pub fn end() -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    oneshot::channel()
}

/// Serves until `end` is told or dropped. `ready` gets what there is to know once the shop is open.
pub fn serve(
    spec: &ServerSpec,
    ready: impl FnOnce(&ServerDescription),
    end: oneshot::Receiver<()>,
) -> Result<(), String> {
    let n_fit = wakewatt_host::open_files::make_room(u64::from(spec.n_clients) + 16).saturating_sub(16);
    let listener = TcpListener::bind(spec.listen).map_err(|e| format!("{}: {e}; choose another", spec.listen))?;
    let about = ServerDescription {
        shop: NAME.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        listen: listener.local_addr().ok(),
        n_products: spec.n_products,
        n_fit,
        ..ServerDescription::default()
    };
    let (n, seed, n_connections) = (spec.n_products, spec.seed, spec.n_connections);
    match &spec.storage {
        Storage::Sqlite { folder, is_durable } => {
            let stores = sqlite::open(folder, *is_durable, n, seed, n_connections).map_err(|e| e.to_string())?;
            let file_system = std::fs::File::open(folder).ok().and_then(wakewatt_host::disk::filesystem::name);
            let on = file_system.unwrap_or("an unknown file system");
            let storage = format!("SQLite in {} ({on}), {}", folder.display(), commits(*is_durable));
            with(spec, stores, ServerDescription { storage, is_whole: true, ..about }, listener, ready, end).map(drop)
        }
        Storage::Postgres { url, password, ca, is_durable } => {
            let (at, ca) = ((url.as_str(), password.as_deref()), ca.as_deref());
            let stores = postgres::open(at, ca, *is_durable, n, seed, n_connections).map_err(|e| e.to_string())?;
            let storage = format!("PostgreSQL, {}", commits(*is_durable));
            let mut back = with(spec, stores, ServerDescription { storage, ..about }, listener, ready, end)?;
            match back.first_mut() {
                Some(first) => postgres::drop_schema(first).map_err(|e| e.to_string()),
                None => Ok(()),
            }
        }
    }
}

fn commits(is_durable: bool) -> &'static str {
    if is_durable { "every order synced" } else { "orders not synced one by one" }
}

fn with<S: Store + 'static>(
    spec: &ServerSpec,
    stores: Vec<S>,
    about: ServerDescription,
    listener: TcpListener,
    ready: impl FnOnce(&ServerDescription),
    end: oneshot::Receiver<()>,
) -> Result<Vec<S>, String> {
    let (pool, threads) = pool::start(stores).map_err(|e| format!("no thread for the database: {e}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(spec.n_workers.max(1))
        .thread_name("shop-web")
        .enable_io()
        .enable_time()
        .build()
        .map_err(|e| format!("no threads for the web: {e}"))?;
    let served = runtime.block_on(until(pool.clone(), about, listener, ready, end));
    // Connections that clients keep open are no reason to stay.
    runtime.shutdown_timeout(Duration::from_millis(200));
    pool.close();
    let stores = threads.join();
    served.map(|()| stores)
}

async fn until(
    pool: Pool,
    about: ServerDescription,
    listener: TcpListener,
    ready: impl FnOnce(&ServerDescription),
    end: oneshot::Receiver<()>,
) -> Result<(), String> {
    use axum::serve::ListenerExt as _;
    let fail = |e: std::io::Error| format!("the listening socket: {e}");
    listener.set_nonblocking(true).map_err(fail)?;
    // An answer that waits for an acknowledgement would measure TCP's patience.
    let listener = tokio::net::TcpListener::from_std(listener).map_err(fail)?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let shop = pages::Shop { pool, about: Arc::new(ServerDescription { listen: None, ..about.clone() }) };
    ready(&about);
    tokio::select! {
        done = axum::serve(listener, pages::router(shop)).into_future() => done.map_err(fail),
        _ = end => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
