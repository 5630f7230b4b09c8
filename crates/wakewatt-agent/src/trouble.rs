//! What goes wrong beside the reading: told once in the log when it begins and when it is over, and on every page as long as it lasts.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Says a line to whoever reads the log.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// One thing that can go wrong; clones are the same one.
#[derive(Clone)]
pub struct Teller {
    source: &'static str,
    say: Say,
    now: Arc<Mutex<Option<String>>>,
    /// Seconds since 1970; 0: never, or not known.
    end_s: Arc<AtomicU64>,
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Teller").field(&self.source).field(&self.now()).finish()
    }
}

impl Teller {
    /// For a source, as `source_up` names it.
    pub fn new(source: &'static str, say: Say) -> Teller {
        Teller { source, say, now: Arc::default(), end_s: Arc::default() }
    }

    /// The source's name.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    /// What is wrong now.
    pub(crate) fn now(&self) -> Option<String> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When it stops being of use by itself, in seconds since 1970.
    pub(crate) fn end_s(&self) -> Option<u64> {
        Some(self.end_s.load(Ordering::Relaxed)).filter(|end_s| *end_s > 0)
    }

    /// Says when that is.
    pub(crate) fn ends(&self, end_s: u64) {
        self.end_s.store(end_s, Ordering::Relaxed);
    }

    /// What is wrong, or that nothing is; the same again is not said again.
    pub(crate) fn tell(&self, trouble: Option<String>) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if *now == trouble {
            return;
        }
        match &trouble {
            Some(why) => (self.say)(&format!("{}: {why}", self.source)),
            None => (self.say)(&format!("{}: mended", self.source)),
        }
        *now = trouble;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once() {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&said);
        let teller = Teller::new("push", Arc::new(move |line| lines.lock().unwrap().push(line.into())));
        for trouble in [None, Some("away"), Some("away"), Some("full"), None, None] {
            teller.clone().tell(trouble.map(str::to_string));
        }
        assert_eq!(*said.lock().unwrap(), ["push: away", "push: full", "push: mended"]);
        assert_eq!(teller.now(), None);
    }
}
