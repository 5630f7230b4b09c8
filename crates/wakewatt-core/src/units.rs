//! Physical units and the words users type for them.
//!
//! Inside wakewatt every duration is nanoseconds, every frequency kilohertz, every energy microjoules; sysfs
//! microseconds are converted once, where they are parsed. This file prints those numbers for people (290us, 2.4GHz,
//! 12.5W) and parses what people type, above all a latency budget, whose extremes are words because the kernel gives
//! the number 0 two opposite meanings (`/dev/cpu_dma_latency`: poll; `pm_qos_resume_latency_us`: no limit).

use serde::{Deserialize, Serialize};
use std::fmt;
use wakewatt_words::{say, word};

/// One logical CPU, numbered as the kernel numbers it.
pub type Cpu = u32;

/// Nanoseconds, printed with three significant digits: `850ns`, `2us`, `31.4us`, `1.2ms`, `3s`.
pub fn show_ns(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{}{unit}", three_digits(value))
}

/// Nanoseconds without rounding, in the largest unit that is whole: `1047us`, `1ms`, `1500ns`. For what is set or compared,
/// where a third digit decides: a state of 1048us is let in by a limit that was rounded to 1.05ms.
pub fn exact_ns(ns: u64) -> String {
    match ns {
        0 => "0ns".into(),
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

/// Kilohertz, printed as MHz or GHz.
pub fn show_khz(khz: u64) -> String {
    // acpi-cpufreq's turbo step lies 1 MHz above the nominal one; rounded, both would be one frequency.
    if khz >= 1_000_000 && khz % 100_000 == 1000 {
        format!("{:.3}GHz", khz as f64 / 1e6)
    } else if khz >= 1_000_000 {
        format!("{}GHz", three_digits(khz as f64 / 1e6))
    } else if khz >= 1000 {
        format!("{}MHz", three_digits(khz as f64 / 1e3))
    } else {
        format!("{khz}kHz")
    }
}

/// Microwatts, printed as mW or W.
pub fn show_uw(uw: u64) -> String {
    if uw >= 1_000_000 {
        format!("{}W", three_digits(uw as f64 / 1e6))
    } else {
        format!("{}mW", three_digits(uw as f64 / 1e3))
    }
}

/// Bytes, printed in powers of 1024.
pub fn show_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{}{unit}", three_digits(value));
        }
        value /= 1024.0;
    }
    format!("{}TiB", three_digits(value))
}

/// A size with its unit: `64`, `4k`, `256MiB`, `1.5G`; all in powers of 1024, as [`show_bytes`] prints them.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be in 0 to 2^60
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let value: f64 = number.parse().map_err(|_| say!("\"{text}\" is not a size such as 64, 4k, 256M or 1G"))?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(say!("\"{unit}\" is not a unit of size: use k, M, G or T (powers of 1024)")),
    };
    let bytes = value * (1u64 << shift) as f64;
    if bytes < (1u64 << 60) as f64 { Ok(bytes as u64) } else { Err(say!("{text} is more than any machine has")) }
}

/// A probability, never rounded to nothing.
pub fn p_value(p: f64) -> String {
    if p < 0.0001 {
        "< 0.0001".into()
    } else if p < 0.01 {
        format!("{p:.4}")
    } else {
        format!("{p:.2}")
    }
}

/// Three significant digits without a tail of zeros; integers above 999 stay whole.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let text = if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Nanoseconds with two significant digits, for sentences, where a third would pretend: `850 ns`, `6.5 us`, `34 us`.
pub fn rough_ns(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        m if m < 995.0 => (value, "ns"),
        m if m < 995_000.0 => (value / 1e3, "us"),
        m if m < 995_000_000.0 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    if scaled.abs() < 9.95 { format!("{scaled:.1} {unit}") } else { format!("{scaled:.0} {unit}") }
}

/// A ratio for sentences: two decimals near 1, where they matter, else one; whole above 20.
pub fn times(value: f64) -> String {
    if !value.is_finite() {
        word!("unbounded").into()
    } else if value < 2.0 {
        format!("{value:.2}")
    } else if value < 20.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// An upper limit on wake-up latency, as a user or the kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LatencyLimit {
    /// Nothing deeper than polling: an idle CPU spins.
    Poll,
    /// Idle states whose exit latency is at most this many nanoseconds.
    AtMostNs(u64),
    /// No limit: the governor may choose any state.
    None,
}

impl LatencyLimit {
    /// Parses `none`, `poll`, `50us`, `1ms`, `800ns`. A bare number is refused: its unit would be a guess.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" => return Ok(LatencyLimit::None),
            "poll" => return Ok(LatencyLimit::Poll),
            _ => {}
        }
        let ns = parse_ns(text).map_err(|why| say!("{why}; or say none, or poll"))?;
        if ns == 0 {
            Err(word!("a limit of 0 means two opposite things to the kernel: say poll, or none").into())
        } else {
            Ok(LatencyLimit::AtMostNs(ns))
        }
    }

    /// The number for `/dev/cpu_dma_latency`, in whole microseconds (rounded down: the limit must not grow).
    pub fn as_global_us(self) -> i32 {
        match self {
            LatencyLimit::Poll => 0,
            LatencyLimit::AtMostNs(ns) => i32::try_from(ns / 1000).unwrap_or(i32::MAX),
            LatencyLimit::None => 2_000_000_000,
        }
    }

    /// The text for `pm_qos_resume_latency_us`, whose zero is inverted: `0` is no limit and `n/a` is zero latency.
    pub fn as_cpu_text(self) -> String {
        match self {
            LatencyLimit::Poll => "n/a".into(),
            LatencyLimit::AtMostNs(ns) if ns < 1000 => "n/a".into(),
            LatencyLimit::AtMostNs(ns) => (ns / 1000).min(i32::MAX as u64).to_string(),
            LatencyLimit::None => "0".into(),
        }
    }

    /// May a state with this exit latency be entered under the limit? (kernel: exit latency at most the limit)
    pub fn allows(self, exit_latency_ns: u64) -> bool {
        match self {
            LatencyLimit::Poll => exit_latency_ns == 0,
            LatencyLimit::AtMostNs(limit) => exit_latency_ns <= limit,
            LatencyLimit::None => true,
        }
    }
}

impl fmt::Display for LatencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencyLimit::Poll => f.write_str("poll"),
            // Exact: this text is also what requests, journals and profiles keep.
            LatencyLimit::AtMostNs(ns) => f.write_str(&exact_ns(*ns)),
            LatencyLimit::None => f.write_str("none"),
        }
    }
}

/// A duration with its unit: `50us`, `1.5ms`, `2s`, `3min`, `800ns`. Decimal digits are taken as they stand, without
/// floating point; what is below a nanosecond is cut off, because a limit must not grow.
pub fn parse_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') {
        return Err(say!("\"{text}\" is not a duration such as 50us, 1ms or 2s"));
    }
    let scale: u128 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" | "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(say!("\"{text}\" has no unit: write {text}us, {text}ms or {text}s")),
        other => return Err(say!("\"{other}\" is not a unit of time: use ns, us, ms, s, min or h")),
    };
    let too_long = || say!("\"{text}\" is too long");
    // Fifteen digits behind the point are less than a nanosecond of an hour.
    let part = &part[..part.len().min(15)];
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let (whole, behind) = digits(whole).zip(digits(part)).ok_or_else(too_long)?;
    let behind = behind * scale / part.bytes().fold(1, |all, _| all * 10);
    let ns = whole.checked_mul(scale).and_then(|ns| ns.checked_add(behind)).ok_or_else(too_long)?;
    u64::try_from(ns).ok().filter(|ns| *ns < 9_200_000_000_000_000_000).ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        let all = ["64", "4k", "1.5MiB", "2G", "1 TB"].map(|text| parse_bytes(text).unwrap());
        assert_eq!(all, [64, 4096, 3 << 19, 2 << 30, 1 << 40]);
        assert!(parse_bytes("4x").unwrap_err().contains("powers of 1024"));
        assert!(parse_bytes("lots").is_err() && parse_bytes("9999999T").is_err() && parse_bytes("").is_err());
    }

    #[test]
    fn prints_three_digits() {
        let shown: Vec<String> = [0, 850, 2_000, 31_400, 290_000, 1_234_567, 3_000_000_000].map(show_ns).to_vec();
        assert_eq!(shown, ["0ns", "850ns", "2us", "31.4us", "290us", "1.23ms", "3s"]);
        assert_eq!(show_khz(2_400_000), "2.4GHz");
        assert_eq!(show_khz(800_000), "800MHz");
        assert_eq!((show_khz(2_000_000), show_khz(2_001_000)), ("2GHz".into(), "2.001GHz".into()));
        assert_eq!(show_bytes(512 << 20), "512MiB");
    }

    #[test]
    fn a_budget_needs_a_unit_or_a_word() {
        assert_eq!(LatencyLimit::parse("50us"), Ok(LatencyLimit::AtMostNs(50_000)));
        assert_eq!(LatencyLimit::parse("poll"), Ok(LatencyLimit::Poll));
        assert_eq!(LatencyLimit::parse("none"), Ok(LatencyLimit::None));
        assert!(LatencyLimit::parse("50").unwrap_err().contains("no unit"));
        assert!(LatencyLimit::parse("0us").unwrap_err().contains("opposite"));
        assert!(LatencyLimit::parse("5 lightyears").is_err());
    }

    #[test]
    fn a_limit_is_exact_in_and_out() {
        let ns = |text| parse_ns(text).ok();
        assert_eq!(
            (ns("1.048ms"), ns("1047.9999999us"), ns("0.0509ms")),
            (Some(1_048_000), Some(1_047_999), Some(50_900))
        );
        assert_eq!(
            (ns(".5us"), ns("2."), ns("1.2.3us"), ns("."), ns("0.00000000000000000001h")),
            (Some(500), None, None, None, Some(0))
        );
        assert!(ns("99999999999999999999999999999999999999999h").is_none() && ns("9200000000s").is_none());
        assert_eq!(
            [0, 800, 1_500, 1_047_000, 2_000_000, 3_000_000_000].map(exact_ns),
            ["0ns", "800ns", "1500ns", "1047us", "2ms", "3s"]
        );
        for ns in (0..5_000_000).step_by(617).chain([1, 1_999_999_999_000]).filter(|ns| *ns > 0) {
            let limit = LatencyLimit::AtMostNs(ns);
            assert_eq!(LatencyLimit::parse(&limit.to_string()), Ok(limit));
        }
    }

    #[test]
    fn the_two_zeros_are_inverse() {
        assert_eq!((LatencyLimit::Poll.as_global_us(), LatencyLimit::Poll.as_cpu_text().as_str()), (0, "n/a"));
        assert_eq!(
            (LatencyLimit::None.as_global_us(), LatencyLimit::None.as_cpu_text().as_str()),
            (2_000_000_000, "0")
        );
        assert_eq!(LatencyLimit::AtMostNs(300).as_cpu_text(), "n/a", "a limit under 1us must not become 'no limit'");
    }
}
