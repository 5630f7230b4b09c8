//! Places for connections: how many there are, how long each may be held, and who has to leave when all are taken.
//!
//! Who opens sixty-four connections and asks nothing would keep Prometheus waiting until they are over. So whoever comes when all are taken gets
//! the place of the one that has been silent for longest, once that one has been silent for a moment. The moment bounds what a flood costs. Silent is who
//! has not asked yet, and who has his answer and keeps the connection for the next question. And while all places are taken each answer is its connection's last, so
//! that who asks often keeps nobody out.

use std::future::Future;
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
    /// Until the head of the first question has come.
    pub head: Duration,
    /// From a question to its answer.
    pub answer: Duration,
    /// From an answer to the next question.
    pub between: Duration,
    /// After so long an answer is a connection's last: a certificate that was renewed, or taken from somebody, holds for all then.
    pub whole: Duration,
}

/// All places.
pub(super) struct Places {
    terms: Terms,
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Weak<Held>>>,
}

/// A place that is held.
#[derive(Clone)]
pub(super) struct Place(Arc<Held>);

struct Held {
    terms: Terms,
    free: Arc<Semaphore>,
    since: Instant,
    turn: Mutex<(Turn, Instant)>,
    leave: Notify,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Whose turn it is, since the moment beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// To ask for the first time.
    First,
    /// Ours to answer.
    Ours,
    /// To ask again, or to go.
    Next,
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
        let (since, leave) = (Instant::now(), Notify::new());
        let turn = Mutex::new((Turn::First, since));
        let place = Place(Arc::new(Held {
            terms: self.terms,
            free: Arc::clone(&self.free),
            since,
            turn,
            leave,
            _permit: permit,
        }));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|held| held.strong_count() > 0);
        taken.push(Arc::downgrade(&place.0));
        place
    }

    /// Tells the one that has been silent for longest to leave, when that is long enough; waits for ever where all are being answered, which ends with a free place.
    async fn send_away(&self) {
        while let Some((silent, since)) = self.silent() {
            tokio::time::sleep_until(since + self.terms.patience).await;
            // A question may lie unread since a reading began, which took the thread: whose socket has something is looked at first.
            tokio::task::yield_now().await;
            // Who asked meanwhile stays.
            if silent.silent_since() == Some(since) {
                return silent.leave.notify_one();
            }
        }
        std::future::pending().await
    }

    /// Who has been silent for longest, and since when.
    fn silent(&self) -> Option<(Arc<Held>, Instant)> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |held: Arc<Held>| held.silent_since().map(|since| (held, since));
        taken.iter().filter_map(Weak::upgrade).filter_map(silent).min_by_key(|(_, since)| *since)
    }
}

impl Held {
    fn turn(&self) -> (Turn, Instant) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn silent_since(&self) -> Option<Instant> {
        let (turn, since) = self.turn();
        (turn != Turn::Ours).then_some(since)
    }

    /// When it is over, as things are.
    fn end(&self) -> Instant {
        let (turn, since) = self.turn();
        let for_this = match turn {
            Turn::First => self.terms.head,
            Turn::Ours => self.terms.answer,
            Turn::Next => self.terms.between,
        };
        since + for_this
    }
}

impl Place {
    /// The head of a question has come whole.
    pub(super) fn has_asked(&self) {
        self.turn_to(Turn::Ours);
    }

    /// It has its answer, or what of it the network takes. Is it the last of this connection?
    pub(super) fn has_answer(&self) -> bool {
        self.turn_to(Turn::Next);
        self.0.free.available_permits() == 0 || self.0.since.elapsed() >= self.0.terms.whole
    }

    fn turn_to(&self, turn: Turn) {
        *self.0.turn.lock().unwrap_or_else(PoisonError::into_inner) = (turn, Instant::now());
    }

    /// As long as the place may be held.
    pub(super) async fn within(&self, served: impl Future<Output = ()>) {
        let over = tokio::time::sleep_until(self.0.end());
        tokio::pin!(served, over);
        loop {
            tokio::select! {
                biased;
                () = &mut served => return,
                () = self.0.leave.notified() => return,
                // Not set anew at each turn, which would cost each question: what holds now is looked at when it rings.
                () = &mut over => {
                    let end = self.0.end();
                    if Instant::now() >= end {
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
    const LONG: Duration = Duration::from_secs(600);
    const TERMS: Terms = Terms { most: 3, patience: MS, head: LONG, answer: LONG, between: LONG, whole: LONG };

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    /// All places, and who holds them.
    async fn full() -> (Places, Vec<Place>) {
        let (places, mut all) = (Places::new(TERMS), Vec::new());
        for _ in 0..TERMS.most {
            all.push(places.sit(places.take().await));
        }
        (places, all)
    }

    /// Holds its place until it is told to leave.
    fn held(place: Place) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { place.within(std::future::pending()).await })
    }

    #[test]
    fn a_place_goes_from_the_longest_silent_to_whoever_comes() {
        block_on(async {
            let (places, mut all) = full().await;
            let (talks, silent) = (all.remove(0), all.remove(0));
            talks.has_asked();
            let leaves = held(silent);
            assert!(places.take().await.is_some());
            leaves.await.unwrap();
        });
    }

    #[test]
    fn who_asked_while_the_thread_was_busy_is_not_sent_away() {
        block_on(async {
            let places = Places::new(Terms { patience: 50 * MS, ..TERMS });
            // What they ask comes before they have been silent for too long, while the thread does something else.
            let mut asks = Vec::new();
            for _ in 1..TERMS.most {
                let place = places.sit(places.take().await);
                asks.push(tokio::spawn(async move {
                    tokio::time::sleep(MS).await;
                    place.has_asked();
                    place
                }));
            }
            let leaves = held(places.sit(places.take().await));
            tokio::task::yield_now().await;
            let comes = places.take();
            tokio::pin!(comes);
            tokio::select! {
                biased;
                _ = &mut comes => panic!("all are taken"),
                () = std::future::ready(()) => {}
            }
            std::thread::sleep(100 * MS);
            // Somebody else is never told, and never goes.
            assert!(tokio::time::timeout(LONG / 60, comes).await.is_ok_and(|permit| permit.is_some()));
            leaves.await.unwrap();
            for asked in asks {
                let stays = asked.await.unwrap();
                assert!(tokio::time::timeout(5 * MS, stays.within(std::future::pending())).await.is_err());
            }
        });
    }

    #[test]
    fn who_is_being_answered_is_not_sent_away() {
        block_on(async {
            let (places, mut all) = full().await;
            all.iter().for_each(Place::has_asked);
            assert!(tokio::time::timeout(20 * MS, places.take()).await.is_err());
            all.pop();
            assert!(places.take().await.is_some());
        });
    }

    #[test]
    fn who_keeps_a_connection_leaves_for_whoever_comes_and_the_one_that_asked_last_stays_longest() {
        block_on(async {
            let (places, mut all) = full().await;
            for place in all.iter().rev() {
                place.has_asked();
                place.has_answer();
            }
            // The last to come asked first.
            let first = all.pop().unwrap();
            let leaves = held(first);
            assert!(places.take().await.is_some());
            leaves.await.unwrap();
            assert!(tokio::time::timeout(20 * MS, all[0].within(std::future::pending())).await.is_err());
        });
    }

    #[test]
    fn while_all_places_are_taken_an_answer_is_the_last_and_frees_one() {
        block_on(async {
            let (places, mut all) = full().await;
            all.iter().for_each(Place::has_asked);
            // All are being answered when somebody comes.
            let comes = tokio::time::timeout(LONG, places.take());
            let ends = async {
                tokio::time::sleep(5 * MS).await;
                let last = all.pop().unwrap();
                assert!(last.has_answer());
            };
            assert!(tokio::join!(comes, ends).0.is_ok_and(|permit| permit.is_some()));
            all.pop();
            assert!(!all[0].has_answer(), "a place is free");
        });
    }

    #[test]
    fn an_answer_after_the_whole_time_is_the_last() {
        block_on(async {
            let places = Places::new(Terms { whole: 5 * MS, ..TERMS });
            let place = places.sit(places.take().await);
            place.has_asked();
            tokio::time::sleep(6 * MS).await;
            assert!(place.has_answer());
        });
    }

    #[test]
    fn each_turn_has_its_time() {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(
            async {
                let s = Duration::from_secs(1);
                let places = Places::new(Terms { head: 5 * s, answer: 30 * s, between: 180 * s, ..TERMS });
                let held = |turns: &'static [(u32, bool)]| {
                    let places = &places;
                    async move {
                        let place = places.sit(places.take().await);
                        let served = async {
                            for (at_s, is_question) in turns {
                                tokio::time::sleep_until(place.0.since + *at_s * s).await;
                                match is_question {
                                    true => place.has_asked(),
                                    false => assert!(!place.has_answer()),
                                }
                            }
                            std::future::pending().await
                        };
                        place.within(served).await;
                        place.0.since.elapsed().as_secs()
                    }
                };
                assert_eq!(held(&[]).await, 5);
                assert_eq!(held(&[(2, true)]).await, 32);
                // Answered at 3: until 183.
                assert_eq!(held(&[(2, true), (3, false)]).await, 183);
                assert_eq!(held(&[(2, true), (3, false), (170, true)]).await, 200);
                assert_eq!(held(&[(2, true), (3, false), (100, true), (101, false)]).await, 281);
            },
        );
    }
}
