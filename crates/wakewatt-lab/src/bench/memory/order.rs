//! In which order a chase visits its elements.
//!
//! A shuffled list of elements, closed to a ring: one cycle through all by construction, where a shuffled table of
//! successors would fall apart into several. As in multichase, an element is `stride` bytes of which one line is used,
//! drawn at random so that all cache sets take part; with a locality, all elements of one range come before the next.

use wakewatt_core::stats::random::Random;
use wakewatt_host::pages::LINE_BYTES;

/// Line numbers in visiting order. The stride and the locality are rounded to whole lines and elements.
pub fn order(size_bytes: u64, stride_bytes: u64, locality_bytes: Option<u64>, seed: u64) -> Vec<u32> {
    let line = LINE_BYTES as u64;
    let lines_per_element = (stride_bytes / line).max(1);
    let n = size_bytes / line / lines_per_element;
    let n = u32::try_from(n.min(u64::from(u32::MAX) / lines_per_element)).unwrap_or(u32::MAX);
    let mut random = Random::new(seed);
    let mut all: Vec<u32> = (0..n).collect();
    let per_group = locality_bytes.map_or(n as usize, |l| usize::try_from(l / line / lines_per_element).unwrap_or(0));
    if per_group > 1 && per_group < all.len() {
        let mut groups: Vec<&[u32]> = all.chunks(per_group).collect();
        random.shuffle(&mut groups);
        all = groups.concat();
        // A shorter last group may have moved: shuffle inside true groups, found by their number.
        let group_of = |element: u32| element as usize / per_group;
        all.chunk_by_mut(|a, b| group_of(*a) == group_of(*b)).for_each(|group| random.shuffle(group));
    } else {
        random.shuffle(&mut all);
    }
    let per_element = u32::try_from(lines_per_element).unwrap_or(1);
    for element in &mut all {
        let within = u32::try_from(random.below(lines_per_element)).unwrap_or(0);
        *element = *element * per_element + within;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one_cycle(order: &[u32], n: usize) -> bool {
        let distinct: std::collections::BTreeSet<&u32> = order.iter().collect();
        order.len() == n && distinct.len() == n
    }

    #[test]
    fn every_element_is_visited_once() {
        assert!(is_one_cycle(&order(64 * 1000, 64, None, 1), 1000));
        let wide = order(64 * 1000, 256, None, 1);
        assert!(is_one_cycle(&wide, 250) && wide.iter().all(|l| *l < 1000));
        let mut elements: Vec<u32> = wide.iter().map(|l| l / 4).collect();
        elements.sort_unstable();
        assert_eq!(elements, (0..250).collect::<Vec<_>>());
        assert!(wide.iter().any(|l| l % 4 == 0) && wide.iter().any(|l| l % 4 == 3), "all lines of a stride are used");
        assert_eq!(order(64, 64, None, 1), [0]);
        assert!(order(0, 64, None, 1).is_empty());
        assert_ne!(order(6400, 64, None, 1), order(6400, 64, None, 2));
    }

    #[test]
    fn a_locality_is_finished_before_the_next_begins() {
        let all = order(4096 * 10 + 640, 64, Some(4096), 7);
        assert!(is_one_cycle(&all, 650));
        let mut seen: Vec<u32> = all.iter().map(|l| l / 64).collect();
        seen.dedup();
        assert_eq!(seen.len(), 11, "each page once: {seen:?}");
        assert_ne!(seen, (0..11).collect::<Vec<_>>());
        assert!(is_one_cycle(&order(6400, 64, Some(64), 7), 100), "a locality of one element is none");
    }
}
