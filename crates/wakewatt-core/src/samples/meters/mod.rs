//! What meters say, as bytes and text: one decoder per format, without the reading of it.
//!
//! Every decoder ends in microwatts ([`uw_of_watts`]), or in the words why not. None trusts a length, a unit or a number;
//! whether a number can be true is [`energy`](super::energy)'s business, so a negative one passes here.

pub mod dcmi;
pub mod line;
pub mod nvidia;
pub mod prometheus;
pub mod redfish;

/// Watts as microwatts; refuses what is no number. Beyond 1 GW it is not watts.
pub fn uw_of_watts(watts: f64) -> Result<i64, String> {
    if !watts.is_finite() || watts.abs() > 1e9 {
        return Err(format!("{watts} is not a number of watts"));
    }
    #[allow(clippy::cast_possible_truncation)] // At most 10^15.
    Ok((watts * 1e6).round() as i64)
}

/// Foreign text in an error: one line, escaped, not long.
pub(crate) fn quoted(text: &str) -> String {
    let head: String = text.trim().chars().take(60).collect();
    format!("{head:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_are_finite() {
        assert_eq!(uw_of_watts(118.53), Ok(118_530_000));
        assert_eq!(uw_of_watts(-1.0), Ok(-1_000_000));
        for nonsense in [f64::NAN, f64::INFINITY, 1e12] {
            assert!(uw_of_watts(nonsense).is_err());
        }
        assert_eq!(quoted("a\u{1b}[2Jb\n"), "\"a\\u{1b}[2Jb\"");
    }
}
