//! The agent: one process that runs for months, reads what costs nothing, and tells it over HTTP.
//!
//! Data flows one way: `engine` (the thread that reads) keeps `totals` (counters that never step back) and what `families` makes of everything, a `metric` page; `http` asks for it
//! and `format` writes it. `node` is the same for people, with what `history` kept. It changes no setting and, unless told to, listens where only this machine can reach it.

#![warn(missing_docs)]

mod engine;
mod families;
mod format;
pub mod histogram;
pub mod history;
mod http;
pub mod node;
mod paying;
mod pulse;
mod recent;
mod run;
mod totals;
pub mod metric;
pub mod reference;

pub use engine::{Engine, Machine, NamedPayers, Plan};
pub use families::{Found, Latencies};
pub use format::Format;
pub use http::{Admission, AdmissionError, PageMaker, is_private};
pub use run::{Lent, Started, Trouble, listen, run};
