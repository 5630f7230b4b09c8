//! A value of a BIOS attribute: text, whole number, yes or no.
//!
//! The same value may be written in several ways (`"Enabled"`, `"true"`), and a BMC refuses or silently drops the wrong JSON
//! type (Lenovo and Supermicro have Booleans beside enumerations, H3C wants numbers as numbers), so the type is kept.

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use wakewatt_core::visible;

/// One value of an attribute, as the BMC writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Setting {
    /// Yes or no, as JSON has it.
    Flag(bool),
    /// A whole number, without a unit.
    Number(i64),
    /// Enumerations and strings, as the BMC spells them.
    Text(String),
}

impl Setting {
    /// From a document; null, lists, objects and fractions are no setting.
    pub fn of(value: &Value) -> Option<Setting> {
        match value {
            Value::Bool(flag) => Some(Setting::Flag(*flag)),
            Value::Number(number) => number.as_i64().map(Setting::Number),
            Value::String(text) => Some(Setting::Text(text.clone())),
            _ => None,
        }
    }

    /// As JSON text.
    pub fn to_json(&self) -> String {
        match self {
            Setting::Flag(flag) => flag.to_string(),
            Setting::Number(number) => number.to_string(),
            Setting::Text(text) => Value::from(text.as_str()).to_string(),
        }
    }

    /// As a plain word, to compare with what a person typed.
    pub fn word(&self) -> String {
        match self {
            Setting::Text(text) => text.clone(),
            other => other.to_json(),
        }
    }

    /// The same value, whatever JSON type a registry or a BMC gave it: `"8"` and 8, `"true"` and true.
    pub fn is_same(&self, other: &Setting) -> bool {
        self == other || self.word() == other.word()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible::line(&self.word()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_are_kept_and_hostile_ones_are_none() {
        assert_eq!(Setting::of(&json!(true)).unwrap().to_json(), "true");
        assert_eq!(Setting::of(&json!(-3)).unwrap().to_json(), "-3");
        assert_eq!(Setting::of(&json!("a\"b")).unwrap().to_json(), "\"a\\\"b\"");
        for none in [json!(null), json!([1]), json!({}), json!(1.5), json!(u64::MAX)] {
            assert_eq!(Setting::of(&none), None);
        }
        assert!(Setting::Text("8".into()).is_same(&Setting::Number(8)));
        assert!(!Setting::Text("a\u{1b}[31mb".into()).to_string().contains('\u{1b}'));
    }
}
