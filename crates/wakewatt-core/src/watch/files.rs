//! The files of a layout: thousands of paths, in one text.
//!
//! 512 CPUs with ten idle states have 13,000 of them, and an agent keeps them for months. A string each takes twice as much memory as its letters.

use crate::units::Cpu;

/// What reading a file disturbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing but the CPU that reads.
    Memory,
    /// A bus, no CPU.
    Bus,
    /// This CPU, which is interrupted.
    Cpu(Cpu),
}

/// Number of a file among those of a layout.
pub type Slot = usize;

/// Paths and what reading them disturbs, by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// One path behind the other.
    text: String,
    /// Where each ends.
    rows: Vec<(u32, Reach)>,
}

/// A file that is read at every interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// The machine's path.
    pub path: &'a str,
    /// What it disturbs.
    pub reach: Reach,
}

impl Files {
    /// Adds one. Paths of more than four gigabytes together are no machine's: what does not fit is an empty path, which no file has.
    pub fn add(&mut self, path: &str, reach: Reach) -> Slot {
        let end = self.text.len() + path.len();
        if u32::try_from(end).is_ok() {
            self.text.push_str(path);
        }
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.rows.push((end, reach));
        self.rows.len() - 1
    }

    /// All have been added.
    pub fn settle(&mut self) {
        self.text.shrink_to_fit();
        self.rows.shrink_to_fit();
    }

    /// The file of a slot.
    pub fn get(&self, slot: Slot) -> Option<File<'_>> {
        let (end, reach) = *self.rows.get(slot)?;
        let start = slot.checked_sub(1).and_then(|before| self.rows.get(before)).map_or(0, |(end, _)| *end);
        Some(File { path: self.text.get(start as usize..end as usize)?, reach })
    }

    /// In order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = File<'_>> {
        (0..self.rows.len()).filter_map(|slot| self.get(slot))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Is there none, as in a recording?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_its_path() {
        let mut files = Files::default();
        let all = ["/proc/stat", "", "/sys/µ", "/sys/z"];
        for (at, path) in all.into_iter().enumerate() {
            assert_eq!(files.add(path, if at == 2 { Reach::Cpu(7) } else { Reach::Memory }), at);
        }
        files.settle();
        assert_eq!(files.iter().map(|file| file.path).collect::<Vec<_>>(), all);
        assert_eq!(files.get(2).map(|file| file.reach), Some(Reach::Cpu(7)));
        assert_eq!((files.get(4), files.len()), (None, 4));
    }
}
