//! Capabilities: all are given up but those that are named, in every set, so that neither this thread nor a program it starts has them again.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// One that a reader of this machine may use after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Reads files that only their owner may: energy counters, for a user other than root.
    DacReadSearch,
    /// Opens registers of a CPU (/dev/cpu/N/msr).
    SysRawio,
    /// Reads maps of an attached probe, on kernels that ask for it at every call.
    Bpf,
    /// Looks at the open files of other processes.
    SysPtrace,
}

impl Capability {
    /// Its name in capabilities(7).
    pub fn name(self) -> &'static str {
        match self {
            Capability::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Capability::SysRawio => "CAP_SYS_RAWIO",
            Capability::Bpf => "CAP_BPF",
            Capability::SysPtrace => "CAP_SYS_PTRACE",
        }
    }

    fn bit(self) -> CapabilitySet {
        match self {
            Capability::DacReadSearch => CapabilitySet::DAC_READ_SEARCH,
            Capability::SysRawio => CapabilitySet::SYS_RAWIO,
            Capability::Bpf => CapabilitySet::BPF,
            Capability::SysPtrace => CapabilitySet::SYS_PTRACE,
        }
    }
}

/// Does something still work without this capability? It is held again afterwards.
pub fn works_without(capability: Capability, work: impl FnOnce() -> bool) -> bool {
    let Ok(before) = capabilities(None) else { return false };
    let without = before.effective.difference(capability.bit());
    if without == before.effective {
        return work();
    }
    let lowered = CapabilitySets { effective: without, ..before };
    if set_capabilities(None, lowered).is_err() {
        return false;
    }
    let is_working = work();
    // What is permitted can be taken up again; should that fail, it is gone, as it would be anyway.
    set_capabilities(None, before).is_ok() && is_working
}

/// Keeps these, of those that are held.
pub(super) fn keep_only(keep: &[Capability]) -> Result<String, String> {
    let held = capabilities(None).map_err(|why| why.to_string())?;
    let wanted = keep.iter().fold(CapabilitySet::empty(), |set, one| set | one.bit());
    let kept = held.permitted & wanted;
    // The first asks for CAP_SETPCAP, so it comes before that goes; whoever lacks it starts no program that could gain any (no_new_privs).
    let is_bounded = bound(wanted);
    // Kernels before 4.3 have no such set.
    let _ = clear_ambient_capability_set();
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|why| format!("they cannot be given up: {why}"))?;
    let names: Vec<&str> = keep.iter().filter(|one| kept.contains(one.bit())).map(|one| one.name()).collect();
    let kept = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    Ok(if is_bounded { kept } else { format!("{kept}; the bounding set stays as it was given") })
}

/// Takes all others out of the bounding set; was that possible?
fn bound(wanted: CapabilitySet) -> bool {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if wanted.contains(one) {
            continue;
        }
        match capability_is_in_bounding_set(one) {
            Ok(true) if remove_capability_from_bounding_set(one).is_err() => return false,
            Ok(_) => {}
            // Beyond the last one that this kernel has.
            Err(Errno::INVAL) => return true,
            Err(_) => return false,
        }
    }
    true
}
