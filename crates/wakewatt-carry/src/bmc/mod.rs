//! A rollout of what firmware holds: each node's BMC over Redfish, with the plan, apply, undo and verify of wakewatt-bios.
//!
//! A BMC runs nothing for us, so there are no orders here and no guard that undoes by itself: what is staged stays staged when
//! the operator dies. What makes up for it lies on the operator's side. Old values are on disk in the book's folder, by rollout and node,
//! before the first request that changes something; whoever goes on asks each BMC what it holds before anything else is sent;
//! nothing comes into force before a boot, and nobody is restarted unless the plan says so.

pub mod list;

use crate::carrier::{Carrier, CarryError, Order, Reply};
use crate::collect::SHOW;
use crate::firmware::Firmware;
use crate::node::{Node, NodeName};
use list::{Listed, Place};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use wakewatt_bios::apply::job::{Holder, holder};
use wakewatt_bios::apply::{self, ApplyError, StagedSetting, job, reboot, unconfirmed};
use wakewatt_bios::journal::{Journal, Phase};
use wakewatt_bios::live::LiveService;
use wakewatt_bios::plan::plan;
use wakewatt_bios::show::show;
use wakewatt_bios::undo::{is_as_before, undo, waits_alone};
use wakewatt_bios::verify::{Hold, verify};
use wakewatt_bios::walk::{self, Bios, Machine};
use wakewatt_bios::wish::Wish;
use wakewatt_fleet::firmware::SCHEMA;
use wakewatt_fleet::rollout::machine::{Found, How, Outcome, Waits};
use wakewatt_fleet::rollout::plan::Change;
use wakewatt_fleet::rollout::state::FIRMWARE;
use wakewatt_host::bmc::BmcAccount;
use wakewatt_host::secret::Secret;

/// Between two looks at a job.
const PAUSE: Duration = Duration::from_secs(2);

/// The BMCs of a list.
pub struct Bmcs {
    nodes: Vec<Node>,
    places: BTreeMap<NodeName, Place>,
    /// User, password and trust where a node has none of its own.
    account: BmcAccount,
    /// Where old values are kept, by rollout and node.
    journals: PathBuf,
}

impl Bmcs {
    /// Of a list. Nothing is asked yet.
    pub fn new((nodes, places): Listed, account: BmcAccount, journals: PathBuf) -> Bmcs {
        Bmcs { nodes, places, account, journals }
    }

    /// A session with a node's BMC, and the machine behind it.
    pub fn enter(&self, node: &NodeName) -> Result<(LiveService, Machine), String> {
        let place = self.places.get(node).ok_or("the list names no BMC of it")?;
        let mut account = BmcAccount { url: place.url.clone(), ..self.account.clone() };
        if let Some(user) = &place.user {
            account.user = Some(user.clone());
        }
        if let Some(file) = &place.password_file {
            account.password = Some(Secret::from_file(file).map_err(|why| why.to_string())?);
        }
        let mut service = LiveService::enter(&account).map_err(|why| why.to_string())?;
        let machine = walk::machine(&mut service, place.system.as_deref()).map_err(|why| why.to_string())?;
        Ok((service, machine))
    }

    fn folder(&self, node: &NodeName, id: &str) -> Result<PathBuf, String> {
        // Both become names of folders.
        let id = NodeName::new(id).map_err(|_| "the rollout has no name that could be a folder's".to_string())?;
        Ok(self.journals.join(id.as_str()).join(node.as_str()))
    }

    /// What was written down before this rollout changed something there; the last of it.
    fn journal(&self, node: &NodeName, id: &str) -> Result<Option<Journal>, String> {
        let folder = self.folder(node, id)?;
        // Only what is not there is none: a folder that cannot be looked into may hold old values.
        match std::fs::metadata(&folder) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(format!("{}: {why}", folder.display())),
            Ok(_) => {}
        }
        let (mut all, bad) = Journal::all(&folder);
        match bad.first() {
            Some(why) => Err(why.to_string()),
            None => Ok(all.pop()),
        }
    }

    fn staged(&self, node: &NodeName, id: &str, change: &Change) -> Result<Outcome, String> {
        let wishes = wishes(change)?;
        let folder = self.folder(node, id)?;
        let (mut service, machine) = self.enter(node)?;
        let bios = machine.bios.as_ref().map_err(|why| why.to_string())?;
        // Of an order that never arrived: nothing of it is there.
        if let Some(old) = self.journal(node, id)?.filter(|old| is_as_before(bios, old)) {
            old.finish().map_err(|why| why.to_string())?;
        }
        let plan = plan(&machine, bios, &wishes);
        let order = apply::Order {
            journals: &folder,
            wishes: &change.bios,
            made_at: &humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            is_keeping_going: false,
            is_unvalidated_allowed: false,
            is_waiting_allowed: false,
            reboot: change.reboot.as_deref().map(kind),
            pause: PAUSE,
        };
        let applied = match apply::apply(&mut service, &machine, bios, &plan, order) {
            Ok(applied) => applied,
            Err(ApplyError::Stage(why)) if !why.is_certain() => return Ok(Outcome::Unsure(why.to_string())),
            Err(why) => return Ok(Outcome::Refused(why.to_string())),
        };
        // A BMC's yes is not believed: what it does not show is not known to be staged.
        if let Some(unseen) = unseen(&applied.staged) {
            return Ok(Outcome::Unsure(unseen));
        }
        Ok(match (applied.id, applied.not_restarted) {
            (None, _) => Outcome::WasSo,
            (Some(_), Some(why)) => Outcome::Unsure(format!("staged, and NOT restarted: {why}")),
            (Some(id), None) => Outcome::Changed(id),
        })
    }

    fn taken_back(&self, node: &NodeName, id: &str, change: &Change) -> Result<Outcome, String> {
        let Some(mut journal) = self.journal(node, id)? else { return Ok(Outcome::Done) };
        let (mut service, machine) = self.enter(node)?;
        let undone = undo(&mut service, &mut journal, false, PAUSE).map_err(|why| why.to_string())?;
        if undone.is_complete {
            return Ok(Outcome::Done);
        }
        let left: Vec<String> = undone.left.iter().map(|left| format!("{}: {}", left.asked, left.why)).collect();
        if !left.is_empty() || !undone.without_old_value.is_empty() {
            let unknown = undone.without_old_value.iter().map(|name| format!("{name}: its old value was never told"));
            return Err(left.into_iter().chain(unknown).collect::<Vec<_>>().join("; "));
        }
        if let Some(unseen) = unseen(&undone.staged) {
            return Err(unseen);
        }
        let waits = "its old values come back at its next boot";
        let second = if undone.second_round.is_empty() { "" } else { ", its profile in a second round (--undo again)" };
        Ok(match &change.reboot {
            None => Outcome::Staged(format!("{waits}{second}")),
            Some(word) => match reboot::restart(&mut service, &machine, kind(word)) {
                Ok(how) => Outcome::Staged(format!("{waits}; it was told to restart ({how})")),
                Err(why) => Outcome::Staged(format!("{waits}, and it was NOT restarted: {why}")),
            },
        })
    }
}

/// What the BMC accepted and does not show; none where it shows everything.
fn unseen(staged: &[StagedSetting]) -> Option<String> {
    let all: Vec<String> =
        unconfirmed(staged).iter().map(|setting| format!("{}={}", setting.attribute, setting.requested)).collect();
    (!all.is_empty()).then(|| format!("accepted, and NOT confirmed: the BMC does not show {}", all.join(", ")))
}

/// How a machine is restarted: an empty word for gently.
fn kind(word: &str) -> Option<&str> {
    Some(word).filter(|kind| !kind.is_empty())
}

fn wishes(change: &Change) -> Result<Vec<Wish>, String> {
    change.bios.iter().map(|word| Wish::parse(word)).collect()
}

/// What a machine has of an application.
fn found(
    service: &mut LiveService,
    machine: &Machine,
    bios: &Bios,
    journal: &Journal,
) -> Result<Option<Found>, String> {
    let is_as_before = is_as_before(bios, journal);
    match (journal.phase, is_as_before) {
        (Phase::Open, true) => return Ok(None),
        (Phase::UndoStaged, true) => {
            journal.finish().map_err(|why| why.to_string())?;
            return Ok(None);
        }
        _ => {}
    }
    let verified = verify(machine, bios, Some(journal), None);
    let is_waiting = verified.held.iter().any(|held| held.hold == Hold::Waits);
    let is_undo = journal.phase == Phase::UndoStaged;
    let waits = match (is_waiting, is_undo) {
        (false, _) => Waits::Nothing,
        (true, false) => Waits::Change,
        (true, true) => Waits::Undo,
    };
    let failed = journal.job.as_deref().filter(|_| !is_undo && is_waiting).and_then(|path| job::look(service, path));
    let failed =
        failed.filter(job::Job::is_failed).map(|job| format!("the job that would apply it has failed: {}", job.said));
    let dropped = verified.held.iter().find(|held| held.hold == Hold::Dropped && !held.is_moved && !is_undo);
    let dropped = dropped.map(|held| {
        let now = held.current.as_ref().map_or_else(|| "not told".into(), ToString::to_string);
        let said =
            verified.messages.iter().filter(|id| !id.ends_with(".Success")).cloned().collect::<Vec<_>>().join(", ");
        let said = if said.is_empty() { said } else { format!("; the BMC says {said}") };
        format!("{}={} was dropped, it is {now}{said}", held.attribute, held.wished)
    });
    let broken = unnoted(service, bios, journal)?.or(failed).or(dropped);
    Ok(Some(Found { id: journal.id(), how: How::Unconfirmed, undone_in_ms: None, broken, waits }))
}

/// Why no boot will apply what somebody staged who died before noting its job.
fn unnoted(service: &mut LiveService, bios: &Bios, journal: &Journal) -> Result<Option<String>, String> {
    let is_open = journal.phase == Phase::Open && waits_alone(bios, journal);
    let Some(settings) = bios.settings_path.as_deref().filter(|_| is_open) else { return Ok(None) };
    Ok(match holder(service, settings).map_err(|why| why.to_string())? {
        Holder::Nobody => Some("its values wait, but no job would apply them".into()),
        Holder::Job(job) if job.is_failed() => Some(format!("the job that would apply it has failed: {}", job.said)),
        Holder::Job(_) | Holder::NotListed => None,
    })
}

impl Firmware for Bmcs {
    fn planned(&self, node: &NodeName, change: &Change) -> Result<Value, String> {
        let wishes = wishes(change)?;
        let (service, machine) = self.enter(node)?;
        drop(service);
        let bios = machine.bios.as_ref().map_err(|why| why.to_string())?;
        let mut document = serde_json::to_value(plan(&machine, bios, &wishes)).map_err(|why| why.to_string())?;
        document["schema"] = wakewatt_fleet::rollout::kind::FIRMWARE_PLAN.into();
        document["origin"] = json!(machine.origin);
        document["system"] = json!(machine.id);
        document["machine"] = json!(format!("{} {}", machine.vendor, machine.model).trim());
        Ok(document)
    }

    fn found(&self, node: &NodeName, id: &str) -> Result<Option<Found>, String> {
        // Without a journal nothing was ever sent.
        let Some(journal) = self.journal(node, id)? else { return Ok(None) };
        let (mut service, machine) = self.enter(node)?;
        let bios = machine.bios.as_ref().map_err(|why| why.to_string())?;
        found(&mut service, &machine, bios, &journal)
    }

    fn stage(&self, node: &NodeName, id: &str, change: &Change) -> Outcome {
        self.staged(node, id, change).unwrap_or_else(Outcome::Refused)
    }

    fn take_back(&self, node: &NodeName, id: &str, change: &Change) -> Outcome {
        self.taken_back(node, id, change).unwrap_or_else(Outcome::Unsure)
    }
}

impl Carrier for Bmcs {
    fn word(&self) -> &'static str {
        FIRMWARE
    }

    fn nodes(&self) -> Result<Vec<Node>, CarryError> {
        Ok(self.nodes.clone())
    }

    /// Nothing runs there; what it is set to is told all the same.
    fn run(&self, node: &NodeName, order: &Order) -> Result<Reply, CarryError> {
        if order.arguments != SHOW {
            return Err(CarryError::Refused { node: node.clone(), why: "a BMC runs no commands".into() });
        }
        let unreachable = |why: String| CarryError::Unreachable { node: node.clone(), why };
        let (service, machine) = self.enter(node).map_err(unreachable)?;
        drop(service);
        let mut document = serde_json::to_value(show(&machine, true)).map_err(|why| unreachable(why.to_string()))?;
        document["schema"] = SCHEMA.into();
        let output = document.to_string().into_bytes();
        match output.len() <= order.at_most {
            true => Ok(Reply { code: 0, output, said: String::new() }),
            false => Err(CarryError::TooLong { node: node.clone(), at_most: order.at_most }),
        }
    }

    fn firmware(&self) -> Option<&dyn Firmware> {
        Some(self)
    }
}
