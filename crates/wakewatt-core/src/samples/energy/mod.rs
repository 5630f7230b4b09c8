//! Watts and joules: what the meters of a machine said in a window, and how far each may be believed.
//!
//! Two kinds of meter exist. An energy counter ([`counter`]) keeps what happened between readings, so two readings are
//! enough and a late one loses nothing; it wraps. A power meter ([`series`]) says watts at a moment: what happened between
//! two readings is interpolated (trapezoid on the times of the readings, never the mean of samples, which a late reading
//! would bend), and a long silence is a gap that is not integrated at all.
//!
//! Meters lie: counters that never move (a guest's `energy-psys`), sensors stuck at one value, zeros, negative numbers, a
//! BMC that repeats its last minute. A number here therefore carries its window, how much of it was covered, how many
//! readings were refused and why, and doubts in words. What meters cover differs ([`Covers`]): wall and package are
//! never added, and a part (`core` inside `package-0`) is never added to its whole. Joules of different meters are not
//! comparable.
//!
//! Source: docs/methods/power.md, Documentation/power/powercap/powercap.rst,
//! Documentation/hwmon/sysfs-interface.rst. Not here: the accuracy of a meter itself, which only its maker knows;
//! `uncertainty_uw` is about how the load varied while it was read.

mod averaging;
pub mod counter;
mod gap;
mod interval;
pub mod series;

pub use averaging::Averaging;
pub use gap::MeterGap;
pub use interval::NoInterval;

use super::{Label, Window};
use serde::{Deserialize, Serialize};

/// The meter of whatever a simulation says: nothing of such a run was measured.
pub const SIMULATOR: &str = "model";

/// More from one channel is a broken number, not a machine (an 8-GPU server takes 12 kW).
pub const MOST_UW: u64 = 20_000_000_000;

/// What a number of watts is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// What the power supplies take from the wall.
    Wall,
    /// The machine behind its power supplies, or as its BMC counts it.
    System,
    /// RAPL's platform domain: what the board's maker wired to it.
    Platform,
    /// Processor packages (RAPL): cores, caches and what else is on the die, without memory modules.
    Package,
    /// Memory modules, as RAPL counts them.
    Dram,
    /// Graphics cards and accelerators.
    Gpu,
    /// Something else: a rail, a card, what a user's own meter is plugged into.
    #[default]
    Other,
}

impl Covers {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Covers::Wall => "wall",
            Covers::System => "system",
            Covers::Platform => "platform",
            Covers::Package => "package",
            Covers::Dram => "dram",
            Covers::Gpu => "gpu",
            Covers::Other => "other",
        }
    }
}

/// How a channel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Microwatts at the moment of reading.
    Power,
    /// Microjoules since some beginning.
    Energy {
        /// Where the counter starts again at zero; none if it never does.
        range_uj: Option<u64>,
    },
}

/// One number of a meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Channel {
    /// Stable while the machine runs: `intel-rapl:0:1`, `power1 of hwmon3`.
    pub id: String,
    /// For people: package-0, dram of package-0, PSU1 input.
    pub name: String,
    /// What of the machine the channel covers.
    pub covers: Covers,
    /// Contained in another channel of the same meter: shown, never added.
    pub is_part: bool,
    /// Does it say watts at a moment, or count energy?
    pub kind: Kind,
}

/// What one channel said in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChannelSample {
    /// Which channel of the meter, and what it covers.
    pub channel: Channel,
    /// What the numbers are worth: measured, present but dead, or unavailable.
    pub label: Label,
    /// Why there is no number; none when there is one.
    pub why: Option<String>,
    /// From the first to the last reading that counts.
    pub window: Window,
    /// How much of the window is behind the number.
    pub covered_ns: u64,
    /// How many readings the numbers rest on.
    pub n: u64,
    /// Silences: readings more than 2.5 intervals apart. A power meter's are not integrated.
    pub n_gaps: u64,
    /// When it was silent and its power is not known, the longest of them; never of a counter that went on counting.
    #[serde(default)]
    pub silences: Vec<Window>,
    /// How many readings failed or were refused.
    pub n_failed: u64,
    /// Readings refused: negative, zero among others, or absurd.
    pub n_rejected: u64,
    /// Times an energy counter went back without wrapping.
    pub n_resets: u64,
    /// Mean power over what is covered.
    pub mean_uw: Option<u64>,
    /// Half width of the 95 % interval of the mean, from how it varied over time. The meter's own error is not in it.
    pub uncertainty_uw: Option<u64>,
    /// Lowest reading, or lowest mean between two readings of a counter.
    pub min_uw: Option<u64>,
    /// The highest reading, in microwatts; none where nothing was read.
    pub max_uw: Option<u64>,
    /// Energy over what is covered.
    pub energy_uj: Option<u64>,
    /// What makes the number doubtful.
    pub doubts: Vec<String>,
}

/// The sum of a meter's channels that may be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Total {
    /// What it covers: "wall", "package + dram".
    pub covers: String,
    /// The channels that were added.
    pub of: Vec<String>,
    /// Mean power over the window, in microwatts.
    pub mean_uw: u64,
    /// Half width of the 95 % interval of the mean, from how it varied; the meter's own error is not in it.
    #[serde(default)]
    pub uncertainty_uw: Option<u64>,
    /// Why there is no interval; none where there is one.
    #[serde(default)]
    pub no_interval: Option<NoInterval>,
    /// Energy, where every channel has one.
    pub energy_uj: Option<u64>,
    /// Channels that belong to it and gave nothing: then it is too low.
    pub without: Vec<String>,
}

/// One meter in a window, or why it is not one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeterSample {
    /// powercap, perf, hwmon, ipmi, redfish, nvml, prometheus, command.
    pub meter: String,
    /// measured if any channel is, else why not.
    pub label: Label,
    /// Why there is no number; none when there is one.
    pub why: Option<MeterGap>,
    /// What a reading disturbs, such as an interrupt on a CPU; none where it disturbs nothing.
    pub reach: Option<String>,
    /// What one reading of all its channels takes: the median.
    pub read_cost_ns: Option<u64>,
    /// Over what time a reading of it averages.
    #[serde(default)]
    pub averaging: Averaging,
    /// What each of the meter's channels came to.
    pub channels: Vec<ChannelSample>,
    /// The sum, where one makes sense.
    pub total: Option<Total>,
}

/// What a witness senses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// A temperature, in milli-degrees Celsius.
    Temperature,
    /// A fan, in revolutions per minute.
    Fan,
}

/// A temperature or fan beside the watts: no measure of power, but it tells when watts mislead (case K1: the slow
/// machine was the quiet one).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Witness {
    /// Chip and label of the sensor, as hwmon names them.
    pub name: String,
    /// What it is; gives the unit of the numbers below.
    pub sense: Sense,
    /// The reading at the start of the window, in the unit of the sense.
    pub first: i64,
    /// The reading at the end of the window.
    pub last: i64,
    /// The lowest reading in the window.
    pub min: i64,
    /// The highest reading in the window.
    pub max: i64,
    /// How many readings there were.
    pub n: u64,
}

/// Everything about energy in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergySample {
    /// From start to stop of the meters.
    pub window: Window,
    /// Planned time between readings.
    pub interval_ns: u64,
    /// The meter to quote: the first that works, those named by the user before those found.
    pub chosen: Option<String>,
    /// Every kind of meter, in the order in which they are chosen.
    pub meters: Vec<MeterSample>,
    /// Fans and temperatures read beside the watts.
    pub witnesses: Vec<Witness>,
}

impl EnergySample {
    /// The meter to quote.
    pub fn chosen(&self) -> Option<&MeterSample> {
        self.meters.iter().find(|m| Some(&m.meter) == self.chosen.as_ref())
    }

    /// Meters that are there, or were named, and are not quoted, each with what stood in the way; nothing did where it works and has no total
    /// of the machine, as a meter of cards. What nobody named is not worth a word.
    pub fn in_vain(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let others = self.meters.iter().filter(|m| Some(&m.meter) != self.chosen.as_ref());
        others.filter_map(|m| match &m.why {
            None => Some((m.meter.as_str(), None)),
            Some(MeterGap::NotAskedFor(_)) => None,
            Some(MeterGap::Said(why)) => Some((m.meter.as_str(), Some(why.as_str()))),
        })
    }
}

impl MeterSample {
    /// A meter that cannot be read.
    pub fn unavailable(meter: &str, why: impl Into<MeterGap>) -> MeterSample {
        MeterSample {
            meter: meter.into(),
            label: Label::Unavailable,
            why: Some(why.into()),
            reach: None,
            read_cost_ns: None,
            averaging: Averaging::Unknown,
            channels: Vec::new(),
            total: None,
        }
    }

    /// From its channels.
    pub fn of(meter: &str, reach: &str, read_cost_ns: Option<u64>, channels: Vec<ChannelSample>) -> MeterSample {
        let has = |label: Label| channels.iter().find(|c| c.label == label);
        let (label, why) = match (has(Label::Measured), has(Label::PresentButDead), channels.first()) {
            (Some(_), _, _) => (Label::Measured, None),
            (_, Some(dead), _) => (Label::PresentButDead, dead.why.clone().map(MeterGap::Said)),
            (_, _, Some(first)) => (Label::Unavailable, first.why.clone().map(MeterGap::Said)),
            _ => (Label::Unavailable, Some("it has no channel".into())),
        };
        let total = total(&channels);
        let is_counter = !channels.is_empty() && channels.iter().all(|c| matches!(c.channel.kind, Kind::Energy { .. }));
        let averaging = if is_counter { Averaging::Counter } else { Averaging::Unknown };
        let reach = Some(reach.into());
        MeterSample { meter: meter.into(), label, why, reach, read_cost_ns, averaging, channels, total }
    }

    /// With what the meter says of itself, where its channels do not tell.
    pub fn averaged(self, said: Averaging) -> MeterSample {
        if self.averaging == Averaging::Unknown { MeterSample { averaging: said, ..self } } else { self }
    }
}

/// The sum over the widest coverage that is there. RAPL's packages and memory are beside each other, so they are added;
/// nothing else of different coverage is.
fn total(channels: &[ChannelSample]) -> Option<Total> {
    let whole = || channels.iter().filter(|c| !c.channel.is_part);
    let has = |covers: &[Covers]| whole().any(|c| covers.contains(&c.channel.covers) && c.label == Label::Measured);
    let groups: [&[Covers]; 5] =
        [&[Covers::Wall], &[Covers::System], &[Covers::Package, Covers::Dram], &[Covers::Platform], &[Covers::Gpu]];
    let group = groups.into_iter().find(|g| has(g))?;
    let (of, without): (Vec<&ChannelSample>, Vec<&ChannelSample>) =
        whole().filter(|c| group.contains(&c.channel.covers)).partition(|c| c.mean_uw.is_some());
    let words: Vec<&str> =
        group.iter().filter(|g| of.iter().any(|c| c.channel.covers == **g)).map(|g| g.word()).collect();
    let names = |all: &[&ChannelSample]| all.iter().map(|c| c.channel.name.clone()).collect();
    let (uncertainty_uw, no_interval) = match interval::of(&of) {
        Ok(uw) => (Some(uw), None),
        Err(why) => (None, Some(why)),
    };
    Some(Total {
        uncertainty_uw,
        no_interval,
        covers: words.join(" + "),
        mean_uw: of.iter().filter_map(|c| c.mean_uw).sum(),
        energy_uj: of.iter().map(|c| c.energy_uj).sum(),
        without: names(&without),
        of: names(&of),
    })
}

#[cfg(test)]
mod tests {
    use super::series::Series;
    use super::*;

    fn channel(name: &str, covers: Covers, is_part: bool, watts: u64) -> ChannelSample {
        let kind = Kind::Energy { range_uj: None };
        let mut series =
            Series::new(Channel { id: name.into(), name: name.into(), covers, is_part, kind }, 1_000_000_000);
        for second in 0..4 {
            series.push(second * 1_000_000_000, Ok(i64::try_from(second * watts * 1_000_000).unwrap()));
        }
        series.summary(3_000_000_000)
    }

    #[test]
    fn parts_and_platform_are_not_added() {
        let channels = vec![
            channel("package-0", Covers::Package, false, 100),
            channel("core", Covers::Package, true, 60),
            channel("dram", Covers::Dram, false, 20),
            channel("psys", Covers::Platform, false, 300),
            channel("package-1", Covers::Package, false, 0),
        ];
        let meter = MeterSample::of("powercap", "nothing", None, channels);
        let total = meter.total.unwrap();
        assert_eq!((total.mean_uw, total.covers.as_str()), (120_000_000, "package + dram"));
        assert_eq!((total.of.len(), total.energy_uj), (2, Some(360_000_000)));
        assert_eq!(total.without, ["package-1"], "a dead channel makes the sum too low, and it says so");
        assert_eq!(meter.label, Label::Measured);
    }

    #[test]
    fn a_meter_of_dead_channels_is_dead() {
        let meter = MeterSample::of("perf", "nothing", None, vec![channel("psys", Covers::Platform, false, 0)]);
        assert_eq!((meter.label, meter.total), (Label::PresentButDead, None));
        assert!(meter.why.unwrap().to_string().contains("constant zero"));
        let none = MeterSample::of("hwmon", "nothing", None, Vec::new());
        assert_eq!(none.label, Label::Unavailable);
    }
}
