//! A name with its value, as everything in OpenTelemetry carries them: texts, and whole numbers.

use prost::Message;

/// Name and value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// One of both.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}

pub(super) fn text(key: &str, value: &str) -> Attribute {
    Attribute { key: key.into(), value: Some(AnyValue { text: Some(value.into()), number: None }) }
}

pub(super) fn number(key: &str, value: i64) -> Attribute {
    Attribute { key: key.into(), value: Some(AnyValue { text: None, number: Some(value) }) }
}
