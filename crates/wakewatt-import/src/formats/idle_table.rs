//! An idle table as people write it into reports: `exit latency/target residency us: C1 2/2, C1E 10/20, C6 85/200`.
//!
//! Only where the text says what the two numbers are, and in which unit; the table may go on in the next line. It is what a person
//! copied, so whatever a tool printed comes first.

use crate::facts::CPU;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "idle-table", title: "an idle table in words", detect, read };

/// What follows the words that say what the numbers are.
fn begins(line: &str) -> Option<&str> {
    let at = line.find("exit latency/target residency")?;
    let rest = &line[at..];
    let (head, body) = rest.split_once(':')?;
    head.split_whitespace()
        .any(|word| matches!(word.trim_matches(['(', ')', ',']), "us" | "\u{b5}s" | "\u{3bc}s"))
        .then_some(body)
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "", |line| begins(line).is_some())
}

/// `C1E 10/20`: name, latency, residency.
fn state(text: &str) -> Option<(&str, u64, u64)> {
    let (name, numbers) = text.trim().split_once(' ')?;
    let numbers = numbers.split_whitespace().next()?.trim_end_matches('.');
    let (latency, residency) = numbers.split_once('/')?;
    let is_name =
        name == "POLL" || (name.starts_with('C') && name.len() <= 8 && name.bytes().all(|b| b.is_ascii_alphanumeric()));
    is_name.then_some((name, latency.parse().ok()?, residency.parse().ok()?))
}

fn read(reading: &mut Reading<'_>) {
    let mut states: Vec<String> = Vec::new();
    let mut is_on = false;
    for (at, line) in reading.open_lines() {
        let body = match begins(&line.text) {
            Some(body) => {
                is_on = states.is_empty();
                body
            }
            None => &*line.text,
        };
        if !is_on {
            continue;
        }
        let mut n = 0;
        for part in body.split([',', ';']) {
            let Some((name, latency, residency)) = state(part) else { continue };
            if states.iter().any(|known| known == name) || states.len() >= 10 {
                continue;
            }
            let path = |file: &str| format!("{CPU}/cpu0/cpuidle/state{}/{file}", states.len());
            reading.conclude(at, &path("name"), name);
            reading.conclude(at, &path("latency"), &latency.to_string());
            reading.conclude(at, &path("residency"), &residency.to_string());
            states.push(name.into());
            n += 1;
        }
        // It goes on as long as there are states, and the first line may hold the words only.
        is_on = n > 0 || begins(&line.text).is_some();
    }
    if !states.is_empty() {
        reading.say(format!("an idle table in words: {} states from {} on", states.len(), states[0]));
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn a_table_over_two_lines() {
        let found = read(
            "Reference idle table (some laptop), exit latency/target residency us: C1 2/2, C1E 10/20, C3 70/100,\nC6 85/200, C7s 124/800 (C10 limit).\n\nC8 9/9, later\n",
        );
        assert_eq!(formats(&found), ["idle-table"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpu0/cpuidle/{file}"));
        assert_eq!(
            (at("state4/name").as_deref(), at("state4/residency").as_deref(), at("state5/name")),
            (Some("C7s"), Some("800"), None)
        );
        assert!(formats(&read("exit latency/target residency: C1 2/2")).is_empty(), "no unit, no table");
    }
}
