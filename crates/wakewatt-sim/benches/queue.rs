//! Which event queue: the heap with four children, the standard library's binary heap, and a calendar of days (Brown, CACM 1988).
//!
//! The hold model: take the soonest event, put one an exponential time later, with so many events waiting; that is what a CPU does that ends
//! a request and begins another.

use divan::{Bencher, black_box};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wakewatt_core::stats::random::Random;
use wakewatt_sim::queue::Queue;

fn main() {
    divan::main();
}

const WAITING: [usize; 6] = [1, 16, 64, 256, 1024, 16_384];
const HOLDS: u64 = 10_000;

/// Gaps drawn before, so that only the queue is timed.
fn gaps() -> Vec<u64> {
    let mut random = Random::new(1);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0..65_536).map(|_| (-(1.0 - random.unit()).ln() * 500_000.0) as u64).collect()
}

#[divan::bench(args = WAITING)]
fn four_children(bencher: Bencher<'_, '_>, n: usize) {
    let gaps = gaps();
    let mut queue = Queue::with_room(n);
    (0..n).for_each(|i| queue.push(gaps[i % gaps.len()], i as u64));
    let mut i = 0;
    bencher.counter(HOLDS).bench_local(|| {
        for _ in 0..HOLDS {
            let (now, what) = queue.pop().unwrap_or_default();
            i = (i + 1) % gaps.len();
            queue.push(now + gaps[i], what);
        }
        black_box(queue.len())
    });
}

#[divan::bench(args = WAITING)]
fn standard_binary(bencher: Bencher<'_, '_>, n: usize) {
    let gaps = gaps();
    let mut queue: BinaryHeap<Reverse<(u64, u64)>> =
        (0..n).map(|i| Reverse((gaps[i % gaps.len()], i as u64))).collect();
    let mut i = 0;
    bencher.counter(HOLDS).bench_local(|| {
        for _ in 0..HOLDS {
            let Reverse((now, what)) = queue.pop().unwrap_or_default();
            i = (i + 1) % gaps.len();
            queue.push(Reverse((now + gaps[i], what)));
        }
        black_box(queue.len())
    });
}

/// A calendar: days of fixed length in a ring, each a short sorted list; it fits the gaps it is made for, and is not resized here.
struct Calendar {
    days: Vec<Vec<(u64, u64)>>,
    length: u64,
    today: usize,
    ends: u64,
}

impl Calendar {
    fn of(n: usize) -> Calendar {
        let length = (500_000 / n as u64).max(1);
        Calendar { days: vec![Vec::new(); (2 * n).max(8)], length, today: 0, ends: length }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn push(&mut self, at: u64, what: u64) {
        let n = self.days.len() as u64;
        let day = &mut self.days[((at / self.length) % n) as usize];
        let place = day.partition_point(|e| *e > (at, what));
        day.insert(place, (at, what));
    }

    fn pop(&mut self) -> (u64, u64) {
        loop {
            for _ in 0..self.days.len() {
                if let Some(event) = self.days[self.today].last().copied().filter(|e| e.0 < self.ends) {
                    self.days[self.today].pop();
                    return event;
                }
                self.today = (self.today + 1) % self.days.len();
                self.ends += self.length;
            }
        }
    }
}

#[divan::bench(args = WAITING)]
fn calendar(bencher: Bencher<'_, '_>, n: usize) {
    let gaps = gaps();
    let mut queue = Calendar::of(n);
    (0..n).for_each(|i| queue.push(gaps[i % gaps.len()], i as u64));
    let mut i = 0;
    bencher.counter(HOLDS).bench_local(|| {
        for _ in 0..HOLDS {
            let (now, what) = queue.pop();
            i = (i + 1) % gaps.len();
            queue.push(now + gaps[i], what);
        }
        black_box(queue.ends)
    });
}
