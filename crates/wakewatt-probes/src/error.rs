//! Why a probe cannot run here, and what to try: refusals are expected, so each has its own words.

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The binary was built without clang.
    #[error("this wakewatt was built without eBPF programs (no clang at build time); install clang and build again")]
    NotBuilt,
    /// The kernel does not describe its types.
    #[error(
        "/sys/kernel/btf/vmlinux: {0}; tracing needs a kernel with CONFIG_DEBUG_INFO_BTF (most distributions since 2020)"
    )]
    NoBtf(String),
    /// Lockdown forbids reading kernel memory.
    #[error(
        "/sys/kernel/security/lockdown: this kernel is locked down ({0}), which forbids eBPF to read kernel memory; boot \
         with lockdown=integrity or none"
    )]
    LockedDown(String),
    /// Capabilities are missing.
    #[error(
        "{missing} missing: run as root, or give the binary CAP_BPF and CAP_PERFMON (setcap cap_bpf,cap_perfmon+ep)"
    )]
    NotPermitted { missing: String },
    /// The kernel has no such tracepoint, type or map.
    #[error("this kernel lacks {what}: {detail}; tracing needs Linux 5.12 or later with power and sched tracepoints")]
    Lacking {
        /// Tracepoint or map.
        what: String,
        /// The loader's words.
        detail: String,
    },
    /// The governor's own functions cannot be watched.
    #[error("exact inputs cannot be recorded here: {0}; leave out --exact, the rebuilt ones are recorded without it")]
    NoExact(String),
    /// The kernel refused for another reason.
    #[error("{what}: {detail}")]
    Refused {
        /// Program or map.
        what: String,
        /// The loader's words.
        detail: String,
    },
}

/// The whole chain of causes on one line: aya's outermost message alone says little.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    // The verifier's log has many lines; the last say why.
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    if lines.len() > 4 {
        format!("{} … {}", lines[0], lines[lines.len() - 3..].join(" | "))
    } else {
        lines.join(" | ")
    }
}
