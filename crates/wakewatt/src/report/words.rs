//! Numbers as people read them: three digits, a space before the unit, never more precision than the interval carries.

use wakewatt_core::covers::Covers;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::experiment::{Effect, Unit};
use wakewatt_core::units::three_digits;
pub(super) use wakewatt_core::units::{rough_ns as ns_rough, times as ratio};
use wakewatt_words::{Language, language, say, told, word};

/// A value of a metric, in the unit people use for it.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => ns(value),
        _ => spelt(unit, value, three_digits),
    }
}

/// The same with two significant digits.
pub(super) fn value_rough(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => ns_rough(value),
        _ => spelt(unit, value, three_digits),
    }
}

fn spelt(unit: Unit, value: f64, digits: fn(f64) -> String) -> String {
    if value < 0.0 {
        return format!("−{}", spelt(unit, -value, digits));
    }
    match unit {
        Unit::Nanoseconds => ns(value),
        Unit::PerSecond => format!("{}/s", digits(value)),
        Unit::Microwatts => format!("{} W", digits(value / 1e6)),
        Unit::PerJoule => format!("{}/J", digits(value)),
        Unit::Number => digits(value),
    }
}

/// Nanoseconds for prose and tables: `850 ns`, `6.5 us`, `1.2 ms`, `3 s`.
pub(super) fn ns(value: f64) -> String {
    if value < 0.0 {
        return format!("−{}", ns(-value));
    }
    let magnitude = value;
    let (scaled, unit) = match magnitude {
        m if m < 999.5 => return format!("{value:.0} ns"),
        m if m < 999_500.0 => (value / 1e3, "us"),
        m if m < 999_500_000.0 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// A value of a distribution: where samples never came to their end it may be known only from below.
pub(super) fn ns_of(d: &Distribution, value_ns: u64) -> String {
    let least = if d.is_at_least(value_ns) { "> " } else { "" };
    format!("{least}{}", ns(value_ns as f64))
}

/// An interval of durations; the unit is said once where both ends share it.
pub(super) fn ns_interval(low: f64, high: f64) -> String {
    let (low, high) = (ns(low), ns(high));
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// The interval of an effect, where one may stand beside its verdict.
pub(crate) fn interval_beside(effect: &Effect) -> String {
    effect.interval().map_or(word!("no interval").into(), |(low, high)| ratio_interval(low, high))
}

/// An interval of ratios, both ends with the same number of decimals.
pub(super) fn ratio_interval(low: f64, high: f64) -> String {
    if !(low.is_finite() && high.is_finite()) {
        format!("{}–{}", ratio(low), ratio(high))
    } else if low < 2.0 && high < 20.0 {
        format!("{low:.2}–{high:.2}")
    } else if low < 20.0 {
        format!("{low:.1}–{high:.1}")
    } else {
        format!("{low:.0}–{high:.0}")
    }
}

/// What stands over numbers with intervals: how sure they are, and of what.
pub(crate) fn interval_of(covers: Covers) -> String {
    say!("95 % interval, which covers {covers}")
}

/// A share of 1 as a percentage; a small one is not rounded away.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        "0 %".into()
    } else if percent > 0.0 && percent < 0.1 {
        "< 0.1 %".into()
    } else if percent < 10.0 || (percent > 99.0 && percent < 99.95) {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

pub(super) use wakewatt_core::units::p_value;

/// `0.999` is `p99.9`.
pub(super) fn quantile(q: f64) -> String {
    format!("p{}", three_decimals(q * 100.0))
}

fn three_decimals(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// 12345 is `12 345`, with a thin space that does not break.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// What is counted; another language has a word of its own for each, and no plural.
pub(crate) const COUNTED: &[&str] = &[
    "{n} CPUs",
    "{n} arms",
    "{n} blocks",
    "{n} boots",
    "{n} hosts",
    "{n} levels",
    "{n} measurements",
    "{n} nodes",
    "{n} points",
    "{n} rounds",
    "{n} sessions",
    "{n} times",
    "{n} variants",
];

/// `1 round`, `10 rounds`.
pub(super) fn plural(n: usize, word: &str) -> String {
    let english = if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
    match COUNTED
        .iter()
        .find(|counted| counted.strip_prefix("{n} ").and_then(|rest| rest.strip_suffix('s')) == Some(word))
    {
        Some(counted) if language() != Language::English => told(counted).replace("{n}", &n.to_string()),
        _ => english,
    }
}

/// A window, counted from the first one of the report: `t+12.3 s, 2 s long`.
pub(super) fn window(window: &Window, zero_at_ns: u64) -> String {
    let start_s = window.start_at_ns.saturating_sub(zero_at_ns) as f64 / 1e9;
    say!("t+{start_s:.1} s, {} long", ns(window.length_ns() as f64))
}

/// Several clauses as one: punctuation is not in the catalogues, because it has no letters to find it by.
pub(crate) fn clauses(parts: &[String]) -> String {
    parts.join(marks().0)
}

/// Things named one after the other.
pub(crate) fn listed<T: std::borrow::Borrow<str>>(parts: &[T]) -> String {
    parts.join(marks().1)
}

/// Ended as a sentence is.
pub(crate) fn ended(text: &str) -> String {
    format!("{text}{}", marks().2)
}

/// Between clauses, between things, at the end.
fn marks() -> (&'static str, &'static str, &'static str) {
    match language() {
        Language::English => ("; ", ", ", "."),
        Language::Chinese => ("；", "、", "。"),
    }
}

/// The first letter large.
pub(super) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// The middle value.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => values.get(middle).copied(),
        _ => Some((values.get(middle - 1)? + values.get(middle)?) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!(
            [0.0, 850.0, 6_540.0, 33_900.0, 1_230_000.0].map(ns),
            ["0 ns", "850 ns", "6.54 us", "33.9 us", "1.23 ms"]
        );
        assert_eq!([850.0, 6_540.0, 33_900.0, 999_000.0].map(ns_rough), ["850 ns", "6.5 us", "34 us", "1.0 ms"]);
        assert_eq!([1.034, 5.23, 26.4].map(ratio), ["1.03", "5.2", "26"]);
        assert_eq!((ratio_interval(0.94, 1.24), ratio_interval(4.61, 5.93)), ("0.94–1.24".into(), "4.6–5.9".into()));
        assert_eq!(
            [0.0, 0.0004, 0.052, 0.5, 0.997, 1.0].map(percent),
            ["0 %", "< 0.1 %", "5.2 %", "50 %", "99.7 %", "100 %"]
        );
        assert_eq!((ns_interval(900.0, 1_200.0), ns_interval(4.0, 5.0)), ("900 ns–1.2 us".into(), "4–5 ns".into()));
        assert_eq!([0.5, 0.99, 0.9999].map(quantile), ["p50", "p99", "p99.99"]);
        assert_eq!((count(1234), count(1234567)), ("1234".into(), "1\u{202f}234\u{202f}567".into()));
        assert_eq!((median([3.0, 1.0, 2.0]), median([4.0, 2.0]), median([])), (Some(2.0), Some(3.0), None));
    }
}
