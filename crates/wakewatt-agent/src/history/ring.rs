//! A folder of segments with a limit: the newest is written to, the oldest goes when there are too many bytes.
//!
//! A new segment begins when the agent starts, when the clock is set back, when there are too many names for one, when the one before is six hours
//! old, and when it has its share of the limit, so that what is dropped is always the oldest sixteenth, or less: a segment is read whole, so it has a limit of its own. Nothing is ever written into a file that was there.
//! What cannot be written ends the keeping, not the agent: a full disk, a folder that went. It also ends while there is still room for others:
//! the file system must keep a share free, which is looked at with every moment. For want of room it ends a segment only; the next one may begin later.
//! Segments that others wrote or may write are passed over, and named: they may say anything.
//! Two agents would drop each other's segments, so a folder is held by one of them.
//!
//! Others may tidy up: with every moment it is looked whether folder and segment still have their names. A segment that is gone is followed by a new one, a folder
//! that is gone is made again; what was in them is lost, what comes is not written into files that nobody can open.

use super::change::{Change, Settings};
use super::flat::{numbers, value};
use super::format::{MAGIC, Reader, Writer};
use crate::metric::Page;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use wakewatt_host::input;
use wakewatt_host::place::{Folder, PlaceError};
use wakewatt_host::trust::{Caller, Distrust, Fault, TrustedFolder};

/// What a segment's name ends with; before it stands when it began, in milliseconds since 1970.
const END: &str = ".history";
/// A segment is at most this part of all.
const SEGMENTS: u64 = 16;
/// And at most this long, whatever the limit of all is: who asks reads it into memory, and reads no file that is longer than
/// [`HISTORY`](wakewatt_host::input::HISTORY) allows.
const MOST_SEGMENT_BYTES: u64 = 64 << 20;
/// And at most this long in time, in milliseconds: who asks for an hour need not read a month.
const MOST_SEGMENT_MS: u64 = 6 * 3_600_000;
/// The file that is locked.
const LOCK: &str = "lock";
/// Two seconds, at most.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// What is written reaches the disk at least so often, in milliseconds: after a loss of power this much is missing.
const SYNC_MS: u64 = 300_000;

/// How much may be kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of all segments together.
    pub most_bytes: u64,
    /// Share of its file system that stays free (0.05: a twentieth).
    pub free_share: f64,
}

impl Limits {
    /// When a segment has this many bytes, a new one begins.
    fn segment_bytes(&self) -> u64 {
        (self.most_bytes / SEGMENTS).min(MOST_SEGMENT_BYTES)
    }
}

/// Why nothing (more) is kept.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The folder or a file in it.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Others may write there, or exchange it.
    #[error("{0}; name another folder with --history; the agent goes on")]
    Distrusted(#[from] Distrust),
    /// A write or a look at the disk.
    #[error("{}: the history ends here: {source}; the agent goes on{}", path.display(), again(source.kind()))]
    Write {
        /// The segment.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Others need the room.
    #[error("{}: the history ends here: less than {free_percent:.0} % of its file system are free; the agent goes on{AGAIN}", path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// The share that stays free.
        free_percent: f64,
    },
    /// Somebody else's.
    #[error("{}: another agent keeps its history there; name another folder with --history; the agent goes on", .0.display())]
    Held(PathBuf),
}

/// What is said where room may come.
const AGAIN: &str = ", and keeps again when there is room";

fn is_want(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn again(kind: ErrorKind) -> &'static str {
    if is_want(kind) { AGAIN } else { "" }
}

impl Trouble {
    /// May it be over later, and the same ring asked again?
    pub(super) fn is_want_of_room(&self) -> bool {
        match self {
            Trouble::NoRoom { .. } => true,
            Trouble::Write { source, .. } => is_want(source.kind()),
            Trouble::Place(why) => is_want(why.kind()),
            Trouble::Held(_) | Trouble::Distrusted(_) => false,
        }
    }
}

/// Its lock. One that was let go may be held for a moment more, by a child of whoever had it that has not yet become another program.
fn held(folder: &Folder) -> Result<File, Trouble> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = folder.hold(LOCK)? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(Trouble::Held(folder.path().into()))
}

/// An open history.
#[derive(Debug)]
pub struct Ring {
    folder: Folder,
    /// Locked as long as it is open.
    _lock: File,
    pub(super) limits: Limits,
    open: Option<Open>,
    /// Name and size of each finished segment, oldest first.
    finished: Vec<(String, u64)>,
    /// As last kept.
    settings: Option<Settings>,
    /// Was that kept by this agent?
    is_own: bool,
    /// Why segments that were there are not believed.
    doubts: Vec<Distrust>,
}

/// The segment that is written to.
#[derive(Debug)]
struct Open {
    name: String,
    file: File,
    n_bytes: u64,
    writer: Writer,
    began_ms: u64,
    synced_ms: u64,
    last_ms: u64,
}

impl Ring {
    /// Opens a folder, which is made if it is not there; what is in it stays, up to the limit.
    pub fn open(folder: &Path, limits: Limits) -> Result<Ring, Trouble> {
        let folder = Folder::make(folder)?;
        // Whoever may write there could tell us any past, and see to it that nothing is kept.
        let trusted = Caller::this_process().or_behind_sudo().open_folder(folder.path())?;
        let lock = held(&folder)?;
        let finished = segments(folder.path()).into_iter().filter_map(|path| {
            let n_bytes = std::fs::metadata(&path).ok()?.len();
            Some((path.file_name()?.to_str()?.to_string(), n_bytes))
        });
        let finished = finished.collect();
        let (settings, doubts) = last_settings(&trusted);
        Ok(Ring { folder, _lock: lock, limits, open: None, finished, settings, is_own: false, doubts })
    }

    /// Why segments that were there are not believed.
    pub(super) fn doubts(&self) -> &[Distrust] {
        &self.doubts
    }

    /// Keeps a page. After an error other than a want of room nothing more should be asked of it.
    pub fn push(&mut self, wall_ms: u64, page: &Page) -> Result<(), Trouble> {
        let kept = self.look_for_room().and_then(|()| self.keep(wall_ms, page));
        if kept.is_err() {
            // What is whole stays; whatever comes later is another segment.
            let _ = self.finish();
        }
        kept
    }

    fn look_for_room(&self) -> Result<(), Trouble> {
        let path = || self.folder.path().to_path_buf();
        let free = self.folder.free_share().map_err(|source| Trouble::Write { path: path(), source })?;
        if free < self.limits.free_share {
            return Err(Trouble::NoRoom { path: path(), free_percent: 100.0 * self.limits.free_share });
        }
        Ok(())
    }

    fn keep(&mut self, wall_ms: u64, page: &Page) -> Result<(), Trouble> {
        if !self.folder.is_in_place() {
            let again = Ring::open(self.folder.path(), self.limits)?;
            (self.folder, self._lock, self.finished, self.open) = (again.folder, again._lock, again.finished, None);
        }
        if self.open.as_ref().is_some_and(|open| !self.folder.holds(&open.name, &open.file)) {
            self.open = None;
        }
        let is_over = |open: &Open| {
            let is_set_back = wall_ms < open.last_ms;
            let is_old = wall_ms.saturating_sub(open.began_ms) >= MOST_SEGMENT_MS;
            is_set_back || is_old || open.writer.is_full() || open.n_bytes >= self.limits.segment_bytes()
        };
        if self.open.as_ref().is_some_and(is_over) {
            self.finish()?;
        }
        if self.open.is_none() {
            self.begin(wall_ms)?;
        }
        let owned = numbers(page);
        let borrowed: Vec<(&str, i8, i64)> =
            owned.iter().map(|(name, tens, number)| (name.as_str(), *tens, *number)).collect();
        let changes = self.changes(wall_ms, &borrowed);
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut bytes: Vec<u8> = changes.iter().flat_map(Writer::change).collect();
        bytes.extend(open.writer.moment(wall_ms, &borrowed));
        let written = open.file.write_all(&bytes);
        if let Err(source) = written {
            // The half frame goes; what is whole stays.
            let _ = open.file.set_len(open.n_bytes);
            return Err(Trouble::Write { path: self.folder.path().join(&open.name), source });
        }
        open.n_bytes += bytes.len() as u64;
        open.last_ms = wall_ms;
        if wall_ms.saturating_sub(open.synced_ms) >= SYNC_MS {
            open.synced_ms = wall_ms;
            let path = self.folder.path().join(&open.name);
            open.file.sync_data().map_err(|source| Trouble::Write { path, source })?;
        }
        Ok(())
    }

    /// Ends the newest segment: it is on the disk then.
    pub fn finish(&mut self) -> Result<(), Trouble> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let path = self.folder.path().join(&open.name);
        self.finished.push((open.name, open.n_bytes));
        open.file.sync_all().map_err(|source| Trouble::Write { path, source })
    }

    fn begin(&mut self, wall_ms: u64) -> Result<(), Trouble> {
        let share = self.limits.segment_bytes();
        let mut total: u64 = self.finished.iter().map(|(_, n)| n).sum();
        while total.saturating_add(share) > self.limits.most_bytes && !self.finished.is_empty() {
            let (name, n_bytes) = self.finished.remove(0);
            total -= n_bytes;
            self.folder.remove(&name)?;
        }
        // A clock that was set back shall not find its name taken.
        let newest = self.finished.last().and_then(|(name, _)| began_ms(Path::new(name))).unwrap_or(0);
        let name = format!("{:015}{END}", wall_ms.max(newest + 1));
        let mut file = self.folder.place(&name)?.create_new()?;
        if let Err(source) = file.write_all(MAGIC) {
            // Or each try without room would leave one.
            let _ = self.folder.remove(&name);
            return Err(Trouble::Write { path: self.folder.path().join(&name), source });
        }
        self.open = Some(Open {
            name,
            file,
            n_bytes: MAGIC.len() as u64,
            writer: Writer::default(),
            began_ms: wall_ms,
            synced_ms: wall_ms,
            last_ms: wall_ms,
        });
        Ok(())
    }

    /// Settings that are not what they were at the moment before, be that another agent's.
    fn changes(&mut self, wall_ms: u64, numbers: &[(&str, i8, i64)]) -> Vec<Change> {
        let now = Settings::of(wall_ms, numbers.iter().map(|(name, tens, number)| (*name, value(*number, *tens))));
        let is_own = std::mem::replace(&mut self.is_own, true);
        let then = self.settings.replace(now);
        self.settings.iter().zip(then).flat_map(|(now, then)| now.since(&then, is_own)).collect()
    }
}

/// What was set at the last moment that a folder holds; and which segments are not believed.
fn last_settings(folder: &TrustedFolder) -> (Option<Settings>, Vec<Distrust>) {
    let (mut last, mut doubts) = (None, Vec::new());
    for name in folder.names().unwrap_or_default().iter().rev().filter(|name| began_ms(Path::new(name)).is_some()) {
        match folder.open(name, OFlags::empty()) {
            Ok(file) if last.is_none() => last = settings_at_end(file, Path::new(name)),
            // A folder or a link of that name is none of ours.
            Err(why) if !matches!(why.fault, Fault::Unopened(_) | Fault::NoFile | Fault::Link) => doubts.push(why),
            _ => {}
        }
    }
    (last, doubts)
}

fn settings_at_end(file: File, name: &Path) -> Option<Settings> {
    let bytes = input::look_and_read(file, name, input::HISTORY).ok()?;
    let mut reader = Reader::new(&bytes).ok()?;
    let mut last = None;
    while let Some(moment) = reader.next_moment() {
        last = Some(moment.clone());
    }
    let last = last?;
    let known = last
        .values
        .iter()
        .enumerate()
        .filter_map(|(id, number)| Some((reader.names[id].as_str(), value((*number)?, reader.tens[id]))));
    Some(Settings::of(last.wall_ms, known))
}

/// The bytes of a segment of the agent's own history; others' are refused.
pub(crate) fn read_own(path: &Path) -> Result<Vec<u8>, String> {
    let file = Caller::this_process().or_behind_sudo().open_kept(path).map_err(|why| why.to_string())?;
    input::look_and_read(file, path, input::HISTORY).map_err(|why| why.to_string())
}

/// Whether others can write to a history or to its segments, in one line for whoever reads it.
pub fn others_write(folder: &Path) -> Option<String> {
    let all = segments(folder);
    let names: Vec<&str> = all.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let why = Caller::this_process().or_behind_sudo().others_write(folder, &names)?;
    Some(format!("others can write in {}, so what it says may be theirs ({why})", folder.display()))
}

/// When a segment began, from its name.
pub(crate) fn began_ms(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(END)?.parse().ok()
}

/// The segments of a folder, oldest first; empty where there is none.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    found(folder).into_iter().map(|(_, path)| path).collect()
}

/// Those of them that may hold what was later than this: a segment ends where the next one begins. Where the clock was set back in between, what is left
/// out ended under a time that came again.
pub fn segments_since(folder: &Path, from_ms: u64) -> Vec<PathBuf> {
    let found = found(folder);
    let n_over = found.iter().skip(1).take_while(|(next_ms, _)| *next_ms <= from_ms).count();
    found.into_iter().skip(n_over).map(|(_, path)| path).collect()
}

fn found(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // A folder or a link of that name is none of ours.
    let is_file = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let mut found: Vec<(u64, PathBuf)> =
        entries.filter(is_file).filter_map(|entry| Some((began_ms(&entry.path())?, entry.path()))).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::super::format::Reader;
    use super::*;
    use crate::metric::names;

    const ROOMY: Limits = Limits { most_bytes: 1 << 20, free_share: 0.0 };

    fn page(n: u64, governor: &str) -> Page {
        let mut page = Page::default();
        for state in ["POLL", "C1", "C6"] {
            page.number(&names::IDLE_ENTRIES, vec![("state", state.into())], n as f64);
        }
        page.number(&names::SETTINGS, vec![("idle_governor", governor.into())], 1.0);
        page
    }

    fn kept(folder: &Path) -> (usize, Vec<Change>) {
        let mut found = (0, Vec::new());
        for path in segments(folder) {
            let bytes = std::fs::read(path).unwrap();
            let mut reader = Reader::new(&bytes).unwrap();
            while reader.next_moment().is_some() {
                found.0 += 1;
            }
            found.1.extend(reader.changes);
        }
        found
    }

    #[test]
    fn what_was_kept_is_there_after_a_kill_and_a_start() {
        let dir = tempfile::tempdir().unwrap();
        for start in [1_000, 2_000] {
            let mut ring = Ring::open(dir.path(), ROOMY).unwrap();
            for i in 0..5 {
                ring.push(start + i * 10, &page(i, if i < 3 { "menu" } else { "teo" })).unwrap();
            }
            // Not finished: as after a kill.
        }
        let (n, changes) = kept(dir.path());
        assert_eq!(n, 10);
        // The second agent found what the first one had left changed back, in between.
        assert_eq!(changes.len(), 3);
        assert_eq!((changes[1].was_ms, changes[1].wall_ms, changes[1].to.as_str()), (Some(1_040), 2_000, "menu"));
        assert_eq!(
            (changes[0].what.as_str(), changes[0].from.as_str(), changes[0].to.as_str()),
            ("idle_governor", "menu", "teo")
        );
    }

    #[test]
    fn the_limit_holds_and_the_newest_stay() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { most_bytes: 16 * 1024, free_share: 0.0 };
        let mut ring = Ring::open(dir.path(), limits).unwrap();
        for i in 0..3_000 {
            ring.push(1_000 + i * 10_000, &page(i * 7919, "menu")).unwrap();
            let total: u64 = segments(dir.path()).iter().map(|p| std::fs::metadata(p).unwrap().len()).sum();
            // The open segment may pass its share by one moment.
            assert!(total <= limits.most_bytes + 1024, "{total}");
        }
        ring.finish().unwrap();
        let newest = std::fs::read(segments(dir.path()).pop().unwrap()).unwrap();
        let mut reader = Reader::new(&newest).unwrap();
        let mut last = 0;
        while let Some(moment) = reader.next_moment() {
            last = moment.wall_ms;
        }
        assert_eq!(last, 1_000 + 2_999 * 10_000);
        assert!(kept(dir.path()).0 > 500);
    }

    #[test]
    fn a_segment_can_be_read_however_large_the_history_may_be() {
        // Further than its limit a segment goes by one moment and its names.
        const MOST_MOMENT_BYTES: u64 = 16 << 20;
        for most_bytes in [1 << 20, 16 << 30, 17 << 30, u64::MAX] {
            let share = Limits { most_bytes, free_share: 0.0 }.segment_bytes();
            assert!(share <= most_bytes / SEGMENTS);
            assert!(share + MOST_MOMENT_BYTES <= wakewatt_host::input::HISTORY.max_bytes, "{most_bytes}: {share}");
        }
    }

    #[test]
    fn segments_that_ended_before_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        for began in [1_000, 2_000, 3_000] {
            std::fs::write(dir.path().join(format!("{began:015}{END}")), MAGIC).unwrap();
        }
        let n_since = |from_ms| segments_since(dir.path(), from_ms).len();
        assert_eq!([0, 1_999, 2_000, 2_500, 9_000].map(n_since), [3, 3, 2, 2, 1]);
        assert!(segments_since(Path::new("/proc/nothing"), 0).is_empty());
    }

    #[test]
    fn without_room_it_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(dir.path(), Limits { most_bytes: 1 << 20, free_share: 1.1 }).unwrap();
        let said = ring.push(1, &page(1, "menu")).unwrap_err().to_string();
        assert!(said.contains("file system are free"), "{said}");
        assert!(Ring::open(Path::new("/proc/nothing"), ROOMY).is_err());
        assert_eq!(segments(dir.path()).len(), 0);
        let full = Ring {
            folder: Folder::open(Path::new("/dev")).unwrap(),
            _lock: File::open("/dev/null").unwrap(),
            limits: ROOMY,
            finished: Vec::new(),
            settings: None,
            is_own: true,
            doubts: Vec::new(),
            open: Some(Open {
                name: "full".into(),
                file: File::options().write(true).open("/dev/full").unwrap(),
                n_bytes: 0,
                writer: Writer::default(),
                began_ms: 0,
                synced_ms: 0,
                last_ms: 0,
            }),
        };
        let mut full = full;
        let why = full.push(1, &page(1, "menu")).unwrap_err();
        let said = why.to_string();
        assert!(
            said.contains("/dev/full") && said.ends_with("the agent goes on, and keeps again when there is room"),
            "{said}"
        );
        assert!(why.is_want_of_room());
    }

    #[test]
    fn room_is_looked_for_with_every_moment() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(dir.path(), ROOMY).unwrap();
        ring.push(1_000, &page(1, "menu")).unwrap();
        ring.limits.free_share = 1.1;
        assert!(
            matches!(ring.push(2_000, &page(2, "menu")), Err(Trouble::NoRoom { .. })),
            "in the middle of a segment"
        );
        ring.limits.free_share = 0.0;
        ring.push(3_000, &page(3, "menu")).unwrap();
        assert_eq!((kept(dir.path()).0, segments(dir.path()).len()), (2, 2));
    }

    #[test]
    fn what_others_remove_is_followed_by_something_new() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("h");
        let limits = Limits { most_bytes: 16 * 1024, free_share: 0.0 };
        let mut ring = Ring::open(&folder, limits).unwrap();
        let mut at_ms = 0;
        let mut push = |ring: &mut Ring| {
            at_ms += 10_000;
            ring.push(at_ms, &page(at_ms * 7919, "menu")).unwrap();
        };
        while segments(&folder).len() < 6 {
            push(&mut ring);
        }
        // Old ones: their turn to be dropped comes, and they are gone.
        segments(&folder).iter().take(5).for_each(|path| std::fs::remove_file(path).unwrap());
        for _ in 0..2_000 {
            push(&mut ring);
        }
        // The current one.
        let newest = segments(&folder).pop().unwrap();
        std::fs::remove_file(&newest).unwrap();
        push(&mut ring);
        assert!(segments(&folder).last().is_some_and(|path| *path != newest));
        // Another file under its name.
        let newest = segments(&folder).pop().unwrap();
        std::fs::write(dir.path().join("other"), "x").unwrap();
        std::fs::rename(dir.path().join("other"), &newest).unwrap();
        push(&mut ring);
        assert_eq!(std::fs::read(&newest).unwrap(), b"x", "nothing is written into what is not ours");
        // The folder.
        std::fs::remove_dir_all(&folder).unwrap();
        push(&mut ring);
        assert_eq!(kept(&folder).0, 1);
        std::fs::rename(&folder, dir.path().join("moved")).unwrap();
        push(&mut ring);
        assert_eq!(kept(&folder).0, 1);
    }

    #[test]
    fn a_folder_of_others_is_not_taken() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("h");
        std::fs::create_dir(&folder).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(Ring::open(&link, ROOMY).unwrap_err().to_string().contains("symbolic link"));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        let why = Ring::open(&folder, ROOMY).unwrap_err();
        assert!(why.to_string().contains("may be written by everybody") && !why.is_want_of_room(), "{why}");
    }

    #[test]
    fn a_segment_of_others_decides_nothing_and_is_named() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let write = |at_ms, governor| {
            let mut ring = Ring::open(dir.path(), ROOMY).unwrap();
            ring.push(at_ms, &page(1, governor)).unwrap();
            ring.doubts().iter().map(Distrust::to_string).collect::<Vec<_>>()
        };
        write(1_000, "menu");
        write(2_000, "teo");
        let newest = segments(dir.path()).pop().unwrap();
        let mode = |mode| std::fs::set_permissions(&newest, PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(others_write(dir.path()), None);
        mode(0o666);
        let said = others_write(dir.path()).unwrap();
        assert!(said.contains("what it says may be theirs") && said.contains("may be written by everybody"), "{said}");
        let doubts = write(3_000, "menu");
        assert!(doubts.len() == 1 && doubts[0].contains(newest.to_str().unwrap()), "{doubts:?}");
        let bytes = read_own(&segments(dir.path()).pop().unwrap()).unwrap();
        let mut reader = Reader::new(&bytes).unwrap();
        while reader.next_moment().is_some() {}
        assert!(reader.changes.is_empty(), "menu before as now: the segment in between is not believed");
        assert!(read_own(&newest).unwrap_err().contains("may be written by everybody"));
        mode(0o644);
        if rustix::process::geteuid().is_root() && chown(&newest, Some(1000), None).is_ok() {
            assert!(read_own(&newest).unwrap_err().contains("belongs to user 1000"));
        }
    }

    #[test]
    fn a_folder_is_one_agents_and_everybody_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(dir.path(), ROOMY).unwrap();
        ring.push(1_000, &page(1, "menu")).unwrap();
        let second = Ring::open(dir.path(), ROOMY).unwrap_err();
        assert!(matches!(&second, Trouble::Held(path) if path == dir.path()) && !second.is_want_of_room());
        assert!(second.to_string().contains("another agent keeps its history there"), "{second}");
        assert_eq!(kept(dir.path()).0, 1);
        drop(ring);
        assert!(Ring::open(dir.path(), ROOMY).is_ok());
    }
}
