//! wakewatt-host touches and never thinks: the only door to the operating system.
//!
//! Sources (the live machine, an unpacked tree, a recording, one that fails on purpose), and the system calls that
//! measuring needs. Every `unsafe` of the project outside the eBPF crate is here.

mod inside;
pub mod live;
pub mod kept;
pub mod input;
pub mod authorities;
pub mod recorded;
pub mod reaped;
pub mod recorder;
pub mod faulty;
pub mod ethtool;
pub mod sink;
pub mod store;
pub mod place;
pub mod exec;
pub mod program;
pub mod trust;
pub mod disk;
pub mod deadline;
pub mod detached;
pub mod simulated;
pub mod clock;
pub mod own_usage;
pub mod open_files;
pub mod affinity;
pub mod sched;
pub mod sleep;
pub mod ipi;
pub mod line;
pub mod cycles;
pub mod work;
pub mod vector;
pub mod kernel_config;
pub mod kernel_log;
pub mod timestamps;
pub mod wtrace_file;
pub mod echo;
pub mod pages;
pub mod oom;
pub mod chain;
pub mod vector_loops;
pub mod bound;
pub mod disk_room;
pub mod environment;
pub mod secret;
pub mod service_manager;
pub mod confine;
pub mod door;
pub mod helper;
pub mod push;
pub mod resolve;
mod http;
pub mod power;
pub mod bmc;
pub mod metrics_store;
