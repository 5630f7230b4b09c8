//! Two moments of a node compared from its history: what was set, since when it is otherwise, and what was measured around each.
//!
//! Rates are means over a window around a moment, with the least and the largest of its intervals beside them: that is how much it varied, not how sure the mean
//! is. One window on each side shows that something differs and never why, so the document says what cannot be concluded, and what the history does not hold.

mod numbers;

use super::MOST_GAP_MS;
use super::change::{Change, Settings};
use super::format::Reader;
use super::interval::{self, Between, Known};
use super::ring::{began_ms, segments, segments_since};
use numbers::Sums;
pub use numbers::{Number, Spread, Unit};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use wakewatt_host::input;
use wakewatt_lab::refusal::Refusal;

/// Which moments, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The one.
    pub a_ms: u64,
    /// The other.
    pub b_ms: u64,
    /// Length of the window around each.
    pub window_ms: u64,
}

/// Two moments of one node, compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// The folder of the history.
    pub history: String,
    /// Length of each window, in milliseconds.
    pub window_ms: u64,
    /// The first moment.
    pub a: Side,
    /// The second moment.
    pub b: Side,
    /// Settings that are not the same at both moments.
    pub settings: Vec<Differing>,
    /// How many settings are the same at both.
    pub n_settings_equal: usize,
    /// Every change of a setting between the moments, in order of time.
    pub changes: Vec<Change>,
    /// What was measured around either moment.
    pub numbers: Vec<Number>,
    /// What the history does not hold.
    pub not_held: Vec<String>,
    /// What must not be concluded from this.
    pub cannot_conclude: Vec<String>,
}

/// One of the moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// The moment that was asked for, in milliseconds since 1970.
    pub at_ms: u64,
    /// Begin of its window, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of its window: half of it after the moment, unless the history ends before.
    pub to_ms: u64,
    /// Intervals of the window that were kept.
    pub n_intervals: u64,
    /// How much of the window they cover, in milliseconds.
    pub seen_ms: u64,
    /// When the settings were seen that are told of it; none where nothing was kept just before.
    pub settings_at_ms: Option<u64>,
    /// Settings that changed within the window: its numbers mix both.
    pub changes: Vec<Change>,
}

/// A setting that is not the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differing {
    /// Which setting, as the labels of `wakewatt_settings_info` call it.
    pub what: String,
    /// What it was at the first moment; none where it was not known.
    pub a: Option<String>,
    /// What it was at the second moment; none where it was not known.
    pub b: Option<String>,
    /// Its changes in between, in order of time; none where no agent saw one.
    pub changes: Vec<Change>,
}

/// A side as it is read.
#[derive(Debug, Default)]
struct Gathered {
    side: Side,
    settings: Option<Settings>,
    sums: Sums,
}

impl Gathered {
    fn of(at_ms: u64, window_ms: u64, newest_ms: u64) -> Gathered {
        let to_ms = at_ms.saturating_add(window_ms / 2).min(newest_ms.max(at_ms));
        let from_ms = to_ms.saturating_sub(window_ms);
        Gathered { side: Side { at_ms, from_ms, to_ms, ..Side::default() }, ..Gathered::default() }
    }

    fn is_within(&self, wall_ms: u64) -> bool {
        wall_ms > self.side.from_ms && wall_ms <= self.side.to_ms
    }

    fn interval(&mut self, between: &Between<'_>) {
        let length_ms = between.now.wall_ms.saturating_sub(between.then.wall_ms);
        self.side.n_intervals += 1;
        self.side.seen_ms += length_ms;
        self.sums.add(between, length_ms as f64 / 1e3);
    }
}

/// Compares; remarks are what of the history is not whole.
pub fn beside(folder: &Path, asked: Asked, remark: &mut dyn FnMut(&str)) -> Result<Beside, Refusal> {
    if segments(folder).is_empty() {
        let why = "holds no history; make one with: wakewatt agent --history DIR";
        return Err(Refusal::File(format!("{}: {why}", folder.display())));
    }
    let newest_ms = newest_ms(folder);
    let [mut a, mut b] = [asked.a_ms, asked.b_ms].map(|at_ms| Gathered::of(at_ms, asked.window_ms, newest_ms));
    let (first_ms, last_ms) = (a.side.from_ms.min(b.side.from_ms), a.side.to_ms.max(b.side.to_ms));
    let files = segments_since(folder, first_ms.saturating_sub(MOST_GAP_MS));
    let mut changes = Vec::new();
    for (at, path) in files.iter().enumerate() {
        if began_ms(path).is_some_and(|began_ms| began_ms > last_ms) {
            break;
        }
        let bytes = match input::read(path, input::HISTORY) {
            // Segments go while others are written.
            Err(_) if !path.exists() => continue,
            // One that cannot be read hides no other.
            Err(why) => {
                remark(&format!("{why}; it is passed over"));
                continue;
            }
            Ok(bytes) => bytes,
        };
        let trouble = match Reader::new(&bytes) {
            Ok(mut reader) => {
                gather(&mut reader, [&mut a, &mut b]);
                changes.append(&mut reader.changes);
                reader.trouble
            }
            Err(trouble) => Some(trouble),
        };
        if let Some(trouble) = trouble.filter(|_| at + 1 < files.len()) {
            remark(&format!("{}: {trouble}", path.display()));
        }
    }
    Ok(told(folder, asked, a, b, changes))
}

/// The last moment that was kept.
fn newest_ms(folder: &Path) -> u64 {
    let last = |path| {
        let bytes = input::read(path, input::HISTORY).ok()?;
        let mut reader = Reader::new(&bytes).ok()?;
        while reader.next_moment().is_some() {}
        Some(reader.latest().wall_ms).filter(|wall_ms| *wall_ms > 0)
    };
    segments(folder).iter().rev().find_map(|path| last(path)).unwrap_or(0)
}

fn gather(reader: &mut Reader<'_>, mut sides: [&mut Gathered; 2]) {
    let mut known: Vec<Known> = Vec::new();
    let mut then = None;
    while reader.next_moment().is_some() {
        let now = reader.latest();
        let wall_ms = now.wall_ms;
        // The one before a window begins its first interval.
        let is_wanted = |side: &Gathered| {
            let (first_ms, last_ms) = (side.side.from_ms.min(side.side.at_ms), side.side.to_ms);
            wall_ms.saturating_add(MOST_GAP_MS) >= first_ms && wall_ms <= last_ms
        };
        if !sides.iter().any(|side| is_wanted(side)) {
            then = None;
            continue;
        }
        interval::meet(&mut known, reader);
        let now = now.clone();
        for side in &mut sides {
            if wall_ms <= side.side.at_ms && side.side.at_ms - wall_ms <= MOST_GAP_MS {
                side.settings = Some(interval::settings(reader, &now));
            }
            let before = then
                .as_ref()
                .filter(|then: &&super::Moment| wall_ms > then.wall_ms && wall_ms - then.wall_ms <= MOST_GAP_MS);
            if let Some(then) = before.filter(|_| side.is_within(wall_ms)) {
                side.interval(&Between { known: &known, then, now: &now });
            }
        }
        then = Some(now);
    }
}

fn told(folder: &Path, asked: Asked, mut a: Gathered, mut b: Gathered, changes: Vec<Change>) -> Beside {
    for side in [&mut a, &mut b] {
        side.side.settings_at_ms = side.settings.as_ref().map(|settings| settings.wall_ms);
        let (from_ms, to_ms) = (side.side.from_ms, side.side.to_ms);
        side.side.changes = changes.iter().filter(|c| c.wall_ms > from_ms && c.wall_ms <= to_ms).cloned().collect();
    }
    let (first_ms, last_ms) = (asked.a_ms.min(asked.b_ms), asked.a_ms.max(asked.b_ms));
    let changes: Vec<Change> = changes.into_iter().filter(|c| c.wall_ms > first_ms && c.wall_ms <= last_ms).collect();
    let (settings, n_settings_equal) = match (&a.settings, &b.settings) {
        (Some(a), Some(b)) => differing(a, b, &changes),
        _ => (Vec::new(), 0),
    };
    let numbers = numbers::beside(&a.sums, &b.sums);
    let not_held = not_held(&a, &b, &numbers);
    let cannot_conclude = cannot_conclude(&a, &b, settings.len(), &numbers);
    Beside {
        history: folder.display().to_string(),
        window_ms: asked.window_ms,
        a: a.side,
        b: b.side,
        settings,
        n_settings_equal,
        changes,
        numbers,
        not_held,
        cannot_conclude,
    }
}

fn differing(a: &Settings, b: &Settings, changes: &[Change]) -> (Vec<Differing>, usize) {
    let all: BTreeSet<&String> = a.is.keys().chain(b.is.keys()).collect();
    let (same, other): (Vec<&String>, Vec<&String>) =
        all.into_iter().partition(|what| a.is.get(*what) == b.is.get(*what));
    let differing = other.into_iter().map(|what| Differing {
        what: what.clone(),
        a: a.is.get(what).cloned(),
        b: b.is.get(what).cloned(),
        changes: changes.iter().filter(|change| change.what == *what).cloned().collect(),
    });
    (differing.collect(), same.len())
}

fn not_held(a: &Gathered, b: &Gathered, numbers: &[Number]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        let (seen_s, window_s) = (side.side.seen_ms / 1000, (side.side.to_ms - side.side.from_ms) / 1000);
        if side.side.n_intervals == 0 {
            out.push(format!(
                "{name}: nothing was kept in its window; the agent did not run, or it is older than the history"
            ));
        } else if side.side.seen_ms * 10 < (side.side.to_ms - side.side.from_ms) * 9 {
            out.push(format!("{name}: {seen_s} of the {window_s} s of its window were kept"));
        }
        if side.settings.is_none() {
            out.push(format!("{name}: settings; nothing was kept in the {} s before the moment", MOST_GAP_MS / 1000));
        }
    }
    if a.side.n_intervals == 0 || b.side.n_intervals == 0 {
        return out;
    }
    let has = |begin: &str| numbers.iter().any(|number| number.id.starts_with(begin));
    for (begin, what) in [
        ("wakeup.", "wake-up latency: the agent did not trace (--trace), or too few wake-ups were seen"),
        ("power.", "watts: no meter was read that moves (RAPL needs --sources package, and root)"),
        ("idle.", "idle states: this machine's kernel counts none"),
    ] {
        if !has(begin) {
            out.push(what.into());
        }
    }
    let one_sided = numbers.iter().filter(|number| number.a.is_none() != number.b.is_none());
    out.extend(
        one_sided.map(|number| format!("{}: only of {}", number.name, if number.a.is_some() { "A" } else { "B" })),
    );
    out.push("CPUs one by one, what else ran, and what was asked of the machine: the history holds sums".into());
    out
}

fn cannot_conclude(a: &Gathered, b: &Gathered, n_settings: usize, numbers: &[Number]) -> Vec<String> {
    let mut out = Vec::new();
    if a.side.n_intervals > 0 && b.side.n_intervals > 0 {
        out.push("Why numbers differ: this is one window on each side, and load, time of day and everything else differ with it; `wakewatt experiment` turns one setting to and fro and can tell.".into());
        out.push("How sure a mean is: least and most are of the intervals of its window, which follow one another and are no independent samples.".into());
    }
    for (name, side) in [("A", a), ("B", b)] {
        if let Some(change) = side.side.changes.first() {
            out.push(format!(
                "What {name} was under one setting: {} changed within its window, so its numbers mix both; a shorter --window may leave that out.",
                change.what
            ));
        }
    }
    if n_settings > 1 {
        out.push(format!("Which of the {n_settings} settings that differ matters, if any."));
    }
    let busy = numbers.iter().find(|number| number.id == "cpu.busy");
    if busy.is_some_and(|number| number.is_apart) {
        out.push(
            "What a setting did to shares, wake-ups or watts: the load was another, and it moves them too.".into(),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::week::Week;
    use super::super::{Limits, Ring};
    use super::*;

    const START_MS: u64 = 1_700_000_000_000;
    const ROOMY: Limits = Limits { most_bytes: 64 << 20, free_share: 0.0 };

    /// Twenty minutes; the governor is another one from the twelfth on.
    fn kept(folder: &Path) {
        let mut week = Week::of(4);
        let mut ring = Ring::open(folder, ROOMY).unwrap();
        for n in 0..120u64 {
            week.governor = if n >= 72 { "teo" } else { "menu" };
            ring.push(START_MS + n * 10_000, &week.next_page()).unwrap();
        }
    }

    fn at(folder: &Path, a_minutes: u64, b_minutes: u64) -> Beside {
        let ms = |minutes: u64| START_MS + minutes * 60_000;
        let asked = Asked { a_ms: ms(a_minutes), b_ms: ms(b_minutes), window_ms: 240_000 };
        beside(folder, asked, &mut |line| panic!("{line}")).unwrap()
    }

    #[test]
    fn two_moments_say_what_was_set_and_what_was_measured() {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path());
        let found = at(dir.path(), 5, 17);
        assert_eq!((found.settings.len(), found.settings[0].what.as_str()), (1, "idle_governor"));
        assert_eq!((found.settings[0].a.as_deref(), found.settings[0].b.as_deref()), (Some("menu"), Some("teo")));
        assert_eq!(found.settings[0].changes[0].wall_ms, START_MS + 720_000);
        assert_eq!((found.a.n_intervals, found.a.seen_ms, found.a.changes.len()), (24, 240_000, 0));
        assert_eq!((found.a.from_ms, found.a.to_ms), (START_MS + 180_000, START_MS + 420_000));
        let number =
            |id: &str| found.numbers.iter().find(|n| n.id == id).unwrap_or_else(|| panic!("{id}: {:?}", found.numbers));
        let share = number("idle.C6.share").a.unwrap();
        assert!(share.least <= share.mean && share.mean <= share.most && (0.3..0.7).contains(&share.mean), "{share:?}");
        assert!(number("power.package-0").a.is_some_and(|w| (60.0..180.0).contains(&w.mean)));
        assert!(number("wakeup.p99").b.is_some_and(|s| s.mean > 133e-6));
        assert!(found.cannot_conclude[0].contains("wakewatt experiment"));
    }

    #[test]
    fn what_is_not_held_is_said() {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path());
        let mixed = at(dir.path(), 5, 12);
        assert!(mixed.cannot_conclude.iter().any(|line| line.contains("changed within its window")), "{mixed:?}");
        let late = at(dir.path(), 5, 600);
        assert!(late.b.settings_at_ms.is_none() && late.settings.is_empty());
        assert!(late.not_held.iter().any(|line| line.starts_with("B: nothing was kept")), "{:?}", late.not_held);
        // The window of the newest moment ends there and not behind it.
        let newest = at(dir.path(), 5, 20);
        assert_eq!((newest.b.to_ms, newest.b.from_ms), (START_MS + 1_200_000, START_MS + 960_000));
        assert!(newest.b.n_intervals >= 23);
        assert!(beside(Path::new("/proc/nothing"), Asked { a_ms: 0, b_ms: 1, window_ms: 1 }, &mut |_| {}).is_err());
    }
}
