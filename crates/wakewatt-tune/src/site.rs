//! One place where a knob can be turned, and the values the kernel takes there.

use serde::Serialize;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::source::{Read, Source};
use wakewatt_core::units::show_khz;
use wakewatt_words::{say, told};

/// The values a site takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Valid {
    /// One of these words.
    Words(Vec<String>),
    /// A frequency in this range; `min` and `max` are words for its ends.
    Khz {
        /// The lowest number the kernel takes here.
        min: u64,
        /// The highest number the kernel takes here.
        max: u64,
    },
    /// A whole number in this range; `min` and `max` are words for its ends.
    Number {
        /// The lowest number the kernel takes here.
        min: u64,
        /// The highest number the kernel takes here.
        max: u64,
    },
    /// `on` or `off`, written as these texts.
    Switch {
        /// The text that means on.
        on: String,
        /// The text that means off.
        off: String,
    },
    /// A number that stands for something: its name, in any case of letters, or any number up to `max`.
    Coded {
        /// The numbers that have a name here.
        names: Vec<Coded>,
        /// The highest number the field holds.
        max: u64,
    },
    /// The knob itself decides; this says how.
    Text(String),
}

/// A number with its name, such as 2 for PC6.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coded {
    /// The number that is written.
    pub code: u64,
    /// What it stands for on this model.
    pub name: String,
}

impl Valid {
    /// A switch whose file says 1 for on.
    pub fn one_is_on() -> Valid {
        Valid::Switch { on: "1".into(), off: "0".into() }
    }
    /// A switch whose file says 1 for off.
    pub fn one_is_off() -> Valid {
        Valid::Switch { on: "0".into(), off: "1".into() }
    }
}

impl std::fmt::Display for Valid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Valid::Words(words) => f.write_str(&words.join(", ")),
            Valid::Khz { min, max } => {
                f.write_str(&say!("{lowest} to {highest}, min, max", lowest = show_khz(*min), highest = show_khz(*max)))
            }
            Valid::Number { min, max } => f.write_str(&say!("{min} to {max}")),
            Valid::Switch { .. } => f.write_str("on, off"),
            Valid::Coded { names, max } => {
                let names: Vec<&str> = names.iter().map(|coded| coded.name.as_str()).collect();
                f.write_str(&say!("{names}, or 0 to {max}", names = names.join(", ")))
            }
            Valid::Text(how) => f.write_str(told(how)),
        }
    }
}

/// One place where a knob can be turned.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    /// The setting's full name, `idle.state.C6`.
    pub name: String,
    /// Which one it is: `cpu3`, `policy0`, `eth0`, `machine`.
    pub place: String,
    /// The CPUs it reaches; empty for what is no matter of CPUs.
    pub cpus: CpuSet,
    /// The file (or scheme, see above).
    pub path: String,
    /// The text there now.
    pub now: Option<String>,
    /// Why there is none.
    pub unread: Option<String>,
    /// The values the kernel takes here.
    pub valid: Valid,
    /// The hardware is known to refuse it here, and why.
    pub refusal: Option<String>,
    /// What sort of place it is, where places differ in more than their number; a name for all of them: `compute`.
    pub kind: Option<String>,
}

impl Site {
    /// One of this sort.
    pub fn of_kind(self, kind: impl Into<String>) -> Site {
        Site { kind: Some(kind.into()), ..self }
    }

    /// Is this the place's name, or that of its sort?
    pub fn is_called(&self, name: &str) -> bool {
        self.place == name || self.kind.as_deref() == Some(name)
    }

    /// A site at a file, with the value read there.
    pub fn at(
        source: &dyn Source,
        name: &str,
        place: impl Into<String>,
        cpus: CpuSet,
        path: String,
        valid: Valid,
    ) -> Site {
        let (now, unread) = match text(source, &path) {
            Ok(now) => (Some(now), None),
            Err(error) => (None, Some(error.detail)),
        };
        Site { name: name.into(), place: place.into(), cpus, path, now, unread, valid, refusal: None, kind: None }
    }
}

/// The text of an attribute, without the end of its line.
pub fn text(source: &dyn Source, path: &str) -> Read<String> {
    source.read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string())
}
