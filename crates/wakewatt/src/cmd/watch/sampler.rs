//! Where moments come from: the machine, a tree, a recorded host, or a recording being played.

use super::recorder::Recorder;
use crate::cli::From;
use crate::exit::{Code, Failure};
use crate::output;
use anyhow::{Context, Result};
use std::path::Path;
use wakewatt_core::cpuset::MAX_CPUS;
use wakewatt_core::facts::{Cpus, Domain, holders::Holders};
use wakewatt_core::source::Source;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::counters::{Clocks, FromSource, Reader};
use wakewatt_core::watch::recording::{self, Recording};
use wakewatt_core::watch::{Counters, Layout, Rates, Reading, Sources, discover::discover};
use wakewatt_host::kept::KeptFiles;
use wakewatt_host::live::Live;
use wakewatt_host::{clock, input, own_usage};

/// Holders are looked for when the limit changes, and once in this many intervals: it walks all of /proc.
const HOLDERS_EVERY: u64 = 30;

/// Moments.
pub enum Feed {
    /// As they happen.
    Live(Box<Sampler>),
    /// As they happened.
    Play(Box<Player>),
}

impl Feed {
    /// What there is to watch.
    pub fn layout(&self) -> &Layout {
        match self {
            Feed::Live(sampler) => &sampler.layout,
            Feed::Play(player) => &player.recording.layout,
        }
    }

    /// Ends a recording; an error when it is not whole.
    pub fn finish(&mut self, why: &str) -> Result<()> {
        match self {
            Feed::Live(sampler) => sampler.recorder.take().map_or(Ok(()), |r| r.finish(why)),
            Feed::Play(_) => Ok(()),
        }
    }
}

/// Reads a machine.
pub struct Sampler {
    /// What there is to watch.
    pub layout: Layout,
    /// A recorded host: it has one moment only.
    pub is_still: bool,
    /// Written along, with `--record`.
    pub recorder: Option<Recorder>,
    reader: Box<dyn Reader>,
    source: Box<dyn Source>,
    previous: Option<Counters>,
    holders: Vec<String>,
    holders_of: Option<LatencyLimit>,
}

impl Sampler {
    /// Looks at the machine, tree or recorded host.
    pub fn open(from: &From, sources: Sources) -> Result<Sampler> {
        let source = crate::cmd::open(from)?;
        let layout = discover(&*source, sources);
        let n_files = layout.files.len();
        let reader: Box<dyn Reader> = match (&from.host, &from.sysroot) {
            (Some(_), _) => Box::new(FromSource::new(crate::cmd::open(from)?)),
            (_, Some(folder)) => Box::new(KeptFiles::new(Live::sysroot(folder)?, n_files)),
            _ => Box::new(KeptFiles::new(Live::this_machine(), n_files)),
        };
        Ok(Sampler {
            layout,
            is_still: from.host.is_some(),
            recorder: None,
            reader,
            source,
            previous: None,
            holders: Vec::new(),
            holders_of: None,
        })
    }

    /// From now on writes every moment into a folder, up to so many bytes.
    pub fn record(&mut self, folder: &Path, limit_bytes: u64) -> Result<()> {
        self.recorder = Some(Recorder::create(folder, &self.layout, limit_bytes)?);
        Ok(())
    }

    /// Reads a moment; the rates since the one before, if there was one.
    pub fn take(&mut self) -> Option<Rates> {
        let clocks = Clocks {
            at_ns: clock::monotonic_ns(),
            boot_at_ns: clock::boottime_ns(),
            wall_at_ns: clock::realtime_ns(),
            own_cpu_ns: clock::own_cpu_ns(),
            n_own_wakeups: own_usage::n_wakeups().unwrap_or(0),
        };
        let mut now = Counters::read(&self.layout, &mut *self.reader, clocks, self.previous.as_ref());
        now.took_ns = clock::monotonic_ns().saturating_sub(clocks.at_ns);
        self.look_for_holders(&now);
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&now);
        }
        let mut rates = match &self.previous {
            Some(then) => Some(Rates::between(&self.layout, then, &now)),
            None if self.is_still => Some(Rates::since_boot(&self.layout, &now, self.uptime_ns(&now))),
            None => None,
        };
        if let Some(rates) = &mut rates {
            rates.machine.limit_holders.clone_from(&self.holders);
            rates.notes.extend(self.reader.note());
        }
        self.previous = Some(now);
        rates
    }

    /// How long the recorded machine was up: /proc/uptime, else what its first CPU's ticks add up to.
    fn uptime_ns(&self, now: &Counters) -> Option<u64> {
        let load = wakewatt_core::facts::load::Load::read(&*self.source, &Cpus::default());
        let ticks = || {
            let cpu = now.cpus.first()?;
            Some(cpu.busy_ns.get()?.saturating_add(cpu.idle_ns.get()?).saturating_add(cpu.steal_ns.get()?))
        };
        load.uptime_ns.get().copied().or_else(ticks)
    }

    fn look_for_holders(&mut self, now: &Counters) {
        let limit = match now.global_limit {
            Reading::Known(limit) if limit != LatencyLimit::None => Some(limit),
            _ => None,
        };
        if limit.is_none() {
            self.holders.clear();
        } else if self.holders_of != limit || now.n_before.is_multiple_of(HOLDERS_EVERY) {
            let found = Holders::read(&*self.source, &Cpus::default());
            let name = |h: &&wakewatt_core::facts::holders::Holder| {
                format!("{} (pid {})", h.comm.as_deref().unwrap_or("?"), h.pid)
            };
            self.holders = match found.of_latency_limit() {
                Some(holders) => holders.iter().map(name).collect(),
                None => Vec::new(),
            };
        }
        self.holders_of = limit;
    }
}

/// Plays a recording.
pub struct Player {
    /// All of it.
    pub recording: Recording,
}

impl Player {
    /// Reads `DIR/counters.watch`, or the file itself.
    pub fn open(path: &Path) -> Result<Player> {
        let file = if path.is_dir() { path.join(recording::FILE) } else { path.to_path_buf() };
        let hint =
            || format!("{}: cannot be played; make a recording with: wakewatt watch --record DIR", file.display());
        let bytes = input::read(&file, input::WATCH)?;
        let text = String::from_utf8_lossy(&bytes);
        let decode = |json: &str| serde_json::from_str(json).map_err(|e| e.to_string());
        let recording = recording::read(&text, decode).with_context(hint)?;
        // Anything above is no CPU, and would be given room on the screen.
        if recording.layout.cpus.iter().any(|c| c.cpu >= MAX_CPUS) {
            return Err(Failure::error(Code::BadFile, format!("{}: it names impossible CPUs", file.display())));
        }
        if recording.moments.len() < 2 {
            let n = recording.moments.len();
            let why = format!("{}: holds {n} moments; a rate needs two", file.display());
            return Err(Failure::error(Code::BadFile, why));
        }
        if let Some(trouble) = &recording.trouble {
            output::remark(&format!("{}: {trouble}", file.display()));
        } else if recording.end.is_none() {
            output::remark(&format!(
                "{}: it was cut off (no end line); all {} whole moments are here",
                file.display(),
                recording.moments.len()
            ));
        }
        Ok(Player { recording })
    }

    /// Intervals in it.
    pub fn n_intervals(&self) -> usize {
        self.recording.moments.len() - 1
    }

    /// One interval.
    pub fn rates(&self, at: usize) -> Option<Rates> {
        let (then, now) = (self.recording.moments.get(at)?, self.recording.moments.get(at + 1)?);
        Some(Rates::between(&self.recording.layout, then, now))
    }
}
