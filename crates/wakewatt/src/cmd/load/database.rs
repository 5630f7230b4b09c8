//! `load shop --database`: the connection string and the password, from where nobody else can read it.

use crate::cli::shop::ShopArgs;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use wakewatt_lab::shop::server::{Storage, database};

/// No password is longer.
const MAX_BYTES: u64 = 4096;

/// Where the data lies.
pub(super) fn storage(args: &ShopArgs, url: &str) -> Result<Storage> {
    database::check(url).map_err(|e| {
        let code = if e == database::UrlError::HasPassword { Code::Usage } else { Code::CouldNotMeasure };
        Failure::error(code, format!("--database: {e}"))
    })?;
    if database::is_open_to_others(url) {
        output::complain(
            "WARNING: sslmode=disable: password and data go to another host for everybody on the way to read",
        );
    }
    let password = match &args.database_password_file {
        Some(file) => Some(first_line(file)?),
        None => std::env::var("PGPASSWORD").ok(),
    };
    Ok(Storage::Postgres { url: url.into(), password, ca: args.meters.ca.clone(), is_durable: args.durable })
}

fn first_line(path: &Path) -> Result<String> {
    let bad = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", path.display()));
    // A FIFO must not be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags as i32).open(path);
    let file = file.with_context(|| format!("{}: cannot be read", path.display()))?;
    let meta = file.metadata().with_context(|| format!("{}: cannot be looked at", path.display()))?;
    if !meta.is_file() {
        return Err(bad("is no regular file".into()));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(bad("may be read or written by others; chmod 600 it".into()));
    }
    let mut line = String::new();
    BufReader::new(file.take(MAX_BYTES)).read_line(&mut line).map_err(|e| bad(e.to_string()))?;
    match line.trim_end_matches(['\n', '\r']) {
        "" => Err(bad("its first line, which is the password, is empty".into())),
        password => Ok(password.into()),
    }
}
