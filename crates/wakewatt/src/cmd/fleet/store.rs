//! The store that the command line names, as the fleet crate's door.

use crate::cli::store::StoreArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::io::Read;
use std::time::Duration;
use wakewatt_fleet::series::{Door, MOST_BYTES, Refusal};
use wakewatt_host::metrics_store::{MetricsStore, StoreError};
use wakewatt_host::power::Trust;
use wakewatt_host::secret::Secret;

/// A store behind HTTP.
pub(super) struct Store(MetricsStore);

/// Opens it; nothing is asked yet.
pub(super) fn open(args: &StoreArgs, url: &str) -> Result<Store> {
    let token = args.token_file.as_deref().map(Secret::from_file).transpose()?;
    let trust = Trust { ca: args.ca.clone(), is_insecure: args.insecure };
    let store = MetricsStore::new(url, token, &trust, Duration::from_nanos(args.timeout), MOST_BYTES);
    store.map(Store).map_err(|why| Failure::error(Code::Usage, why.to_string()))
}

impl Door for Store {
    fn ask(&self, path: &str) -> Result<Box<dyn Read + '_>, Refusal> {
        match self.0.get(path) {
            Ok(body) => Ok(Box::new(body)),
            Err(why @ (StoreError::TooMuch { .. } | StoreError::TooLong { .. })) => {
                Err(Refusal::TooMuch(why.to_string()))
            }
            Err(why) => Err(Refusal::Final(why.to_string())),
        }
    }
}
