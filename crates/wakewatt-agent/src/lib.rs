//! The agent: one process that runs for months, reads what costs nothing, and tells it over HTTP.
//!
//! Data flows one way: `engine` (what reads) keeps `totals` (counters that never step back) and what `families` makes of everything, a `metric` page; `http` asks for it
//! and `format` writes it, `otlp` pushes it where that is asked for. `node` is the same for people, with what `history` kept. It changes no setting and, unless told to, listens where only this machine can reach it.

#![warn(missing_docs)]

mod alarm;
mod confined;
mod engine;
mod families;
mod format;
pub mod histogram;
pub mod history;
mod http;
mod measured;
pub mod node;
mod otlp;
mod paying;
mod pulse;
mod recent;
mod run;
mod telltales;
mod totals;
mod trouble;
pub mod metric;
pub mod reference;

pub use confined::{Beside, Confine, Guarded};
pub use engine::{Engine, Machine, NamedPayers, Plan};
pub use families::{Found, Latencies};
pub use format::Format;
pub use http::{Admission, AdmissionError, Door, Files, PageMaker, TlsError, is_private};
pub use measured::MeasuredExits;
pub use otlp::{Outbox, PATH as OTLP_PATH};
pub use run::{Lent, Started, Trouble, listen, run};
pub use trouble::{Say, Teller};
