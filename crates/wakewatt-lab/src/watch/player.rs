//! Plays a recording of `--record`: the same rates as when it was made, interval by interval.

use super::Played;
use crate::context::Tell;
use crate::refusal::Refusal;
use std::path::Path;
use wakewatt_core::cpuset::MAX_CPUS;
use wakewatt_core::watch::recording::{self, Recording};
use wakewatt_core::watch::{Layout, Rates};
use wakewatt_host::input;

/// A recording, whole.
pub struct Player {
    /// All of it.
    pub recording: Recording,
}

impl Player {
    /// Reads `DIR/counters.watch`, or the file itself; says what of it is not whole.
    pub fn open(path: &Path, tell: &dyn Tell) -> Result<Player, Refusal> {
        let file = if path.is_dir() { path.join(recording::FILE) } else { path.to_path_buf() };
        let name = file.display();
        let bytes = input::read(&file, input::WATCH).map_err(|e| Refusal::File(e.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        let decode = |json: &str| serde_json::from_str(json).map_err(|e| e.to_string());
        let recording = recording::read(&text, decode).map_err(|e| {
            let hint = "make a recording with: wakewatt watch --record DIR";
            Refusal::File(format!("{name}: cannot be played; {hint}: {e}"))
        })?;
        // Anything above is no CPU, and would be given room on the screen.
        if recording.layout.cpus.iter().any(|c| c.cpu >= MAX_CPUS) {
            return Err(Refusal::File(format!("{name}: it names impossible CPUs")));
        }
        let n = recording.moments.len();
        if n < 2 {
            return Err(Refusal::File(format!("{name}: holds {n} moments; a rate needs two")));
        }
        if let Some(trouble) = &recording.trouble {
            tell.remark(&format!("{name}: {trouble}"));
        } else if recording.end.is_none() {
            tell.remark(&format!("{name}: it was cut off (no end line); all {n} whole moments are here"));
        }
        Ok(Player { recording })
    }
}

impl Played for Player {
    fn layout(&self) -> &Layout {
        &self.recording.layout
    }

    fn n_intervals(&self) -> usize {
        self.recording.moments.len() - 1
    }

    fn end_ms(&self, at: usize) -> Option<u64> {
        Some(self.recording.moments.get(at + 1)?.clocks.wall_at_ns / 1_000_000)
    }

    fn rates(&mut self, at: usize) -> Option<Rates> {
        let (then, now) = (self.recording.moments.get(at)?, self.recording.moments.get(at + 1)?);
        Some(Rates::between(&self.recording.layout, then, now))
    }

    fn end(&self) -> String {
        match (&self.recording.end, &self.recording.trouble) {
            (_, Some(trouble)) => trouble.to_string(),
            (Some(why), None) => format!("recording: {why}"),
            (None, None) => "recording: cut off, no end was written".into(),
        }
    }

    fn told(&self, _: usize) -> Option<String> {
        None
    }
}
