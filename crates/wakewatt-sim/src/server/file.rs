//! From the text of a server file to a server, and to the server under another setting.
//!
//! A setting, and a sweep, is a list of fields with other values. They are put into the file's own tables before they are read, so that
//! every field of the file can be one, and a wrong name or value is refused as if it stood in the file.

use super::error::ServerError;
use super::{Server, Setting, keys};
use toml::{Table, Value};

/// Longest text that is read, in bytes: recorded arrivals take room.
const MOST_BYTES: usize = 64 << 20;

impl Server {
    /// Reads and checks a file.
    pub fn parse(text: &str) -> Result<Server, ServerError> {
        Server::parse_with(text, &[])
    }

    /// The same with fields changed, as a setting or a sweep has them.
    pub fn parse_with(text: &str, set: &[String]) -> Result<Server, ServerError> {
        if text.len() > MOST_BYTES {
            return Err(ServerError::Syntax(format!("{} bytes; {MOST_BYTES} at most", text.len())));
        }
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| ServerError::Syntax(e.to_string().trim_end().to_string()))?;
        Server::of_table(table, set)
    }

    /// This server with fields changed.
    pub fn with(&self, set: &[String]) -> Result<Server, ServerError> {
        let table = Table::try_from(self).map_err(|e| ServerError::Value(e.to_string()))?;
        Server::of_table(table, set)
    }

    /// This server under one of its settings.
    pub fn under(&self, setting: &Setting) -> Result<Server, ServerError> {
        self.with(&setting.set)
    }

    fn of_table(mut table: Table, set: &[String]) -> Result<Server, ServerError> {
        for text in set {
            let (path, value) = text.split_once('=').ok_or_else(|| refused(text, "no = in it"))?;
            let path: Vec<&str> = path.trim().split('.').map(str::trim).collect();
            put(&mut table, &path, &value_of(value.trim())).map_err(|why| refused(text, &why))?;
        }
        keys::check(&table)?;
        let value: Result<Server, toml::de::Error> = Value::Table(table).try_into();
        let server = value.map_err(|e| ServerError::Value(e.to_string().trim_end().replace('\n', " ")))?;
        server.check()?;
        Ok(server)
    }
}

fn refused(text: &str, why: &str) -> ServerError {
    ServerError::Set { text: text.chars().take(200).collect(), why: why.into() }
}

/// A value of TOML where it is one, else a text: `5us` needs no quotes.
fn value_of(text: &str) -> Value {
    let parsed: Option<Table> = format!("v = {text}").parse().ok();
    let whole = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"));
    whole.unwrap_or_else(|| Value::String(text.into()))
}

fn put(table: &mut Table, path: &[&str], value: &Value) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else { return Err("no field in it".into()) };
    if rest.is_empty() {
        table.insert((*key).into(), value.clone());
        return Ok(());
    }
    match table.entry(*key).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(below) => put(below, rest, value),
        Value::Array(items) => put_in_items(items, rest, value).map_err(|why| format!("{key}: {why}")),
        _ => Err(format!("{key} has no fields")),
    }
}

/// Into one of a list, by its number or name, or into all of them.
fn put_in_items(items: &mut [Value], path: &[&str], value: &Value) -> Result<(), String> {
    let first = path.first().copied().unwrap_or_default();
    let is_named = |item: &Value| item.get("name").and_then(Value::as_str) == Some(first);
    let at = first.parse::<usize>().ok().or_else(|| items.iter().position(is_named));
    let into = |item: &mut Value, path: &[&str]| match item {
        Value::Table(table) => put(table, path, value),
        _ => Err("has no fields".into()),
    };
    match at {
        Some(at) => {
            let n = items.len();
            let item = items.get_mut(at).ok_or_else(|| format!("there are {n}, numbered from 0"))?;
            into(item, path.get(1..).unwrap_or_default())
        }
        None => items.iter_mut().try_for_each(|item| into(item, path)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClockGovernor, IdleGovernor};
    use super::*;
    use crate::span::Span;

    const SMALL: &str = r#"
        format = 1
        name = "small"
        [[machine]]
        name = "web"
        cores = 4
        idle = { table = "SKX" }
        [[machine]]
        name = "db"
        cores = 2
        idle = { table = "ICX" }
        [workload]
        arrivals = { kind = "poisson", per_s = 1000 }
        [[workload.hop]]
        service = { law = "exponential", mean = "500us" }
        [[setting]]
        name = "limited"
        set = ["machine.idle.max_latency=5us", "machine.db.clock.governor=powersave"]
    "#;

    #[test]
    fn a_setting_is_fields_with_other_values() {
        let server = Server::parse(SMALL).unwrap();
        assert_eq!((server.n_cpus(), server.machine[0].idle.governor), (6, IdleGovernor::Menu));
        let under = server.under(&server.setting[0]).unwrap();
        assert!(under.machine.iter().all(|m| m.idle.max_latency == Some(Span::us(5))));
        let governors = [&under.machine[0], &under.machine[1]].map(|m| m.clock.governor);
        assert_eq!(governors, [ClockGovernor::Performance, ClockGovernor::Powersave]);
        let swept = Server::parse_with(SMALL, &["workload.hop.0.service.mean=2ms".into()]).unwrap();
        assert_eq!(swept.workload.hop[0].service.mean, Some(Span::ms(2)));
        assert_eq!(server.with(&[]).unwrap(), server);
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_nearest() {
        let said = |set: &str| Server::parse_with(SMALL, &[set.into()]).unwrap_err().to_string();
        assert_eq!(
            said("machine.idle.max_latncy=5us"),
            "machine[0].idle.max_latncy: there is no such field; did you mean max_latency?"
        );
        assert_eq!(said("wurkload.x=1"), "wurkload: there is no such field; did you mean workload?");
        assert!(said("machine.9.cores=1").contains("there are 2, numbered from 0"));
        assert!(said("machine").contains("no = in it"));
        assert!(said("machine.cores=many").contains("invalid type"), "{}", said("machine.cores=many"));
        assert!(
            said("machine.idle.max_latency=5parsecs").contains("parsecs"),
            "{}",
            said("machine.idle.max_latency=5parsecs")
        );
        assert!(Server::parse("format = ").is_err() && Server::parse("").is_err());
    }
}
