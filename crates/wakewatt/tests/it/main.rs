//! The whole tool, tested at its border in one binary: every command on every recorded host, faults, hostile machines,
//! the command line, published schemas, and (with `WAKEWATT_LIVE=1`, as root) the machine this runs on.

// In a test binary "pub" means: for the other files.
#![allow(unreachable_pub)]
// A test that cannot go on should stop, and one that does not run says so.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod agent_killed;
mod agent_push;
mod agent_safe;
mod bios;
mod border;
mod carried;
mod chart;
mod chinese;
mod ci_gate;
mod collect;
mod cli;
mod documented;
mod explain;
mod faults;
mod formats;
mod gone;
mod hostile;
mod hostile_names;
mod icmp;
mod import;
mod import_trees;
mod live;
mod load;
mod load_kept;
mod masking;
mod matrix;
mod measure;
mod outputs;
mod packaging;
mod past;
mod paths;
mod recording;
mod payers;
mod pty;
mod remedy;
mod fit;
mod fleet;
mod fleet_bios;
mod replay;
mod rollout;
mod replicate;
mod runs;
mod schemas;
mod simulate;
mod secrets;
mod shop;
mod stories;
mod tmux;
mod tables;
mod tool;
mod trace;
mod tune;
mod tune_faults;
mod watch;
