//! Profiles: settings under a name, as TOML. Some are shipped, users write theirs.
//!
//! The main input is a latency budget; it becomes a limit on the whole machine, or on the CPUs of the scope. Unknown
//! keys are refused with the nearest known name, because a setting that is silently ignored is worse than none. The
//! schema is published as docs/ref/schema/profile.json.

use crate::request::{Place, Request};
use serde::Serialize;
use toml::{Table, Value};
use wakewatt_core::nearest::nearest;
use wakewatt_core::units::LatencyLimit;
use wakewatt_words::say;

/// The profiles that come with wakewatt: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("latency", include_str!("../profiles/latency.toml")),
    ("throughput", include_str!("../profiles/throughput.toml")),
    ("efficiency", include_str!("../profiles/efficiency.toml")),
    ("k4-performance", include_str!("../profiles/k4-performance.toml")),
    ("k4-powersave", include_str!("../profiles/k4-powersave.toml")),
    ("k4-ondemand", include_str!("../profiles/k4-ondemand.toml")),
    ("k4-conservative", include_str!("../profiles/k4-conservative.toml")),
];

/// A profile, read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The latency budget, where it has one.
    pub max_latency: Option<LatencyLimit>,
    /// Where it acts, unless a setting says otherwise.
    pub scope: Place,
    /// The settings, budget not included.
    pub requests: Vec<Request>,
    /// Kernel parameters for the next boot.
    pub boot_arguments: Vec<String>,
}

/// The text of a shipped profile.
pub fn shipped(name: &str) -> Result<&'static str, String> {
    SHIPPED.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let names = SHIPPED.iter().map(|(n, _)| *n);
        let all: Vec<&str> = names.clone().collect();
        let hint = nearest(name, names).map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("{name}: no such profile, and no such file; there are {}{hint}", all.join(", "))
    })
}

const KEYS: &[&str] = &["format", "name", "about", "max_latency", "optional", "scope", "set", "boot"];

impl Profile {
    /// Reads one; an error names the key.
    pub fn parse(text: &str) -> Result<Profile, String> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_string())?;
        only(&table, KEYS, "")?;
        match table.get("format") {
            Some(Value::Integer(1)) => {}
            Some(other) => return Err(format!("format = {other}: this wakewatt reads format 1")),
            None => return Err("format = 1 is missing: it says which rules the file follows".into()),
        }
        let is_optional = table.get("optional").map(|v| boolean(v, "optional")).transpose()?.unwrap_or(false);
        let scope = table.get("scope").map(|v| scope(inner(v, "scope")?)).transpose()?.unwrap_or_default();
        let words = |key: &str| table.get(key).map(|v| string(v, key)).transpose();
        let max_latency = words("max_latency")?
            .map(|t| LatencyLimit::parse(&t).map_err(|why| format!("max_latency: {why}")))
            .transpose()?;
        let mut requests = Vec::new();
        if let Some(set) = table.get("set") {
            for (name, value) in inner(set, "set")? {
                setting(name, value, &scope, is_optional, &mut requests)?;
            }
        }
        let mut boot_arguments = Vec::new();
        if let Some(boot) = table.get("boot") {
            let boot = inner(boot, "boot")?;
            only(boot, &["arguments"], "boot.")?;
            if let Some(Value::Array(list)) = boot.get("arguments") {
                for value in list {
                    boot_arguments.push(string(value, "boot.arguments")?);
                }
            } else {
                return Err("boot.arguments: expected a list of kernel parameters".into());
            }
        }
        Ok(Profile {
            name: words("name")?.unwrap_or_default(),
            about: words("about")?.unwrap_or_default(),
            max_latency,
            scope,
            requests,
            boot_arguments,
        })
    }

    /// All requests, the budget among them.
    pub fn all_requests(&self) -> Vec<Request> {
        let mut all = self.requests.clone();
        all.extend(self.max_latency.map(|limit| budget(limit, &self.scope)));
        all
    }
}

/// What is kept for the next boots, before more is added to it. A file that cannot be understood is not written over: it
/// says what every boot was to set, and nobody else remembers.
pub fn kept(text: std::io::Result<String>) -> Result<Profile, String> {
    const ADVICE: &str = "mend it, or move it away and apply again what is to be kept";
    let text = match text {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Profile::default()),
        Err(e) => return Err(format!("cannot be read: {e}; {ADVICE}")),
    };
    let profile = Profile::parse(&text).map_err(|why| format!("cannot be understood: {why}; {ADVICE}"))?;
    match profile.boot_arguments.is_empty() {
        true => Ok(profile),
        false => Err(format!("has kernel parameters, which are no part of what is kept here; {ADVICE}")),
    }
}

/// Requests as a profile's text: what is applied again at every boot. Any of them may be missing then, so all are
/// optional.
pub fn to_toml(about: &str, requests: &[Request]) -> String {
    let quoted = |text: &str| Value::String(text.into()).to_string();
    let mut out = format!(
        "# Written by wakewatt; `wakewatt tune undo` removes it.\nformat = 1\nname = \"boot\"\nabout = {}\noptional = true\n\n[set]\n",
        quoted(about)
    );
    let mut names: Vec<&str> = requests.iter().map(|r| r.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let one = |r: &Request| match &r.place {
            Place::Everywhere => format!("{{ to = {} }}", quoted(&r.to.join("|"))),
            place => format!("{{ to = {}, at = {} }}", quoted(&r.to.join("|")), quoted(&place.to_string())),
        };
        let all: Vec<String> = requests.iter().filter(|r| r.name == name).map(one).collect();
        out += &format!("{} = [{}]\n", quoted(name), all.join(", "));
    }
    out
}

/// A latency budget as a setting: held for the whole machine, or a limit on the CPUs of a scope.
pub fn budget(limit: LatencyLimit, scope: &Place) -> Request {
    let name = if *scope == Place::Everywhere { "qos.global" } else { "qos.cpu" };
    Request {
        name: name.into(),
        place: scope.clone(),
        to: vec![limit.to_string()],
        reason: say!("the latency budget"),
        is_optional: false,
    }
}

/// A setting; a table without `to` is a dotted name that TOML has taken apart (`freq.governor` unquoted).
fn setting(
    name: &str,
    value: &Value,
    scope: &Place,
    is_optional: bool,
    requests: &mut Vec<Request>,
) -> Result<(), String> {
    let plain = |v: &Value| match v {
        Value::String(text) => Some(text.clone()),
        Value::Integer(n) => Some(n.to_string()),
        Value::Boolean(is_on) => Some(if *is_on { "on" } else { "off" }.to_string()),
        _ => None,
    };
    let mut request =
        Request { name: name.into(), place: scope.clone(), to: Vec::new(), reason: String::new(), is_optional };
    let text = match value {
        Value::Table(table) if table.contains_key("to") => {
            only(table, &["to", "at", "reason", "optional"], &format!("set.{name}."))?;
            if let Some(at) = table.get("at") {
                request.place = Place::parse(&string(at, "at")?).map_err(|why| format!("set.{name}.at: {why}"))?;
            }
            if let Some(reason) = table.get("reason") {
                request.reason = string(reason, "reason")?;
            }
            if let Some(optional) = table.get("optional") {
                request.is_optional = boolean(optional, &format!("set.{name}.optional"))?;
            }
            table.get("to").and_then(plain)
        }
        // One setting in several places.
        Value::Array(list) if !list.is_empty() => {
            return list.iter().try_for_each(|v| setting(name, v, scope, is_optional, requests));
        }
        Value::Table(table) => {
            return table
                .iter()
                .try_for_each(|(rest, v)| setting(&format!("{name}.{rest}"), v, scope, is_optional, requests));
        }
        other => plain(other),
    };
    let text =
        text.ok_or_else(|| format!("set.{name}: expected a word, a number, true or false, or a table with `to`"))?;
    request.to = text.split('|').map(|v| v.trim().to_string()).collect();
    if request.to.iter().any(String::is_empty) {
        return Err(format!("set.{name}: an empty value"));
    }
    if crate::knobs::find(name).is_none() {
        let near = nearest(name, crate::knobs::KNOBS.iter().map(|k| k.about().id));
        let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(format!("set.{name}: no such setting{hint} (wakewatt tune knobs lists them)"));
    }
    requests.push(request);
    Ok(())
}

fn scope(table: &Table) -> Result<Place, String> {
    only(table, &["cpus", "package", "node", "cgroup"], "scope.")?;
    let mut entries = table.iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        return Err("scope: expected exactly one of cpus, package, node, cgroup".into());
    };
    let text = match value {
        Value::Integer(n) => n.to_string(),
        other => string(other, key)?,
    };
    Place::parse(&format!("{key}:{text}")).map_err(|why| format!("scope.{why}"))
}

fn only(table: &Table, known: &[&str], prefix: &str) -> Result<(), String> {
    match table.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => {
            let hint = nearest(key, known.iter().copied())
                .map_or_else(|| format!("known are {}", known.join(", ")), |near| format!("did you mean {near}?"));
            Err(format!("{prefix}{key}: no such key; {hint}"))
        }
    }
}

fn inner<'a>(value: &'a Value, key: &str) -> Result<&'a Table, String> {
    value.as_table().ok_or_else(|| format!("{key}: expected a table, [{key}]"))
}

fn string(value: &Value, key: &str) -> Result<String, String> {
    value.as_str().map(str::to_string).ok_or_else(|| format!("{key}: expected a text in quotes, found {value}"))
}

fn boolean(value: &Value, key: &str) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{key}: expected true or false, found {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_ones_are_read_and_say_what_they_are_for() {
        for (name, text) in SHIPPED {
            let profile = Profile::parse(text).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(profile.name, *name);
            assert!(!profile.about.is_empty() && !profile.all_requests().is_empty(), "{name}");
        }
        assert!(shipped("latancy").unwrap_err().contains("did you mean latency?"));
    }

    #[test]
    fn budget_scope_and_settings() {
        let text = "format = 1\nmax_latency = \"50us\"\n[scope]\nnode = 1\n[set]\nfreq.governor = \"performance\"\n\"idle.state.C6\" = false\n\"freq.max\" = { to = \"2GHz\", at = \"cpus:3\", optional = true }\n";
        let requests: Vec<String> =
            Profile::parse(text).unwrap().all_requests().iter().map(ToString::to_string).collect();
        assert_eq!(
            requests,
            [
                "freq.governor@node:1=performance",
                "idle.state.C6@node:1=off",
                "freq.max@cpus:3=2GHz",
                "qos.cpu@node:1=50us"
            ]
        );
    }

    #[test]
    fn what_is_kept_for_the_next_boot_is_read_back_the_same() {
        let texts =
            ["freq.governor@cpus:0-3=performance|schedutil", "freq.governor@cpus:4-7=powersave", "qos.global=50us"];
        let requests: Vec<Request> = texts.iter().map(|t| Request::parse(t).unwrap()).collect();
        let again = Profile::parse(&to_toml("profile \"x\"", &requests)).unwrap();
        assert_eq!(again.requests.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
        assert!(again.requests.iter().all(|r| r.is_optional));
    }

    #[test]
    fn what_is_kept_and_cannot_be_understood_is_not_written_over() {
        use std::io::{Error, ErrorKind};
        assert_eq!(kept(Err(ErrorKind::NotFound.into())), Ok(Profile::default()));
        assert!(kept(Err(Error::new(ErrorKind::InvalidData, "no UTF-8"))).unwrap_err().contains("no UTF-8; mend it"));
        assert!(
            kept(Ok("format = 1\n[set]\n\"freq.governor\" = ".into())).unwrap_err().contains("cannot be understood")
        );
        assert!(kept(Ok(String::new())).unwrap_err().contains("format = 1 is missing"), "cut to nothing");
        assert!(
            kept(Ok("format = 1\n[boot]\narguments = [\"nosmt\"]\n".into())).unwrap_err().contains("kernel parameters")
        );
        // A person may have written a budget instead of the setting; it stays.
        let budget = kept(Ok("format = 1\nmax_latency = \"50us\"\n".into())).unwrap();
        assert_eq!(budget.all_requests()[0].to_string(), "qos.global=50us");
    }

    #[test]
    fn wrong_keys_are_named_with_the_nearest_right_one() {
        for (text, says) in [
            ("format = 1\nmax_latancy = \"1us\"", "max_latancy: no such key; did you mean max_latency?"),
            ("format = 1\n[set]\n\"freq.governer\" = \"x\"", "did you mean freq.governor?"),
            ("format = 1\n[scope]\ncpus = \"0\"\nnode = 1", "exactly one"),
            ("format = 1\nmax_latency = \"50\"", "has no unit"),
            ("format = 2", "reads format 1"),
            ("name = \"x\"", "format = 1 is missing"),
            ("format = 1\n[set]\n\"freq.governor\" = { to = \"x\", att = \"y\" }", "did you mean at?"),
            ("format = 1\n[boot]\nargumets = []", "did you mean arguments?"),
            ("format = ", "TOML parse error"),
        ] {
            let why = Profile::parse(text).unwrap_err();
            assert!(why.contains(says), "{text:?}: {why}");
        }
    }
}
