//! Facts: what the host says about itself, one file per kernel subsystem.
//!
//! A domain is a type that knows its paths, its parsers and how it is shown. To add one: write the file, add one line
//! to `domains!` below. `Snapshot` holds all of them; a domain that was not asked for keeps its default, whose facts
//! are gaps of kind "not read". Reading is one pass over a [`Source`]; nothing here opens anything itself.

use crate::sheet::Sheet;
use crate::source::Source;
use serde::Serialize;

pub mod cache;
pub mod cpuinfo;
pub mod cpus;
pub mod freq;
pub mod idle;
pub mod msr;
pub mod pm_qos;
pub mod power;
pub mod sensors;
pub mod thermal;
pub mod topology;
pub mod uncore;

pub use cpus::Cpus;

/// One area of facts.
pub trait Domain: Default + Serialize + schemars::JsonSchema {
    /// Heading.
    const TITLE: &'static str;
    /// One line for `inspect --help`.
    const HELP: &'static str;
    /// Reads it, given which CPUs exist.
    fn read(src: &dyn Source, cpus: &Cpus) -> Self;
    /// Its rows.
    fn show(&self, sheet: &mut Sheet);
}

/// A topic of `inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word the user types, and the key in JSON.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// One line.
    pub help: &'static str,
}

macro_rules! domains {
    ($($id:ident : $module:ident :: $type:ident,)*) => {
        /// Every topic, in reading order.
        pub const TOPICS: &[Topic] = &[$(Topic { id: stringify!($id), title: <$module::$type as Domain>::TITLE, help: <$module::$type as Domain>::HELP }),*];

        /// Facts of one host at one time.
        #[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
        pub struct Snapshot {
            /// Where they were read: "this machine", a file.
            pub origin: String,
            /// The topics that were read.
            pub topics: Vec<String>,
            /// Which CPUs there are; always read.
            pub cpus: Cpus,
            $(#[doc = concat!("See [`", stringify!($module), "`].")]
            pub $id: $module::$type,)*
        }

        impl Snapshot {
            /// Reads the topics that `wanted` accepts.
            pub fn read(src: &dyn Source, wanted: impl Fn(&str) -> bool) -> Snapshot {
                let mut snapshot = Snapshot { origin: src.origin(), cpus: Cpus::read(src), ..Snapshot::default() };
                $(if wanted(stringify!($id)) {
                    snapshot.topics.push(stringify!($id).into());
                    snapshot.$id = <$module::$type as Domain>::read(src, &snapshot.cpus);
                })*
                snapshot
            }

            /// The sheets of the topics that were read.
            pub fn sheets(&self) -> Vec<(Topic, Sheet)> {
                let mut all = Vec::new();
                $(if self.topics.iter().any(|t| t == stringify!($id)) {
                    let mut sheet = Sheet::default();
                    self.$id.show(&mut sheet);
                    if let Some(topic) = TOPICS.iter().find(|t| t.id == stringify!($id)) {
                        all.push((*topic, sheet));
                    }
                })*
                all
            }
        }
    };
}

// The list: topic word, file, type. One line here is all that a new domain adds outside its own file.
domains! {
    topology: topology::Topology,
    cache: cache::Caches,
    idle: idle::Idle,
    freq: freq::Freq,
    uncore: uncore::Uncore,
    power: power::Power,
    sensors: sensors::Sensors,
    thermal: thermal::Thermal,
    qos: pm_qos::PmQos,
    msr: msr::Msr,
}
