//! Words and texts: what a person says of a setting, and what the file says, for the forms that most knobs have.

use crate::site::{Site, Valid};
use wakewatt_core::units::show_khz;
use wakewatt_words::say;

/// What most knobs do with a word.
pub fn encode(site: &Site, word: &str) -> Result<String, String> {
    let word = word.trim();
    let refuse = |why: String| Err(format!("{}: {why}", site.name));
    match &site.valid {
        Valid::Words(words) if words.iter().any(|w| w == word) => Ok(word.into()),
        Valid::Words(words) => {
            let hint = wakewatt_core::nearest::nearest(word, words.iter().map(String::as_str))
                .map_or(String::new(), |near| say!("; did you mean {near:?}?"));
            refuse(say!("{word:?} is none of {words}{hint}", words = words.join(", ")))
        }
        Valid::Switch { on, off } => match word {
            "on" | "1" | "true" | "yes" => Ok(on.clone()),
            "off" | "0" | "false" | "no" => Ok(off.clone()),
            _ => refuse(say!("{word:?} is neither on nor off")),
        },
        Valid::Khz { min, max } => {
            let khz = match word {
                "min" => *min,
                "max" => *max,
                _ => match parse_khz(word) {
                    Ok(khz) => khz,
                    Err(why) => return refuse(why),
                },
            };
            if (*min..=*max).contains(&khz) {
                Ok(khz.to_string())
            } else {
                refuse(say!(
                    "{asked} is outside {lowest} to {highest}",
                    asked = show_khz(khz),
                    lowest = show_khz(*min),
                    highest = show_khz(*max)
                ))
            }
        }
        Valid::Number { min, max } => {
            let number = match word {
                "min" => Some(*min),
                "max" => Some(*max),
                _ => word.parse::<u64>().ok(),
            };
            match number {
                Some(n) if (*min..=*max).contains(&n) => Ok(n.to_string()),
                _ => refuse(say!("{word:?} is no whole number from {min} to {max}")),
            }
        }
        Valid::Coded { names, max } => {
            // "PC6 (2)", as it is shown, is taken too.
            let name = word.split_once(" (").map_or(word, |(name, _)| name);
            let named = names.iter().find(|coded| coded.name.eq_ignore_ascii_case(name)).map(|coded| coded.code);
            match named.or_else(|| word.parse().ok()) {
                Some(code) if code <= *max => Ok(code.to_string()),
                _ => refuse(say!("{word:?} is none of {words}{hint}", words = site.valid, hint = "")),
            }
        }
        Valid::Text(_) => refuse(say!("{word:?} cannot be taken as {how}", how = site.valid)),
    }
}

/// What most knobs make of a file's text.
pub fn decode(site: &Site, text: &str) -> String {
    match &site.valid {
        Valid::Switch { on, .. } if text == on => "on".into(),
        Valid::Switch { off, .. } if text == off => "off".into(),
        Valid::Khz { .. } => text.parse().map_or_else(|_| text.to_string(), show_khz),
        Valid::Coded { names, .. } => match names.iter().find(|coded| coded.code.to_string() == text) {
            Some(coded) => format!("{} ({text})", coded.name),
            None => text.into(),
        },
        _ => text.into(),
    }
}

/// A frequency with its unit: `2.1GHz`, `2100MHz`, `2100000kHz`.
pub fn parse_khz(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "ghz" => 1e6,
        "mhz" => 1e3,
        "khz" => 1.0,
        "" => return Err(say!("{text:?} has no unit: write {text}MHz or {text}GHz")),
        _ => return Err(say!("{unit:?} is not a unit of frequency: use GHz, MHz or kHz")),
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value * scale < 1e12 =>
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Ok((value * scale).round() as u64)
        }
        _ => Err(say!("{text:?} is not a frequency such as 2.1GHz")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::cpuset::CpuSet;

    fn site(valid: Valid) -> Site {
        Site {
            name: "x.y".into(),
            place: "machine".into(),
            cpus: CpuSet::new(),
            path: "/x".into(),
            now: None,
            unread: None,
            valid,
            refusal: None,
            kind: None,
        }
    }

    #[test]
    fn words_become_the_kernels_text_or_a_refusal_that_helps() {
        let words = site(Valid::Words(vec!["performance".into(), "schedutil".into()]));
        assert_eq!(encode(&words, "performance").unwrap(), "performance");
        assert!(encode(&words, "performence").unwrap_err().contains("did you mean \"performance\"?"));
        let khz = site(Valid::Khz { min: 800_000, max: 3_600_000 });
        let said = ["2.1GHz", "2100MHz", "min", "max"].map(|w| encode(&khz, w).unwrap());
        assert_eq!(said, ["2100000", "2100000", "800000", "3600000"]);
        assert!(encode(&khz, "2100").unwrap_err().contains("no unit"));
        assert!(encode(&khz, "5GHz").unwrap_err().contains("outside 800MHz to 3.6GHz"));
        let switch = site(Valid::one_is_off());
        assert_eq!((encode(&switch, "off").unwrap(), decode(&switch, "1")), ("1".into(), "off".into()));
        assert!(encode(&site(Valid::Number { min: 1, max: 100 }), "101").is_err());
        let names = vec![crate::site::Coded { code: 2, name: "PC6".into() }];
        let coded = site(Valid::Coded { names, max: 7 });
        assert_eq!(["pc6", "PC6 (2)", "2", "5"].map(|word| encode(&coded, word).unwrap()), ["2", "2", "2", "5"]);
        assert_eq!(["2", "5"].map(|text| decode(&coded, text)), ["PC6 (2)", "5"], "a number without a name stays one");
        assert!(
            encode(&coded, "PC2 (2)").unwrap_err().contains("none of PC6, or 0 to 7") && encode(&coded, "8").is_err()
        );
    }
}
