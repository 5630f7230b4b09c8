//! One copy of the command: its arguments, its output, its end.

use super::pages;
use super::plan::{PerNodePlan, Where};
use crate::refusal::Refusal;
use regex_lite::Regex;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use wakewatt_core::samples::numa_maps::NumaMap;
use wakewatt_host::bound::bind;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::place::Folder;

/// A running copy.
pub(super) struct Copy {
    place: Where,
    child: Child,
    readers: Vec<JoinHandle<Option<f64>>>,
    start_at_ns: u64,
    end: Option<(u64, u8)>,
    map: Option<NumaMap>,
    looked_at_ns: Option<u64>,
}

/// What is known of one that has ended.
pub struct EndedCopy {
    /// Where it ran.
    pub place: Where,
    /// Its exit code, or 128 and its signal.
    pub code: u8,
    /// When it was started.
    pub start_at_ns: u64,
    /// When its end was seen.
    pub end_at_ns: u64,
    /// The last number that was found in its output.
    pub metric: Option<f64>,
    /// Where its pages lay at the last look that saw any.
    pub map: Option<NumaMap>,
    /// When that was seen.
    pub looked_at_ns: Option<u64>,
}

impl Copy {
    /// Starts it.
    pub(super) fn start(plan: &PerNodePlan, place: &Where, n: usize) -> Result<Copy, Refusal> {
        let words: Vec<OsString> = plan.command.iter().map(|word| substitute(word, place, n)).collect();
        let (program, arguments) = words.split_first().ok_or_else(|| Refusal::Asked("no command".into()))?;
        let name = program.to_string_lossy().into_owned();
        let cannot = |e: &dyn std::fmt::Display| {
            let bound = place.node.map_or(String::new(), |n| format!(", bound to node {n}"));
            Refusal::Asked(format!("{name}: could not be started{bound}: {e}; the command comes after --"))
        };
        let mut command = wakewatt_host::environment::users(program).map_err(|e| cannot(&e))?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        bind(&mut command, &place.cpus, place.node).map_err(|e| Refusal::File(e.to_string()))?;
        let label = place.node.map_or("unbound".to_string(), |n| format!("node{n}"));
        // Before the command: one whose output cannot be kept is not started.
        let (out, err) = (kept(plan, &label, "out")?, kept(plan, &label, "err")?);
        let start_at_ns = monotonic_ns();
        let mut child = command.spawn().map_err(|e| cannot(&e))?;
        let mut readers = Vec::new();
        if let Some(from) = child.stdout.take() {
            readers.push(reader(from, out, format!("[{label}] "), plan.pass.output, plan.metric.clone()));
        }
        if let Some(from) = child.stderr.take() {
            readers.push(reader(from, err, format!("[{label}] "), plan.pass.error, None));
        }
        Ok(Copy { place: place.clone(), child, readers, start_at_ns, end: None, map: None, looked_at_ns: None })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it ended? Its number may be another process's after this.
    pub(super) fn is_over(&mut self) -> bool {
        if self.end.is_none() {
            let code = match self.child.try_wait() {
                Ok(None) => return false,
                Ok(Some(status)) => status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255),
                Err(_) => 255,
            };
            self.end = Some((monotonic_ns(), u8::try_from(code & 0xff).unwrap_or(255)));
        }
        true
    }

    /// As seen at the last look.
    pub(super) fn is_known_over(&self) -> bool {
        self.end.is_some()
    }

    /// Looks where its pages lie, and those of its children; the last look that saw any counts.
    pub(super) fn look(&mut self) {
        if !self.is_known_over() {
            let at_ns = monotonic_ns();
            if let Some(seen) = pages::of_group(self.pid()) {
                (self.map, self.looked_at_ns) = (Some(seen), Some(at_ns));
            }
        }
    }

    /// Waits for its end and its output.
    pub(super) fn finish(mut self) -> EndedCopy {
        if self.end.is_none() {
            let _ = self.child.wait();
        }
        self.is_over();
        let metrics = self.readers.into_iter().map(|r| r.join().ok().flatten());
        let metric = metrics.collect::<Vec<_>>().into_iter().flatten().next_back();
        let (end_at_ns, code) = self.end.unwrap_or((monotonic_ns(), 255));
        let (start_at_ns, map, looked_at_ns) = (self.start_at_ns, self.map, self.looked_at_ns);
        EndedCopy { place: self.place, code, start_at_ns, end_at_ns, metric, map, looked_at_ns }
    }
}

/// The file for one stream of a copy, emptied, if --output named a folder.
fn kept(plan: &PerNodePlan, label: &str, kind: &str) -> Result<Option<File>, Refusal> {
    let Some(folder) = &plan.folder else { return Ok(None) };
    let file = Folder::open(folder).and_then(|folder| folder.place(&format!("{label}.{kind}"))?.fresh());
    file.map(Some).map_err(|e| Refusal::File(format!("{e}; --output names an existing folder")))
}

/// Passes lines on, with the copy's name in front or to a file; returns the last number the expression found.
fn reader(
    from: impl Read + Send + 'static,
    mut to: Option<File>,
    prefix: String,
    pass: fn(&[u8]),
    metric: Option<Regex>,
) -> JoinHandle<Option<f64>> {
    std::thread::spawn(move || {
        let (mut from, mut line, mut found) = (BufReader::new(from), Vec::new(), None);
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            let number = metric.as_ref().and_then(|m| m.captures(&text)?.get(1)?.as_str().parse().ok());
            found = number.or(found);
            // A full disk or a closed pipe must not stop the reading, or the command would wait for us for ever.
            match &mut to {
                Some(file) => _ = file.write_all(&line),
                None => {
                    pass(format!("{prefix}{}\n", text.trim_end_matches('\n')).as_bytes());
                }
            }
            line.clear();
        }
        found
    })
}

/// `{node}`, `{cpus}` and `{n}`; an unbound copy is on node `all`. Words that are not UTF-8 stay as they are.
fn substitute(word: &OsStr, place: &Where, n: usize) -> OsString {
    let Some(text) = word.to_str() else { return word.to_os_string() };
    let node = place.node.map_or("all".to_string(), |n| n.to_string());
    text.replace("{node}", &node).replace("{cpus}", &place.cpus.to_string()).replace("{n}", &n.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::cpuset::CpuSet;

    #[test]
    fn words_are_filled_in() {
        let place = Where { node: Some(1), cpus: CpuSet::parse("4-7,12").unwrap() };
        let of = |word: &str, place: &Where| substitute(OsStr::new(word), place, 2).into_string().unwrap();
        assert_eq!(of("--port=80{node}", &place), "--port=801");
        assert_eq!(of("{cpus}/{n}/{other}", &place), "4-7,12/2/{other}");
        assert_eq!(of("log.{node}", &Where { node: None, ..place }), "log.all");
    }

    #[test]
    fn the_last_number_of_the_output_counts() {
        let text: &[u8] = b"score: 1.5\nnothing\nscore: 2.5 and \xff\nend";
        let metric = Some(Regex::new("score: ([0-9.]+)").unwrap());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.out");
        let to = Some(File::create(&file).unwrap());
        let found = reader(text, to, String::new(), |_| (), metric).join().unwrap();
        assert_eq!(found, Some(2.5));
        assert_eq!(std::fs::read(file).unwrap(), text);
    }
}
