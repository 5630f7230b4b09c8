//! Which book a rollout is kept in: a folder of this machine, or objects of the cluster that its nodes are in.

use super::super::reach;
use crate::cli::rollout::RolloutArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::path::PathBuf;
use wakewatt_carry::audit::Key;
use wakewatt_carry::book::Book;
use wakewatt_carry::book::cluster::ClusterBook;
use wakewatt_carry::book::folder::{Folder, STATE};
use wakewatt_fleet::rollout::state::Rollout;
use wakewatt_host::secret::Secret;
use wakewatt_host::store::{Disk, Store};

/// The Lease and the ConfigMap of a namespace's rollout.
const IN_CLUSTER: &str = "wakewatt-rollout";

pub(super) fn folder_of(args: &RolloutArgs) -> Result<PathBuf> {
    if let Some(folder) = &args.book {
        return Ok(folder.clone());
    }
    let absolute = |key: &str| std::env::var_os(key).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state
        .map(|s| s.join("wakewatt/rollout"))
        .ok_or_else(|| Failure::error(Code::Usage, "there is no HOME: say where the state is kept, --book DIR"))
}

pub(super) fn key(args: &RolloutArgs) -> Result<Option<Key>> {
    let secret = args.sign_key.as_deref().map(Secret::from_file).transpose()?;
    Ok(secret.map(|s| Key::new(s.expose().as_bytes())))
}

/// The book, held: in the cluster where the nodes are reached through one and no folder is named.
pub(super) fn book(args: &RolloutArgs, who: &str) -> Result<Box<dyn Book>> {
    let cluster = &args.kubernetes;
    let opened = if cluster.kubernetes && args.book.is_none() {
        let open = ClusterBook::open(reach::kubectl(cluster)?, &cluster.namespace, IN_CLUSTER, who, key(args)?);
        open.map(|book| Box::new(book) as Box<dyn Book>)
    } else {
        Folder::open(&folder_of(args)?, who, key(args)?).map(|book| Box::new(book) as Box<dyn Book>)
    };
    opened.map_err(|why| super::not_kept(&why))
}

/// The state in a book, read without holding it.
pub(super) fn kept(args: &RolloutArgs) -> Result<Rollout> {
    let cluster = &args.kubernetes;
    if cluster.kubernetes && args.book.is_none() {
        let found = ClusterBook::look(reach::kubectl(cluster)?, &cluster.namespace, IN_CLUSTER);
        let place = format!("configmap {}/{IN_CLUSTER}", cluster.namespace);
        let none =
            || Failure::error(Code::BadFile, format!("{place}: not there; no rollout was begun in this namespace"));
        let bytes = found.map_err(|why| super::not_kept(&why))?.ok_or_else(none)?;
        return Rollout::from_bytes(&bytes).map_err(|why| Failure::error(Code::BadFile, format!("{place}: {why}")));
    }
    let path = folder_of(args)?.join(STATE);
    let bad = |why: String| Failure::error(Code::BadFile, why);
    let none = || bad(format!("{}: not there; no rollout was begun with this book (--book)", path.display()));
    let bytes = Disk.load(&path).map_err(|why| bad(why.to_string()))?.ok_or_else(none)?;
    Rollout::from_bytes(&bytes).map_err(|why| Failure::error(Code::BadFile, format!("{}: {why}", path.display())))
}
