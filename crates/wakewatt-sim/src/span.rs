//! A length of time in a server file: written `85us`, kept in nanoseconds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wakewatt_core::units::{exact_ns, parse_ns};

/// A length of time in nanoseconds; in files a text such as `85us`, `4ms` or `10s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

impl Span {
    /// Of so many microseconds.
    pub const fn us(us: u64) -> Span {
        Span(us.saturating_mul(1000))
    }

    /// Of so many milliseconds.
    pub const fn ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// In nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&exact_ns(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        let text = String::deserialize(from)?;
        parse_ns(&text).map(Span).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{}ns", self.0))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "A length of time with its unit, such as 85us, 4ms or 10s" })
    }
}
