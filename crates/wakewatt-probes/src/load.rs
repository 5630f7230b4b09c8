//! Loading: may we, can we, and what to say when not.
//!
//! The checks before loading exist for their messages: the bpf system call answers EPERM to three different causes.
//! A setting that can only be known by trying (a tracepoint this kernel lacks) becomes an error of that program.

use crate::Probe;
use crate::error::{ProbeError, chain};
use aya::programs::{BtfTracePoint, Iter, Program};
use aya::{Btf, Ebpf, EbpfLoader};
use std::os::fd::{AsFd, AsRawFd};

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// linux/capability.h: CAP_SYS_ADMIN implies the two newer ones.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Could this process trace? Opens nothing but files, loads nothing.
pub fn check(probe: &Probe) -> Result<(), ProbeError> {
    if !probe.is_built() {
        return Err(ProbeError::NotBuilt);
    }
    let missing = missing_capabilities();
    if !missing.is_empty() {
        return Err(ProbeError::NotPermitted { missing });
    }
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return Err(ProbeError::LockedDown("confidentiality".into()));
    }
    std::fs::File::open(BTF).map_err(|e| ProbeError::NoBtf(e.to_string()))?;
    Ok(())
}

fn missing_capabilities() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:")).map(str::trim);
    // Unreadable is not a refusal: the kernel will say.
    let Some(set) = effective.and_then(|hex| u64::from_str_radix(hex, 16).ok()) else { return String::new() };
    let has = |cap: u32| set >> cap & 1 == 1 || set >> CAP_SYS_ADMIN & 1 == 1;
    let wanted = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")];
    let missing: Vec<&str> = wanted.iter().filter(|(cap, _)| !has(*cap)).map(|(_, name)| *name).collect();
    match missing.len() {
        0 => String::new(),
        1 => format!("{} is", missing[0]),
        _ => format!("{} are", missing.join(" and ")),
    }
}

/// A constant of the C side, set before the verifier sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Global<'a> {
    /// Also for `bool`.
    U8(&'a str, u8),
    U32(&'a str, u32),
    U64(&'a str, u64),
}

/// The programs of a probe, loaded; dropping it detaches them.
pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    btf: Btf,
    attached: Vec<&'static str>,
}

impl Loaded {
    /// Creates maps, relocates programs; attaches nothing.
    pub(crate) fn new(probe: &Probe, globals: &[Global<'_>], sizes: &[(&str, u32)]) -> Result<Loaded, ProbeError> {
        check(probe)?;
        let btf = Btf::from_sys_fs().map_err(|e| ProbeError::NoBtf(chain(&e)))?;
        // Before 5.11 maps and programs counted against RLIMIT_MEMLOCK; a refusal to raise it shows itself below.
        let unlimited = rustix::process::Rlimit { current: None, maximum: None };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, unlimited);
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf)).allow_unsupported_maps();
        for global in globals {
            match global {
                Global::U8(name, value) => loader.override_global(name, value, true),
                Global::U32(name, value) => loader.override_global(name, value, true),
                Global::U64(name, value) => loader.override_global(name, value, true),
            };
        }
        for (name, n_entries) in sizes {
            loader.map_max_entries(name, *n_entries);
        }
        let ebpf = loader.load(probe.object);
        drop(loader);
        let ebpf = ebpf.map_err(|e| match &e {
            aya::EbpfError::MapError(_) => ProbeError::Lacking { what: "a kind of map".into(), detail: chain(&e) },
            _ => ProbeError::Refused { what: format!("eBPF programs of `{}`", probe.id), detail: chain(&e) },
        })?;
        Ok(Loaded { ebpf, btf, attached: Vec::new() })
    }

    /// Attaches one program to its typed tracepoint.
    pub(crate) fn attach(&mut self, program: &'static str, tracepoint: &str) -> Result<(), ProbeError> {
        let refused =
            |e: &dyn std::error::Error| ProbeError::Refused { what: format!("program {program}"), detail: chain(e) };
        let found = self.ebpf.program_mut(program).ok_or(ProbeError::NotBuilt)?;
        let found: &mut BtfTracePoint = found.try_into().map_err(|e| refused(&e))?;
        found.load(tracepoint, &self.btf).map_err(|e| match &e {
            aya::programs::ProgramError::Btf(_) => {
                ProbeError::Lacking { what: format!("tracepoint {tracepoint}"), detail: chain(&e) }
            }
            _ => refused(&e),
        })?;
        found.attach().map_err(|e| refused(&e))?;
        self.attached.push(program);
        Ok(())
    }

    /// Attaches one program to the beginning or end of a function of the kernel. A kprobe's may go to many, the others' to one.
    pub(crate) fn watch(&mut self, program: &'static str, function: &str) -> Result<(), ProbeError> {
        let refused =
            |e: &dyn std::error::Error| ProbeError::Refused { what: format!("program {program}"), detail: chain(e) };
        match self.ebpf.program_mut(program).ok_or(ProbeError::NotBuilt)? {
            Program::FEntry(p) => {
                p.load(function, &self.btf).map_err(|e| refused(&e))?;
                p.attach().map(drop).map_err(|e| refused(&e))
            }
            Program::FExit(p) => {
                p.load(function, &self.btf).map_err(|e| refused(&e))?;
                p.attach().map(drop).map_err(|e| refused(&e))
            }
            Program::KProbe(p) => {
                if p.fd().is_err() {
                    p.load().map_err(|e| refused(&e))?;
                }
                p.attach(function, 0).map(drop).map_err(|e| refused(&e))
            }
            _ => Err(ProbeError::NotBuilt),
        }
    }

    /// Readies a program that the kernel runs on every one of a kind (`task`) when it is told to ([`Loaded::run_over`]).
    pub(crate) fn ready(&mut self, program: &'static str, kind: &str) -> Result<(), ProbeError> {
        let refused =
            |e: &dyn std::error::Error| ProbeError::Refused { what: format!("program {program}"), detail: chain(e) };
        let found = self.ebpf.program_mut(program).ok_or(ProbeError::NotBuilt)?;
        let found: &mut Iter = found.try_into().map_err(|e| refused(&e))?;
        found.load(kind, &self.btf).map_err(|e| refused(&e))
    }

    /// Runs it over all there are now.
    pub(crate) fn run_over(&mut self, program: &'static str) -> Result<(), ProbeError> {
        let refused =
            |e: &dyn std::error::Error| ProbeError::Refused { what: format!("program {program}"), detail: chain(e) };
        let found = self.ebpf.program_mut(program).ok_or(ProbeError::NotBuilt)?;
        let found: &mut Iter = found.try_into().map_err(|e| refused(&e))?;
        let link = found.attach().map_err(|e| refused(&e))?;
        let link = found.take_link(link).map_err(|e| refused(&e))?;
        let mut file = link.into_file().map_err(|e| refused(&e))?;
        // It says nothing; reading to the end is what makes it run.
        std::io::copy(&mut file, &mut std::io::sink()).map_err(|e| refused(&e))?;
        Ok(())
    }

    /// What the kernel says of the attached programs; none where it does not say.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        let mut all = Statistics::default();
        for name in &self.attached {
            let program: &BtfTracePoint = self.ebpf.program(name)?.try_into().ok()?;
            let fd = program.fd().ok()?.as_fd().as_raw_fd();
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            let number = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
            all.n_recursion += number("recursion_misses:")?;
            all.run_time_ns += number("run_time_ns:").unwrap_or(0);
        }
        Some(all)
    }
}

/// Of all attached programs together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    /// Runs skipped because a program was already running on that CPU.
    pub(crate) n_recursion: u64,
    /// Time in them; zero unless somebody switched kernel.bpf_stats_enabled on.
    pub(crate) run_time_ns: u64,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("attached", &self.attached).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_clang_says_so_before_anything_else() {
        let empty = Probe { id: "none", object: &[] };
        assert!(!empty.is_built());
        let why = check(&empty).unwrap_err().to_string();
        assert!(why.contains("without eBPF programs") && why.contains("install clang"), "{why}");
        assert!(matches!(Loaded::new(&empty, &[], &[]), Err(ProbeError::NotBuilt)));
    }
}
