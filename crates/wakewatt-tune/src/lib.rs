//! wakewatt-tune is the only crate that changes the machine.
//!
//! Every change that outlives the process is journaled on disk before it is made, read back after, and undone by a
//! guard process if the one that made it dies. Two ways lead there: [`session`] for experiments, which go to and fro
//! between sets of settings and always return; [`apply`] for settings that stay until `tune undo`. A latency limit through
//! `/dev/cpu_dma_latency` needs none of that: the kernel drops it with the file descriptor ([`knobs::qos_global`]).
//!
//! Start with [`knob`] (what can be set, and what must be known about it), then [`resolve`], [`apply`], [`undo`].
#![forbid(unsafe_code)]

pub mod site;
pub mod words;
pub mod then;
pub mod knob;
pub mod knobs;
pub mod sites;
pub mod request;
pub mod profile;
#[cfg(feature = "schema")]
pub mod profile_schema;
pub mod resolve;
mod outlook;
mod price;
pub mod effect;
pub mod planning;
pub mod boot;
pub mod journal;
pub mod lock;
pub mod gone;
pub mod undo;
pub mod hands;
pub mod put_back;
pub mod left;
pub mod guard;
pub mod apply;
pub mod session;
mod live;
pub mod recovery;
pub mod sweep;
pub mod forget;
pub mod status;
pub mod here;
pub mod begin;
pub mod watch;
pub mod systemd;
pub mod asked;
pub mod reference;
