//! `wakewatt bios`: power settings of firmware, over Redfish. One file per verb; this one opens the BMC or the recording.

mod apply;
mod plan;
mod show;
mod undo;
mod verify;

pub use plan::Planned;

use crate::cli::bios::{BiosArgs, BiosVerb, BmcArgs, JournalArgs, ServiceArgs};
use crate::exit::{Code, Failure};
use crate::meters;
use crate::output::Colour;
use anyhow::Result;
use std::path::PathBuf;
use wakewatt_bios::journal::{Journal, STATE_DIR};
use wakewatt_bios::live::LiveService;
use wakewatt_bios::recorded::Recorded;
use wakewatt_bios::service::Service;
use wakewatt_bios::walk::{self, Bios, Machine, NoMachine};
use wakewatt_host::bmc::{BmcAccount, BmcError};
use wakewatt_host::power::Trust;

/// Runs it.
pub fn run(args: &BiosArgs, colour: Colour) -> Result<Code> {
    match &args.verb {
        BiosVerb::Show(args) => show::run(args, colour),
        BiosVerb::Plan(args) => plan::run(args, colour),
        BiosVerb::Apply(args) => apply::run(args, colour),
        BiosVerb::Verify(args) => verify::run(args, colour),
        BiosVerb::Undo(args) => undo::run(args),
    }
}

/// A session with the BMC that is named.
fn live(args: &BmcArgs) -> Result<LiveService> {
    let no_url = || Failure::error(Code::Usage, "which BMC? name it with --redfish https://bmc.example");
    let url = args.redfish.clone().ok_or_else(no_url)?;
    let password = args.redfish_password_file.as_deref();
    let password = args.redfish_user.as_ref().map(|_| meters::redfish_password(password)).transpose()?;
    let account = BmcAccount {
        url,
        user: args.redfish_user.clone(),
        password,
        is_plain_allowed: args.plain_http_password,
        trust: Trust { ca: args.ca.clone(), is_insecure: args.insecure },
    };
    LiveService::enter(&account).map_err(|why| {
        let code = match &why {
            BmcError::Unusable(_) | BmcError::Exposed(_) => Code::Usage,
            BmcError::NotLetIn { .. } => Code::Refused,
            BmcError::NoAnswer { .. } | BmcError::TooLong { .. } | BmcError::Busy { .. } => Code::CouldNotMeasure,
        };
        Failure::error(code, why.to_string())
    })
}

/// The BMC, or the recording.
fn service(args: &ServiceArgs) -> Result<Box<dyn Service>> {
    match &args.from {
        Some(folder) => Ok(Box::new(Recorded::open(folder)?)),
        None => Ok(Box::new(live(&args.bmc)?)),
    }
}

/// The machine behind it.
fn machine(service: &mut dyn Service, system: Option<&str>) -> Result<Machine> {
    walk::machine(service, system).map_err(|why| {
        let code = match &why {
            NoMachine::NoSuch { .. } => Code::Usage,
            NoMachine::NotRead(_) | NoMachine::NoSystems(_) => Code::CouldNotMeasure,
        };
        Failure::error(code, why.to_string())
    })
}

/// Its BIOS; where there is none nothing can be planned.
fn bios(machine: &Machine) -> Result<&Bios> {
    machine.bios.as_ref().map_err(|why| Failure::error(Code::CouldNotMeasure, why.to_string()))
}

/// Where journals are.
fn journals(args: &JournalArgs) -> PathBuf {
    args.journals.clone().unwrap_or_else(|| STATE_DIR.into())
}

/// The journal that is named, or the last one of this BMC; of one system only where that is said.
fn journal(args: &JournalArgs, id: Option<&str>, bmc: &str, system: Option<&str>) -> Result<Option<Journal>> {
    let folder = journals(args);
    let (mut all, bad) = Journal::all(&folder);
    all.retain(|journal| system.is_none_or(|system| journal.system == system));
    bad.iter().for_each(|why| crate::output::complain(&why.to_string()));
    match id {
        None => {
            all.retain(|journal| journal.bmc == bmc);
            Ok(all.pop())
        }
        Some(id) => {
            let names: Vec<String> = all.iter().map(Journal::id).collect();
            let found = all.into_iter().find(|journal| journal.id() == id);
            let no = || {
                let there = if names.is_empty() { "none".to_string() } else { names.join(", ") };
                let of = system.map_or_else(String::new, |system| format!(" of system {system}"));
                let folder = folder.display();
                Failure::error(Code::Usage, format!("no journal {id:?}{of} in {folder}; there are {there}"))
            };
            found.map(Some).ok_or_else(no)
        }
    }
}
