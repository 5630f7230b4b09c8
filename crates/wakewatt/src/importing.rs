//! Texts of other tools as they lie on a disk: files, packed files, archives, archives inside them, folders. Which of them are read, and
//! that they are of one host; what they say is the business of `wakewatt_import`.
//!
//! A long text of events is read line by line; everything else is taken whole, as far as any tool prints. A folder or an archive that
//! holds the reports of several hosts is refused with their names until one is chosen, because two hosts must not become one.
//!
//! All of it has a minute: 64 GiB of zeros are a few KiB when packed, and a folder may hold a million files. Two thirds of it may
//! go by until the texts are gathered. What is left out then is counted, said at once and in the document, and the rest is read.
//! A text of events that is named itself may take longer: it is as long as somebody has recorded.

use crate::exit::{Code, Failure};
use crate::output;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::{BufRead, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wakewatt_host::{material, recorded};
use wakewatt_import::archive::{Wanted, host_of, is_inner, is_tar, wanted};
use wakewatt_import::events::are_events;
use wakewatt_import::plain::decoded;
use wakewatt_import::{Imported, Input, import_while, tar};
use wakewatt_words::{spoken, word};

/// By so much of it a text is told.
const FRONT: u64 = 256 << 10;
/// The longest text that is read whole.
const MAX_WHOLE: u64 = 64 << 20;
/// All that is taken of archives and folders.
const MAX_TAKEN: usize = 1 << 30;
/// Remarks and hosts that are kept of them.
const MAX_REMARKS: usize = 1000;
/// Texts that are kept of them: each takes some KiB until it is read. 576 CPUs have 120,000 files.
const MAX_TEXTS: usize = 250_000;
/// So long may all of it take.
const LONGEST: Duration = Duration::from_secs(60);
/// Progress is shown from here on.
const LONG: Duration = Duration::from_secs(1);
/// What to do about a time that is up.
const SMALLER: &str = "unpack it and give the files that matter, or a smaller folder";
/// Archives inside one another, and how many are opened.
const MAX_DEPTH: usize = 3;
const MAX_INNER: usize = 64;

/// What `-` is called, in evidence too.
const STANDARD_INPUT: &str = "standard input";

/// An archive, as long as there is time for it.
struct Timed<'a, R> {
    content: R,
    clock: &'a Clock,
    n_bytes: u64,
}

/// How long it has taken, for how long it may, and where progress is shown.
struct Clock {
    elapsed: Box<dyn Fn() -> Duration>,
    longest: Duration,
    bar: Progress,
}

impl Clock {
    fn start(longest: Duration) -> Clock {
        let began_at = Instant::now();
        Clock::by(longest, move || began_at.elapsed())
    }

    fn by(longest: Duration, elapsed: impl Fn() -> Duration + 'static) -> Clock {
        Clock { elapsed: Box::new(elapsed), longest, bar: Progress::start("import") }
    }

    /// Texts are gathered for so long; the rest is for reading them.
    fn longest_gathering(&self) -> Duration {
        self.longest * 2 / 3
    }

    /// Is the time for gathering over? Says how far it is.
    fn ends_gathering(&self, words: impl FnOnce() -> String) -> bool {
        self.ends(self.longest_gathering(), words)
    }

    /// Is the time for all of it over?
    fn ends_reading(&self, words: impl FnOnce() -> String) -> bool {
        self.ends(self.longest, words)
    }

    fn ends(&self, after: Duration, words: impl FnOnce() -> String) -> bool {
        let spent = (self.elapsed)();
        if spent >= LONG {
            self.bar.set(spent.as_secs_f64() / self.longest.as_secs_f64(), &words());
        }
        spent > after
    }
}

impl<R: Read> Read for Timed<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.clock.ends_gathering(|| format!("{} MiB unpacked", self.n_bytes >> 20)) {
            let s = self.clock.longest_gathering().as_secs();
            let why = format!("unpacking took longer than {s} s; {SMALLER}");
            return Err(std::io::Error::new(ErrorKind::TimedOut, why));
        }
        let n = self.content.read(bytes)?;
        self.n_bytes += n as u64;
        Ok(n)
    }
}

/// What was found so far.
struct Gathered<'a> {
    clock: &'a Clock,
    /// Each with the host that its place in an archive or a folder says.
    inputs: Vec<(Option<String>, Input)>,
    roots: BTreeSet<String>,
    /// What the name of the host holds that was asked for.
    host: Option<&'a str>,
    n_bytes: usize,
    n_inner: usize,
    remarks: Vec<String>,
    /// What was left out because time was up.
    cuts: Vec<String>,
}

/// Reads all of them as one host; of several, the one whose name holds `host`.
pub(crate) fn read(files: &[PathBuf], host: Option<&str>) -> Result<Imported> {
    if files.iter().filter(|file| is_standard_input(file)).count() > 1 {
        return Err(Failure::error(Code::Usage, spoken(|| word!("standard input (-) can be read once only"))));
    }
    if let [file] = files {
        // What `import -o` and `capture` wrote is read as what it is.
        if is_host_file(file) {
            let tree = recorded::open(file)?;
            return Ok(Imported::of_host(tree));
        }
    }
    let imported = read_by(&Clock::start(LONGEST), files, host)?;
    imported.1.iter().for_each(|cut| output::remark(cut));
    Ok(imported.0)
}

/// What was read, and what was left out because time was up.
fn read_by(clock: &Clock, files: &[PathBuf], host: Option<&str>) -> Result<(Imported, Vec<String>)> {
    let mut all = Gathered::new(host, clock);
    for (n_read, file) in files.iter().enumerate() {
        let so_far = || format!("{n_read} of {} files and folders", files.len());
        if n_read > 0 && clock.ends_gathering(so_far) {
            all.cut(format!("{} were read; time was up: give fewer", so_far()));
            break;
        }
        let before = (all.inputs.len(), all.roots.len());
        if file.is_dir() && !is_standard_input(file) {
            all.folder(file)?
        } else {
            let name = if is_standard_input(file) { STANDARD_INPUT.into() } else { file.display().to_string() };
            all.file(file, &name, None)?
        }
        if (all.inputs.len(), all.roots.len()) == before {
            let name = if is_standard_input(file) { STANDARD_INPUT.into() } else { file.display().to_string() };
            let why = all.remarks.first().map_or(String::new(), |remark| format!(" ({remark})"));
            return Err(Failure::error(
                Code::BadFile,
                format!("{name}: no file in it is one that is read here{why}; docs/import.md lists them"),
            ));
        }
    }
    let root = chosen(&all.roots, host)?;
    let is_one = all.roots.len() <= 1;
    let is_of_it = |of: &Option<String>| of.as_ref().map_or(is_one, |of| root.is_none_or(|root| root == of));
    let n_all = all.inputs.len();
    let inputs: Vec<Input> = all.inputs.into_iter().filter(|(of, _)| is_of_it(of)).map(|(_, input)| input).collect();
    let n_left = n_all - inputs.len();
    let mut cuts = all.cuts;
    let mut imported = import_while(inputs, &mut |n, of| {
        let ends = clock.ends_reading(|| format!("{n} of {of} texts read"));
        if ends {
            let s = clock.longest.as_secs();
            cuts.push(format!("{n} of {of} texts were read within {s} s; {SMALLER}"));
        }
        !ends
    });
    imported.document.remarks.extend(all.remarks);
    // First, because lists of remarks are cut.
    imported.document.remarks.splice(0..0, cuts.iter().cloned());
    if n_left > 0 {
        imported
            .document
            .remarks
            .push(format!("{n_left} texts that are not of this host, or of no host by their place, were left out"));
    }
    Ok((imported, cuts))
}

/// The host that is read, of those that there are.
fn chosen<'a>(roots: &'a BTreeSet<String>, host: Option<&str>) -> Result<Option<&'a String>> {
    let few = |all: &[&String]| {
        let names: Vec<&str> = all.iter().take(10).map(|name| name.as_str()).collect();
        format!("{}{}", names.join(", "), if all.len() > 10 { ", …" } else { "" })
    };
    let fail = |why: String| Err(Failure::error(Code::Usage, why));
    let all: Vec<&String> = roots.iter().collect();
    let Some(host) = host else {
        return match all[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => fail(format!(
                "these are reports of {} hosts ({}): choose one, --from-host NAME (a part of its name will do)",
                all.len(),
                few(&all)
            )),
        };
    };
    // `w-1` is that folder, and not `w-10` beside it.
    let is_so = |name: &&String| name.as_str() == host || name.rsplit('/').next() == Some(host);
    let so: Vec<&String> = all.iter().copied().filter(is_so).collect();
    let fitting = match so[..] {
        [] => all.iter().copied().filter(|name| name.contains(host)).collect(),
        _ => so,
    };
    match fitting[..] {
        [one] => Ok(Some(one)),
        [] if all.is_empty() => fail("--from-host: no archive or folder here is named after a host".into()),
        [] => fail(format!("--from-host {host}: none of these hosts is called so: {}", few(&all))),
        _ => fail(format!("--from-host {host}: {} hosts are called so: {}", fitting.len(), few(&fitting))),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn is_host_file(path: &Path) -> bool {
    let mut front = Vec::new();
    let begins = |text: Box<dyn BufRead>| text.take(14).read_to_end(&mut front).is_ok() && front == b"wakewatt-host ";
    !is_standard_input(path) && path.is_file() && material::open(path).is_ok_and(begins)
}

/// What is left of a file that ended too early: why it did.
struct Ended(Option<std::io::Error>);

impl Read for Ended {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

impl Gathered<'_> {
    /// A file of this host, if it is of one. What is of another host than was asked for is not read; nor anything more once there are
    /// two and none was asked for, because nothing will come of it but their names.
    /// Of a text that may hold millions of files, so many remarks and hosts are told.
    fn remark(&mut self, text: String) {
        match self.remarks.len() {
            n if n < MAX_REMARKS => self.remarks.push(text),
            MAX_REMARKS => self.remarks.push("more was left out or could not be read".into()),
            _ => {}
        }
    }

    fn cut(&mut self, text: String) {
        if self.cuts.len() < MAX_INNER {
            self.cuts.push(text);
        }
    }

    fn new<'b>(host: Option<&'b str>, clock: &'b Clock) -> Gathered<'b> {
        let (inputs, roots) = (Vec::new(), BTreeSet::new());
        Gathered { clock, inputs, roots, host, n_bytes: 0, n_inner: 0, remarks: Vec::new(), cuts: Vec::new() }
    }

    fn is_read(&mut self, root: Option<&String>) -> bool {
        let Some(root) = root else { return true };
        if self.roots.len() < MAX_REMARKS {
            self.roots.insert(root.clone());
        }
        self.host.map_or(self.roots.len() == 1, |host| root.contains(host))
    }

    fn file(&mut self, path: &Path, name: &str, root: Option<String>) -> Result<()> {
        let mut text = match is_standard_input(path) {
            true => material::standard_input().with_context(|| format!("{name}: cannot be read"))?,
            false => material::open(path)?,
        };
        let mut front = Vec::new();
        let mut ended = text.by_ref().take(FRONT).read_to_end(&mut front).err();
        if ended.is_some() && !front.is_empty() {
            // A packed file that is cut off: what came out of it is kept.
            text = Box::new(std::io::empty());
        }
        if is_tar(&front) {
            let rest: Box<dyn Read> =
                ended.map_or_else(|| Box::new(text) as Box<dyn Read>, |why| Box::new(Ended(Some(why))));
            let content = Cursor::new(front).chain(rest);
            self.archive(&mut Timed { content, clock: self.clock, n_bytes: 0 }, name, root, 1);
            return Ok(());
        }
        let bad = |why: String| Err(Failure::error(Code::BadFile, format!("{name}: {why}")));
        if let Some((packing, program)) = material::other_packing(&front) {
            let what_to_do = format!("unpack it ({program}) and give what was in it");
            return bad(format!("packed with {packing}, which is not read here; {what_to_do}"));
        }
        if are_events(&mut decoded(&front).lines()) {
            self.ended(name, ended, &front)?;
            let lines: Box<dyn BufRead> = Box::new(Cursor::new(front).chain(text));
            self.inputs.push((root, Input::Events { name: name.into(), lines }));
            return Ok(());
        }
        let rest = text.take((MAX_WHOLE + 1).saturating_sub(front.len() as u64)).read_to_end(&mut front);
        ended = ended.or(rest.err());
        self.ended(name, ended, &front)?;
        if front.len() as u64 > MAX_WHOLE {
            return bad(format!("longer than {} MiB, and no text of events", MAX_WHOLE >> 20));
        }
        self.n_bytes = self.n_bytes.saturating_add(front.len());
        if self.n_bytes > MAX_TAKEN {
            return bad(format!("more than {} MiB in all", MAX_TAKEN >> 20));
        }
        self.inputs.push((root, Input::Text { name: name.into(), path: None, bytes: front }));
        Ok(())
    }

    /// Says that a file ended too early; an error where nothing came out of it.
    fn ended(&mut self, name: &str, ended: Option<std::io::Error>, front: &[u8]) -> Result<()> {
        match ended {
            Some(error) if front.is_empty() => Err(error).with_context(|| format!("{name}: cannot be read")),
            Some(error) => {
                self.remark(format!("{name}: {error}; what stood before it was read"));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// All of an archive; `within` is the host that its own place says.
    fn archive(&mut self, content: &mut dyn Read, name: &str, within: Option<String>, depth: usize) {
        let (mut n_over, mut n_many, mut n_seen) = (0u64, 0u64, 0u64);
        let ended = tar::walk(content, &mut |entry, size, body| {
            n_seen += 1;
            if is_inner(entry) {
                let root = within.clone().or_else(|| host_of(entry)).or_else(|| Some(entry.to_string()));
                self.inner(body, &format!("{name}:{entry}"), root, depth);
                return Ok(());
            }
            let Some(want) = wanted(entry) else { return Ok(()) };
            let root = within.clone().or(want.root.clone());
            if !self.is_read(root.as_ref()) {
                return Ok(());
            }
            if self.inputs.len() >= MAX_TEXTS {
                n_many += 1;
                return Ok(());
            }
            let room = (MAX_TAKEN - self.n_bytes.min(MAX_TAKEN)) as u64;
            // Half a file would be read as a whole one.
            if size.min(want.max_bytes) > room {
                n_over += 1;
                return Ok(());
            }
            self.taken(format!("{name}:{entry}"), root, want, &mut body.take(room))
        });
        match ended {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                self.cut(format!("{name}: {error}; {n_seen} files of it were looked at, of how many is not known"));
            }
            Err(error) => self.remark(format!("{name}: {error}; what stood before it was read")),
            Ok(()) => {}
        }
        if n_many > 0 {
            self.cut(format!(
                "{name}: {n_many} of {n_seen} files were left out, because {MAX_TEXTS} are read; {SMALLER}"
            ));
        }
        if n_over > 0 {
            let most = MAX_TAKEN >> 20;
            self.remark(format!("{name}: {n_over} files were left out, because there was more than {most} MiB"));
        }
    }

    fn inner(&mut self, body: &mut dyn Read, name: &str, root: Option<String>, depth: usize) {
        if !self.is_read(root.as_ref()) {
            return;
        }
        if depth >= MAX_DEPTH || self.n_inner >= MAX_INNER {
            self.remark(format!("{name}: not opened, because it lies too deep or is one of too many"));
            return;
        }
        self.n_inner += 1;
        let mut front = Vec::new();
        let read = material::unpacked(body).and_then(|mut content| {
            content.by_ref().take(FRONT).read_to_end(&mut front)?;
            Ok(content)
        });
        match read {
            Ok(rest) if is_tar(&front) => self.archive(&mut Cursor::new(front).chain(rest), name, root, depth + 1),
            Ok(_) => {
                let why = material::other_packing(&front).map_or("no tar archive", |(packing, _)| packing);
                self.remark(format!("{name}: not opened ({why})"));
            }
            Err(error) => self.remark(format!("{name}: {error}")),
        }
    }

    /// A file of a tree, as far as it can be read.
    fn taken(&mut self, name: String, root: Option<String>, want: Wanted, body: &mut dyn Read) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        let read = body.take(want.max_bytes).read_to_end(&mut bytes);
        // So much of memory holds it, however short it is.
        let names = name.len() + root.as_ref().map_or(0, String::len) + want.path.as_ref().map_or(0, |p| p.len());
        self.n_bytes = self.n_bytes.saturating_add(bytes.len() + names + 256);
        self.inputs.push((root, Input::Text { name, path: want.path, bytes }));
        read.map(drop)
    }

    fn folder(&mut self, folder: &Path) -> Result<()> {
        let shown = folder.display();
        let entries = material::below(folder)?;
        for (n_seen, entry) in entries.iter().enumerate() {
            let so_far = || format!("{n_seen} of {} files looked at", entries.len());
            let is_full = self.inputs.len() >= MAX_TEXTS;
            if is_full || self.clock.ends_gathering(so_far) {
                let s = self.clock.longest_gathering().as_secs();
                let why = if is_full { format!("of which {MAX_TEXTS} are read") } else { format!("within {s} s") };
                self.cut(format!("{shown}: {}, {why}; give the files that matter, or a smaller folder", so_far()));
                break;
            }
            let (path, name) = (folder.join(entry), format!("{shown}/{entry}"));
            let inner = is_inner(entry).then(|| host_of(entry).unwrap_or_else(|| entry.clone()));
            let want = wanted(entry);
            let root = inner.clone().or_else(|| want.as_ref()?.root.clone());
            if (inner.is_none() && want.is_none()) || !self.is_read(root.as_ref()) {
                continue;
            }
            // A file that cannot be read is one fact less, not the end.
            let read = match want.filter(|want| inner.is_none() && want.path.is_some()) {
                None => self.file(&path, &name, root),
                Some(want) => material::open(&path)
                    .map_err(anyhow::Error::from)
                    .and_then(|mut text| Ok(self.taken(name, root, want, &mut text)?)),
            };
            if let Err(error) = read {
                self.remark(format!("{error:#}").replace('\n', " "));
            }
            if self.n_bytes > MAX_TAKEN {
                let most = MAX_TAKEN >> 20;
                self.remark(format!("{shown}: the rest was left out, because there was more than {most} MiB"));
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a file of so many bytes, in tar.
    fn head(name: &str, n_bytes: u64) -> Vec<u8> {
        let mut head = vec![0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..136].copy_from_slice(format!("{n_bytes:011o} ").as_bytes());
        head[148..156].copy_from_slice(b"        ");
        head[156] = b'0';
        head[257..262].copy_from_slice(b"ustar");
        let sum: u32 = head.iter().map(|b| u32::from(*b)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        head
    }

    /// Every look at it takes so long.
    fn clock(longest: Duration, look: Duration) -> Clock {
        let spent = std::cell::Cell::new(Duration::ZERO);
        Clock::by(longest, move || {
            spent.set(spent.get() + look);
            spent.get()
        })
    }

    #[test]
    fn an_archive_without_end_is_read_for_its_time_and_what_came_before_is_kept() {
        let clock = clock(Duration::from_secs(3), Duration::from_millis(1));
        let mut all = Gathered::new(None, &clock);
        let mut front = head("proc/cmdline", 5);
        front.extend(b"quiet");
        front.resize(1024, 0);
        front.extend(head("huge", 4 << 30));
        let content = Cursor::new(front).chain(std::io::repeat(0));
        all.archive(&mut Timed { content, clock: &clock, n_bytes: 0 }, "a.tar", None, 1);
        assert_eq!(all.inputs.len(), 1);
        assert!(all.cuts[0].contains("longer than 2 s") && all.cuts[0].contains("2 files of it"), "{:?}", all.cuts);
    }

    /// As many looks as there are files would take longer than the time; how many were read is said.
    #[test]
    fn a_folder_of_many_files_is_read_for_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("proc/irq");
        for n in 0..100 {
            std::fs::create_dir_all(folder.join(n.to_string())).unwrap();
            std::fs::write(folder.join(format!("{n}/smp_affinity_list")), "0\n").unwrap();
        }
        let clock = clock(Duration::from_secs(60), Duration::from_secs(1));
        let (imported, cuts) = read_by(&clock, &[dir.path().into()], None).unwrap();
        assert!(cuts[0].contains("40 of 100 files looked at, within 40 s; give the files"), "{cuts:?}");
        assert_eq!(imported.document.remarks[..cuts.len()], cuts);
        assert!((15..=20).contains(&imported.document.files.len()), "{}", imported.document.files.len());
        assert!(cuts[1].contains("of 40 texts were read within 60 s"), "{cuts:?}");
    }

    #[test]
    fn what_takes_no_time_is_read_whole_and_nothing_is_said() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/cmdline"), "quiet\n").unwrap();
        let (imported, cuts) = read_by(&clock(LONGEST, Duration::ZERO), &[dir.path().into()], None).unwrap();
        assert_eq!((imported.document.files.len(), cuts), (1, Vec::new()));
    }
}
