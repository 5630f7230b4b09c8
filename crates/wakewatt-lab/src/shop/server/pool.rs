//! Threads of the database: each has one connection and takes the next question from a queue.
//!
//! Web threads do not wait for the database; they leave a question and go on. That is how most shops are built (a pool of
//! connections), and it gives each page two more wake-ups: of the database's thread and of the web thread when the answer
//! is there. One lock and one condition variable: a question wakes one thread.

use super::store::{Store, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(&mut dyn Store) + Send>;

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// Where questions are left.
#[derive(Clone)]
pub(super) struct Pool(Arc<Queue>);

/// The threads; they end when the pool is closed, and give their connections back.
pub(super) struct Threads<S>(Vec<JoinHandle<S>>);

/// One thread per connection.
pub(super) fn start<S: Store + 'static>(stores: Vec<S>) -> std::io::Result<(Pool, Threads<S>)> {
    let queue = Arc::new(Queue::default());
    let spawn = |mut store: S| {
        let queue = Arc::clone(&queue);
        std::thread::Builder::new().name("shop-database".into()).spawn(move || {
            while let Some(job) = next(&queue) {
                job(&mut store);
            }
            store
        })
    };
    let threads = stores.into_iter().map(spawn).collect::<Result<_, _>>()?;
    Ok((Pool(queue), Threads(threads)))
}

fn next(queue: &Queue) -> Option<Job> {
    let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(job) = waiting.jobs.pop_front() {
            return Some(job);
        }
        if waiting.is_closed {
            return None;
        }
        waiting = queue.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Pool {
    /// Asks, and waits for the answer without holding a thread.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (say, said) = oneshot::channel();
        let job: Job = Box::new(move |store| drop(say.send(what(store))));
        {
            let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.is_closed {
                return Err(StoreError("the shop is closing".into()));
            }
            waiting.jobs.push_back(job);
        }
        self.0.changed.notify_one();
        said.await.unwrap_or_else(|_| Err(StoreError("the database's thread ended".into())))
    }

    /// No more questions; those that wait are answered first.
    pub(super) fn close(&self) {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.0.changed.notify_all();
    }
}

impl<S> Threads<S> {
    /// Waits for the threads: their connections, in order.
    pub(super) fn join(self) -> Vec<S> {
        self.0.into_iter().filter_map(|t| t.join().ok()).collect()
    }
}
