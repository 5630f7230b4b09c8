//! The binary: parse, run, exit. The only place that ends the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    wakewatt::run(std::env::args_os())
}
