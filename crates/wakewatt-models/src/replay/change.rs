//! What is asked otherwise than recorded: `--set governor=teo`, `--set max-latency=50us`, and so on.

use super::exits::Exits;
use crate::idle::Kind;
use crate::kernel::Kernel;
use std::fmt;
use wakewatt_core::record::wtrace::TableState;
use wakewatt_core::units::{LatencyLimit, exact_ns, parse_ns};

/// One thing asked otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another governor.
    Governor(Kind),
    /// Another kernel's rules.
    Kernel(Kernel),
    /// Another latency limit.
    MaxLatency(LatencyLimit),
    /// No state deeper than this index: what `max_cstate` does.
    MaxState(usize),
    /// A state switched off, by name.
    Disable(String),
    /// A state switched on, by name.
    Enable(String),
    /// Another tick.
    Hz(u32),
    /// Another longest window of haltpoll (`guest_halt_poll_ns`), in nanoseconds.
    HaltPoll(u64),
    /// Another idle table.
    Table(Vec<TableState>),
    /// What leaving states was measured to cost; it has no words.
    Measured(Exits),
}

/// What can be asked, for messages.
pub const KEYS: &str = "governor=NAME, kernel=VERSION, max-latency=TIME, max-state=INDEX, disable=STATE, enable=STATE, hz=NUMBER, guest-halt-poll=TIME, \
     table=NAME:LATENCY/RESIDENCY,…";

impl Change {
    /// From `key=value`; in words what is wrong.
    pub fn parse(text: &str) -> Result<Change, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("say one of {KEYS}"))?;
        let value = value.trim();
        match key.trim() {
            "governor" => Kind::of_name(value).map(Change::Governor).ok_or_else(|| {
                format!("no model of governor `{value}`; there are {}", Kind::ALL.map(Kind::name).join(", "))
            }),
            "kernel" => Kernel::parse(value).map(Change::Kernel).map_err(|e| e.to_string()),
            "max-latency" => LatencyLimit::parse(value).map(Change::MaxLatency),
            "max-state" => value.parse().map(Change::MaxState).map_err(|_| format!("`{value}` is no index of a state")),
            "disable" => Ok(Change::Disable(value.into())),
            "enable" => Ok(Change::Enable(value.into())),
            "hz" => value
                .parse()
                .ok()
                .filter(|hz| (1..=100_000).contains(hz))
                .map(Change::Hz)
                .ok_or_else(|| format!("`{value}` is no number of ticks a second")),
            "guest-halt-poll" => parse_ns(value).map(Change::HaltPoll),
            "table" => table(value).map(Change::Table),
            other => Err(format!("`{other}` cannot be set; say one of {KEYS}")),
        }
    }
}

/// As it is asked; what was measured has no words.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Governor(kind) => write!(f, "governor={}", kind.name()),
            Change::Kernel(kernel) => write!(f, "kernel={}", kernel.release),
            Change::MaxLatency(limit) => write!(f, "max-latency={limit}"),
            Change::MaxState(index) => write!(f, "max-state={index}"),
            Change::Disable(name) => write!(f, "disable={name}"),
            Change::Enable(name) => write!(f, "enable={name}"),
            Change::Hz(hz) => write!(f, "hz={hz}"),
            Change::HaltPoll(ns) => write!(f, "guest-halt-poll={}", exact_ns(*ns)),
            Change::Table(rows) => {
                let time = |ns: Option<u64>| exact_ns(ns.unwrap_or(0));
                let row =
                    |s: &TableState| format!("{}:{}/{}", s.name, time(s.exit_latency_ns), time(s.target_residency_ns));
                write!(f, "table={}", rows.iter().map(row).collect::<Vec<_>>().join(","))
            }
            Change::Measured(_) => f.write_str("measured"),
        }
    }
}

/// `POLL:0us/0us,C1:2us/2us`; a state called POLL spins.
fn table(text: &str) -> Result<Vec<TableState>, String> {
    let row = |(at, text): (usize, &str)| {
        let (name, times) = text.split_once(':').ok_or_else(|| format!("`{text}` is not NAME:LATENCY/RESIDENCY"))?;
        let (latency, residency) =
            times.split_once('/').ok_or_else(|| format!("`{text}` is not NAME:LATENCY/RESIDENCY"))?;
        Ok(TableState {
            index: u32::try_from(at).map_err(|_| "too many states".to_string())?,
            name: name.trim().into(),
            exit_latency_ns: Some(parse_ns(latency)?),
            target_residency_ns: Some(parse_ns(residency)?),
            is_polling: name.trim().eq_ignore_ascii_case("POLL"),
            is_enabled: Some(true),
        })
    };
    text.split(',').enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_or_said_to_be_wrong() {
        assert_eq!(Change::parse("governor=teo"), Ok(Change::Governor(Kind::Teo)));
        assert_eq!(Change::parse("max-state=1"), Ok(Change::MaxState(1)));
        assert_eq!(Change::parse("max-latency=50us"), Ok(Change::MaxLatency(LatencyLimit::AtMostNs(50_000))));
        let Ok(Change::Table(rows)) = Change::parse("table=POLL:0us/0us,C6:133us/600us") else { panic!("no table") };
        assert_eq!((rows[0].is_polling, rows[1].target_residency_ns), (true, Some(600_000)));
        for text in
            ["governor=teo", "max-latency=50us", "max-latency=poll", "hz=250", "table=POLL:0ns/0ns,C6:133us/600us"]
        {
            assert_eq!(Change::parse(text).map(|c| c.to_string()).as_deref(), Ok(text));
        }
        for (text, words) in [
            ("governor=fifo", "there are menu, teo, ladder, haltpoll"),
            ("kernel=elm", "no kernel version"),
            ("colour=red", "cannot be set"),
            ("teo", "say one of"),
            ("hz=0", "no number of ticks"),
            ("table=C1", "NAME:LATENCY/RESIDENCY"),
            ("max-latency=5", ""),
        ] {
            assert!(Change::parse(text).unwrap_err().contains(words), "{text}");
        }
    }
}
