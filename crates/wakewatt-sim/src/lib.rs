//! wakewatt-sim is a server in the computer: what latency, throughput and watts come to under settings nobody has tried yet.
//!
//! A discrete-event simulation: requests arrive, are placed on CPUs as a kernel would in outline, wake them out of the idle states that
//! the governors of `wakewatt-models` chose, run at the clocks that the frequency governors chose, and leave. `server/` is what is simulated
//! (types, and TOML), `engine/` one replication of it, `outcome/` what replications come to, each number with its interval.
//! Everything that comes out is modelled, never measured, and says so. Equal seeds give equal numbers, on however many threads.
//!
//! Use: make a [`server::Server`] (by [`server::Server::parse`] or field by field), then [`simulate`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod span;
mod ziggurat;
pub mod law;
pub mod server;
pub mod recorded;
pub mod ran;
pub mod queue;
mod engine;
pub mod outcome;
mod parallel;
pub mod coverage;
pub mod moved;
pub mod exits;
pub mod study;
pub mod specpower;
pub mod sensitivity;
pub mod samples;
pub mod examples;
pub mod fit;

pub use parallel::{simulate, simulate_all};
