//! A line of a vector file as it is written. Members that no model needs are ignored.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub(super) enum Line {
    Config(serde_json::Value),
    Select(Select),
    Reflect(Reflect),
    Reject,
    Sample(Sample),
}

#[derive(Debug, Deserialize)]
pub(super) struct IdleConfig {
    pub(super) kernel: String,
    pub(super) hz: u32,
    pub(super) states: Vec<StateLine>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StateLine {
    pub(super) lat_us: i64,
    pub(super) res_us: i64,
    #[serde(default)]
    pub(super) poll: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct SamplingConfig {
    pub(super) kernel: String,
    /// Bounded by what `sample` lines bring: CPUs without a sample count nothing.
    #[serde(deserialize_with = "few")]
    pub(super) cpus: usize,
    pub(super) freq_table_khz: Vec<u32>,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) cur: u32,
    pub(super) sampling_rate_us: u32,
    pub(super) up_threshold: u32,
    #[serde(default)]
    pub(super) down_threshold: u32,
    #[serde(default)]
    pub(super) freq_step: u32,
    pub(super) sampling_down_factor: u32,
    #[serde(default)]
    pub(super) powersave_bias: u32,
}

/// A kernel has at most 8192 CPUs.
fn few<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let n = usize::deserialize(from)?;
    if n <= 8192 { Ok(n) } else { Err(serde::de::Error::custom(format!("{n} CPUs; no kernel has so many"))) }
}

#[derive(Debug, Deserialize)]
pub(super) struct Select {
    pub(super) sleep_ns: i64,
    pub(super) delta_tick_ns: i64,
    pub(super) tick_stopped: bool,
    pub(super) latency_req_ns: i64,
    #[serde(default)]
    pub(super) iowait: u32,
    #[serde(default)]
    pub(super) util: u32,
    #[serde(default)]
    pub(super) disabled: Vec<usize>,
    #[serde(default)]
    pub(super) clock_ns: i64,
    pub(super) want_idx: usize,
    pub(super) want_stop_tick: Option<bool>,
    /// Whether the timers were looked at; none for governors that never do.
    pub(super) sleep_length_queried: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Reflect {
    pub(super) idx: usize,
    pub(super) residency_ns: i64,
    #[serde(default)]
    pub(super) got_tick: bool,
    #[serde(default)]
    pub(super) poll_time_limit: bool,
    #[serde(default)]
    pub(super) clock_ns: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    pub(super) elapsed_us: u32,
    #[serde(default)]
    pub(super) idle_us: Vec<i64>,
    pub(super) want_khz: u32,
    pub(super) want_next_delay_us: u32,
}
