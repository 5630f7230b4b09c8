//! A rollout conducted: tasks of the machine (wakewatt-fleet) as orders to nodes, with everything written down before and after.
//!
//! `orders.rs` says what a task is on a node and what its answer means, `conduct.rs` does them, so many at once, and keeps the book.
//! One thread writes; the others only wait for nodes.

mod conduct;
mod dry;
mod orders;

pub use conduct::{Conductor, Halt, Judge, World, annotations};
pub use dry::{Looked, look};

/// The name of a new rollout: the plan's, and a random number that no transaction bears yet.
pub fn new_id(name: &str) -> Result<String, String> {
    let mut bytes = [0u8; 4];
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    filled.map_err(|_| "the system gives no random numbers".to_string())?;
    Ok(format!("{name}-{}", crate::audit::hex(&bytes)))
}
