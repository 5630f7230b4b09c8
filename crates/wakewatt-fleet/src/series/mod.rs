//! A fleet out of a Prometheus-compatible API: what to ask for, in which pieces, and which answers belong to one node.
//!
//! The store does the counting: `rate` takes resets of counters out before anything is added up, window by window, so what
//! crosses the network is a number per node and window and not a month of samples. Source of the API:
//! <https://prometheus.io/docs/prometheus/latest/querying/api/>; VictoriaMetrics and Thanos answer the same.
//!
//! `window.rs` divides time, `promql.rs` writes the questions, `answer.rs` reads an answer as it arrives, `ask.rs` puts a
//! question in pieces that a store will answer, `names.rs` finds the node that a series speaks of, `hardware.rs` and
//! `settings.rs` read labels, `gather.rs` makes the table of it all, `plain.rs` asks one query of the user's.

pub mod window;
mod promql;
mod answer;
mod ask;
mod names;
mod hardware;
mod settings;
mod gather;
mod plain;

pub use answer::{MOST_BYTES, read_answer};
pub use ask::{Door, Refusal};
pub use gather::{Gathered, Nothing, Wanted, gather};
pub(crate) use hardware::rounded_gib;
pub use plain::{Course, courses, places, values_at};

#[cfg(test)]
mod tests;
