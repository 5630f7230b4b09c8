//! The way to other machines that the command line names.

use crate::cli::bmcs::BmcsArgs;
use crate::cli::kubernetes::KubernetesArgs;
use crate::cli::ssh::SshArgs;
use crate::exit::{Code, Failure};
use crate::meters;
use crate::trusted::{self, Use};
use anyhow::Result;
use std::path::PathBuf;
use wakewatt_carry::bmc::{Bmcs, list};
use wakewatt_carry::hosts;
use wakewatt_carry::kubernetes::{Kubectl, Kubernetes, Terms};
use wakewatt_carry::ssh::{Options, Ssh};
use wakewatt_carry::{Carrier, CarryError};
use wakewatt_host::bmc::BmcAccount;
use wakewatt_host::input;
use wakewatt_host::power::Trust;

/// The one that is named; a refusal where none is.
pub(super) fn any(ssh: &SshArgs, kubernetes: &KubernetesArgs) -> Result<Box<dyn Carrier>> {
    let named = match carrier(ssh)? {
        Some(carrier) => Some(carrier),
        None => cluster(kubernetes)?,
    };
    named.ok_or_else(|| {
        Failure::error(
            Code::Usage,
            "say how the nodes are reached: --ssh HOSTS, --kubernetes, or for firmware --bmc LIST",
        )
    })
}

/// It; none where the command line names none.
fn carrier(args: &SshArgs) -> Result<Option<Box<dyn Carrier>>> {
    let Some(name) = &args.ssh else { return Ok(None) };
    let text = trusted::text(name, input::HOSTS, Use::Acting)?;
    let nodes = hosts::parse(&text).map_err(|why| Failure::error(Code::BadFile, format!("{name}: {why}")))?;
    // ssh runs its ProxyCommand, and checks only the default file itself.
    if let Some(file) = &args.ssh_config {
        trusted::check(file)?;
    }
    let options = Options {
        config: args.ssh_config.clone(),
        is_sudo: args.sudo,
        program: args.remote_program.clone(),
        copied: args.copy.clone(),
        is_kept: args.keep_copy,
    };
    Ok(Some(Box::new(Ssh::new(nodes, options).map_err(|why| failure(&why))?)))
}

/// The BMCs of a list; none where the command line names none. Old values are kept in this folder.
pub(super) fn bmcs(args: &BmcsArgs, journals: PathBuf) -> Result<Option<Box<dyn Carrier>>> {
    let Some(name) = &args.bmc else { return Ok(None) };
    let text = trusted::text(name, input::HOSTS, Use::Acting)?;
    let listed = list::parse(&text).map_err(|why| Failure::error(Code::BadFile, format!("{name}: {why}")))?;
    let has_own_user = |place: &list::Place| place.user.is_some() && place.password_file.is_none();
    let is_asked = args.bmc_user.is_some() || listed.1.values().any(has_own_user);
    let account = BmcAccount {
        url: String::new(),
        user: args.bmc_user.clone(),
        password: is_asked.then(|| meters::redfish_password(args.bmc_password_file.as_deref())).transpose()?,
        is_plain_allowed: args.bmc_plain_http_password,
        trust: Trust { ca: args.bmc_ca.clone(), is_insecure: args.bmc_insecure },
    };
    Ok(Some(Box::new(Bmcs::new(listed, account, journals))))
}

/// The cluster; none where the command line names none.
fn cluster(args: &KubernetesArgs) -> Result<Option<Box<dyn Carrier>>> {
    if !args.kubernetes {
        return Ok(None);
    }
    let Some(image) = args.image.clone() else {
        return Err(Failure::error(
            Code::Usage,
            "name an image with wakewatt in it: --image registry.example/wakewatt",
        ));
    };
    let terms = Terms { namespace: args.namespace.clone(), image, is_cordoning: args.cordon, ..Terms::default() };
    Ok(Some(Box::new(Kubernetes::new(kubectl(args)?, terms))))
}

/// How kubectl is called.
pub(super) fn kubectl(args: &KubernetesArgs) -> Result<Kubectl> {
    // kubectl starts the credential plugins that it names.
    if let Some(file) = &args.kubeconfig {
        trusted::check(file)?;
    }
    Ok(Kubectl { context: args.context.clone(), kubeconfig: args.kubeconfig.clone(), ..Kubectl::default() })
}

/// What could not be carried, as an end of the program.
pub(super) fn failure(why: &CarryError) -> anyhow::Error {
    let code = if matches!(why, CarryError::Refused { .. }) { Code::Refused } else { Code::CouldNotMeasure };
    Failure::error(code, why.to_string())
}
