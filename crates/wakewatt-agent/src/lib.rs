//! The agent: one process that runs for months, reads what costs nothing, and tells it over HTTP.
//!
//! Data flows one way: `engine` (the thread that reads) keeps `totals` (counters that never step back) and what `families` makes of everything, a `metric` page; `http` asks for it
//! and `format` writes it. It changes no setting and, unless told to, listens where only this machine can reach it.

#![warn(missing_docs)]

mod engine;
mod families;
mod format;
pub mod histogram;
pub mod history;
mod http;
mod run;
mod totals;
pub mod metric;
pub mod reference;

pub use engine::{Engine, Machine, Plan};
pub use families::Latencies;
pub use format::Format;
pub use http::is_private;
pub use run::{Started, Trouble, listen, run};
