//! A column of numbers near what it weighs: the length of each number by a Huffman code, its other bits as they are.
//!
//! Times in a recording are of few magnitudes, and within one they are noise; so the number of their bits is worth coding and
//! the bits below the top one are not. A code is made for each column of each block, because a block is to be read alone.
//! Beside general compressors for numbers (pcodec) this needs no hundred bytes of preamble, which blocks of a few hundred
//! pairs cannot pay (docs/journal/2026-11-22-wtrace-2.md has the figures).
//!
//! Numbers are signed; zigzag makes them unsigned, so that small ones of either sign are short. The class of a number is its
//! length in bits: 0 for 0, 64 for the largest.

use super::bits::{BitReader, BitWriter};
use crate::arrange::Arrange as _;

/// Classes 0 to 64.
const N_CLASSES: usize = 65;
/// Width of a class, and of a code's length, in the preamble.
const CLASS_BITS: u32 = 7;
const LENGTH_BITS: u32 = 5;
/// A block has at most 4096 numbers a column, so no code gets longer (the 18th Fibonacci number is 4181).
const MAX_LENGTH: u64 = 20;

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

fn class(n: u64) -> usize {
    (u64::BITS - n.leading_zeros()) as usize
}

/// Packs a column; nothing is written for one without numbers.
pub(super) fn put(out: &mut BitWriter, column: &[i64]) {
    let mut counts = [0u32; N_CLASSES];
    column.iter().for_each(|n| counts[class(zigzag(*n))] += 1);
    let Some(first) = counts.iter().position(|n| *n > 0) else { return };
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(first);
    let lengths = lengths(&counts);
    out.put(first as u64, CLASS_BITS);
    out.put(last as u64, CLASS_BITS);
    if first < last {
        lengths[first..=last].iter().for_each(|n| out.put(u64::from(*n), LENGTH_BITS));
    }
    let codes = codes(&lengths);
    for n in column {
        let n = zigzag(*n);
        let class = class(n);
        if first < last {
            // From its top bit, so that a reader can tell the length as it goes.
            (0..lengths[class]).rev().for_each(|bit| out.put(u64::from(codes[class] >> bit & 1), 1));
        }
        out.put(n, u32::try_from(class.saturating_sub(1)).unwrap_or(0));
    }
}

/// Unpacks so many numbers; none when the bits are not what `put` writes.
pub(super) fn take(bits: &mut BitReader<'_>, n: usize) -> Option<Vec<i64>> {
    if n == 0 {
        return Some(Vec::new());
    }
    let first = usize::try_from(bits.take(CLASS_BITS)?).ok()?;
    let last = usize::try_from(bits.take(CLASS_BITS)?).ok()?;
    if first > last || last >= N_CLASSES {
        return None;
    }
    let mut lengths = [0u8; N_CLASSES];
    if first < last {
        for length in &mut lengths[first..=last] {
            *length = u8::try_from(bits.take(LENGTH_BITS)?).ok()?;
        }
    }
    let decoder = if first < last { Some(Decoder::new(&lengths)?) } else { None };
    let mut column = Vec::with_capacity(n);
    for _ in 0..n {
        let class = decoder.as_ref().map_or(Some(first), |d| d.class(bits))?;
        let below = u32::try_from(class.saturating_sub(1)).ok()?;
        let top = if class == 0 { 0 } else { 1u64 << below };
        column.push(unzigzag(top | bits.take(below)?));
    }
    Some(column)
}

/// Huffman's lengths: the two rarest become one until one is left. 0 where a class does not occur, or is alone.
fn lengths(counts: &[u32; N_CLASSES]) -> [u8; N_CLASSES] {
    let mut lengths = [0u8; N_CLASSES];
    let mut trees: Vec<(u32, Vec<usize>)> =
        counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(class, n)| (*n, vec![class])).collect();
    while trees.len() > 1 {
        // A stable order, so equal columns give equal bytes; the rarest last.
        trees.arrange_by_key(|(n, classes)| (std::cmp::Reverse(*n), classes.first().copied()));
        let (Some(a), Some(b)) = (trees.pop(), trees.pop()) else { break };
        let classes: Vec<usize> = b.1.into_iter().chain(a.1).collect();
        classes.iter().for_each(|class| lengths[*class] += 1);
        trees.push((a.0 + b.0, classes));
    }
    lengths
}

/// The canonical codes of these lengths: shorter first, then by class.
fn codes(lengths: &[u8; N_CLASSES]) -> [u32; N_CLASSES] {
    let mut codes = [0u32; N_CLASSES];
    let mut next = 0u32;
    for length in 1..=u8::try_from(MAX_LENGTH).unwrap_or(u8::MAX) {
        next <<= 1;
        for class in (0..N_CLASSES).filter(|class| lengths[*class] == length) {
            codes[class] = next;
            next += 1;
        }
    }
    codes
}

/// Canonical decoding: per length the first code, how many there are, and where their classes stand.
struct Decoder {
    steps: Vec<(u32, u32, usize)>,
    classes: Vec<usize>,
}

impl Decoder {
    /// None where the lengths are no complete code.
    fn new(lengths: &[u8; N_CLASSES]) -> Option<Decoder> {
        let (mut steps, mut classes, mut next) = (Vec::new(), Vec::new(), 0u32);
        let longest = lengths.iter().copied().max().filter(|n| u64::from(*n) <= MAX_LENGTH)?;
        for length in 1..=longest {
            next <<= 1;
            let start = classes.len();
            classes.extend((0..N_CLASSES).filter(|class| lengths[*class] == length));
            let n = u32::try_from(classes.len() - start).ok()?;
            steps.push((next, n, start));
            next += n;
            if next > 1 << length {
                return None;
            }
        }
        (next == 1u32.checked_shl(u32::from(longest))?).then_some(Decoder { steps, classes })
    }

    fn class(&self, bits: &mut BitReader<'_>) -> Option<usize> {
        let mut code = 0u32;
        for (first, n, start) in &self.steps {
            code = code << 1 | u32::try_from(bits.take(1)?).ok()?;
            if let Some(at) = code.checked_sub(*first).filter(|at| at < n) {
                return self.classes.get(start + at as usize).copied();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(column: &[i64]) -> Vec<u8> {
        let mut out = BitWriter::default();
        put(&mut out, column);
        out.end()
    }

    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec((any::<i64>(), 0u32..64).prop_map(|(n, shift)| n >> shift), 0..200)
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(column in numbers()) {
            let bytes = packed(&column);
            let mut bits = BitReader::new(&bytes);
            prop_assert_eq!(take(&mut bits, column.len()), Some(column));
            prop_assert!(bits.is_at_end());
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..100), n in 0usize..5000) {
            let _ = take(&mut BitReader::new(&noise), n);
        }
    }

    #[test]
    fn equal_numbers_take_their_bits_and_no_code() {
        // Two classes in the preamble, then 11 bits below the top one of 2 * 1500.
        assert_eq!(packed(&[1500; 80]).len(), (14 + 80 * 11usize).div_ceil(8));
        assert_eq!(packed(&[0; 4096]).len(), 2);
    }

    #[test]
    fn a_code_that_is_not_complete_is_refused() {
        let mut out = BitWriter::default();
        for (value, n) in [(0, 7), (1, 7), (1, 5), (2, 5), (0, 64)] {
            out.put(value, n);
        }
        assert_eq!(take(&mut BitReader::new(&out.end()), 3), None);
    }

    #[test]
    fn the_longest_code_of_a_block_fits() {
        // Fibonacci counts make the deepest tree.
        let (mut column, mut counts) = (Vec::new(), (1usize, 1usize));
        for class in 0..16u32 {
            column.extend(std::iter::repeat_n(1i64 << class, counts.0));
            counts = (counts.1, counts.0 + counts.1);
        }
        assert!(column.len() < super::super::PAIRS_PER_BLOCK);
        let bytes = packed(&column);
        assert_eq!(take(&mut BitReader::new(&bytes), column.len()), Some(column));
    }
}
