//! Redfish: what BMCs say over HTTPS.
//!
//! Chassis are walked once: `EnvironmentMetrics` (new schema) where it has a number, else `Power` (old), and the input of
//! every power supply. Readings fetch only the documents that had one. Decoding: `core/src/samples/meters/redfish.rs`.
//! First with basic authentication; a BMC that refuses it is asked for a session, which is closed at the end. A BMC averages
//! over seconds to a minute and answers in 0.1 to several seconds: good for minutes, not for moments. A chassis that is
//! contained in another is a part of it.

use super::{Meter, MetersWanted, Say, stamped};
use crate::http::{Exposed, Http, basic, check_exposed, check_url};
use crate::secret::Secret;
use serde_json::Value;
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Channel, Covers, Kind};
use wakewatt_core::samples::meters::redfish::{CHASSIS, Reading, SESSIONS, members, path, readings};

pub const NAME: &str = "redfish";

/// More documents than this of one BMC are not asked for.
const MAX_DOCUMENTS: usize = 64;

/// Whom to ask, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The BMCs.
    pub urls: Vec<String>,
    /// None: without authentication.
    pub user: Option<String>,
    /// From a file or the environment, never from the command line.
    pub password: Option<Secret>,
    /// May the password cross a network unencrypted?
    pub is_plain_allowed: bool,
}

impl Account {
    /// Would the password cross a network unencrypted, and nobody said that it may?
    pub fn check(&self) -> Result<(), Exposed> {
        if self.user.is_none() || self.is_plain_allowed {
            return Ok(());
        }
        self.urls.iter().try_for_each(|url| check_exposed(url))
    }
}

struct Bmc {
    http: Http,
    base: String,
    headers: Vec<(&'static str, String)>,
    session: Option<String>,
    documents: Vec<String>,
}

struct Redfish {
    bmcs: Vec<Bmc>,
    channels: Vec<Channel>,
    /// Of each channel: BMC, document, and which reading in it.
    places: Vec<(usize, usize, usize)>,
}

/// Walks every BMC.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    if wanted.redfish.urls.is_empty() {
        return Err(MeterGap::NotAskedFor("--redfish URL".into()));
    }
    wanted.redfish.check().map_err(|why| why.to_string())?;
    let mut out = Redfish { bmcs: Vec::new(), channels: Vec::new(), places: Vec::new() };
    for url in &wanted.redfish.urls {
        let base = check_url(url, "https://bmc.example")?.to_string();
        let mut headers = Vec::new();
        if let Some(user) = &wanted.redfish.user {
            let password = wanted.redfish.password.as_ref().ok_or("a user without a password")?;
            headers.push(("Authorization", basic(user, password.expose())));
        }
        let http = Http::new(&base, &wanted.trust)?;
        let mut bmc = Bmc { http, base, headers, session: None, documents: Vec::new() };
        let chassis = bmc.enter(wanted)?;
        out.walk(bmc, &members(&chassis));
    }
    if out.channels.is_empty() {
        return Err("no chassis of this BMC gives watts".into());
    }
    Ok(Box::new(out))
}

impl Bmc {
    fn get(&self, path: &str) -> Result<Value, String> {
        let answer = self.http.get(&format!("{}{path}", self.base), &self.headers).map_err(|refused| refused.why)?;
        serde_json::from_str(&answer.text).map_err(|_| format!("{}{path}: the answer is no JSON", self.base))
    }

    /// The list of chassis; with a session where basic authentication is refused.
    fn enter(&mut self, wanted: &MetersWanted) -> Result<Value, String> {
        let url = format!("{}{CHASSIS}", self.base);
        let (user, password) = (&wanted.redfish.user, &wanted.redfish.password);
        match (self.http.get(&url, &self.headers), user, password) {
            (Err(refused), Some(user), Some(password)) if refused.status == Some(401) => {
                let body = serde_json::json!({ "UserName": user, "Password": password.expose() }).to_string();
                let opened = self.http.post(&format!("{}{SESSIONS}", self.base), &body);
                let opened = opened.map_err(|_| refused.why.clone())?;
                self.headers = vec![("X-Auth-Token", opened.token.ok_or(refused.why)?)];
                // Relative, or absolute on this server; a foreign place is not ours to delete from.
                let place = opened.location.unwrap_or_default();
                self.session = place
                    .strip_prefix(&self.base)
                    .unwrap_or(&place)
                    .starts_with("/redfish/")
                    .then(|| place.strip_prefix(&self.base).unwrap_or(&place).to_string());
                self.get(CHASSIS)
            }
            (Err(refused), ..) => Err(refused.why),
            (Ok(answer), ..) => serde_json::from_str(&answer.text).map_err(|_| format!("{url}: the answer is no JSON")),
        }
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        if let Some(place) = &self.session {
            self.http.delete(&format!("{}{place}", self.base), &self.headers);
        }
    }
}

impl Redfish {
    fn walk(&mut self, bmc: Bmc, all: &[String]) {
        let at = self.bmcs.len();
        self.bmcs.push(bmc);
        for chassis_path in all {
            let Ok(chassis) = self.bmcs[at].get(chassis_path) else { continue };
            let is_inside = chassis["Links"].get("ContainedBy").is_some();
            let id = chassis_path.rsplit('/').next().unwrap_or_default();
            let has_watts = |found: &[Reading]| found.iter().any(|r| r.power_uw.is_ok());
            for key in ["EnvironmentMetrics", "Power"] {
                let Some(place) = path(&chassis[key]) else { continue };
                let found = self.bmcs[at].get(&place).map(|d| readings(&d)).unwrap_or_default();
                if has_watts(&found) {
                    self.add(at, place, id, is_inside, found);
                    break;
                }
            }
            for place in self.supplies(at, &chassis) {
                let found = self.bmcs[at].get(&place).map(|d| readings(&d)).unwrap_or_default();
                let wall: Vec<Reading> = found.into_iter().filter(|r| r.covers == Covers::Wall).collect();
                if has_watts(&wall) {
                    self.add(at, place, id, is_inside, wall);
                }
            }
        }
    }

    /// The metrics of every power supply.
    fn supplies(&self, at: usize, chassis: &Value) -> Vec<String> {
        let follow = |from: &Value, key: &str| self.bmcs[at].get(&path(&from[key])?).ok();
        let list = follow(chassis, "PowerSubsystem").and_then(|subsystem| follow(&subsystem, "PowerSupplies"));
        let supplies = list.map(|list| members(&list)).unwrap_or_default();
        let metrics = |place: &String| path(&self.bmcs[at].get(place).ok()?["Metrics"]);
        supplies.iter().take(MAX_DOCUMENTS).filter_map(metrics).collect()
    }

    fn add(&mut self, at: usize, place: String, chassis: &str, is_inside: bool, found: Vec<Reading>) {
        let bmc = &mut self.bmcs[at];
        if bmc.documents.len() >= MAX_DOCUMENTS {
            return;
        }
        bmc.documents.push(place.clone());
        for (which, reading) in found.into_iter().enumerate() {
            self.places.push((at, bmc.documents.len() - 1, which));
            self.channels.push(Channel {
                id: format!("{}{place}#{which}", bmc.base),
                name: format!("{chassis} {}", reading.name),
                covers: reading.covers,
                is_part: reading.is_part || is_inside,
                kind: Kind::Power,
            });
        }
    }
}

impl Meter for Redfish {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "one HTTPS request per document to the BMC; wakes no CPU of this machine but the network's"
    }

    fn channels(&self) -> Vec<Channel> {
        self.channels.clone()
    }

    fn read(&mut self, say: &mut Say<'_>) {
        for (at, bmc) in self.bmcs.iter().enumerate() {
            for (document, place) in bmc.documents.iter().enumerate() {
                let (at_ns, found) = stamped(|| bmc.get(place).map(|d| readings(&d)));
                for (channel, (_, _, which)) in
                    self.places.iter().enumerate().filter(|(_, (b, d, _))| *b == at && *d == document)
                {
                    let value = match &found {
                        Ok(all) => all.get(*which).map_or(Err("the reading is gone".into()), |r| r.power_uw.clone()),
                        Err(why) => Err(why.clone()),
                    };
                    say(channel, at_ns, value);
                }
            }
        }
    }
}
