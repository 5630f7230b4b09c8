//! What is told of a fleet: the document of `fleet compare --json`, from which text, page and CSV are made.

use crate::measure::Measure;
use serde::Serialize;

/// A fleet compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fleet {
    /// Where the numbers come from: the address of the API without anything secret, or a folder.
    pub source: String,
    /// Begin of the time, in milliseconds since 1970; 0 where run files were compared.
    pub from_ms: u64,
    /// End of the time, in milliseconds since 1970.
    pub to_ms: u64,
    /// The moment of the change that the user named, in milliseconds since 1970.
    pub changed_at_ms: Option<u64>,
    /// Length of a window, in seconds; none where run files were compared.
    pub window_s: Option<f64>,
    /// Windows in the time.
    pub n_windows: usize,
    /// What a piece of work is: the user's query; none where none was given.
    pub work: Option<String>,
    /// The answer in one sentence.
    pub sentence: String,
    /// Hardware classes, the largest first.
    pub classes: Vec<Class>,
    /// What was compared, and what could not be and why.
    pub measures: Vec<MeasureSummary>,
    /// Odd nodes first, then by class and rank.
    pub nodes: Vec<Node>,
    /// What firmware is set to, and what it is; none where nothing of it is known of anybody.
    pub firmware: Option<Firmware>,
    /// What must be known with the numbers.
    pub remarks: Vec<String>,
    /// What the agent on each node would add to this answer.
    pub agent_would_add: Vec<String>,
}

/// Nodes with equal hardware.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Class {
    /// The hardware in words.
    pub name: String,
    /// Nodes of the class.
    pub n_nodes: usize,
    /// Fewer than eight nodes: they are ranked, and none is called odd.
    pub is_ranked_only: bool,
}

/// One measure over the fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureSummary {
    /// Which measure it is.
    pub measure: Measure,
    /// How its numbers were made: measured, modelled, or unavailable.
    pub label: Label,
    /// Why it is modelled or unavailable.
    pub why: Option<String>,
    /// Nodes of which it is known.
    pub n_nodes: usize,
    /// Change of its logarithm with the logarithm of the load; the fit's, for all classes.
    pub load_slope: Option<f64>,
    /// What equal nodes usually differ by: a standard deviation, 0.04 for 4 %.
    pub usual_spread_ratio: Option<f64>,
}

/// How a number was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// From counters of the nodes.
    Measured,
    /// From a model, which is named.
    Modelled,
    /// It could not be had.
    Unavailable,
}

/// What may be said of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Work costs more there, or takes longer, than on its peers at the same load.
    Dearer,
    /// Less than on its peers.
    Cheaper,
    /// Not shown to differ by 5 % or more.
    Like,
    /// Its class is too small for more than a rank.
    Ranked,
    /// Nothing may be said, for the reason beside it.
    CannotTell,
}

/// A node with what is said of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// As the store or the file calls it.
    pub name: String,
    /// Other names it had or has.
    pub also_named: Vec<String>,
    /// Its class, by place in `classes`.
    pub class: usize,
    /// What may be said of it.
    pub word: Word,
    /// The same as a sentence, with its largest difference.
    pub sentence: String,
    /// Each measure that is known of it.
    pub measures: Vec<NodeMeasure>,
    /// What is set otherwise than on most of its peers; of odd nodes only.
    pub differs: Vec<Differs>,
    /// Its cost before and after the moment that the user named.
    pub change: Option<Change>,
    /// Cost over that of its peers at its load, window by window, none where a window does not count; of odd nodes, and
    /// of all where a change was named.
    pub course: Vec<Option<f64>>,
}

/// A measure of a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeMeasure {
    /// Which measure it is.
    pub measure: Measure,
    /// Median over the windows that count, in the unit of the measure: seconds, cycles, joules or a share.
    pub value: f64,
    /// The same over that of its peers at its load.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the ratio, from this node's own windows.
    pub low_ratio: f64,
    /// Upper end of the interval.
    pub high_ratio: f64,
    /// Are the ends those of all windows, because there are fewer than six?
    pub is_range: bool,
    /// Windows that count.
    pub n_windows: usize,
    /// Place within its class, 1 the dearest.
    pub rank: usize,
    /// Nodes of its class that have a rank.
    pub n_ranked: usize,
    /// What may be said of this measure.
    pub word: Word,
    /// The smallest rate of false discoveries at which it would be called odd; none where it was not asked.
    pub q_value: Option<f64>,
    /// Why nothing may be said.
    pub why: Option<String>,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differs {
    /// What is set, in words.
    pub what: String,
    /// Its value on this node.
    pub here: String,
    /// Its value on most peers.
    pub peers: String,
    /// Peers that are not odd and have this node's value all the same.
    pub n_like_here: usize,
    /// Peers that are not odd and of which the setting is known.
    pub n_peers: usize,
    /// What it is predicted to do; a model from what the machines claim, never measured.
    pub predicted: Option<String>,
}

/// Before and after a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What was compared.
    pub measure: Measure,
    /// Median before, in the unit of the measure.
    pub before: f64,
    /// Median after the moment, in the same unit.
    pub after: f64,
    /// After over before, of what the node lies above its peers: what all nodes did together is out of it.
    pub ratio: f64,
    /// Windows before the moment that count.
    pub n_before: usize,
    /// Windows after the moment that count.
    pub n_after: usize,
}

/// Firmware of the nodes, compared within each class.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firmware {
    /// Nodes of which anything is known.
    pub n_nodes: usize,
    /// Settings and versions that were compared, each class by itself.
    pub n_settings: usize,
    /// Those that are not equal on all nodes of a class.
    pub uneven: Vec<Uneven>,
}

/// Something that not all nodes of a class have alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uneven {
    /// The class, by place in `classes`.
    pub class: usize,
    /// A concept (`bios.c-states`), an attribute (`attr:NAME`), or a version.
    pub what: String,
    /// The attribute behind a concept, as a BMC spells it.
    pub attribute: Option<String>,
    /// The value that more than half have; none where no value has.
    pub usual: Option<String>,
    /// Nodes that have it.
    pub n_usual: usize,
    /// Nodes of the class of which it is known.
    pub n_known: usize,
    /// All nodes of the class.
    pub n_nodes: usize,
    /// Every other value, the most frequent first.
    pub others: Vec<OtherValue>,
    /// The same as a sentence.
    pub sentence: String,
}

/// A value, and who has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherValue {
    /// What it is there.
    pub value: String,
    /// Nodes by name.
    pub nodes: Vec<String>,
}
