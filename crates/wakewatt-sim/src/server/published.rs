//! Figures that somebody measured and published of the machine that a file stands for: what the model is held against.

use serde::{Deserialize, Serialize};

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What it is, in words.
    pub what: String,
    /// Which number of the outcome.
    pub quantity: Quantity,
    /// Under which setting; the first if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// At which level of a graduated load, in percent; or at which value of the first sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// Compared with this setting; else the number itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub than: Option<String>,
    /// How it is compared.
    #[serde(default)]
    pub against: Against,
    /// The figure, in the unit of its quantity.
    pub value: f64,
    /// Was a parameter chosen so that this comes out? Then it proves nothing, and the table says so.
    #[serde(default)]
    pub fitted: bool,
    /// Why the model gives what it gives: what is assumed, what is missing.
    #[serde(default)]
    pub why: String,
}

/// How two settings are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The one less the other.
    #[default]
    Difference,
    /// The one divided by the other.
    Ratio,
}

/// A number of an outcome, with the unit it is published in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Mean time of a request, in microseconds.
    MeanUs,
    /// Median, in microseconds.
    P50Us,
    /// 90th percentile, in microseconds.
    P90Us,
    /// 99th percentile, in microseconds.
    P99Us,
    /// Requests done per second.
    DonePerS,
    /// CPU use of the first machine, in percent.
    UsePercent,
    /// CPU time in the kernel per second of the first machine, in CPUs.
    SystemCpus,
    /// CPU time per request, in microseconds.
    CpuUs,
    /// Load: tasks that run or wait on the first machine.
    Load,
    /// Power at the wall of all machines, in watts.
    WallW,
    /// Power of the first machine behind the supply, in watts.
    DcW,
    /// Requests per joule at the wall.
    PerJoule,
    /// Time in the deepest idle state of the first machine, in percent of all CPUs' time.
    DeepestPercent,
    /// Time its packages slept, in percent.
    PackageAsleepPercent,
    /// CPU use of its first package, in percent.
    FirstPackagePercent,
    /// CPU use of its last package, in percent.
    LastPackagePercent,
}

impl Quantity {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::MeanUs => "mean",
            Quantity::P50Us => "p50",
            Quantity::P90Us => "p90",
            Quantity::P99Us => "p99",
            Quantity::DonePerS => "requests done",
            Quantity::UsePercent => "CPU use",
            Quantity::SystemCpus => "CPUs in the kernel",
            Quantity::CpuUs => "CPU time per request",
            Quantity::Load => "load",
            Quantity::WallW => "watts",
            Quantity::DcW => "watts behind the supply",
            Quantity::PerJoule => "requests per joule",
            Quantity::DeepestPercent => "time in the deepest idle state",
            Quantity::PackageAsleepPercent => "time that packages sleep",
            Quantity::FirstPackagePercent => "CPU use of the first package",
            Quantity::LastPackagePercent => "CPU use of the last package",
        }
    }

    /// Its unit for people.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::MeanUs | Quantity::P50Us | Quantity::P90Us | Quantity::P99Us | Quantity::CpuUs => "us",
            Quantity::DonePerS => "/s",
            Quantity::UsePercent
            | Quantity::DeepestPercent
            | Quantity::PackageAsleepPercent
            | Quantity::FirstPackagePercent
            | Quantity::LastPackagePercent => "%",
            Quantity::SystemCpus => "CPUs",
            Quantity::Load => "",
            Quantity::WallW | Quantity::DcW => "W",
            Quantity::PerJoule => "/J",
        }
    }
}
