//! A node as a carrier knows it. Its name goes into command lines and file names, so it is checked where it enters.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Longest name: that of a DNS subdomain, which Kubernetes takes for its nodes (RFC 1123).
const LONGEST: usize = 253;

/// The name of a machine: letters, digits, `.`, `-`, `_`; not empty, no longer than 253, begun by a letter or digit. IPv6
/// addresses are not names; give them one in `~/.ssh/config`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// A text that is no name of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a node: letters, digits, '.', '-' and '_', begun by a letter or digit, at most {LONGEST}")]
pub struct BadName(String);

impl NodeName {
    /// Checked.
    pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
        let text = text.into();
        let is_good = text.len() <= LONGEST
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
            && !text.contains("..");
        if is_good { Ok(Self(text)) } else { Err(BadName(text)) }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for NodeName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        Self::new(text)
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

/// A machine, with what its inventory says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Labels of the cluster; with ssh and a folder, the groups it is in, each with an empty value.
    pub labels: BTreeMap<String, String>,
    /// Whether the inventory says that it can be reached now; `None` where the inventory does not know (ssh).
    pub is_ready: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_ssh_or_a_path_would_read_as_more_is_no_name() {
        for bad in ["", "-oProxyCommand=x", "a b", "a/b", "..", "a..b", ".a", "a;b", "a\nb", "ä", &"a".repeat(254)] {
            assert!(NodeName::new(bad).is_err(), "{bad:?}");
        }
        for good in ["node1", "10.0.0.7", "k0-07.example.org", "A_b"] {
            assert!(NodeName::new(good).is_ok(), "{good:?}");
        }
    }
}
