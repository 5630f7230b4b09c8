//! A progress bar on standard error for anything over a second; nothing at all when that is not a terminal.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wakewatt_core::visible::line;
use wakewatt_lab::context::Tell;

/// Thousandths of the whole job.
const WHOLE: u64 = 1000;

/// A bar.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts one.
    pub fn start(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3}% {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(line(what).into_owned());
        Progress(bar)
    }

    /// Another part begins, whose share counts from nothing.
    pub fn part(&self, what: &str) {
        self.0.set_prefix(line(what).into_owned());
        self.set(0.0, "");
    }

    /// Share done, and what is being done now.
    pub fn set(&self, share: f64, message: &str) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let position = (share.clamp(0.0, 1.0) * WHOLE as f64) as u64;
        self.0.set_position(position);
        self.0.set_message(line(message).into_owned());
    }
}

impl Tell for Progress {
    fn progress(&self, share: f64, words: &str) {
        self.set(share, words);
    }

    fn remark(&self, line: &str) {
        self.0.suspend(|| output::remark(line));
    }

    fn complain(&self, line: &str) {
        self.0.suspend(|| output::complain(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
