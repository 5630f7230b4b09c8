//! What happens next: heaps of events with four children per node, each event one number of 128 bits.
//!
//! The time stands in the upper half, what happens in the lower, so one comparison orders both, and events at the same time have one order
//! on every machine. Four children: half the levels of a binary heap, and siblings share a line of cache. Which of four is the soonest nobody can
//! guess, and a wrong guess costs the processor more than the three comparisons, so none of them is a branch. Events are never
//! taken out from the middle; who changes his mind gives the new event another stamp and ignores the old one.
//!
//! Events that come at their own pace on every CPU (ticks, timers) wait long, and among the others would be most of what these are sorted
//! through: they have a heap of their own. The next arrival is one of a kind and usually the soonest of all: it stands before both. The order is
//! the same as in one heap. Measured against the standard library's binary heap and a calendar (`benches/queue.rs`,
//! docs/journal/2026-11-22-simulate.md).

use std::hint::select_unpredictable;

/// Events, soonest first.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    heap: Heap,
    /// The soonest of them where there was none when it came: with one CPU it is all there is, and no list is touched.
    front: Option<u128>,
    /// Ticks and timers.
    periodic: Heap,
    /// The one event that is replaced by the next of its kind.
    single: Option<u128>,
}

fn event(at_ns: u64, what: u64) -> u128 {
    u128::from(at_ns) << 64 | u128::from(what)
}

impl Queue {
    /// Without events, with room for so many.
    pub fn with_room(n: usize) -> Queue {
        Queue { heap: Heap(Vec::with_capacity(n)), ..Queue::default() }
    }

    /// Adds an event at a time.
    #[inline]
    pub fn push(&mut self, at_ns: u64, what: u64) {
        let mut event = event(at_ns, what);
        match &mut self.front {
            None if self.heap.0.is_empty() => {
                self.front = Some(event);
                return;
            }
            Some(front) if event < *front => std::mem::swap(&mut event, front),
            _ => {}
        }
        self.heap.push(event);
    }

    /// The same for what comes again and again and waits long in between.
    #[inline]
    pub fn push_periodic(&mut self, at_ns: u64, what: u64) {
        self.periodic.push(event(at_ns, what));
    }

    /// The same for the event of which there is one at a time: it takes the place of the one before.
    #[inline]
    pub fn put_single(&mut self, at_ns: u64, what: u64) {
        self.single = Some(event(at_ns, what));
    }

    /// Takes the soonest.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // The halves of 128 bits.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        let never = u128::MAX;
        let usual = self.front.or_else(|| self.heap.first()).unwrap_or(never);
        let periodic = self.periodic.first().unwrap_or(never);
        let soonest = match self.single {
            Some(single) if single < usual && single < periodic => {
                self.single = None;
                single
            }
            _ if periodic < usual => self.periodic.pop()?,
            _ => match self.front.take() {
                Some(front) => front,
                None => self.heap.pop()?,
            },
        };
        Some(((soonest >> 64) as u64, soonest as u64))
    }

    /// How many events are waiting, those that were given up among them.
    pub fn len(&self) -> usize {
        let alone = usize::from(self.single.is_some()) + usize::from(self.front.is_some());
        self.heap.0.len() + self.periodic.0.len() + alone
    }

    /// Is nothing waiting?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Children of a node.
const WIDTH: usize = 4;

/// A heap, the least first.
#[derive(Clone, Debug, Default)]
struct Heap(Vec<u128>);

impl Heap {
    #[inline]
    fn first(&self) -> Option<u128> {
        self.0.first().copied()
    }

    #[inline]
    fn push(&mut self, event: u128) {
        let heap = &mut self.0;
        let mut hole = heap.len();
        heap.push(event);
        while hole > 0 {
            let parent = (hole - 1) / WIDTH;
            if heap[parent] <= event {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = event;
    }

    #[inline]
    fn pop(&mut self) -> Option<u128> {
        let last = self.0.pop()?;
        let Some(first) = self.first() else { return Some(last) };
        let n = self.0.len();
        let mut hole = 0;
        loop {
            let child = hole * WIDTH + 1;
            if child >= n {
                break;
            }
            let (least, event) = match self.0.get(child..child + WIDTH) {
                Some(&[a, b, c, d]) => {
                    let (left, right) = (b < a, d < c);
                    let (x, y) = (select_unpredictable(left, b, a), select_unpredictable(right, d, c));
                    let least = select_unpredictable(y < x, 2 + usize::from(right), usize::from(left));
                    (child + least, select_unpredictable(y < x, y, x))
                }
                _ => (child..n).map(|at| (at, self.0[at])).min_by_key(|(_, event)| *event).unwrap_or((child, last)),
            };
            if last <= event {
                break;
            }
            self.0[hole] = event;
            hole = least;
        }
        self.0[hole] = last;
        Some(first)
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
        // Which heap an event waits in shows nowhere.
        let (first, rest) = all.split_at(2500);
        first.iter().for_each(|(t, e)| queue.push(*t, *e));
        rest.iter().for_each(|(t, e)| queue.push_periodic(*t, *e));
        assert_eq!((queue.len(), queue.is_empty()), (5000, false));
        all.sort_unstable();
        let taken: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(taken, all);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn the_single_event_has_its_place_among_the_others_and_is_replaced() {
        let mut queue = Queue::default();
        [(5, 7), (9, 1), (9, 3)].into_iter().for_each(|(at, what)| queue.push(at, what));
        queue.put_single(2, 2);
        queue.put_single(9, 2);
        assert_eq!(queue.len(), 4);
        let taken: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(taken, [(5, 7), (9, 1), (9, 2), (9, 3)]);
        queue.put_single(4, 4);
        assert!(!queue.is_empty());
        assert_eq!((queue.pop(), queue.pop()), (Some((4, 4)), None));
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
