//! Plans and profiles that a person names: a file root acts by must not be in somebody else's hands.
//!
//! A plan runs commands and a profile turns settings, both as whoever calls. For root that is a border: whoever may
//! write the file would be root. So a file is acted by only if it is root's, or that of the person behind sudo, and nobody
//! else may write it. Looking at one (`tune plan`, `--dry-run`) does no harm and is free; so is what people do as themselves.

use crate::exit::{Code, Failure, code_of};
use anyhow::Result;
use std::fs::File;
use std::path::Path;
use wakewatt_host::input::{self, Kind};
use wakewatt_host::trust::{Caller, Fault};

/// What the file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It will be acted by.
    Acting,
    /// It is shown.
    Looking,
}

/// The text of a file.
pub(crate) fn text(name: &str, kind: Kind, used: Use) -> Result<String> {
    let is_border = used == Use::Acting && rustix::process::geteuid().is_root();
    if !is_border {
        return Ok(input::read_text(Path::new(name), kind)?);
    }
    Ok(input::text_of(open(Path::new(name))?, Path::new(name), kind)?)
}

/// Refuses a file that another program (ssh, kubectl) obeys and that others can write, where the caller is root. That program
/// opens it by its name again: no folder or link on the way is another user's, so nobody else can exchange it meanwhile.
/// A file that cannot be opened is left to that program's own message.
pub(crate) fn check(file: &Path) -> Result<()> {
    match open(file) {
        Err(why) if rustix::process::geteuid().is_root() && code_of(&why) == Code::Refused => Err(why),
        _ => Ok(()),
    }
}

fn open(file: &Path) -> Result<File> {
    Caller::this_process().or_behind_sudo().open(file).map_err(|distrust| {
        let code = if matches!(distrust.fault, Fault::Unopened(_)) { Code::BadFile } else { Code::Refused };
        let advice = match code {
            Code::Refused => format!(
                "; root would act by it: read it, then take a copy of your own, sudo install -m 0600 {} /root/",
                file.display()
            ),
            _ => String::new(),
        };
        Failure::error(code, format!("{distrust}{advice}"))
    })
}
