//! What a node's firmware is set to, out of the document that `bios show --json` wrote of it.
//!
//! The document is somebody's file: a BMC's words are in it, and perhaps another version's fields. What is not there is not known, never
//! "off". A value is the word that the concept has for it (`off`), because the same thing has other spellings on other releases of one
//! BIOS; where no word fits it is the BMC's own value. What waits for the next boot stands beside it: two nodes are
//! not equal if one of them will be another machine tomorrow.

use serde_json::Value;
use std::collections::BTreeMap;

/// The document that is read.
pub const SCHEMA: &str = "wakewatt/bios-show/v1";
/// More concepts or attributes than this has no BIOS.
const MOST: usize = 20_000;
/// Letters of a value or a name that are kept.
const LONGEST: usize = 200;

/// What one document says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firmware {
    /// Maker and model, as the BMC has them.
    pub machine: Option<String>,
    /// Release of the BIOS.
    pub version: Option<String>,
    /// Value by concept (`bios.c-states`), and by attribute (`attr:ProcCStates`) where the document has them all.
    pub settings: BTreeMap<String, String>,
    /// The deciding attribute of a concept, as the BMC spells it.
    pub attributes: BTreeMap<String, String>,
    /// Why there are no settings.
    pub unavailable: Option<String>,
}

/// Reads a document; an error says why it is none.
pub fn parse(bytes: &[u8]) -> Result<Firmware, String> {
    let json: Value = serde_json::from_slice(bytes).map_err(|why| format!("is no JSON document: {why}"))?;
    if json.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(format!("is no {SCHEMA}; make one with: wakewatt bios show --json"));
    }
    let named = [text(&json, "vendor"), text(&json, "model")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut out = Firmware {
        machine: Some(named).filter(|name| !name.is_empty()),
        version: text(&json, "bios_version"),
        unavailable: text(&json, "unavailable"),
        ..Firmware::default()
    };
    for concept in list(&json, "concepts") {
        let Some(id) = text(concept, "id") else { continue };
        let first = list(concept, "attributes").next();
        let own = |key: &str| first.and_then(|attribute| word(&attribute[key]));
        let now = text(concept, "word").or_else(|| own("current"));
        let then = text(concept, "pending_word").or_else(|| own("pending"));
        if let Some(name) = first.and_then(|attribute| text(attribute, "name")) {
            out.attributes.insert(id.clone(), name);
        }
        out.keep(id, now, then);
    }
    for attribute in list(&json, "attributes") {
        let Some(name) = text(attribute, "name") else { continue };
        out.keep(format!("attr:{name}"), word(&attribute["current"]), word(&attribute["pending"]));
    }
    Ok(out)
}

impl Firmware {
    fn keep(&mut self, what: String, now: Option<String>, then: Option<String>) {
        let then = then.filter(|then| Some(then) != now.as_ref());
        let value = match (now, then) {
            (Some(now), None) => now,
            (Some(now), Some(then)) => format!("{now}, {then} at the next boot"),
            (None, Some(then)) => format!("not told, {then} at the next boot"),
            (None, None) => return,
        };
        self.settings.insert(what, value);
    }
}

/// Is this a setting of firmware, or a fact that firmware brings? The names are those of settings of a node.
pub fn is_of_firmware(what: &str) -> bool {
    const FACTS: [&str; 4] = ["BIOS version", "BIOS release", "microcode", IDLE_TABLE];
    is_attribute(what) || what.starts_with("bios.") || FACTS.contains(&what)
}

/// One attribute among all, not a concept that somebody chose: serial numbers and tags are among them.
pub fn is_attribute(what: &str) -> bool {
    what.starts_with("attr:")
}

/// Setting: the checksum of the idle table, as the agent's label and captures have it.
pub const IDLE_TABLE: &str = "idle table (checksum)";

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().take(MOST)
}

fn text(value: &Value, key: &str) -> Option<String> {
    word(value.get(key)?)
}

/// A value as a word: text, number, yes or no.
fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().chars().take(LONGEST).collect(),
        Value::Number(number) => number.to_string(),
        Value::Bool(is) => is.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_go_before_spellings_and_what_waits_is_told() {
        let attribute = |name: &str, now: Value, then: Value| json!({"name": name, "current": now, "pending": then});
        let document = json!({
            "schema": SCHEMA, "vendor": "Dell Inc.", "model": "R750", "bios_version": "1.8.2", "unavailable": null,
            "concepts": [
                {"id": "bios.c-states", "word": "off", "pending_word": null, "attributes": [attribute("ProcCStates", json!("Disabled"), Value::Null)]},
                {"id": "bios.smt", "word": "on", "pending_word": "off", "attributes": [attribute("LogicalProc", json!("Enabled"), json!("Disabled"))]},
                {"id": "bios.numa", "word": null, "attributes": [attribute("SubNumaCluster", json!("5-Way"), Value::Null)]},
                {"id": "bios.uncore", "word": null, "attributes": []},
            ],
            "attributes": [attribute("Cores", json!(8), Value::Null)],
        });
        let read = parse(document.to_string().as_bytes()).unwrap();
        assert_eq!((read.machine.as_deref(), read.version.as_deref()), (Some("Dell Inc. R750"), Some("1.8.2")));
        let told: Vec<(&str, &str)> = read.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let wanted = [
            ("attr:Cores", "8"),
            ("bios.c-states", "off"),
            ("bios.numa", "5-Way"),
            ("bios.smt", "on, off at the next boot"),
        ];
        assert_eq!(told, wanted, "what is not told is not there");
        assert_eq!(read.attributes["bios.c-states"], "ProcCStates");
    }

    #[test]
    fn other_files_and_hostile_ones_are_refused_or_empty() {
        for bad in [&b""[..], b"{}", b"[1]", b"{\"schema\":\"wakewatt/inspect/v1\"}", b"\xff"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let odd = json!({"schema": SCHEMA, "concepts": {"a": 1}, "attributes": [1, null, {"name": []}], "vendor": 5});
        let read = parse(odd.to_string().as_bytes()).unwrap();
        assert!(read.settings.is_empty() && read.machine.as_deref() == Some("5"));
        let long = json!({"schema": SCHEMA, "attributes": [{"name": "x".repeat(9000), "current": "y".repeat(9000)}]});
        let read = parse(long.to_string().as_bytes()).unwrap();
        assert!(read.settings.iter().all(|(k, v)| k.len() < 300 && v.len() < 300));
    }
}
