//! Meters as the command line names them: what may be asked, what is quoted first, and the BMC's password from where nobody
//! else can read it.

use crate::cli::meter::MeterArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use wakewatt_host::live::Live;
use wakewatt_host::power::prometheus::Query;
use wakewatt_host::power::redfish::Account;
use wakewatt_host::power::{self, Machine, MetersWanted, Trust};
use wakewatt_host::secret::Secret;
use wakewatt_lab::meters::{INTERVAL_NS, Meters};

/// Where the BMC's password may be.
const PASSWORD: &str = "WAKEWATT_REDFISH_PASSWORD";

/// The meters that the command line names, or all there are.
pub(crate) fn meters(args: &MeterArgs) -> Result<Meters> {
    let (wanted, preferred) = wanted(args)?;
    Ok(Meters::new(wanted, &args.meter, &preferred, INTERVAL_NS))
}

/// What the command line says about meters, and those it names, which are quoted before others.
pub(crate) fn wanted(args: &MeterArgs) -> Result<(MetersWanted, Vec<String>)> {
    let machine: Machine = Arc::new(Live::this_machine());
    let named = [
        (!args.redfish.is_empty(), power::redfish::NAME),
        (args.prometheus.is_some(), power::prometheus::NAME),
        (args.meter_cmd.is_some(), power::command::NAME),
    ];
    let named = named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, name)| name.to_string());
    let preferred: Vec<String> = args.meter.iter().cloned().chain(named).collect();
    let wanted = MetersWanted {
        machine: Some(machine),
        has_devices: true,
        command: args.meter_cmd.clone(),
        redfish: Account {
            urls: args.redfish.clone(),
            user: args.redfish_user.clone(),
            password: args
                .redfish_user
                .as_ref()
                .map(|_| redfish_password(args.redfish_password_file.as_deref()))
                .transpose()?,
            is_plain_allowed: args.plain_http_password,
        },
        prometheus: args.prometheus.clone().zip(args.query.clone()).map(|(url, query)| Query { url, query }),
        trust: Trust { ca: args.ca.clone(), is_insecure: args.insecure },
        nvidia_smi: None,
    };
    wanted.redfish.check().map_err(|why| Failure::error(Code::Usage, why.to_string()))?;
    Ok((wanted, preferred))
}

/// From the file, else the environment; never from the command line, which everybody can read in /proc.
pub(crate) fn redfish_password(file: Option<&Path>) -> Result<Secret> {
    if let Some(file) = file {
        return Ok(Secret::from_file(file)?);
    }
    let text = std::env::var(PASSWORD).map_err(|_| {
        let why = format!("no password: set {PASSWORD} or name a file with --redfish-password-file");
        Failure::error(Code::Usage, why)
    })?;
    Secret::first_line(&text).map_err(|why| Failure::error(Code::Usage, format!("{PASSWORD}: {why}")))
}
