//! Whether the past is kept, and why not: what a ring's troubles come to over months.
//!
//! For want of room the ring is asked again, once a minute; whatever else goes wrong ends it, and lets go of its folder.

use super::ring::{Limits, Ring};
use crate::metric::Page;
use std::path::Path;
use std::time::{Duration, Instant};

/// From try to try while there is no room.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The keeping of pages.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    ring: Option<Ring>,
    /// Why nothing is kept although that was asked for.
    trouble: Option<String>,
    tried_at: Option<Instant>,
}

impl Keeping {
    /// In a folder, where one was named.
    pub(crate) fn open(asked: Option<&(impl AsRef<Path>, Limits)>) -> Keeping {
        let Some((folder, limits)) = asked else { return Keeping::default() };
        match Ring::open(folder.as_ref(), *limits) {
            Ok(ring) => Keeping { ring: Some(ring), ..Keeping::default() },
            Err(why) => Keeping { trouble: Some(why.to_string()), ..Keeping::default() },
        }
    }

    /// Keeps a page; `now` is by which tries are counted.
    pub(crate) fn keep(&mut self, now: Instant, wall_ms: u64, page: &Page) {
        let Some(ring) = &mut self.ring else { return };
        if self.tried_at.is_some_and(|tried_at| now.saturating_duration_since(tried_at) < AGAIN_AFTER) {
            return;
        }
        match ring.push(wall_ms, page) {
            Ok(()) => (self.trouble, self.tried_at) = (None, None),
            Err(why) => {
                (self.trouble, self.tried_at) = (Some(why.to_string()), Some(now));
                if !why.is_want_of_room() {
                    self.ring = None;
                }
            }
        }
    }

    /// Why nothing is kept.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Segments of the folder that are passed over, with why.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let doubts = self.ring.iter().flat_map(|ring| ring.doubts());
        doubts.map(|why| format!("{why}: passed over; look at it, then remove it or {}", why.remedy())).collect()
    }

    /// The end.
    pub(crate) fn finish(&mut self) {
        if let Some(ring) = &mut self.ring {
            // Whoever stops it has nobody left to tell.
            let _ = ring.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segments;
    use super::*;
    use crate::metric::names;

    #[test]
    fn without_room_it_tries_once_a_minute_and_goes_on_when_there_is_some() {
        let dir = tempfile::tempdir().unwrap();
        let (mut page, start) = (Page::default(), Instant::now());
        page.number(&names::INTERRUPTS, Vec::new(), 1.0);
        let mut keeping = Keeping::open(Some(&(dir.path(), Limits { most_bytes: 1 << 20, free_share: 0.0 })));
        let mut keep = |after_s: u64, free_share: f64| {
            keeping.ring.as_mut().unwrap().limits.free_share = free_share;
            keeping.keep(start + Duration::from_secs(after_s), 1_000 * (1 + after_s), &page);
            (keeping.trouble().is_some(), segments(dir.path()).len())
        };
        assert_eq!(keep(0, 0.0), (false, 1));
        assert_eq!(keep(10, 1.1), (true, 1));
        // There is room again, but nobody looks.
        assert_eq!(keep(69, 0.0), (true, 1));
        assert_eq!(keep(70, 1.1), (true, 1));
        assert_eq!(keep(129, 0.0), (true, 1));
        assert_eq!(keep(130, 0.0), (false, 2));
        assert_eq!(keep(131, 0.0), (false, 2));
    }

    #[test]
    fn a_folder_that_another_agent_has_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let asked = (dir.path(), Limits { most_bytes: 1 << 20, free_share: 0.0 });
        let (first, second) = (Keeping::open(Some(&asked)), Keeping::open(Some(&asked)));
        assert_eq!(first.trouble(), None);
        assert!(second.trouble().unwrap().contains(dir.path().to_str().unwrap()), "{second:?}");
        assert!(Keeping::open(None::<&(&Path, Limits)>).trouble().is_none());
    }
}
