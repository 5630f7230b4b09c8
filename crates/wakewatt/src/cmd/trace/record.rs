//! The recorder of `trace --record`: ring buffer to file, window by window.
//!
//! The kernel side fills the ring buffer without waking us; we look ten times a second and drop what we found into the
//! encoder. At a window's end the blocks go to the file with a mark that says how much was lost. A file error ends the
//! recording, not the trace: it is said once, marked in the file if that still works, and the histograms go on.

use crate::cli::trace::RecordArgs;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::Result;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::{Encoder, Ending, Header, Mark, Reader, StateTable, TableState};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::units::show_bytes;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::kernel_config;
use wakewatt_host::wtrace_file::{self, RecordError, WtraceFile};
use wakewatt_probes::wake::{IdleRecord, WakeProbe};

/// How often the ring buffer is emptied: 128 CPUs at 4000 stays a second fill 3 MB in this time.
pub(super) const DRAIN_NS: u64 = 100_000_000;
const RING_BYTES_PER_CPU: u32 = 64 * 1024;
const MIB: u64 = 1024 * 1024;
/// A recording is read whole; this is beyond what `--record-mib` usually allows.
pub(super) const MAX_READ: u64 = 4096 * MIB;

/// A recording under way.
pub(super) struct Recorder {
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

/// Ring buffer size for so many CPUs: a power of two, at most 64 MiB.
pub(super) fn ring_bytes(n_cpus: u32) -> u32 {
    (n_cpus.max(16).saturating_mul(RING_BYTES_PER_CPU)).next_power_of_two().min(64 * 1024 * 1024)
}

impl Recorder {
    /// Creates or continues the file. `gaps` is what the probe could not attach.
    pub(super) fn start(args: &RecordArgs, path: &Path, header: Header) -> Result<Recorder> {
        let bad = |why: String| Failure::error(Code::BadFile, format!("{}: {why}", path.display()));
        let max_bytes = args.record_mib.saturating_mul(MIB);
        let (mut file, encoder, first) = if args.resume {
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
            if let Some(difference) = reader.header.differs_from(&header) {
                return Err(bad(format!("cannot be continued, it was recorded on another set-up ({difference})")));
            }
            let mut encoder = Encoder::resume(&reader.header);
            let is_same_boot = header.boot.is_some() && header.boot == reader.header.boot;
            let mut mark = encoder.mark(&Mark::Resumed { at_s: now_s(), is_same_boot });
            // All of them anew: what they were when the recording ended is spread over its marks.
            let unknown = Header { governor: None, limits: Vec::new(), tables: Vec::new(), ..header.clone() };
            for change in unknown.settings_changed(&header, monotonic_ns()) {
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
            let file = WtraceFile::create(path, args.force, max_bytes).map_err(|e| bad(hint(e)))?;
            let (encoder, first) = Encoder::start(&header);
            (file, encoder, first)
        };
        file.append(&first).map_err(|e| Failure::error(Code::BadFile, e.to_string()))?;
        Ok(Recorder {
            file,
            encoder,
            every: args.record_every,
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
    pub(super) fn open(&mut self, probe: &mut WakeProbe, at_ns: u64) -> Result<()> {
        let is_wanted = self.window.is_multiple_of(self.every) && !self.file.is_stopped();
        self.window += 1;
        if is_wanted {
            let mark = self.encoder.mark(&Mark::WindowOpened { at_ns });
            self.append(&mark);
        }
        self.is_open = is_wanted;
        probe.record(is_wanted).map_err(super::refused)
    }

    /// Takes what the ring buffer holds.
    pub(super) fn drain(&mut self, probe: &mut WakeProbe) {
        let mut blocks = Vec::new();
        let encoder = &mut self.encoder;
        probe.drain(|record| blocks.extend(encoder.push(pair_of(&record)).unwrap_or_default()));
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
                output::complain(&format!("{why}; tracing goes on"));
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

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The probe's record as core knows it: relative to the idle loop's reference time.
fn pair_of(record: &IdleRecord) -> IdlePair {
    let flags = record.flags;
    let from_reference = |at_ns: i64| at_ns.wrapping_sub(record.reference_at_ns.cast_signed());
    IdlePair {
        cpu: record.cpu,
        enter_at_ns: record.enter_at_ns,
        duration_ns: record.exit_at_ns.saturating_sub(record.enter_at_ns),
        state: record.state,
        sleep_length_ns: flags.has_sleep_length.then(|| from_reference(record.sleep_until_ns)),
        next_event_ns: flags.has_timers.then(|| from_reference(record.next_event_at_ns)),
        entry_lag_ns: flags.has_timers.then(|| record.enter_at_ns.saturating_sub(record.reference_at_ns)),
        is_tick_stopped: flags.has_timers.then_some(flags.is_stopped),
        is_first: flags.is_first,
        ended_by: WakeCause::of(record.cause),
        is_tick_fired: flags.has_timers.then_some(flags.is_tick_fired),
        n_iowait: flags.has_iowait.then_some(record.n_iowait),
    }
}

/// What the file says about this machine.
pub(super) fn header(facts: &Snapshot, n_cpus: u32, args: &RecordArgs, window_ns: u64, gaps: &[String]) -> Header {
    let uname = rustix::system::uname();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let header = Header {
        wakewatt: env!("CARGO_PKG_VERSION").into(),
        created_at_s: now_s(),
        boot: boot.map(|b| b.trim().to_string()),
        kernel: uname.release().to_string_lossy().into_owned(),
        arch: uname.machine().to_string_lossy().into_owned(),
        tick_ns: kernel_config::tick_hz().map(|hz| (1_000_000_000 + hz / 2) / hz),
        n_cpus,
        sources: vec![
            "stays: power:cpu_idle".into(),
            "next event, sleep length, tick: the tick's own structure at entry (struct tick_sched), tick_stop, hrtimer events"
                .into(),
            "iowait: the run queue's own count at entry".into(),
        ],
        gaps: gaps.to_vec(),
        window_ns,
        every_window: args.record_every,
        ..Header::default()
    };
    settings_of(facts, header)
}

/// The same header with what governors look at as it is now.
fn settings_of(facts: &Snapshot, header: Header) -> Header {
    let idle = &facts.idle;
    let tables = idle.tables().into_iter().map(|(cpus, rows)| StateTable {
        cpus: cpus.to_string(),
        states: rows
            .iter()
            .map(|r| TableState {
                index: r.index,
                name: r.name.clone(),
                exit_latency_ns: r.exit_latency_ns,
                target_residency_ns: r.target_residency_ns,
                is_polling: r.is_polling(),
                is_enabled: r.is_enabled,
            })
            .collect(),
    });
    let mut limits: Vec<(String, String)> = Vec::new();
    limits.extend(facts.qos.global.get().map(|l| ("all".to_string(), l.to_string())));
    limits.extend(facts.qos.per_cpu.known().map(|(cpus, l)| (cpus.to_string(), l.to_string())));
    Header {
        driver: idle.driver.get().cloned(),
        governor: idle.governor.get().cloned(),
        tables: tables.collect(),
        limits,
        ..header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_relative_and_unknown_stays_unknown() {
        let mut record = IdleRecord {
            cpu: 3,
            enter_at_ns: 1_000,
            exit_at_ns: 5_000,
            reference_at_ns: 900,
            next_event_at_ns: 850,
            sleep_until_ns: 4_900,
            n_iowait: 2,
            state: 1,
            flags: Default::default(),
            cause: 4,
        };
        let bare = pair_of(&record);
        assert_eq!(
            (bare.duration_ns, bare.next_event_ns, bare.sleep_length_ns, bare.n_iowait),
            (4_000, None, None, None)
        );
        assert_eq!((bare.is_tick_stopped, bare.ended_by), (None, WakeCause::RemoteWake));
        record.flags.has_timers = true;
        record.flags.has_sleep_length = true;
        let full = pair_of(&record);
        assert_eq!((full.next_event_ns, full.sleep_length_ns, full.entry_lag_ns), (Some(-50), Some(4_000), Some(100)));
        assert_eq!((ring_bytes(2), ring_bytes(512), ring_bytes(4096)), (1 << 20, 32 << 20, 64 << 20));
    }
}
