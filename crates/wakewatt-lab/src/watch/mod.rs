//! The machine as it runs: moments one after the other, as they happen or as they were recorded, and what they say.
//!
//! `sampler` reads a machine, a tree or a recorded host, `recorder` writes what it read along, `player` reads that again, one of those that can be `played`.
//! Wake-up latency comes from whatever traces, which is told here only by what it must answer.

mod played;
mod player;
mod recorder;
mod sampler;

pub use played::{Part, Played};
pub use player::Player;
pub use recorder::Recorder;
pub use sampler::{Sampler, WatchedMachine};

use crate::refusal::Refusal;
use wakewatt_core::watch::{LatencyRow, Layout};

/// Where wake-up latency by idle state comes from, when something traces.
pub trait LatencyFeed {
    /// The rows so far, or why there are none.
    fn rows(&mut self) -> Result<Vec<LatencyRow>, String>;
}

/// Moments.
pub enum Feed {
    /// As they happen.
    Live(Box<Sampler>),
    /// As they happened.
    Play(Box<dyn Played>),
}

impl Feed {
    /// What there is to watch.
    pub fn layout(&self) -> &Layout {
        match self {
            Feed::Live(sampler) => &sampler.layout,
            Feed::Play(player) => player.layout(),
        }
    }

    /// Ends a recording; an error when it is not whole.
    pub fn finish(&mut self, why: &str) -> Result<(), Refusal> {
        match self {
            Feed::Live(sampler) => sampler.recorder.take().map_or(Ok(()), |r| r.finish(why)),
            Feed::Play(_) => Ok(()),
        }
    }
}
