//! The whole tool, tested at its border in one binary: every command on every recorded host, faults, hostile machines,
//! the command line, published schemas, and (with `WAKEWATT_LIVE=1`, as root) the machine this runs on.

// In a test binary "pub" means: for the other files.
#![allow(unreachable_pub)]

mod cli;
mod faults;
mod hostile;
mod live;
mod matrix;
mod schemas;
mod tool;
