//! Start-up time: `--version`, from spawn to exit, against cpupower and against a program that does nothing.

use super::{Measured, Row, installed, median};
use anyhow::Result;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 50;

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let cpupower = installed("cpupower");
    let mut programs: Vec<(&str, PathBuf, Vec<f64>)> = vec![("wakewatt", binary.to_path_buf(), Vec::new())];
    programs.extend(cpupower.map(|path| ("cpupower", path, Vec::new())));
    programs.extend(installed("true").map(|path| ("true", path, Vec::new())));
    let mut csv = String::from("round,program,ms\n");
    for round in 0..=ROUNDS {
        for (name, path, times) in &mut programs {
            let mut command = Command::new(&*path);
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            let _ = command.status()?;
            if round > 0 {
                times.push(started.elapsed().as_secs_f64() * 1e3);
                let _ = writeln!(csv, "{round},{name},{:.3}", times[round - 1]);
            }
        }
    }
    let of = |name: &str| programs.iter().find(|p| p.0 == name).map(|p| median(&p.2));
    let ours = of("wakewatt").unwrap_or(f64::NAN);
    let peer = of("cpupower")
        .map_or("cpupower: not installed (Debian package linux-cpupower)".into(), |ms| format!("cpupower {ms:.2} ms"));
    let floor = of("true").map_or(String::new(), |ms| format!("; /bin/true {ms:.2} ms"));
    let row = Row {
        what: "start-up, --version",
        ours: format!("{ours:.2} ms"),
        peer: format!("{peer}{floor}"),
        goal: "5 ms",
        is_met: Some(ours < 5.0),
    };
    Ok(Measured { rows: vec![row], csv })
}
