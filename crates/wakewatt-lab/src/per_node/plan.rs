//! What is run in copies, and where.

use regex_lite::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;

/// Where a copy runs.
#[derive(Clone, Debug)]
pub struct Where {
    /// Its node; none: not bound.
    pub node: Option<u32>,
    /// The CPUs it is allowed.
    pub cpus: CpuSet,
}

/// Where a copy's lines go.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Those of standard output.
    pub output: fn(&[u8]),
    /// Those of standard error.
    pub error: fn(&[u8]),
}

/// What is run.
#[derive(Clone, Debug)]
pub struct PerNodePlan {
    /// Program and arguments; `{node}`, `{cpus}` and `{n}` are filled in.
    pub command: Vec<OsString>,
    /// What to look for in its output: the number in the first group.
    pub metric: Option<Regex>,
    /// Keeps the output in files there instead of passing it on.
    pub folder: Option<PathBuf>,
    /// Where lines go otherwise.
    pub pass: Pass,
}
