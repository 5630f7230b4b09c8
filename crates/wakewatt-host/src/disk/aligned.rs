//! Memory for direct reads: O_DIRECT wants addresses at multiples of the disk's block, at most 4096 in practice.

/// The alignment.
pub const ALIGNMENT: usize = 4096;

/// A buffer whose used part begins at a multiple of [`ALIGNMENT`]. Never grows, so it never moves.
#[derive(Debug)]
pub struct Aligned {
    all: Box<[u8]>,
    from: usize,
    length: usize,
}

impl Aligned {
    /// Zeroed (and so backed by real pages before the first read).
    pub fn new(length: usize) -> Aligned {
        let mut all = vec![0u8; length + ALIGNMENT].into_boxed_slice();
        // A page fault in a measured read would be counted with it: touch every page now.
        all.iter_mut().step_by(ALIGNMENT).for_each(|byte| *byte = std::hint::black_box(1));
        let from = all.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Aligned { all, from, length }
    }

    /// The used part.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.all[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn aligned_and_whole() {
        for length in [512, 4096, 1 << 20] {
            let mut buffer = super::Aligned::new(length);
            assert_eq!(buffer.bytes().as_ptr() as usize % super::ALIGNMENT, 0);
            assert_eq!(buffer.bytes().len(), length);
        }
    }
}
