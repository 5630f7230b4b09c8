//! From the service root to one machine's BIOS: what it has, what waits for the next boot, and the registry that explains it.
//!
//! Links are followed, paths are never built, and nothing is followed that was not asked for by name, so links in a circle
//! lead nowhere. Machines without BIOS settings over Redfish are ordinary (X10 boards, iDRAC8 up to 2.41, upstream OpenBMC),
//! and so is a BIOS whose registry cannot be found: both are answers with a reason, not errors. What waits for the next boot
//! is what the settings object has otherwise than the BIOS: some BMCs keep only changes there, some a full copy, some nothing
//! until something is staged (404).

mod registries;

pub use registries::NotFound;

use crate::link::{link, members, path_of};
use crate::registry::{Kind, Registry};
use crate::service::{NoDocument, Service};
use crate::setting::Setting;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where every service begins (DSP0266 has it with the slash).
const ROOT: &str = "/redfish/v1/";
/// Systems of one BMC that are looked at.
const MAX_SYSTEMS: usize = 32;
/// Attributes that are read.
const MAX_ATTRIBUTES: usize = 20_000;

/// One machine behind a BMC.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The URL or folder.
    pub origin: String,
    /// Its document.
    pub path: String,
    /// Its id, as the BMC has it.
    pub id: String,
    /// Who made it.
    pub vendor: String,
    /// Its model.
    pub model: String,
    /// Release of its BIOS.
    pub bios_version: String,
    /// `On`, `Off`, …; empty where it is not told.
    pub power_state: String,
    /// How it can be restarted.
    pub reset: Option<Reset>,
    /// Its BIOS.
    pub bios: Result<Bios, NoBios>,
    /// Other systems of the same BMC, by id.
    pub others: Vec<String>,
}

/// The action that restarts a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Where to POST.
    pub target: String,
    /// Kinds that it lists; empty where it lists none.
    pub kinds: Vec<String>,
}

/// The BIOS of one machine.
#[derive(Clone, Debug)]
pub struct Bios {
    /// Its document.
    pub path: String,
    /// Every value of the moment but passwords.
    pub current: BTreeMap<String, Setting>,
    /// What the next boot will change.
    pub pending: BTreeMap<String, Setting>,
    /// Where changes are staged; none: this firmware does not say.
    pub settings_path: Option<String>,
    /// Why what is pending cannot be told.
    pub pending_unknown: Option<String>,
    /// Attributes stand in the document itself (iLO 4), and must be written so.
    pub is_flat: bool,
    /// When changes can be applied; empty where it is not told.
    pub apply_times: Vec<String>,
    /// What the last application came to, as the BMC says: message ids with their arguments.
    pub messages: Vec<String>,
    /// When that was, in the BMC's words.
    pub messages_time: Option<String>,
    /// What its attributes mean; or why that is not known.
    pub registry: Result<Registry, NotFound>,
}

/// Why there are no BIOS settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBios {
    /// The system has no link to one.
    #[error("this BMC offers no BIOS settings over Redfish (the system has no Bios link)")]
    NotOffered,
    /// There is one, without settings.
    #[error("{0}: this BMC's Bios resource holds no attributes, so BIOS settings cannot be seen over Redfish")]
    NoAttributes(String),
    /// It could not be read.
    #[error(transparent)]
    NotRead(#[from] NoDocument),
}

/// Why no machine was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMachine {
    /// The service root or the list of systems.
    #[error(transparent)]
    NotRead(#[from] NoDocument),
    /// No systems.
    #[error("{0}: this Redfish service names no computer system")]
    NoSystems(String),
    /// Not the one that was asked for.
    #[error("{origin}: there is no system {wanted:?}; there are {there}")]
    NoSuch {
        /// The service.
        origin: String,
        /// The id.
        wanted: String,
        /// Ids that there are.
        there: String,
    },
}

/// Finds the machine with this id, or the first that has BIOS settings.
pub fn machine(service: &mut dyn Service, wanted: Option<&str>) -> Result<Machine, NoMachine> {
    let root = service.get(ROOT)?.json;
    let no_systems = || NoMachine::NoSystems(service_name(&root));
    let systems = link(&root["Systems"]).ok_or_else(no_systems)?;
    let all = members(&service.get(&systems)?.json);
    // One document at a time: 32 of the largest would be gigabytes.
    let (mut ids, mut chosen, mut failed) = (Vec::new(), None::<(usize, &String, Value)>, None);
    for path in all.iter().take(MAX_SYSTEMS) {
        let json = match service.get(path) {
            Ok(document) => document.json,
            Err(why) => {
                failed = failed.or(Some(why));
                continue;
            }
        };
        let id = text(&json, "Id").unwrap_or_else(|| last_part(path).into());
        let is_chosen = match (wanted, &chosen) {
            (Some(wanted), chosen) => chosen.is_none() && id == wanted,
            (None, None) => true,
            (None, Some((.., first))) => first.get("Bios").is_none() && json.get("Bios").is_some(),
        };
        if is_chosen {
            chosen = Some((ids.len(), path, json));
        }
        ids.push(id);
    }
    let Some((at, path, json)) = chosen else {
        return Err(match (wanted, failed) {
            (Some(wanted), _) => {
                NoMachine::NoSuch { origin: service.origin(), wanted: wanted.into(), there: ids.join(", ") }
            }
            (None, Some(why)) => NoMachine::NotRead(why),
            (None, None) => no_systems(),
        });
    };
    let bios = match link(&json["Bios"]) {
        None => Err(NoBios::NotOffered),
        Some(path) => read_bios(service, &path, link(&root["Registries"])),
    };
    let others = ids.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, id)| id.clone()).collect();
    Ok(Machine {
        origin: service.origin(),
        path: path.clone(),
        id: ids[at].clone(),
        vendor: text(&json, "Manufacturer").unwrap_or_default(),
        model: text(&json, "Model").unwrap_or_default(),
        bios_version: text(&json, "BiosVersion").unwrap_or_default(),
        power_state: text(&json, "PowerState").unwrap_or_default(),
        reset: reset(service, &json),
        bios,
        others,
    })
}

fn service_name(root: &Value) -> String {
    text(root, "Name").unwrap_or_else(|| "service root".into())
}

fn text(json: &Value, key: &str) -> Option<String> {
    json[key].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_string)
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The kinds stand beside the action, or in a document of their own (`@Redfish.ActionInfo`).
fn reset(service: &mut dyn Service, system: &Value) -> Option<Reset> {
    let action = &system["Actions"]["#ComputerSystem.Reset"];
    let target = path_of(action["target"].as_str()?)?;
    let words = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|kind| kind.as_str().map(str::to_string)).collect()
    };
    let mut kinds = words(&action["ResetType@Redfish.AllowableValues"]);
    if kinds.is_empty()
        && let Some(info) = action["@Redfish.ActionInfo"].as_str().and_then(path_of)
        && let Ok(info) = service.get(&info)
    {
        let parameters = info.json["Parameters"].as_array().into_iter().flatten();
        let parameter = parameters.into_iter().find(|parameter| parameter["Name"] == "ResetType");
        kinds = parameter.map(|parameter| words(&parameter["AllowableValues"])).unwrap_or_default();
    }
    Some(Reset { target, kinds })
}

fn read_bios(service: &mut dyn Service, path: &str, registries: Option<String>) -> Result<Bios, NoBios> {
    let json = service.get(path)?.json;
    let is_flat = !json["Attributes"].is_object() && json["AttributeRegistry"].is_string();
    if !is_flat && !json["Attributes"].is_object() {
        return Err(NoBios::NoAttributes(path.into()));
    }
    let mut current = values(&json, is_flat);
    let settings = &json["@Redfish.Settings"];
    // iLO 4 has the link among its `links`.
    let settings_path = link(&settings["SettingsObject"])
        .or_else(|| path_of(json["links"]["Settings"]["href"].as_str()?))
        .filter(|settings| settings.trim_end_matches('/') != path.trim_end_matches('/'));
    let mut registry = registries::find(service, registries.as_deref(), json["AttributeRegistry"].as_str());
    match &mut registry {
        Ok(registry) => {
            registry.learn(&current);
            current.retain(|name, _| registry.get(name).is_none_or(|a| a.kind != Kind::Password));
        }
        // Nothing tells types then, but names do.
        Err(_) => current.retain(|name, _| !name.to_ascii_lowercase().contains("password")),
    }
    let (mut pending, mut pending_unknown) = (BTreeMap::new(), None);
    if let Some(settings) = &settings_path {
        match service.get(settings) {
            Ok(document) => pending = values(&document.json, is_flat),
            // Nothing is staged: some have no such document then.
            Err(NoDocument::Absent(_)) => {}
            Err(why) => pending_unknown = Some(why.to_string()),
        }
    }
    let times = settings["SupportedApplyTimes"].as_array().into_iter().flatten();
    let messages = settings["Messages"].as_array().into_iter().flatten().take(MAX_ATTRIBUTES).filter_map(message);
    let mut bios = Bios {
        path: path.into(),
        apply_times: times.filter_map(|time| time.as_str().map(str::to_string)).collect(),
        messages: messages.collect(),
        messages_time: text(settings, "Time"),
        current,
        pending: BTreeMap::new(),
        settings_path,
        pending_unknown,
        is_flat,
        registry,
    };
    bios.pending = differing(&bios, &pending);
    Ok(bios)
}

/// What of a settings object is otherwise than now: some hold a full copy, some changes only.
pub fn differing(bios: &Bios, settings: &BTreeMap<String, Setting>) -> BTreeMap<String, Setting> {
    let known = bios.registry.as_ref().ok();
    let differs = |(name, value): &(&String, &Setting)| {
        let attribute = known.and_then(|registry| registry.get(name));
        let is_same = |now: &Setting| attribute.map_or_else(|| now.is_same(value), |a| a.is_same(now, value));
        attribute.is_none_or(|a| a.kind != Kind::Password) && !bios.current.get(*name).is_some_and(is_same)
    };
    settings.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn message(message: &Value) -> Option<String> {
    let id = message["MessageId"].as_str().or(message["MessageID"].as_str())?;
    let arguments = message["MessageArgs"].as_array().into_iter().flatten();
    let words: Vec<&str> = arguments.filter_map(Value::as_str).collect();
    Some(if words.is_empty() { id.to_string() } else { format!("{id} ({})", words.join(", ")) })
}

/// The attributes of a BIOS or settings document.
pub fn values(json: &Value, is_flat: bool) -> BTreeMap<String, Setting> {
    let object = if is_flat { json } else { &json["Attributes"] };
    let is_value = |name: &str| {
        let is_of_resource = matches!(
            name,
            "Id" | "Name" | "Type" | "Description" | "AttributeRegistry" | "Modified" | "AttributeRegistryVersion"
        );
        !(name.contains('@') || (is_flat && is_of_resource))
    };
    let all = object.as_object().into_iter().flatten().take(MAX_ATTRIBUTES);
    all.filter(|(name, _)| is_value(name)).filter_map(|(name, v)| Some((name.clone(), Setting::of(v)?))).collect()
}
