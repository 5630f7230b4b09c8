//! Signs of life to the service manager, given by the thread that reads: one that hangs in a reading gives none, and is started anew.

use std::time::{Duration, Instant};
use wakewatt_host::service_manager::ServiceManager;

/// When the next sign is due.
#[derive(Debug)]
pub(crate) struct Pulse {
    manager: Option<ServiceManager>,
    every: Option<Duration>,
    last: Instant,
}

impl Pulse {
    /// For this manager; without one, or without a watchdog, nothing is ever due.
    pub(crate) fn of(manager: Option<ServiceManager>) -> Pulse {
        // Half of what it waits for, as sd_watchdog_enabled(3) advises.
        let every = manager.as_ref().and_then(ServiceManager::watchdog).map(|wait| wait / 2);
        Pulse { manager, every, last: Instant::now() }
    }

    /// Gives a sign where one is due.
    pub(crate) fn beat(&mut self) {
        if let (Some(manager), Some(every)) = (&self.manager, self.every)
            && self.last.elapsed() >= every
        {
            self.last = Instant::now();
            // A manager that hears nothing will act; there is nobody else to tell.
            let _ = manager.alive();
        }
    }

    /// At most this long may be waited.
    pub(crate) fn at_most(&self, wait: Duration) -> Duration {
        self.every.map_or(wait, |every| wait.min(every.saturating_sub(self.last.elapsed())))
    }
}
