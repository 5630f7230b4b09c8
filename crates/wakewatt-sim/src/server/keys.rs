//! The keys that a table of a server file may have, asked of the type that reads it; a misspelt one is answered with the nearest.
//!
//! Serde hands the fields' names to whoever deserialises a struct: the deserialiser here takes them and stops, so there is no second
//! list that could drift.

use super::error::ServerError;
use super::{
    Arrivals, Change, Clock, Hop, Idle, IdleState, Interrupt, Machine, Power, PsuPoint, Published, Run, Server, Setting,
};
use super::{Timers, Turbo, Workload};
use crate::law::{Law, LawBucket};
use serde::de::{Deserialize, Deserializer, Error, Visitor, value::Error as Stopped};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

/// Keys of a type, and what lies below each.
struct Shape {
    keys: &'static [&'static str],
    below: Below,
}

/// Keys that hold tables, and what those are.
type Below = &'static [(&'static str, fn() -> Shape)];

fn shape<T: for<'de> Deserialize<'de>>(below: Below) -> Shape {
    Shape { keys: keys_of::<T>(), below }
}

fn top() -> Shape {
    shape::<Server>(&[
        ("run", || shape::<Run>(&[])),
        ("machine", machine),
        ("workload", workload),
        ("setting", || shape::<Setting>(&[])),
        ("change", || shape::<Change>(&[])),
        ("published", || shape::<Published>(&[])),
    ])
}

fn machine() -> Shape {
    shape::<Machine>(&[
        ("timers", || shape::<Timers>(&[])),
        ("idle", || shape::<Idle>(&[("state", || shape::<IdleState>(&[("exit", law)]))])),
        ("clock", || shape::<Clock>(&[("turbo", || shape::<Turbo>(&[]))])),
        ("power", || shape::<Power>(&[("psu", || shape::<PsuPoint>(&[]))])),
    ])
}

fn workload() -> Shape {
    shape::<Workload>(&[("arrivals", || shape::<Arrivals>(&[("think", law)])), ("hop", hop)])
}

fn hop() -> Shape {
    shape::<Hop>(&[("service", law), ("wait", law), ("interrupt", || shape::<Interrupt>(&[]))])
}

fn law() -> Shape {
    shape::<Law>(&[("buckets", || shape::<LawBucket>(&[]))])
}

/// Refuses the first key that nothing reads.
pub(super) fn check(file: &Table) -> Result<(), ServerError> {
    check_table(file, &top(), "")
}

fn check_table(table: &Table, shape: &Shape, path: &str) -> Result<(), ServerError> {
    for (key, value) in table {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if !shape.keys.contains(&key.as_str()) {
            let near = nearest(key, shape.keys);
            return Err(ServerError::Key { key: here, near: near.map(String::from) });
        }
        if let Some((_, below)) = shape.below.iter().find(|(name, _)| name == key) {
            check_value(value, &below(), &here)?;
        }
    }
    Ok(())
}

fn check_value(value: &Value, shape: &Shape, path: &str) -> Result<(), ServerError> {
    match value {
        Value::Table(table) => check_table(table, shape, path),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(i, item)| check_value(item, shape, &format!("{path}[{i}]")))
        }
        // Of a wrong type: whoever reads it says so.
        _ => Ok(()),
    }
}

fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let alike = candidates.iter().map(|c| (strsim::jaro_winkler(word, c), *c)).filter(|(likeness, _)| *likeness > 0.8);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, c)| c)
}

/// The names of the fields of `T`, as they are written in a file; none where `T` is no struct.
fn keys_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It always stops with an error: only what it saw on the way is wanted.
    let _ = T::deserialize(Names(&mut keys));
    keys
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Stopped;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stopped> {
        Err(Stopped::custom("only names are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
