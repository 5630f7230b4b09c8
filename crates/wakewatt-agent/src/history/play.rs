//! Plays a history: interval by interval what `watch` would have shown, gaps as gaps, a changed setting when it was seen.
//!
//! A week is 60,000 moments of some hundred numbers, more than a screen should hold. So opening it keeps only when each moment was, and showing one reads its
//! segment again and keeps some minutes around it. What is damaged is passed over with a word.

use super::MOST_GAP_MS;
use super::change::Change;
use super::format::{Moment, Reader};
use super::interval::{self, Between, Known};
use super::ring::{segments, segments_since};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wakewatt_core::cpuset::MAX_CPUS;
use wakewatt_core::units::show_ns;
use wakewatt_core::watch::layout::CpuInfo;
use wakewatt_core::watch::{Layout, Rates};
use wakewatt_host::input;
use wakewatt_lab::refusal::Refusal;
use wakewatt_lab::watch::Played;

/// Moments kept before and after the one that is shown: a screen looks back a hundred intervals when it jumps.
const KEPT: (usize, usize) = (128, 384);

/// A folder of segments.
#[derive(Debug)]
pub struct HistoryPlayer {
    files: Vec<PathBuf>,
    items: Vec<Item>,
    changes: Vec<Change>,
    layout: Layout,
    end: String,
    held: Option<Held>,
}

/// An interval, or a time of which nothing was kept.
#[derive(Clone, Copy, Debug)]
struct Item {
    begin_ms: u64,
    end_ms: u64,
    /// Segment, and its moment at the begin; none of a gap.
    at: Option<(usize, usize)>,
}

/// Moments of a segment, from the one of this number on.
#[derive(Debug)]
struct Held {
    file: usize,
    first: usize,
    known: Vec<Known>,
    moments: Vec<Moment>,
}

impl HistoryPlayer {
    /// Is this the folder of a history?
    pub fn is_history(folder: &Path) -> bool {
        !segments(folder).is_empty()
    }

    /// Opens a folder; `from_ms` spares reading what ended before. Remarks are what of it is not whole.
    pub fn open(folder: &Path, from_ms: u64, remark: &mut dyn FnMut(&str)) -> Result<HistoryPlayer, Refusal> {
        let files = segments_since(folder, from_ms);
        let origin = format!("history {}", folder.display());
        let mut player = HistoryPlayer {
            items: Vec::new(),
            changes: Vec::new(),
            layout: Layout { origin, ..Layout::default() },
            end: "history of an agent".into(),
            held: None,
            files,
        };
        let mut last_ms = None;
        for at in 0..player.files.len() {
            player.look(at, &mut last_ms, remark)?;
        }
        if player.items.is_empty() {
            let why = format!("{}: holds fewer than two moments of that time; a rate needs two", folder.display());
            return Err(Refusal::File(why));
        }
        Ok(player)
    }

    /// When the moments of a segment were, and what changed.
    fn look(&mut self, at: usize, last_ms: &mut Option<u64>, remark: &mut dyn FnMut(&str)) -> Result<(), Refusal> {
        let path = &self.files[at];
        // Segments go while others are written.
        let bytes = match input::read(path, input::HISTORY) {
            Err(_) if !path.exists() => return Ok(()),
            // One that cannot be read hides no other.
            Err(why) => {
                remark(&format!("{why}; it is passed over"));
                return Ok(());
            }
            Ok(bytes) => bytes,
        };
        let mut reader = match Reader::new(&bytes) {
            Ok(reader) => reader,
            Err(trouble) => {
                remark(&format!("{}: {trouble}; it is not played", path.display()));
                return Ok(());
            }
        };
        let (mut n, mut is_first) = (0, true);
        while let Some(moment) = reader.next_moment() {
            let wall_ms = moment.wall_ms;
            let then_ms = last_ms.replace(wall_ms).filter(|then_ms| *then_ms < wall_ms);
            if let Some(begin_ms) = then_ms {
                let is_gap = wall_ms - begin_ms > MOST_GAP_MS;
                // Between two segments nothing is compared: the interval there is short, and not told.
                let of_one = (!is_first).then(|| (at, n - 1));
                if is_gap || of_one.is_some() {
                    self.items.push(Item { begin_ms, end_ms: wall_ms, at: of_one.filter(|_| !is_gap) });
                }
            }
            (n, is_first) = (n + 1, false);
        }
        if let Some(trouble) = reader.trouble {
            let is_newest = at + 1 == self.files.len();
            // The newest is being written: that it is cut is no news.
            if !is_newest || trouble != super::FormatTrouble::Cut {
                remark(&format!("{}: {trouble}; what follows is played from the next file on", path.display()));
            }
        }
        if n > 0 {
            self.describe(&reader);
        }
        self.changes.append(&mut reader.changes);
        Ok(())
    }

    /// The machine as it was at the end of a segment.
    fn describe(&mut self, reader: &Reader<'_>) {
        let set = interval::settings(reader, reader.latest()).is;
        let word = |name: &str| set.get(name).cloned();
        (self.layout.kernel, self.layout.idle_driver) = (word("kernel"), word("idle_driver"));
        self.layout.idle_governor = word("idle_governor");
        let mut known = Vec::new();
        interval::meet(&mut known, reader);
        let between = Between { known: &known, then: reader.latest(), now: reader.latest() };
        self.layout.states = between.states();
        let n_cpus = u32::try_from(between.n_online()).unwrap_or(0).min(MAX_CPUS);
        self.layout.cpus = (0..n_cpus).map(|cpu| CpuInfo { cpu, ..CpuInfo::default() }).collect();
    }

    /// Moment `at` of a segment and the one after it are held, if they still can be.
    fn hold(&mut self, file: usize, at: usize) -> Option<&Held> {
        let has = |held: &Held| held.file == file && held.first <= at && at + 1 < held.first + held.moments.len();
        if !self.held.as_ref().is_some_and(has) {
            self.held = None;
            let bytes = input::read(self.files.get(file)?, input::HISTORY).ok()?;
            let mut reader = Reader::new(&bytes).ok()?;
            let (first, end) = (at.saturating_sub(KEPT.0), at + KEPT.1);
            let mut moments = Vec::new();
            for number in 0..end {
                let Some(moment) = reader.next_moment() else { break };
                if number >= first {
                    moments.push(moment.clone());
                }
            }
            let mut known = Vec::new();
            interval::meet(&mut known, &reader);
            self.held = Some(Held { file, first, known, moments });
        }
        self.held.as_ref().filter(|held| has(held))
    }

    /// What changed between two moments.
    fn changes(&self, item: Item) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |c| c.wall_ms > item.begin_ms && c.wall_ms <= item.end_ms)
    }
}

impl Played for HistoryPlayer {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn n_intervals(&self) -> usize {
        self.items.len()
    }

    fn end_ms(&self, at: usize) -> Option<u64> {
        self.items.get(at).map(|item| item.end_ms)
    }

    fn rates(&mut self, at: usize) -> Option<Rates> {
        let item = *self.items.get(at)?;
        let origin = self.layout.origin.clone();
        let mut rates = match item.at {
            Some((file, at)) => {
                let held = self.hold(file, at)?;
                let at = at - held.first;
                let (then, now) = (held.moments.get(at)?, held.moments.get(at + 1)?);
                Between { known: &held.known, then, now }.rates(&origin)
            }
            None => {
                let long = Duration::from_millis(item.end_ms - item.begin_ms).as_nanos();
                let long = show_ns(u64::try_from(long).unwrap_or(u64::MAX));
                let why = format!("nothing was kept for {long}: the agent did not run, or could not write");
                // A table of intervals keeps its columns.
                let states = self.layout.states.clone();
                Rates { states, ..interval::gap(&origin, item.begin_ms, item.end_ms, why) }
            }
        };
        rates.notes.extend(self.changes(item).map(Change::sentence));
        Some(rates)
    }

    fn end(&self) -> String {
        self.end.clone()
    }

    fn told(&self, at: usize) -> Option<String> {
        let all: Vec<String> = self.changes(*self.items.get(at)?).map(Change::sentence).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::week::Week;
    use super::super::{Limits, Ring};
    use super::*;

    const START_MS: u64 = 1_700_000_000_000;
    const ROOMY: Limits = Limits { most_bytes: 64 << 20, free_share: 0.0 };

    /// Two agents with an hour between them; the governor is another one from the third moment of the second on.
    fn kept(folder: &Path) {
        let mut week = Week::of(4);
        for (begin_ms, governor_at) in [(START_MS, 99), (START_MS + 3_600_000, 2)] {
            let mut ring = Ring::open(folder, ROOMY).unwrap();
            for n in 0..20u64 {
                week.governor = if n >= governor_at { "teo" } else { "menu" };
                ring.push(begin_ms + n * 10_000, &week.next_page()).unwrap();
            }
        }
    }

    fn opened(folder: &Path) -> (HistoryPlayer, Vec<String>) {
        let mut remarks = Vec::new();
        let player = HistoryPlayer::open(folder, 0, &mut |line| remarks.push(line.to_string())).unwrap();
        (player, remarks)
    }

    #[test]
    fn intervals_gaps_and_changes_play_in_order() {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path());
        let (mut player, remarks) = opened(dir.path());
        assert_eq!((player.n_intervals(), remarks.len()), (19 + 1 + 19, 0));
        let rates = player.rates(3).unwrap();
        let all = &rates.machine.summary;
        let shares: f64 = all.idle.iter().filter_map(|s| s.share_ratio.get()).sum();
        let busy = all.busy_ratio.get().unwrap();
        assert!(rates.machine.n_online == 4 && (0.9..1.1).contains(&(shares + busy)), "{shares} {busy}");
        assert!(rates.places.len() == 2 && rates.cpus.is_empty() && rates.packages.len() == 2);
        assert!(rates.machine.power_uw.get().is_some_and(|uw| uw > 1e6), "{:?}", rates.machine.power_uw);
        assert!(
            rates
                .wake_latency
                .as_ref()
                .is_some_and(|rows| rows.iter().any(|row| row.class == "another CPU" && row.n > 0))
        );
        assert_eq!((rates.window.length_ns(), rates.notes.len()), (10_000_000_000, 0));
        let gap = player.rates(19).unwrap();
        assert!(
            gap.notes[0].contains("nothing was kept for 56min") || gap.notes[0].contains("nothing was kept"),
            "{:?}",
            gap.notes
        );
        assert!(gap.machine.summary.busy_ratio.get().is_none());
        assert_eq!(player.told(19), None);
        let told = player.told(21).unwrap();
        assert!(told.contains("idle_governor: menu -> teo"), "{told}");
        assert!(player.rates(21).unwrap().notes[0].contains("menu -> teo"));
        assert!(player.rates(39).is_none() && player.layout().idle_governor.as_deref() == Some("teo"));
        // Back again, from another segment.
        assert_eq!(player.rates(0).map(|r| r.wall_at_ns), Some((START_MS + 10_000) * 1_000_000));
    }

    #[test]
    fn what_is_damaged_is_told_and_the_rest_is_played() {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path());
        let first = segments(dir.path()).remove(0);
        let mut bytes = std::fs::read(&first).unwrap();
        let middle = bytes.len() - 400;
        bytes[middle] ^= 4;
        std::fs::write(&first, &bytes).unwrap();
        let (mut player, remarks) = opened(dir.path());
        assert!(remarks.len() == 1 && remarks[0].contains("damaged"), "{remarks:?}");
        let n = player.n_intervals();
        assert!((20..39).contains(&n), "{n}");
        assert!((0..n).all(|at| player.rates(at).is_some()));
        std::fs::write(&first, b"something else").unwrap();
        let (player, remarks) = opened(dir.path());
        assert!(player.n_intervals() == 19 && remarks[0].contains("not played"), "{remarks:?}");
    }
}
