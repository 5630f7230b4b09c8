//! `wakewatt tune units`: the systemd units, printed or written. They name the path of this binary.

use crate::cli::tune::UnitsArgs;
use crate::exit::Code;
use crate::output;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use wakewatt_tune::systemd;

/// Runs it.
pub(super) fn run(args: &UnitsArgs) -> Result<Code> {
    let units = systemd::units(&binary()?);
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

/// Where this program lies.
pub(super) fn binary() -> Result<String> {
    let path = std::env::current_exe().context("cannot find the path of this program")?;
    let text = path.display().to_string();
    // After an upgrade the kernel marks the old file; the new one lies at the same path.
    Ok(text.trim_end_matches(" (deleted)").to_string())
}
