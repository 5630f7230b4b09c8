//! `load shop --database`: the connection string and the password, from where nobody else can read it.

use crate::cli::shop::ShopArgs;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use wakewatt_host::secret::Secret;
use wakewatt_lab::shop::server::{Storage, database};

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
        Some(file) => {
            let secret = Secret::from_file(file).map_err(|e| Failure::error(Code::BadFile, e.to_string()))?;
            Some(secret.expose().to_string())
        }
        None => std::env::var("PGPASSWORD").ok(),
    };
    Ok(Storage::Postgres { url: url.into(), password, ca: args.meters.ca.clone(), is_durable: args.durable })
}
