//! What a raw kernel text ought to become in JSON: one small function per shape of file, written from the kernel's
//! documentation and not from wakewatt's parsers. None means that the text is not as documented, so a gap is right.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// From the raw text (without newline) to the expected value, normalised.
pub(crate) type Shape = fn(&str) -> Option<Value>;

/// Kernel list notation as numbers.
pub(crate) fn cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut set = BTreeSet::new();
    for part in text.trim().split([',', ' ']).filter(|p| !p.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        if low > high || high > 65_535 {
            return None;
        }
        set.extend(low..=high);
    }
    Some(set)
}

/// Sets are compared as numbers: JSON has them in kernel notation.
pub(crate) fn normalise(shape: Shape, value: &Value) -> Value {
    let is_set = std::ptr::fn_addr_eq(shape, cpus as Shape);
    value.as_str().filter(|_| is_set).and_then(cpu_list).map_or_else(|| value.clone(), |set| json!(set))
}

/// A set of CPUs or nodes.
pub(crate) fn cpus(text: &str) -> Option<Value> {
    cpu_list(text).map(|set| json!(set))
}

fn digits(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A count.
pub(crate) fn number(text: &str) -> Option<Value> {
    digits(text).map(Value::from)
}

/// An id, where -1 is "firmware did not say".
pub(crate) fn id(text: &str) -> Option<Value> {
    digits(text).filter(|n| u32::try_from(*n).is_ok()).map(Value::from)
}

/// Microseconds; nanoseconds in JSON.
pub(crate) fn us(text: &str) -> Option<Value> {
    digits(text)?.checked_mul(1_000).map(Value::from)
}

/// Milliseconds; nanoseconds in JSON.
pub(crate) fn ms(text: &str) -> Option<Value> {
    digits(text)?.checked_mul(1_000_000).map(Value::from)
}

/// Megahertz; kHz in JSON.
pub(crate) fn mhz(text: &str) -> Option<Value> {
    number(text)?.as_u64()?.checked_mul(1_000).map(Value::from)
}

/// One word or line.
pub(crate) fn line(text: &str) -> Option<Value> {
    Some(text.trim()).filter(|t| !t.is_empty()).map(Value::from)
}

/// Words between blanks.
pub(crate) fn words(text: &str) -> Option<Value> {
    Some(json!(text.split_whitespace().collect::<Vec<_>>()))
}

/// Numbers between blanks.
pub(crate) fn numbers(text: &str) -> Option<Value> {
    Some(json!(text.split_whitespace().map(digits).collect::<Option<Vec<u64>>>()?))
}

/// A switch.
pub(crate) fn switch(text: &str) -> Option<Value> {
    match text.trim() {
        "0" | "N" | "n" | "off" | "disabled" => Some(false.into()),
        "1" | "Y" | "y" | "on" | "enabled" => Some(true.into()),
        _ => None,
    }
}

/// Any bit set (an idle state's `disable` may be 0 to 3).
pub(crate) fn any_bit(text: &str) -> Option<Value> {
    digits(text).map(|n| Value::from(n != 0))
}

/// A per-CPU latency limit, with its inverted zero.
pub(crate) fn resume_limit(text: &str) -> Option<Value> {
    match text.trim() {
        "0" => Some("none".into()),
        "n/a" => Some("poll".into()),
        other => Some(json!({ "at_most_ns": us(other)? })),
    }
}

/// A frequency or the kernel's word for why not.
pub(crate) fn speed(text: &str) -> Option<Value> {
    match text.trim() {
        "<unsupported>" => Some("unsupported".into()),
        "<unknown>" => Some("unknown".into()),
        other => Some(json!({ "khz": number(other)? })),
    }
}

/// Energy preference: a word, or 0 to 255.
pub(crate) fn preference(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(json!({ "raw": text.parse::<u8>().ok()? }));
    }
    Some(json!({ "name": line(text)? }))
}

/// `time_in_state`: kHz and hundredths of a second.
pub(crate) fn time_in_state(text: &str) -> Option<Value> {
    let rows = text.lines().filter(|l| !l.trim().is_empty()).map(|row| {
        let (khz, ticks) = row.trim().split_once(' ')?;
        Some(json!({ "khz": number(khz)?, "time_ns": number(ticks)?.as_u64()?.checked_mul(10_000_000)? }))
    });
    Some(Value::Array(rows.collect::<Option<Vec<Value>>>()?))
}

/// A size with its letter, in bytes.
pub(crate) fn size(text: &str) -> Option<Value> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match &text[end..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1u64 << 30,
        _ => return None,
    };
    digits(&text[..end])?.checked_mul(factor).map(Value::from)
}

/// `numastat` of a node; a counter that is not there is null.
pub(crate) fn numastat(text: &str) -> Option<Value> {
    let names = ["hit", "miss", "foreign", "interleave_hit", "local", "other"];
    let files = ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
    let value = |file: &str| {
        let line = text.lines().find_map(|l| l.trim().strip_prefix(file)?.strip_prefix(' '));
        line.map_or(Some(Value::Null), number)
    };
    let pairs = names.iter().zip(files).map(|(name, file)| Some((format!("n_{name}"), value(file)?)));
    Some(Value::Object(pairs.collect::<Option<serde_json::Map<String, Value>>>()?))
}

/// `MemTotal` of a node's meminfo, in bytes.
pub(crate) fn node_total(text: &str) -> Option<Value> {
    let row = text.lines().find(|l| l.contains("MemTotal:"))?;
    let kib: u64 = row.split_whitespace().rev().find_map(|w| w.parse().ok())?;
    Some(json!(kib.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!((size("2048K"), size("K")), (Some(json!(2_097_152)), None));
        assert_eq!(
            numastat("numa_hit 5\n").map(|v| (v["n_hit"].clone(), v["n_miss"].clone())),
            Some((json!(5), json!(null)))
        );
        assert_eq!(cpus("0-2,7"), Some(json!([0, 1, 2, 7])));
        assert_eq!((cpus("3-1"), number("-1"), number("")), (None, None, None));
        assert_eq!(resume_limit("n/a"), Some("poll".into()));
        assert_eq!(speed("<unknown>"), Some("unknown".into()));
        assert_eq!(time_in_state("800000 5\n"), Some(json!([{ "khz": 800_000, "time_ns": 50_000_000 }])));
        assert_eq!(normalise(cpus, &json!("0-1")), json!([0, 1]));
        assert_eq!(normalise(line, &json!("0-1")), json!("0-1"));
        assert_eq!(node_total("Node 0 MemTotal:  2 kB"), Some(json!(2048)));
    }
}
