//! A profile's file as its schema has it.
//!
//! Reading goes by hand (profile.rs), so that a wrong key gets a helpful answer; these types are the published schema and
//! nothing else, and no binary has them. A test holds the two against each other: every profile that is shipped is valid here.

#![allow(dead_code)]

/// The file, whole.
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileFile {
    /// Version of the format: always 1.
    format: u32,
    /// Name of the profile.
    name: Option<String>,
    /// What it is for.
    about: Option<String>,
    /// `50us`, `none`, or `poll`.
    max_latency: Option<String>,
    /// Where a host does not have a setting, or does not take the value, go on without.
    optional: Option<bool>,
    /// Where it acts; everywhere if not given.
    scope: Option<ScopeFile>,
    /// Setting name to value.
    set: Option<std::collections::BTreeMap<String, SettingFile>>,
    /// What acts at the next boot.
    boot: Option<BootFile>,
}

/// One of these.
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ScopeFile {
    /// A CPU list: `0-7,16`.
    cpus: Option<String>,
    /// The CPUs of this package (socket).
    package: Option<u32>,
    /// The CPUs of this memory node.
    node: Option<u32>,
    /// A cgroup below /sys/fs/cgroup.
    cgroup: Option<String>,
}

/// A value, or a table of it with where, why and whether it may be left out.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
enum SettingFile {
    Text(String),
    Number(u64),
    Switch(bool),
    /// One setting in several places.
    Several(Vec<SettingFile>),
    Full {
        /// The value; `a|b` tries in turn.
        to: String,
        /// `cpus:0-3`, `package:0`, `node:1`, `cgroup:PATH`, or a name such as `eth0`.
        at: Option<String>,
        /// Why it is set; shown in the plan.
        reason: Option<String>,
        /// Go on without where it cannot be set.
        optional: Option<bool>,
    },
}

/// What acts at the next boot.
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BootFile {
    /// Kernel parameters to be added: `processor.max_cstate=1`.
    arguments: Vec<String>,
}
