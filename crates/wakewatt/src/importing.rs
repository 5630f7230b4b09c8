//! Texts of other tools as they lie on a disk: files, packed files, archives, archives inside them, folders. Which of them are read, and
//! that they are of one host; what they say is the business of `wakewatt_import`.
//!
//! A long text of events is read line by line; everything else is taken whole, as far as any tool prints. A folder or an archive that
//! holds the reports of several hosts is refused with their names until one is chosen, because two hosts must not become one.

use crate::exit::{Code, Failure};
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wakewatt_host::{material, recorded};
use wakewatt_import::archive::{Wanted, host_of, is_inner, is_tar, wanted};
use wakewatt_import::events::are_events;
use wakewatt_import::plain::decoded;
use wakewatt_import::{Imported, Input, import, tar};
use wakewatt_words::{spoken, word};

/// By so much of it a text is told.
const FRONT: u64 = 256 << 10;
/// The longest text that is read whole.
const MAX_WHOLE: u64 = 64 << 20;
/// All that is taken of archives and folders.
const MAX_TAKEN: usize = 1 << 30;
/// Remarks and hosts that are kept of them.
const MAX_REMARKS: usize = 1000;
/// Archives are read for so long, all of them together: 64 GiB of zeros are a few KiB when packed.
const LONGEST: Duration = Duration::from_secs(60);
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

/// When reading began, for how long it may last, and who is told how far it is.
struct Clock {
    began_at: Instant,
    longest: Duration,
    bar: Progress,
}

impl Clock {
    fn start(longest: Duration) -> Clock {
        Clock { began_at: Instant::now(), longest, bar: Progress::start("import") }
    }
}

impl<R: Read> Read for Timed<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let spent = self.clock.began_at.elapsed();
        if spent > self.clock.longest {
            let why = format!(
                "reading archives took longer than {} s; unpack it and give the files that matter",
                self.clock.longest.as_secs()
            );
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, why));
        }
        let n = self.content.read(bytes)?;
        let before = self.n_bytes;
        self.n_bytes += n as u64;
        // Told every 64 MiB: telling takes time as well.
        if before >> 26 != self.n_bytes >> 26 {
            self.clock.bar.set(
                spent.as_secs_f64() / self.clock.longest.as_secs_f64(),
                &format!("{} MiB unpacked", self.n_bytes >> 20),
            );
        }
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
    let clock = Clock::start(LONGEST);
    let mut all = Gathered::new(host, &clock);
    for file in files {
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
    let mut imported = import(inputs);
    imported.document.remarks.extend(all.remarks);
    if n_left > 0 {
        imported
            .document
            .remarks
            .push(format!("{n_left} texts that are not of this host, or of no host by their place, were left out"));
    }
    Ok(imported)
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

    fn new<'b>(host: Option<&'b str>, clock: &'b Clock) -> Gathered<'b> {
        let (inputs, roots, remarks) = (Vec::new(), BTreeSet::new(), Vec::new());
        Gathered { clock, inputs, roots, host, n_bytes: 0, n_inner: 0, remarks }
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
            self.cut(name, ended, &front)?;
            let lines: Box<dyn BufRead> = Box::new(Cursor::new(front).chain(text));
            self.inputs.push((root, Input::Events { name: name.into(), lines }));
            return Ok(());
        }
        let rest = text.take((MAX_WHOLE + 1).saturating_sub(front.len() as u64)).read_to_end(&mut front);
        ended = ended.or(rest.err());
        self.cut(name, ended, &front)?;
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
    fn cut(&mut self, name: &str, ended: Option<std::io::Error>, front: &[u8]) -> Result<()> {
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
        let mut n_over = 0;
        let ended = tar::walk(content, &mut |entry, size, body| {
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
            let room = (MAX_TAKEN - self.n_bytes.min(MAX_TAKEN)) as u64;
            // Half a file would be read as a whole one.
            if size.min(want.max_bytes) > room {
                n_over += 1;
                return Ok(());
            }
            self.taken(format!("{name}:{entry}"), root, want, &mut body.take(room))
        });
        if let Err(error) = ended {
            self.remark(format!("{name}: {error}; what stood before it was read"));
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
        for entry in material::below(folder)? {
            let (path, name) = (folder.join(&entry), format!("{shown}/{entry}"));
            let inner = is_inner(&entry).then(|| host_of(&entry).unwrap_or_else(|| entry.clone()));
            let want = wanted(&entry);
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

    /// Zeros without end, a thousand pieces a second.
    struct Slow;

    impl Read for Slow {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            bytes.fill(0);
            Ok(bytes.len())
        }
    }

    #[test]
    fn an_archive_without_end_is_read_for_its_time_and_what_came_before_is_kept() {
        let clock = Clock::start(Duration::from_secs(2));
        let mut all = Gathered::new(None, &clock);
        let mut front = head("proc/cmdline", 5);
        front.extend(b"quiet");
        front.resize(1024, 0);
        front.extend(head("huge", 4 << 30));
        let content = Cursor::new(front).chain(Slow);
        all.archive(&mut Timed { content, clock: &clock, n_bytes: 0 }, "a.tar", None, 1);
        assert_eq!(all.inputs.len(), 1);
        assert!(all.remarks[0].contains("longer than 2 s") && all.remarks[0].contains("what stood before it was read"));
        assert!(clock.began_at.elapsed() < Duration::from_secs(60));
    }
}
