//! The keys that a table of a server file may have, asked of the type that reads it; a misspelt one is answered with the nearest.
//!
//! What lies below a key is listed here, since a type names its fields and not what they hold.

use super::error::ServerError;
use super::{
    Arrivals, Change, Clock, Hop, Idle, IdleState, Interrupt, Machine, Power, PsuPoint, Published, Run, Server, Setting,
};
use super::{Timers, Turbo, Workload};
use crate::law::{Law, LawBucket};
use serde::Deserialize;
use toml::{Table, Value};
use wakewatt_core::file_keys::keys_of;
use wakewatt_core::nearest::nearest;

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
        ("idle", || {
            shape::<Idle>(&[("state", || {
                shape::<IdleState>(&[
                    ("exit", law),
                    ("after", after),
                    ("after_ipi", after),
                    ("cold_after", after),
                    ("overhead", after),
                    ("overhead_ipi", after),
                ])
            })])
        }),
        ("clock", || shape::<Clock>(&[("turbo", || shape::<Turbo>(&[]))])),
        ("power", || shape::<Power>(&[("psu", || shape::<PsuPoint>(&[]))])),
    ])
}

fn after() -> Shape {
    shape::<super::After>(&[])
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
            let near = nearest(key, shape.keys.iter().copied());
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
