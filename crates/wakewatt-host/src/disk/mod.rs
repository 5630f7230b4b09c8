//! Reading from disks, and only reading: targets (`target.rs`), files made to be read (`made.rs`), reads through
//! io_uring (`ring.rs`) and the memory they go to (`aligned.rs`).
//!
//! **Invariant:** nothing here opens a path of the user's for writing. A [`target::Target`] holds a descriptor that was
//! opened O_RDONLY, so even a bug above could not change a disk; only a file that was just made, and has no name, is
//! ever written to.

pub mod aligned;
pub mod filesystem;
pub mod made;
pub mod ring;
pub mod target;
