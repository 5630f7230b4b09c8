//! wakewatt-probes owns the only C and eBPF of the house.
//!
//! A probe is a folder: `<name>.bpf.c` counts in the kernel, `mod.rs` loads it and turns what it counted into core's
//! samples. Programs are compiled by clang when the crate is built (`build.rs`), find kernel structures through the
//! running kernel's BTF (CO-RE: we declare only the members used), and attach to typed tracepoints only, so no kprobes
//! are needed. Nothing is pinned: when the process ends, however it ends, the kernel detaches and frees everything.
//!
//! Dependencies: aya, because it loads CO-RE programs from a static binary without libbpf. Two things it does not do are
//! worked around: task storage passes as an unsupported map, and program statistics come from `/proc/self/fdinfo`.
//!
//! To add a probe: a folder with its `PROBE`, one name in `build.rs`.

pub mod icmp;
pub mod wake;
mod error;
mod histogram;
mod load;
pub mod namespace;
mod symbols;

pub use error::ProbeError;
pub use load::check;
pub use symbols::names_of;

/// A probe: its name and its programs, which are empty where there was no clang.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Folder and program name.
    pub id: &'static str,
    object: &'static [u8],
}

impl Probe {
    /// Was there a clang when this binary was built?
    pub fn is_built(&self) -> bool {
        !self.object.is_empty()
    }
}
