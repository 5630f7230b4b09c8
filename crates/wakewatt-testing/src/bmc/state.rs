//! What the BMC knows, how it answers, and what a boot makes of what waits.

use super::message::{Attributes, Reply, Request};
use super::models::{Model, Vendor, model};
use super::{PASSWORD, USER};
use serde_json::{Value, json};

/// Where sessions are.
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
/// Where Dell keeps jobs.
const JOBS: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs";
/// A change of long ago, that is done.
const OLD_JOB: u32 = 0;
/// What clears a Dell's pending values.
const CLEAR: &str = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings/Actions/Oem/DellManager.ClearPending";

pub(super) struct State {
    vendor: Vendor,
    model: Model,
    pub(super) current: Attributes,
    pub(super) pending: Attributes,
    pub(super) log: Vec<String>,
    pub(super) sessions: Vec<String>,
    pub(super) resets: Vec<String>,
    pub(super) n_stale: u32,
    pub(super) n_busy: u32,
    pub(super) is_list_lost: bool,
    pub(super) is_forgetful: bool,
    n_logins: u32,
    tag: u32,
    /// Its number and state.
    pub(super) job: Option<(u32, &'static str)>,
    n_jobs: u32,
    messages: Vec<Value>,
}

impl State {
    pub(super) fn new(vendor: Vendor) -> State {
        let model = model(vendor);
        State {
            vendor,
            current: model.current.clone(),
            model,
            pending: Attributes::new(),
            log: Vec::new(),
            sessions: Vec::new(),
            resets: Vec::new(),
            n_stale: 0,
            n_busy: 0,
            is_list_lost: false,
            is_forgetful: false,
            n_logins: 0,
            tag: 1,
            job: None,
            n_jobs: 0,
            messages: Vec::new(),
        }
    }

    pub(super) fn touch(&mut self) {
        self.tag += 1;
    }

    pub(super) fn answer(&mut self, request: &Request) -> Reply {
        let condition = request.headers.get("if-match").map(|tag| format!(" If-Match: {tag}")).unwrap_or_default();
        self.log.push(format!("{} {}{condition}", request.method, request.path));
        if self.n_busy > 0 {
            self.n_busy -= 1;
            return Reply::error(429, "Base.1.12.ServiceTemporarilyUnavailable", "Busy.").with("Retry-After", "0");
        }
        let (method, path) = (request.method.as_str(), request.path.as_str());
        if (method, path) == ("POST", SESSIONS) {
            return self.log_in(request);
        }
        let token = request.headers.get("x-auth-token");
        let is_root = path.trim_end_matches('/') == "/redfish/v1";
        if !is_root && !token.is_some_and(|token| self.sessions.contains(token)) {
            return Reply::error(401, "Base.1.12.NoValidSession", "There is no valid session.");
        }
        match method {
            "GET" => self.get(path),
            "PATCH" if path == self.model.settings => self.patch(request),
            "PATCH" => Reply::error(405, "Base.1.12.ActionNotSupported", "Not here."),
            "POST" => self.post(path, request),
            "DELETE" => self.delete(path),
            _ => Reply::empty(405),
        }
    }

    fn log_in(&mut self, request: &Request) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if body["UserName"] != USER || body["Password"] != PASSWORD {
            return Reply::error(401, "Base.1.12.NoValidSession", "Wrong user or password.");
        }
        self.n_logins += 1;
        let token = format!("token-{}", self.n_logins);
        self.sessions.push(token.clone());
        Reply::of(201, json!({})).with("X-Auth-Token", &token).with("Location", format!("{SESSIONS}/{token}"))
    }

    /// The tag of the settings object, as this maker writes it.
    fn etag(&self) -> String {
        let weak = if self.vendor == Vendor::Ami { "W/" } else { "" };
        format!("{weak}\"{}\"", self.tag)
    }

    fn get(&self, path: &str) -> Reply {
        let model = &self.model;
        let link = |path: &str| json!({ "@odata.id": path });
        let ok = |body: Value| Reply::of(200, body);
        let is_hpe = self.vendor == Vendor::Hpe;
        match path {
            "/redfish/v1" | "/redfish/v1/" => ok(json!({ "Name": "Root", "Systems": link("/redfish/v1/Systems"),
                "Registries": link("/redfish/v1/Registries") })),
            "/redfish/v1/Systems" => ok(json!({ "Members": [link(model.system)] })),
            "/redfish/v1/Registries" => {
                ok(json!({ "Members": [link("/redfish/v1/Registries/Base"), link(model.registry_file)] }))
            }
            p if p == model.system => {
                ok(json!({ "Id": p.trim_end_matches('/').rsplit('/').next(), "Manufacturer": model.maker,
                "Model": "Emulated", "BiosVersion": "1.0", "PowerState": "On", "Bios": link(model.bios),
                "Actions": { "#ComputerSystem.Reset": { "target": format!("{}/Actions/ComputerSystem.Reset", p.trim_end_matches('/')),
                    "ResetType@Redfish.AllowableValues": ["On", "ForceRestart", "GracefulRestart"] } } }))
            }
            p if p == model.bios => {
                let times = if self.vendor == Vendor::Dell { json!(["OnReset"]) } else { Value::Null };
                ok(json!({ "Id": "Bios", "AttributeRegistry": model.registry_name, "Attributes": self.current,
                    "@Redfish.Settings": { "SettingsObject": link(model.settings), "SupportedApplyTimes": times,
                        "Messages": self.messages, "Time": "2026-01-01T00:00:00Z" } }))
                .with("ETag", "\"bios\"")
            }
            p if p == model.settings => self.settings(),
            p if p == model.registry_file => {
                ok(json!({ "Id": model.registry_file.trim_end_matches('/').rsplit('/').next(),
                "Registry": model.registry_name, "Location": [{ "Language": "ja", "Uri": "/x" }, { "Language": "en", "Uri": model.registry }] }))
            }
            p if p == model.registry => ok(self.registry()),
            // Restarts, and changes of long ago that are done, stand beside the one that waits.
            JOBS if self.vendor == Vendor::Dell && !self.is_list_lost => {
                let restarts = (0..40).map(|n| format!("{JOBS}/RID_{n}"));
                let changes = [OLD_JOB].into_iter().chain(self.job.map(|(n, _)| n)).map(|n| format!("{JOBS}/JID_{n}"));
                ok(json!({ "Members": restarts.chain(changes).map(|path| link(&path)).collect::<Vec<_>>() }))
            }
            JOBS => Reply::error(503, "Base.1.12.ServiceTemporarilyUnavailable", "Not now."),
            p if p == format!("{JOBS}/JID_{OLD_JOB}") => {
                ok(json!({ "Id": "JID_0", "JobState": "Completed", "JobType": "BIOSConfiguration" }))
            }
            // iLO wants the slash and says so.
            p if is_hpe && [model.system, model.bios, model.settings].iter().any(|m| m.trim_end_matches('/') == p) => {
                Reply::empty(308).with("Location", format!("{p}/"))
            }
            p => match self.job.filter(|(n, _)| p == format!("{JOBS}/JID_{n}")) {
                Some((n, state)) => {
                    ok(json!({ "Id": format!("JID_{n}"), "JobState": state, "JobType": "BIOSConfiguration",
                    "Message": "Task successfully scheduled." }))
                }
                None => Reply::error(404, "Base.1.12.ResourceMissingAtURI", "Missing."),
            },
        }
    }

    /// Read-only is the state of the moment on Dell and HPE.
    fn registry(&self) -> Value {
        let mut document = self.model.document.clone();
        let (gate, open) = self.model.gate;
        let is_open = self.current.get(gate).is_some_and(|profile| profile == open);
        let entries = document["RegistryEntries"]["Attributes"].as_array_mut();
        for entry in entries.into_iter().flatten().filter(|_| matches!(self.vendor, Vendor::Dell | Vendor::Hpe)) {
            if entry["AttributeName"].as_str().is_some_and(|name| self.model.gated.contains(&name)) {
                entry["ReadOnly"] = json!(!is_open);
            }
        }
        document
    }

    fn settings(&self) -> Reply {
        let full = matches!(self.vendor, Vendor::Hpe | Vendor::Lenovo);
        let mut attributes = if full { self.current.clone() } else { Attributes::new() };
        attributes.extend(self.pending.clone());
        let mut body = json!({ "Id": "Settings", "Attributes": attributes });
        match self.vendor {
            Vendor::Supermicro if self.pending.is_empty() => {
                drop(body.as_object_mut().and_then(|b| b.remove("Attributes")))
            }
            Vendor::Dell => {
                body["Actions"] =
                    json!({ "Oem": { "DellManager.v1_0_0#DellManager.ClearPending": { "target": CLEAR } } });
                body["Oem"] = json!({ "Dell": { "Jobs": { "@odata.id": JOBS } } });
            }
            _ => {}
        }
        Reply::of(200, body).with("ETag", self.etag())
    }

    fn patch(&mut self, request: &Request) -> Reply {
        let tag = request.headers.get("if-match");
        if self.n_stale > 0 {
            self.n_stale -= 1;
            self.touch();
        }
        let strong = format!("\"{}\"", self.tag);
        match (self.vendor, tag) {
            (Vendor::Ami, None) => {
                return Reply::error(428, "Ami.1.0.PreconditionHeaderMissing", "If-Match is missing.");
            }
            (Vendor::Ami | Vendor::Lenovo, Some(tag)) if *tag != strong && tag != "*" => {
                return Reply::error(412, "Base.1.12.PreconditionFailed", "The ETag supplied did not match.");
            }
            _ => {}
        }
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return Reply::error(400, "Base.1.12.MalformedJSON", "No JSON.");
        };
        let Some(wanted) = body["Attributes"].as_object().cloned() else {
            return Reply::error(400, "Base.1.12.PropertyMissing", "Attributes is missing.");
        };
        match self.vendor {
            Vendor::Dell => self.patch_dell(wanted, &body),
            Vendor::Supermicro => match wanted.iter().find(|(name, value)| !self.is_listed(name, value)) {
                Some((name, _)) => {
                    Reply::error(400, "Base.1.10.PropertyValueNotInList", &format!("{name}: not in the list."))
                }
                None => {
                    self.stage(wanted);
                    Reply::of(202, json!({}))
                }
            },
            Vendor::Hpe => {
                self.stage(wanted);
                Reply::of(
                    200,
                    json!({ "error": { "@Message.ExtendedInfo": [{ "MessageId": "iLO.2.15.SystemResetRequired" }] } }),
                )
            }
            Vendor::Lenovo | Vendor::Ami => {
                self.stage(wanted);
                Reply::empty(204)
            }
        }
    }

    fn patch_dell(&mut self, wanted: Attributes, body: &Value) -> Reply {
        if self.job.is_some_and(|(_, state)| state == "Scheduled") {
            let words = "Pending configuration values are already committed, unable to perform another set operation.";
            return Reply::error(400, "IDRAC.2.8.SYS011", words);
        }
        if let Some((name, _)) = wanted.iter().find(|(name, value)| !self.is_listed(name, value)) {
            return Reply::error(400, "IDRAC.2.8.SYS405", &format!("Unable to set {name}."));
        }
        // The gate may come in the same request.
        let profile = wanted.get(self.model.gate.0).or_else(|| self.current.get(self.model.gate.0));
        let is_open = profile.is_some_and(|profile| profile == self.model.gate.1);
        let locked = wanted.keys().find(|name| self.model.gated.contains(&name.as_str()) && !is_open);
        if let Some(name) = locked {
            return Reply::error(400, "IDRAC.2.8.SYS427", &format!("{name} is read-only."));
        }
        self.stage(wanted);
        if body["@Redfish.SettingsApplyTime"]["ApplyTime"] == "OnReset" {
            let place = self.make_job();
            return Reply::of(202, json!({})).with("Location", place);
        }
        Reply::of(200, json!({}))
    }

    fn make_job(&mut self) -> String {
        self.n_jobs += 1;
        self.job = Some((self.n_jobs, "Scheduled"));
        format!("{JOBS}/JID_{}", self.n_jobs)
    }

    fn stage(&mut self, wanted: Attributes) {
        if self.is_forgetful {
            return;
        }
        for (name, value) in wanted {
            match self.current.get(&name) == Some(&value) {
                true => drop(self.pending.remove(&name)),
                false => drop(self.pending.insert(name, value)),
            }
        }
        self.touch();
    }

    /// Does the registry have this name with this value, as this maker speaks?
    fn is_listed(&self, name: &str, value: &Value) -> bool {
        let key = if self.vendor == Vendor::Supermicro { "ValueDisplayName" } else { "ValueName" };
        let entries = self.model.document["RegistryEntries"]["Attributes"].as_array().into_iter().flatten();
        let entry = entries.into_iter().find(|entry| entry["AttributeName"] == name);
        entry.is_some_and(|e| e["Value"].as_array().is_none_or(|all| all.iter().any(|v| v[key] == *value)))
    }

    fn post(&mut self, path: &str, request: &Request) -> Reply {
        if request.headers.contains_key("if-match") {
            return Reply::error(412, "Base.1.12.PreconditionFailed", "No condition on a POST.");
        }
        if path.ends_with("/Actions/ComputerSystem.Reset") {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            self.resets.push(body["ResetType"].as_str().unwrap_or_default().into());
            self.boot();
            return Reply::empty(204);
        }
        match (self.vendor, path) {
            (Vendor::Dell, JOBS) if !self.pending.is_empty() => {
                let place = self.make_job();
                Reply::of(200, json!({})).with("Location", place)
            }
            (Vendor::Dell, CLEAR) if self.job.is_some_and(|(_, state)| state == "Scheduled") => {
                Reply::error(400, "IDRAC.2.8.BIOS011", "Committed.")
            }
            (Vendor::Dell, CLEAR) if self.pending.is_empty() => {
                Reply::error(400, "IDRAC.2.8.BIOS008", "Nothing pending.")
            }
            (Vendor::Dell, CLEAR) => {
                self.pending.clear();
                self.touch();
                Reply::of(200, json!({}))
            }
            _ => Reply::error(404, "Base.1.12.ResourceMissingAtURI", "Missing."),
        }
    }

    fn delete(&mut self, path: &str) -> Reply {
        if let Some(token) = path.strip_prefix(SESSIONS).and_then(|rest| rest.strip_prefix('/')) {
            self.sessions.retain(|open| open != token);
            return Reply::empty(204);
        }
        match self.job.filter(|(n, _)| path == format!("{JOBS}/JID_{n}")) {
            Some((_, "Scheduled")) => {
                // The values stay, uncommitted.
                self.job = None;
                Reply::of(200, json!({}))
            }
            _ => Reply::error(404, "Base.1.12.ResourceMissingAtURI", "Missing."),
        }
    }

    /// Applies what waits; a Dell only what a job holds.
    pub(super) fn boot(&mut self) {
        if self.vendor == Vendor::Dell && self.job.is_none() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let (gate, open) = self.model.gate;
        if let Some(profile) = pending.get(gate) {
            self.current.insert(gate.into(), profile.clone());
            self.force();
        }
        let is_open = self.current.get(gate).is_none_or(|profile| profile == open);
        self.messages = vec![json!({ "MessageId": "Base.1.0.Success" })];
        for (name, value) in pending {
            let is_locked = self.model.gated.contains(&name.as_str()) && !is_open;
            let is_judged = matches!(self.vendor, Vendor::Hpe | Vendor::Lenovo);
            let id = if is_judged && !self.is_listed(&name, &value) { Some("Base.1.0.PropertyUnknown") } else { None };
            let id = id.or((is_judged && is_locked).then_some("Base.1.0.PropertyNotWritable"));
            match id {
                Some(id) if self.vendor == Vendor::Hpe => {
                    self.messages.push(json!({ "MessageId": id, "MessageArgs": [name] }))
                }
                Some(_) => {}
                None => drop(self.current.insert(name, value)),
            }
        }
        self.job = self.job.map(|(n, _)| (n, "Completed"));
        self.touch();
    }

    /// What the profile forces.
    fn force(&mut self) {
        let rules = self.model.document["RegistryEntries"]["Dependencies"].as_array().cloned().unwrap_or_default();
        for rule in rules.iter().map(|rule| &rule["Dependency"]).filter(|rule| rule["MapToProperty"] == "CurrentValue")
        {
            let from = &rule["MapFrom"][0];
            let holds = from["MapFromAttribute"].as_str().and_then(|name| self.current.get(name))
                == Some(&from["MapFromValue"]);
            if let Some(name) = rule["MapToAttribute"].as_str().filter(|_| holds) {
                self.current.insert(name.into(), rule["MapToValue"].clone());
            }
        }
    }
}
