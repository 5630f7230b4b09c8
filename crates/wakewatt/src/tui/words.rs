//! Numbers as a person reads them on a screen: short, aligned, and a word where there is none.

use crate::view::width::{padded, right};
use ratatui::buffer::Buffer;
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_core::units::{LatencyLimit, three_digits};
use wakewatt_core::visible::is_hidden;
use wakewatt_core::watch::document::{PackageRate, PackageStateRate};
use wakewatt_core::watch::layout::SensorKind;
use wakewatt_core::watch::{Reading, Why};
use wakewatt_words::{say, told, word};

/// A missing number in a narrow column: a dash where there is nothing to have, a word where there is.
pub fn gap(why: Why) -> &'static str {
    match why {
        Why::Absent | Why::NotAsked | Why::NotRecorded => "–",
        Why::First => "…",
        Why::Offline => word!("off"),
        Why::Malformed => word!("bad"),
        Why::Suspended => word!("slept"),
        other => told(other.word()),
    }
}

/// With a format, or the gap.
pub fn cell<T: Copy>(reading: Reading<T>, show: impl FnOnce(T) -> String) -> String {
    match reading {
        Reading::Known(value) => show(value),
        Reading::Missing(why) => gap(why).to_string(),
    }
}

/// With a format, or the reason in full words.
pub fn spelled<T: Copy>(reading: Reading<T>, show: impl FnOnce(T) -> String) -> String {
    match reading {
        Reading::Known(value) => show(value),
        Reading::Missing(why) => told(why.word()).to_string(),
    }
}

/// Cells side by side, a blank before each: numbers at the right of their column, words (a negative width) at the left.
pub fn row(cells: &[(&str, isize)]) -> String {
    let cell = |(text, width): &(&str, isize)| match *width < 0 {
        true => format!(" {}", padded(text, width.unsigned_abs())),
        false => format!(" {}", right(text, width.unsigned_abs())),
    };
    cells.iter().map(cell).collect()
}

/// Words of the screen that are looked up where they are shown, because they decide something or stand in a constant.
pub(crate) fn spoken() -> Vec<&'static str> {
    use Why::*;
    let reasons =
        [Absent, Denied, Failed, Malformed, NotRecorded, NotAsked, Offline, First, Backwards, Dead, Suspended];
    let mut all = vec!["busy", "stolen", "asleep"];
    all.extend(reasons.iter().flat_map(|why| [why.word(), why.explain()]));
    all
}

/// `34.1%`.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent >= 99.95 { "100%".into() } else { format!("{percent:.1}%") }
}

/// `0`, `0.3`, `12`, `345`, `1.2k`, `34k`, `1.2M`.
pub fn count(n: f64) -> String {
    match n {
        0.0 => "0".into(),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 9999.5 => format!("{n:.0}"),
        n if n < 99_950.0 => format!("{:.1}k", n / 1e3),
        n if n < 999_500.0 => format!("{:.0}k", n / 1e3),
        n => format!("{:.1}M", n / 1e6),
    }
}

/// `2.40`, in GHz.
pub fn ghz(khz: f64) -> String {
    format!("{:.2}", khz / 1e6)
}

/// `212W`.
pub fn watts(uw: f64) -> String {
    format!("{}W", three_digits(uw / 1e6))
}

/// `41°`, whole degrees.
pub fn celsius(mc: i64) -> String {
    format!("{:.0}°C", mc as f64 / 1e3)
}

/// `none`, `poll`, `50us`.
pub fn limit(limit: LatencyLimit) -> String {
    limit.to_string()
}

/// `14:03:27` UTC.
pub fn clock(wall_at_ns: u64) -> String {
    let s = wall_at_ns / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// `2026-11-20` UTC.
pub fn date(wall_at_ns: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_nanos(wall_at_ns);
    humantime::format_rfc3339_seconds(at).to_string().chars().take(10).collect()
}

/// `2026-11-20 14:03:27 UTC`.
pub fn moment(wall_at_ns: u64) -> String {
    format!("{} {} UTC", date(wall_at_ns), clock(wall_at_ns))
}

/// What a sensor says, in its kind's unit.
pub fn sensor_value(kind: SensorKind, value: i64) -> String {
    match kind {
        SensorKind::Temperature => celsius(value),
        SensorKind::Fan => format!("{value} rpm"),
        SensorKind::Power => watts(value as f64),
    }
}

/// Foreign text: control characters would move the cursor. A column keeps its width, so each becomes one letter.
pub fn escaped(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '?' } else { c }).collect()
}

/// The last guard: whatever was drawn, no cell commands the terminal.
pub fn guard(buffer: &mut Buffer) {
    for cell in buffer.content.iter_mut().filter(|cell| cell.symbol().contains(is_hidden)) {
        cell.set_symbol("?");
    }
}

/// What the hardware counted of a package: "PC2 3 %, PC6 41 %"; why not, where it did not.
pub fn package_states(package: &PackageRate) -> String {
    let Some(first) = package.states.first() else {
        return word!("package states: not known of this processor, or a guest's").into();
    };
    let all_alike = package.states.iter().all(|state| state.share_ratio == first.share_ratio);
    match first.share_ratio.why().filter(|_| all_alike) {
        Some(why) => {
            let names: Vec<&str> = package.states.iter().map(|state| state.name.as_str()).collect();
            say!("{}: unavailable ({})", names.join(", "), told(why.explain()))
        }
        None => {
            let one = |state: &PackageStateRate| format!("{} {}", state.name, spelled(state.share_ratio, percent));
            package.states.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The same of all packages, short: "package 0 PC2 3 %, PC6 41 %; 1 …".
pub fn all_package_states(packages: &[PackageRate]) -> String {
    let Some(first) = packages.first() else { return word!("package states: no package is known").into() };
    let why = first.states.first().and_then(|state| state.share_ratio.why());
    let is_like = |package: &PackageRate| package.states.iter().all(|state| state.share_ratio.why() == why);
    match why.filter(|_| packages.iter().all(is_like)) {
        Some(Why::NotAsked) => word!("package states: not asked; --sources package reads them").into(),
        Some(why) => say!("package states: unavailable ({})", told(why.explain())),
        None if packages.iter().all(|package| package.states.is_empty()) => package_states(first),
        None => numbered(packages),
    }
}

fn numbered(packages: &[PackageRate]) -> String {
    let one = |package: &PackageRate| say!("package {}: {}", package.package, package_states(package));
    packages.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_commands_the_terminal() {
        let mut buffer = Buffer::with_lines(["µs ok"]);
        for (at, evil) in ["\u{1b}[2J", "\u{9b}1m", "a\u{202e}"].into_iter().enumerate() {
            buffer.content[at].set_symbol(evil);
        }
        guard(&mut buffer);
        assert_eq!(buffer, Buffer::with_lines(["???ok"]));
        assert_eq!(escaped("a\u{1b}\u{202e}\u{9b}b"), "a???b");
    }

    #[test]
    fn numbers_fit_their_columns() {
        let shown: Vec<String> = [0.0, 0.34, 12.3, 345.0, 1234.0, 12_345.0, 123_456.0, 1_234_567.0].map(count).into();
        assert_eq!(shown, ["0", "0.3", "12", "345", "1234", "12.3k", "123k", "1.2M"]);
        assert_eq!(
            (percent(0.341), percent(1.0), clock(86_400_000_000_000 + 61_000_000_000)),
            ("34.1%".into(), "100%".into(), "00:01:01".into())
        );
        assert_eq!(cell(Reading::<f64>::Missing(Why::Denied), watts), "denied");
    }
}
