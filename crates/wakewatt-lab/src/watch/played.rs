//! Intervals that are over, to be travelled through: a recording of `watch`, or what an agent kept.

use crate::refusal::Refusal;
use wakewatt_core::watch::{Layout, Rates};

/// What can be played.
pub trait Played {
    /// What there was to watch, at its end.
    fn layout(&self) -> &Layout;

    /// How many intervals there are.
    fn n_intervals(&self) -> usize;

    /// When an interval ended, in milliseconds since 1970.
    fn end_ms(&self, at: usize) -> Option<u64>;

    /// One interval; none where it cannot be had (any more).
    fn rates(&mut self, at: usize) -> Option<Rates>;

    /// What is known of how it ended.
    fn end(&self) -> String;

    /// What to tell when this interval is shown: a setting that changed in it.
    fn told(&self, at: usize) -> Option<String>;
}

/// A part of it.
pub struct Part {
    whole: Box<dyn Played>,
    first: usize,
    n: usize,
}

impl Part {
    /// The intervals that end after one moment and not after another, in milliseconds since 1970.
    pub fn of(whole: Box<dyn Played>, from_ms: Option<u64>, to_ms: Option<u64>) -> Result<Part, Refusal> {
        let n_all = whole.n_intervals();
        let ends = || (0..n_all).map(|at| whole.end_ms(at).unwrap_or(0));
        let first = ends().take_while(|end_ms| from_ms.is_some_and(|from_ms| *end_ms <= from_ms)).count();
        let n = ends().skip(first).take_while(|end_ms| to_ms.is_none_or(|to_ms| *end_ms <= to_ms)).count();
        if n == 0 {
            return Err(Refusal::Asked("nothing was recorded in that time; give another --since and --until".into()));
        }
        Ok(Part { whole, first, n })
    }
}

impl Played for Part {
    fn layout(&self) -> &Layout {
        self.whole.layout()
    }

    fn n_intervals(&self) -> usize {
        self.n
    }

    fn end_ms(&self, at: usize) -> Option<u64> {
        self.whole.end_ms(self.first + at)
    }

    fn rates(&mut self, at: usize) -> Option<Rates> {
        self.whole.rates(self.first + at).filter(|_| at < self.n)
    }

    fn end(&self) -> String {
        self.whole.end()
    }

    fn told(&self, at: usize) -> Option<String> {
        self.whole.told(self.first + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends at 10, 20, 30 ...
    struct Ten(Layout);

    impl Played for Ten {
        fn layout(&self) -> &Layout {
            &self.0
        }
        fn n_intervals(&self) -> usize {
            10
        }
        fn end_ms(&self, at: usize) -> Option<u64> {
            (at < 10).then_some(10 * (at as u64 + 1))
        }
        fn rates(&mut self, at: usize) -> Option<Rates> {
            (at < 10).then(|| Rates { wall_at_ns: at as u64, ..Rates::default() })
        }
        fn end(&self) -> String {
            String::new()
        }
        fn told(&self, _: usize) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_part_begins_after_one_moment_and_ends_at_another() {
        let part = |from, to| Part::of(Box::new(Ten(Layout::default())), from, to);
        let mut middle = part(Some(20), Some(55)).unwrap();
        assert_eq!((middle.n_intervals(), middle.end_ms(0)), (3, Some(30)));
        assert_eq!(middle.rates(0).map(|rates| rates.wall_at_ns), Some(2));
        assert!(middle.rates(3).is_none() && part(Some(100), None).is_err() && part(None, Some(9)).is_err());
        assert_eq!(part(None, None).unwrap().n_intervals(), 10);
    }
}
