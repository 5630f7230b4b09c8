//! Places for connections: how many there are, how long each may be held, and who has to leave when all are taken.
//!
//! Who opens sixty-four connections and asks nothing would keep Prometheus waiting until they are over. So whoever comes when all are taken gets
//! the place of the one that has been silent for longest, once that one has been silent for a moment. The moment bounds what a flood costs.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What is allowed.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Connections at once; more wait to be accepted.
    pub most: usize,
    /// Who has asked nothing for so long may be sent away for somebody else.
    pub patience: Duration,
    /// Until the head of a question has come.
    pub head: Duration,
    /// For the whole connection.
    pub whole: Duration,
}

/// All places.
pub(super) struct Places {
    terms: Terms,
    free: Arc<Semaphore>,
    /// Oldest first.
    taken: Mutex<Vec<Weak<Held>>>,
}

/// A place that is held.
#[derive(Clone)]
pub(super) struct Place(Arc<Held>);

struct Held {
    terms: Terms,
    since: Instant,
    has_asked: AtomicBool,
    leave: Notify,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(terms: Terms) -> Places {
        Places { terms, free: Arc::new(Semaphore::new(terms.most)), taken: Mutex::default() }
    }

    /// One that is free, or becomes so.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        let free = || Arc::clone(&self.free).acquire_owned();
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        // Nobody closes the semaphore.
        tokio::select! {
            permit = free() => permit.ok(),
            () = self.send_away() => free().await.ok(),
        }
    }

    /// Somebody has come for it.
    pub(super) fn sit(&self, permit: Option<OwnedSemaphorePermit>) -> Place {
        let (has_asked, leave) = (AtomicBool::new(false), Notify::new());
        let held = Held { terms: self.terms, since: Instant::now(), has_asked, leave, _permit: permit };
        let place = Place(Arc::new(held));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|held| held.strong_count() > 0);
        taken.push(Arc::downgrade(&place.0));
        place
    }

    /// Tells the one that has been silent for longest to leave, when that is long enough; waits for ever where all have asked.
    async fn send_away(&self) {
        while let Some(silent) = self.silent() {
            tokio::time::sleep_until(silent.since + self.terms.patience).await;
            if !silent.has_asked.load(Relaxed) {
                return silent.leave.notify_one();
            }
        }
        std::future::pending().await
    }

    fn silent(&self) -> Option<Arc<Held>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().filter_map(Weak::upgrade).find(|held| !held.has_asked.load(Relaxed))
    }
}

impl Place {
    /// The head of a question has come whole.
    pub(super) fn has_asked(&self) {
        self.0.has_asked.store(true, Relaxed);
    }

    /// As long as the place may be held.
    pub(super) async fn within(&self, served: impl Future<Output = ()>) {
        let Terms { head, whole, .. } = self.0.terms;
        let over = tokio::time::sleep_until(self.0.since + head);
        tokio::pin!(served, over);
        loop {
            tokio::select! {
                biased;
                () = &mut served => return,
                () = self.0.leave.notified() => return,
                () = &mut over => {
                    let end = self.0.since + whole;
                    if !self.0.has_asked.load(Relaxed) || Instant::now() >= end {
                        return;
                    }
                    over.as_mut().reset(end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const TERMS: Terms =
        Terms { most: 3, patience: MS, head: Duration::from_secs(600), whole: Duration::from_secs(600) };

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    async fn full(places: &Places) -> Vec<Place> {
        let mut all = Vec::new();
        for _ in 0..TERMS.most {
            all.push(places.sit(places.take().await));
        }
        all
    }

    #[test]
    fn a_place_goes_from_the_longest_silent_to_whoever_comes() {
        block_on(async {
            let places = Places::new(TERMS);
            let mut all = full(&places).await;
            let (talks, silent) = (all.remove(0), all.remove(0));
            talks.has_asked();
            let leaves = tokio::spawn(async move { silent.within(std::future::pending()).await });
            assert!(places.take().await.is_some());
            leaves.await.unwrap();
        });
    }

    #[test]
    fn who_is_being_answered_is_not_sent_away() {
        block_on(async {
            let places = Places::new(TERMS);
            let mut all = full(&places).await;
            all.iter().for_each(Place::has_asked);
            assert!(tokio::time::timeout(20 * MS, places.take()).await.is_err());
            all.pop();
            assert!(places.take().await.is_some());
        });
    }

    #[test]
    fn who_asks_has_longer_than_who_does_not() {
        block_on(async {
            let places = Places::new(Terms { head: 5 * MS, whole: 30 * MS, ..TERMS });
            let (silent, asked) = (places.sit(places.take().await), places.sit(places.take().await));
            silent.within(std::future::pending()).await;
            assert!(silent.0.since.elapsed() >= 5 * MS);
            asked.has_asked();
            asked.within(std::future::pending()).await;
            assert!(asked.0.since.elapsed() >= 30 * MS);
        });
    }
}
