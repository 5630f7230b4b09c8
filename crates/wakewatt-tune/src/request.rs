//! A request: one setting as a person states it, `freq.governor@cpus:0-3=performance`.
//!
//! The name is a knob's id, with the rest behind it where a knob has many settings (`idle.state.C6`). The place says
//! where: nothing means everywhere. Several values with `|` between are tried in turn and the first one that a site
//! takes is used (`schedutil|ondemand`), because drivers differ between hosts.

use serde::{Deserialize, Serialize};
use std::fmt;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_words::say;

/// Where a setting is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// At every site the knob has.
    #[default]
    Everywhere,
    /// At the sites that reach one of these CPUs.
    Cpus(CpuSet),
    /// The CPUs of a package.
    Package(u32),
    /// The CPUs of a NUMA node.
    Node(u32),
    /// The CPUs that a cgroup may use.
    Cgroup(String),
    /// The site of this name: `eth0`, `policy4`.
    Named(String),
}

impl Place {
    /// Parses `cpus:0-3`, `package:0`, `node:1`, `cgroup:system.slice/db.service`, `eth0`.
    pub fn parse(text: &str) -> Result<Place, String> {
        let number = |what: &str, n: &str| n.parse::<u32>().map_err(|_| say!("{what}:{n}: not a number"));
        match text.split_once(':') {
            Some(("cpus" | "cpu", list)) => match CpuSet::parse(list) {
                Ok(cpus) if cpus.is_empty() => Err(say!("cpus: names no CPU")),
                Ok(cpus) => Ok(Place::Cpus(cpus)),
                Err(why) => Err(say!("cpus:{list}: {why}")),
            },
            Some(("package", n)) => number("package", n).map(Place::Package),
            Some(("node", n)) => number("node", n).map(Place::Node),
            Some(("cgroup", path)) if path.split('/').any(|part| matches!(part, "." | "..")) => {
                Err(say!("cgroup:{path}: . and .. name no cgroup; say the path below /sys/fs/cgroup"))
            }
            Some(("cgroup", path)) => Ok(Place::Cgroup(path.trim_matches('/').into())),
            _ if text.is_empty() => {
                Err(say!("nothing behind the @: say cpus:0-3, package:0, node:1, cgroup:PATH or a name such as eth0"))
            }
            _ => Ok(Place::Named(text.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Everywhere => f.write_str("everywhere"),
            Place::Cpus(cpus) => write!(f, "cpus:{cpus}"),
            Place::Package(n) => write!(f, "package:{n}"),
            Place::Node(n) => write!(f, "node:{n}"),
            Place::Cgroup(path) => write!(f, "cgroup:{path}"),
            Place::Named(name) => f.write_str(name),
        }
    }
}

/// One setting, asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// The setting's full name.
    pub name: String,
    /// Where it is to be set: everywhere, or on some CPUs or devices.
    #[serde(default)]
    pub place: Place,
    /// The values to try, in turn.
    pub to: Vec<String>,
    /// Why, for the plan.
    #[serde(default)]
    pub reason: String,
    /// Where this host does not have it, or does not take it, go on without.
    #[serde(default)]
    pub is_optional: bool,
}

impl Request {
    /// One value of one setting.
    pub fn new(name: impl Into<String>, place: Place, to: &str) -> Request {
        Request { name: name.into(), place, to: vec![to.into()], reason: String::new(), is_optional: false }
    }
    /// Parses `NAME[@PLACE]=VALUE[|VALUE…]`.
    pub fn parse(text: &str) -> Result<Request, String> {
        let (left, right) = text
            .split_once('=')
            .ok_or_else(|| say!("{text:?}: write NAME=VALUE, such as freq.governor=performance"))?;
        let (name, place) = match left.split_once('@') {
            Some((name, place)) => (name, Place::parse(place)?),
            None => (left, Place::Everywhere),
        };
        let to: Vec<String> = right.split('|').map(|v| v.trim().to_string()).collect();
        if name.trim().is_empty() || to.iter().any(String::is_empty) {
            return Err(say!("{text:?}: a name and a value are needed, such as freq.governor=performance"));
        }
        Ok(Request { name: name.trim().into(), place, to, reason: String::new(), is_optional: false })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Everywhere => write!(f, "{}={}", self.name, self.to.join("|")),
            place => write!(f, "{}@{place}={}", self.name, self.to.join("|")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types_comes_back_the_same() {
        for text in [
            "freq.governor=performance",
            "freq.governor@cpus:0-3=schedutil|ondemand",
            "idle.state.C6@package:1=off",
            "net.coalescing.rx-usecs@eth0=0",
            "qos.cpu@cgroup:system.slice/db.service=20us",
        ] {
            assert_eq!(Request::parse(text).unwrap().to_string(), text);
        }
        for bad in ["freq.governor", "=x", "a=", "a@=1", "a@cpus:=1", "a@node:x=1", "a=b||c"] {
            assert!(Request::parse(bad).is_err(), "{bad}");
        }
    }
}
