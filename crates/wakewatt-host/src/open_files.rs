//! How many files (and so connections) this process may have open, and asking for more.
//!
//! The soft limit is often 1024, because `select` cannot count further; the hard limit is what the administrator allows, and
//! any process may go up to it. Nothing outside this process changes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Room for what a process has open beside its connections: libraries, meters, database files.
const BESIDE: u64 = 64;

/// Raises the soft limit so far that so many connections fit; returns how many do.
pub fn make_room(n_connections: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let wanted = n_connections.saturating_add(BESIDE);
    if soft >= wanted {
        return n_connections;
    }
    let raised = wanted.min(hard);
    let now = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    now.saturating_sub(BESIDE).min(n_connections)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_few_fit_everywhere_and_more_than_the_hard_limit_nowhere() {
        assert_eq!(super::make_room(10), 10);
        let all = super::make_room(u64::MAX);
        assert!(all >= 10 && super::make_room(100) == 100);
    }
}
