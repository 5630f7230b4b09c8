//! A moment as people type it: a date with a time, how long ago, or now. In UTC, as every moment that this program prints, unless an offset is given.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

const HINT: &str = "give \"2026-11-20 10:00\" (UTC), 2026-11-20T10:00:00+01:00, -2h, or now";

/// Milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    at(text.trim(), SystemTime::now())
}

fn at(text: &str, now: SystemTime) -> Result<u64, String> {
    if text == "now" {
        return ms(now);
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago_ns = parse_ns(ago).map_err(|why| say!("{why}; {hint}", hint = HINT))?;
        return ms(now.checked_sub(Duration::from_nanos(ago_ns)).ok_or_else(|| say!("too long ago"))?);
    }
    let (local, ahead_s) = offset(text)?;
    // The date alone is its midnight, hours and minutes are enough.
    let whole = match local.len() {
        10 => format!("{local}T00:00:00"),
        16 => format!("{local}:00"),
        _ => local.to_string(),
    };
    let utc = humantime::parse_rfc3339_weak(&whole).map_err(|why| say!("{why}; {hint}", hint = HINT))?;
    let length = Duration::from_secs(ahead_s.unsigned_abs());
    let utc = if ahead_s < 0 { utc.checked_add(length) } else { utc.checked_sub(length) };
    ms(utc.ok_or_else(|| say!("too far away"))?)
}

/// What stands before the offset, and its seconds east of Greenwich.
fn offset(text: &str) -> Result<(&str, i64), String> {
    let zone = text.get(16..).and_then(|rest| rest.find(['+', '-'])).map(|at| at + 16);
    let Some(zone) = zone else { return Ok((text.strip_suffix('Z').unwrap_or(text), 0)) };
    let (local, zone) = text.split_at(zone);
    let number = |digits: Option<&str>| digits.filter(|d| d.len() == 2)?.parse::<i64>().ok();
    let parts = (number(zone.get(1..3)), number(zone.get(4..)), zone.get(3..4));
    let (Some(hours @ 0..24), Some(minutes @ 0..60), Some(":")) = parts else {
        return Err(say!("the offset {zone} is none; {hint}", hint = HINT));
    };
    let seconds = hours * 3600 + minutes * 60;
    Ok((local, if zone.starts_with('-') { -seconds } else { seconds }))
}

fn ms(at: SystemTime) -> Result<u64, String> {
    let since = at.duration_since(UNIX_EPOCH).map_err(|_| "before 1970")?;
    u64::try_from(since.as_millis()).map_err(|_| "too far away".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc_unless_they_say_otherwise() {
        let ten = 1_763_632_800_000; // 2025-11-20 10:00 UTC
        let now = UNIX_EPOCH + Duration::from_millis(ten);
        for same in [
            "now",
            "2025-11-20 10:00",
            "2025-11-20T10:00:00Z",
            "2025-11-20 10:00:00",
            "2025-11-20T11:30:00+01:30",
            "2025-11-20 09:00-01:00",
        ] {
            assert_eq!(at(same, now), Ok(ten), "{same}");
        }
        assert_eq!(at("-2h", now), Ok(ten - 7_200_000));
        assert_eq!(at("2025-11-20", now), Ok(ten - 36_000_000));
        for none in [
            "",
            "-",
            "-2",
            "yesterday",
            "2025-13-01",
            "2025-11-20 10:00+1",
            "2025-11-20 10:00+25:00",
            "1950-01-01",
            "é",
        ] {
            let said = at(none, now);
            assert!(said.is_err(), "{none}: {said:?}");
        }
    }
}
