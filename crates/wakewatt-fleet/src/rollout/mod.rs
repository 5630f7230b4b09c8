//! A change on many nodes, a few at a time: what is planned, what has happened, and what may be done next. No machine is touched here.
//!
//! `plan/` is the file that people write, `kind.rs` whether two nodes would be changed in the same way, `did.rs` what the changed
//! nodes did beside the unchanged ones (docs/methods/rollout.md), `gate.rs` what a gate says of that, `state.rs` how far it has come (the document
//! `wakewatt/fleet-rollout/v1`), `machine/` the next step. Whoever conducts writes the state before each step and after it, so
//! that being killed anywhere loses nothing: on the way back every node whose step was under way is asked what it has.

pub mod plan;
pub mod kind;
pub mod did;
pub mod gate;
pub mod state;
mod sentence;
pub mod machine;
