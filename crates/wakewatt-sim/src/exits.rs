//! Where the exit latencies of a simulation come from: claims of a driver's table, or the file's own.
//!
//! A claim is a worst case, and of firmware often a placeholder, so what rests on one says so in its first line. An exit
//! that a file gives may be measured or assumed; the file's `about` says which.

use crate::outcome::Outcome;
use crate::server::{Idle, Server, table};
use serde::{Deserialize, Serialize};

/// The states that were entered, by where the latency of leaving them comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exits {
    /// States whose latency is taken from a claim: a part of what driver or firmware says.
    pub claimed: Vec<String>,
    /// The tables of processor generations among these claims.
    pub tables: Vec<String>,
    /// States whose latency the file gives.
    pub given: Vec<String>,
}

impl Exits {
    /// Of servers and what came of each.
    pub fn of<'a>(all: impl IntoIterator<Item = (&'a Server, &'a Outcome)>) -> Exits {
        let mut exits = Exits::default();
        for (server, outcome) in all {
            for (machine, came) in server.machine.iter().zip(&outcome.machines) {
                let entered = came.states.iter().filter(|s| s.per_s > 0.0).map(|s| s.name.as_str());
                entered.for_each(|name| exits.add(&machine.idle, name));
            }
        }
        exits
    }

    fn add(&mut self, idle: &Idle, name: &str) {
        let states = idle.table.as_deref().and_then(table);
        let states = states.as_ref().unwrap_or(&idle.state);
        let Some(state) = states.iter().find(|s| s.name == name && !s.polling) else { return };
        if state.exit.is_some() || !state.after.is_empty() {
            insert(&mut self.given, name);
        } else if state.exit_latency.ns() > 0 {
            insert(&mut self.claimed, name);
            idle.table.iter().for_each(|table| insert(&mut self.tables, table));
        }
    }

    /// For a first line; nothing where no exit costs anything.
    pub fn words(&self) -> String {
        let tables = match &self.tables[..] {
            [] => String::new(),
            [one] => format!(" by table {one}"),
            many => format!(" by tables {}", many.join(", ")),
        };
        let (claimed, given) = (self.claimed.join(", "), self.given.join(", "));
        match (claimed.is_empty(), given.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("exit latencies claimed{tables}: {claimed}"),
            (true, false) => format!("exit latencies as the file gives them: {given}"),
            (false, false) => format!("exit latencies claimed{tables}: {claimed}; as the file gives them: {given}"),
        }
    }
}

fn insert(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::examples::EXAMPLES;
    use crate::server::Server;
    use crate::study::study;

    fn words(text: &str, set: &[&str]) -> String {
        let short = ["run.duration=20ms", "run.replications=2", "run.warmup=2ms"];
        let set: Vec<String> = [&short[..], set].concat().iter().map(ToString::to_string).collect();
        study(&Server::parse_with(text, &set).unwrap(), &[], &[], 2).unwrap().exits.words()
    }

    /// No shipped file has a measured exit.
    #[test]
    fn every_shipped_file_says_where_its_exits_come_from() {
        for example in EXAMPLES {
            let set: &[&str] = if example.name == "change" { &["change.at=10ms"] } else { &[] };
            let said = words(example.text, set);
            assert!(said.starts_with("exit latencies claimed by table"), "{}: {said:?}", example.name);
        }
    }

    #[test]
    fn exits_of_the_file_are_no_claims_and_spinning_has_none() {
        let plain = EXAMPLES[0].text;
        let own = "machine.idle={ governor = \"fixed\", state = [{ name = \"C6\", exit_latency = \"133us\", exit = { law = \"fixed\", mean = \"40us\" } }] }";
        assert_eq!(words(plain, &[own]), "exit latencies as the file gives them: C6");
        let half = own.replace(", exit = { law = \"fixed\", mean = \"40us\" }", "");
        assert_eq!(words(plain, &[&half]), "exit latencies claimed: C6");
        let polls = "machine.idle.max_latency=0us";
        let server = Server::parse_with(plain, &[polls.into(), "run.duration=20ms".into()]).unwrap();
        assert_eq!(study(&server, &[], &["as-found".into()], 2).unwrap().exits.words(), "");
    }
}
