//! A line of a user's own meter: a number of watts, with or without its unit.
//!
//! `212.5`, `212.5 W`, `850 mW`, `1.2kW`. Anything else is refused with the line in quotes: a meter that prints a heading
//! or an error must not become 0 W. The protocol is ours, because the common one (PTDaemon) is licensed.

use super::{quoted, uw_of_watts};

/// Microwatts of one line; none for an empty one.
pub fn parse(line: &str) -> Option<Result<i64, String>> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let split = line.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(line.len());
    let (number, unit) = line.split_at(split);
    let scale = match unit.trim() {
        "" | "W" => 1.0,
        "mW" => 1e-3,
        "kW" => 1e3,
        _ => return Some(Err(format!("{} is not a number of watts", quoted(line)))),
    };
    let value: Result<f64, _> = number.trim().parse();
    Some(match value {
        Ok(value) => uw_of_watts(value * scale),
        Err(_) => Err(format!("{} is not a number of watts", quoted(line))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_unit() {
        for (line, uw) in
            [("212.5", 212_500_000), ("212.5 W", 212_500_000), ("850 mW", 850_000), ("1.2kW\n", 1_200_000_000)]
        {
            assert_eq!(parse(line), Some(Ok(uw)), "{line}");
        }
        assert_eq!(parse("1e2"), Some(Ok(100_000_000)));
        assert_eq!(parse(" \n"), None);
        for nonsense in ["error: no meter", "W", "12 V", "NaN", "inf", "1,5", "12 W 13 W", "0x10"] {
            assert!(parse(nonsense).unwrap().is_err(), "{nonsense}");
        }
    }
}
