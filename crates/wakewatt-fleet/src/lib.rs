//! wakewatt-fleet compares machines that do the same work: which of them pay more for it, and what is set otherwise there.
//!
//! Pure, like core: the answers of a Prometheus-compatible API come in through a door ([`series::Door`]) that somebody else
//! opens, run files as samples. `stats/` is the method (docs/methods/fleet.md), `table.rs` what is known of each node in each
//! window of time, `series/` asks an API for it, `folder.rs` takes it from run files (`rows.rs` as rows for
//! a database), `firmware.rs` reads what `bios show` said of a node, `compare/` judges the table, and
//! `document.rs` is what is told. It accuses nobody on less than the method allows: below eight nodes of a kind there is a
//! rank, outside the load that others had there is "cannot tell".
//! `rollout/` is the other half: a change on many nodes, stage by stage, and what may be done next.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod stats;
pub mod measure;
pub mod table;
pub mod document;
pub mod series;
pub mod firmware;
pub mod folder;
pub mod rows;
pub mod compare;
pub mod rollout;
