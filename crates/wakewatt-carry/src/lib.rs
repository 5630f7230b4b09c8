//! How other machines are reached: who there is, and what `wakewatt` says when it is run there.
//!
//! Only three programs that operators trust already carry anything: ssh, kubectl, ansible. None of them is linked in; each is a
//! [`Carrier`], and whoever rolls out or collects knows nothing else. What a carrier is given is an [`Order`]: arguments of
//! wakewatt on the far side, never a shell line, never a secret. What firmware holds is reached past the machine, through its BMC ([`Firmware`]). What keeps track across restarts of the operator's side is a
//! [`Book`](book::Book): a locked folder, or objects in the cluster.
//!
//! Invariants: a name of a node is checked once ([`NodeName`]) and can be neither an option nor a path nor a shell word; nobody is
//! waited for without a limit; a node that cannot be reached is an error with a type, never silence.

mod node;
mod firmware;
mod carrier;
pub mod audit;
pub mod bmc;
pub mod book;
pub mod child;
pub mod collect;
pub mod hosts;
pub mod kubernetes;
pub mod ssh;
pub mod rollout;

pub use carrier::{Carrier, CarryError, Holder, HolderKind, Order, Privilege, Reply};
pub use firmware::Firmware;
pub use node::{BadName, Node, NodeName};
