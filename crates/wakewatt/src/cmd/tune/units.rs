//! `wakewatt tune units`: the systemd units, printed or written. They name the path of this binary.

use crate::cli::tune::UnitsArgs;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use wakewatt_tune::systemd;

/// Runs it.
pub(super) fn run(args: &UnitsArgs) -> Result<Code> {
    let program = systemd::this_program().context("cannot find the path of this program")?;
    let units = systemd::units(&program);
    if let Some(root) = &args.write {
        let refuse = |why: String| Failure::error(Code::Refused, format!("nothing is written: {why}"));
        // Whoever installs these units makes root run this path at every boot.
        systemd::unsafe_path(Path::new(&program)).map_or(Ok(()), |why| Err(refuse(why)))?;
        if rustix::process::geteuid().is_root() {
            let root = std::path::absolute(root).with_context(|| format!("{}: no path", root.display()))?;
            let folders = units.iter().filter_map(|u| Path::new(u.path.trim_start_matches('/')).parent());
            let fault = folders.map(|folder| root.join(folder)).find_map(|folder| systemd::unsafe_folder(&folder));
            fault.map_or(Ok(()), |why| Err(refuse(why)))?;
        }
    }
    let mut out = String::new();
    for unit in &units {
        match &args.write {
            None => {
                let _ = writeln!(out, "==> {} <==\n{}", unit.path, unit.text);
            }
            Some(root) => {
                let file = root.join(unit.path.trim_start_matches('/'));
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
                }
                output::write_file(&file, &unit.text)?;
                let _ = writeln!(out, "wrote {}", file.display());
            }
        }
    }
    if args.write.is_some() {
        out += "Next: systemctl daemon-reload && systemctl enable wakewatt-apply.service wakewatt-confirm.timer\n";
    }
    output::print(&out)?;
    Ok(Code::Fine)
}
