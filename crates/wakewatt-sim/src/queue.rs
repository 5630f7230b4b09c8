//! What happens next: a heap of events with four children per node, each event one number of 128 bits.
//!
//! The time stands in the upper half, what happens in the lower, so one comparison orders both, and events at the same time have one order
//! on every machine. Four children: half the levels of a binary heap, and siblings share a line of cache. Events are never
//! taken out from the middle; who changes his mind gives the new event another stamp and ignores the old one.
//! Chosen by measurement against the standard library's binary heap and a calendar queue (`benches/queue.rs`,
//! docs/methods/simulate.md).

/// Events, soonest first.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    heap: Vec<u128>,
}

/// Children of a node.
const WIDTH: usize = 4;

impl Queue {
    /// Without events, with room for so many.
    pub fn with_room(n: usize) -> Queue {
        Queue { heap: Vec::with_capacity(n) }
    }

    /// Adds an event at a time.
    #[inline]
    pub fn push(&mut self, at_ns: u64, what: u64) {
        let event = u128::from(at_ns) << 64 | u128::from(what);
        let mut hole = self.heap.len();
        self.heap.push(event);
        while hole > 0 {
            let parent = (hole - 1) / WIDTH;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = event;
    }

    /// Takes the soonest.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // The halves of 128 bits.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first().copied() else { return Some(((last >> 64) as u64, last as u64)) };
        let n = self.heap.len();
        let mut hole = 0;
        loop {
            let child = hole * WIDTH + 1;
            if child >= n {
                break;
            }
            let mut least = child;
            let mut event = self.heap[child];
            for other in child + 1..(child + WIDTH).min(n) {
                let there = self.heap[other];
                if there < event {
                    least = other;
                    event = there;
                }
            }
            if last <= event {
                break;
            }
            self.heap[hole] = event;
            hole = least;
        }
        self.heap[hole] = last;
        Some(((first >> 64) as u64, first as u64))
    }

    /// How many events are waiting, those that were given up among them.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Is nothing waiting?
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::stats::random::Random;

    #[test]
    fn events_come_in_the_order_of_time_then_of_what_they_are() {
        let mut random = Random::new(3);
        let mut queue = Queue::with_room(8);
        let mut all: Vec<(u64, u64)> = (0..5000).map(|i| (random.below(700), i)).collect();
        let (first, rest) = all.split_at(2500);
        first.iter().for_each(|(t, e)| queue.push(*t, *e));
        rest.iter().for_each(|(t, e)| queue.push(*t, *e));
        assert_eq!((queue.len(), queue.is_empty()), (5000, false));
        all.sort_unstable();
        let taken: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(taken, all);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn pushes_between_pops_keep_the_order() {
        let (mut random, mut queue) = (Random::new(4), Queue::default());
        (0..100).for_each(|i| queue.push(random.below(1000), i));
        let mut now = 0;
        for i in 0..20_000 {
            let (at, _) = queue.pop().unwrap();
            assert!(at >= now);
            now = at;
            queue.push(now + random.below(1000), i);
        }
    }
}
