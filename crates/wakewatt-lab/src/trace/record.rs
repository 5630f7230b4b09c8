//! The recorder of `trace --record`: ring buffer to file, window by window.
//!
//! The kernel side fills the ring buffer without waking us; we look ten times a second and drop what we found into the
//! encoder. At a window's end the blocks go to the file with a mark that says how much was lost. A file error ends the
//! recording, not the trace: it is said once, marked in the file if that still works, and the histograms go on.

use super::header::{now_s, pair_of, settings_of};
use super::{RecordPlan, refused};
use crate::context::Lab;
use crate::refusal::Refusal;
use std::path::Path;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::{Encoder, Ending, Header, Mark, Reader};
use wakewatt_core::units::show_bytes;
use wakewatt_host::wtrace_file::{self, RecordError, WtraceFile};
use wakewatt_probes::wake::{Record, WakeProbe};

/// How often the ring buffer is emptied: 128 CPUs at 4000 stays a second fill 3 MB in this time.
pub(super) const DRAIN_NS: u64 = 100_000_000;
const RING_BYTES_PER_CPU: u32 = 64 * 1024;
/// Two CPUs that wake as fast as they can make 50,000 records of 64 bytes a second. While others run on them we may be late by a second.
const LEAST_RING_BYTES: u32 = 4 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// A recording is read whole; this is beyond what `--record-mib` usually allows.
pub const MAX_READ: u64 = 4096 * MIB;

/// A recording under way.
pub(super) struct Recorder<'a> {
    lab: Lab<'a>,
    file: WtraceFile,
    encoder: Encoder,
    every: u64,
    window: u64,
    is_open: bool,
    n_lost: u64,
    n_stored: u64,
    header: Header,
    complaint: Option<String>,
    is_refused: bool,
}

/// Ring buffer size for so many CPUs: a power of two, 4 to 64 MiB.
pub(super) fn ring_bytes(n_cpus: u32) -> u32 {
    n_cpus.saturating_mul(RING_BYTES_PER_CPU).max(LEAST_RING_BYTES).next_power_of_two().min(64 * 1024 * 1024)
}

impl<'a> Recorder<'a> {
    /// Creates or continues the file. `gaps` is what the probe could not attach.
    pub(super) fn start(plan: &RecordPlan, header: Header, lab: Lab<'a>) -> Result<Recorder<'a>, Refusal> {
        let path = &plan.path;
        let bad = |why: String| Refusal::File(format!("{}: {why}", path.display()));
        let max_bytes = plan.max_mib.saturating_mul(MIB);
        let (mut file, encoder, first) = if plan.is_resumed {
            let bytes = wtrace_file::read(path, MAX_READ).map_err(|e| bad(e.to_string()))?;
            let mut reader = Reader::new(&bytes).map_err(|e| bad(e.to_string()))?;
            reader.by_ref().for_each(drop);
            if let Some(Ending::Damaged { at_byte, why }) = reader.ending() {
                let lost = bytes.len() as u64 - at_byte;
                return Err(bad(format!(
                    "cannot be continued, it is damaged at byte {at_byte} ({why}) and {lost} bytes follow, which would be \
                     lost; record to another file"
                )));
            }
            if reader.is_version_1() {
                return Err(bad(
                    "cannot be continued, it is of the format's first version; record to another file".into()
                ));
            }
            if let Some(difference) = reader.header.differs_from(&header) {
                return Err(bad(format!("cannot be continued, it was recorded on another set-up ({difference})")));
            }
            let mut encoder = Encoder::resume(&reader.header);
            let is_same_boot = header.boot.is_some() && header.boot == reader.header.boot;
            let mut mark = encoder.mark(&Mark::Resumed { at_s: now_s(), is_same_boot });
            // All of them anew: what they were when the recording ended is spread over its marks.
            let unknown = Header { governor: None, limits: Vec::new(), tables: Vec::new(), ..header.clone() };
            for change in unknown.settings_changed(&header, lab.clock.now_ns()) {
                mark.extend(encoder.mark(&change));
            }
            if reader.good_bytes() + mark.len() as u64 > max_bytes {
                return Err(bad("is as long as --record-mib allows; allow more".into()));
            }
            let file = WtraceFile::resume(path, reader.good_bytes(), max_bytes).map_err(|e| bad(e.to_string()))?;
            (file, encoder, mark)
        } else {
            let hint = |e: std::io::Error| match e.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    "exists; overwrite it with --force, or continue it with --resume".into()
                }
                _ => e.to_string(),
            };
            let made = match path == Path::new("-") {
                true => WtraceFile::standard_output(max_bytes),
                false => WtraceFile::create(path, plan.is_overwriting, max_bytes),
            };
            let file = made.map_err(|e| bad(hint(e)))?;
            let (encoder, first) = Encoder::start(&header);
            (file, encoder, first)
        };
        file.append(&first).map_err(|e| Refusal::File(e.to_string()))?;
        Ok(Recorder {
            lab,
            file,
            encoder,
            every: plan.every,
            window: 0,
            is_open: false,
            n_lost: 0,
            n_stored: 0,
            header,
            complaint: None,
            is_refused: false,
        })
    }

    /// Notes settings that governors look at and that changed since they were last read.
    pub(super) fn settings(&mut self, facts: &Snapshot, at_ns: u64) {
        let now = settings_of(facts, self.header.clone());
        for change in self.header.settings_changed(&now, at_ns) {
            let mark = self.encoder.mark(&change);
            self.append(&mark);
        }
        self.header = now;
    }

    /// Opens the next window, if it is one to be recorded.
    pub(super) fn open(&mut self, probe: &mut WakeProbe, at_ns: u64) -> Result<(), Refusal> {
        let is_wanted = self.window.is_multiple_of(self.every) && !self.file.is_stopped();
        self.window += 1;
        if is_wanted {
            let mark = self.encoder.mark(&Mark::WindowOpened { at_ns });
            self.append(&mark);
        }
        self.is_open = is_wanted;
        probe.record(is_wanted).map_err(refused)
    }

    /// Takes what the ring buffer holds.
    pub(super) fn drain(&mut self, probe: &mut WakeProbe) {
        let mut blocks = Vec::new();
        let encoder = &mut self.encoder;
        probe.drain(|record| {
            let full = match record {
                Record::Pair(pair) => encoder.push(pair_of(&pair)),
                Record::Choice(choice) => encoder.push_choice(choice),
            };
            blocks.extend(full.unwrap_or_default());
        });
        self.append(&blocks);
    }

    /// Ends a window; `n_lost` is the probe's running count.
    pub(super) fn close(&mut self, probe: &mut WakeProbe, at_ns: u64, n_lost: u64) {
        self.drain(probe);
        if self.is_open {
            let mark = self.encoder.mark(&Mark::WindowClosed { at_ns, n_lost: n_lost - self.n_lost });
            self.append(&mark);
        }
        self.n_lost = n_lost;
    }

    fn append(&mut self, blocks: &[u8]) {
        match self.file.append(blocks) {
            Err(why) => {
                // Now, not at the end: that may be hours away.
                self.lab.tell.complain(&format!("{why}; tracing goes on"));
                self.is_refused = matches!(why, RecordError::Refused { .. });
                self.complaint = Some(why.to_string());
            }
            Ok(()) if !self.file.is_stopped() => self.n_stored = self.encoder.n_packed(),
            Ok(()) => {}
        }
    }

    /// Did the system refuse to write?
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Ends the file; what to tell the user.
    pub(super) fn finish(mut self) -> String {
        let last = match &self.complaint {
            // What waits does not fit or cannot be written: say so in the file, if a few bytes still can be.
            Some(why) => {
                let _ = self.encoder.flush();
                let mut last = self.encoder.mark(&Mark::Stopped { why: why.clone() });
                last.extend(self.encoder.end());
                last
            }
            None => self.encoder.end(),
        };
        let finished = self.file.finish(&last);
        let n_pairs = if self.complaint.is_some() { self.n_stored } else { self.encoder.n_packed() };
        let n_events = (2 * n_pairs).max(1);
        let each = self.file.length() as f64 / n_events as f64;
        let size = show_bytes(self.file.length());
        match (self.complaint, finished) {
            (Some(why), _) => format!("recording stopped early, {n_pairs} idle intervals are kept: {why}"),
            (None, Err(why)) => format!("the recording's end could not be written, what came before is kept: {why}"),
            (None, Ok(_)) => format!("recorded {n_pairs} idle intervals in {size}, {each:.1} bytes an event"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_grows_with_the_machine_and_not_for_ever() {
        assert_eq!((ring_bytes(2), ring_bytes(512), ring_bytes(4096)), (4 << 20, 32 << 20, 64 << 20));
    }
}
