//! Sorting for lists of a few to a few thousand things, where the program's size counts and time does not.
//!
//! The standard library's stable sort is made anew for every type and order, four kilobytes each, and this program has more than a hundred of them. Here places
//! are sorted, once for all types, and the things follow. Slower by an indirect call per comparison and a list of places; where samples are sorted, the
//! standard sort stays.

use std::cmp::Ordering;

/// Stable sorting of a slice.
pub trait Arrange<T> {
    /// By a comparison of two things.
    fn arrange_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
    /// By a key, smallest first.
    fn arrange_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Arrange<T> for [T] {
    fn arrange_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut place = places(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        for at in 0..place.len() {
            while place[at] != at {
                let to = place[at];
                self.swap(at, to);
                place.swap(at, to);
            }
        }
    }

    fn arrange_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.arrange_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Where each of `n` things belongs.
#[inline(never)]
fn places(n: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| compare(*a, *b));
    let mut place = vec![0; n];
    for (to, from) in order.into_iter().enumerate() {
        place[from] = to;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_standard_stable_sort(values in prop::collection::vec((0u8..9, any::<u16>()), 0..200)) {
            let (mut by_key, mut by, mut expected) = (values.clone(), values.clone(), values);
            expected.sort_by_key(|(key, _)| *key);
            by_key.arrange_by_key(|(key, _)| *key);
            prop_assert_eq!(&by_key, &expected);
            expected.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
            by.arrange_by(|a, b| b.0.cmp(&a.0));
            prop_assert_eq!(&by, &expected);
        }
    }
}
