//! How much a `.host` file may unfold to.
//!
//! One line stands for many files (`cpu{0-575}`), so the length of a text says nothing about what it becomes: 115 bytes
//! can name 65,536 idle states. Real machines unfold to at most half an entry and 25 bytes per byte of text (the recorded
//! hosts, 576 CPUs), a machine of 8192 CPUs to one entry per byte. What a file becomes is counted before it is made, so
//! memory is at most a multiple of the text and a constant. docs/host-format.md states these numbers.

/// Entries (files, folders with each of their names, links, registers) whatever the length.
const BASE_ENTRIES: usize = 128 << 10;
/// And for every byte of text.
const ENTRIES_PER_BYTE: usize = 2;
/// Names of folders that stand in `{}` whatever the length; each is listed once, however many folders share the list.
const BASE_NAMES: usize = 16 << 10;
/// Bytes of paths, names and contents whatever the length.
const BASE_BYTES: usize = 64 << 20;
/// And for every byte of text.
const BYTES_PER_BYTE: usize = 16;

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    entries: usize,
    names: usize,
    bytes: usize,
}

impl Room {
    /// For a text of this length.
    pub(super) fn of(length: usize) -> Room {
        Room {
            entries: BASE_ENTRIES.saturating_add(length.saturating_mul(ENTRIES_PER_BYTE)),
            names: BASE_NAMES.saturating_add(length),
            bytes: BASE_BYTES.saturating_add(length.saturating_mul(BYTES_PER_BYTE)),
        }
    }

    /// Takes room for so many entries with so many bytes each; none when there is not as much.
    pub(super) fn take(&mut self, n_entries: usize, bytes_each: usize) -> Option<()> {
        self.entries = self.entries.checked_sub(n_entries)?;
        self.bytes = self.bytes.checked_sub(n_entries.checked_mul(bytes_each)?)?;
        Some(())
    }

    /// Takes room for the names of one list.
    pub(super) fn take_names(&mut self, n_names: usize) -> Option<()> {
        self.names = self.names.checked_sub(n_names)?;
        Some(())
    }

    /// Bytes that one content may still have.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone_and_no_number_overflows() {
        let mut room = Room::of(100);
        assert_eq!(room.take(BASE_ENTRIES, 1), Some(()));
        assert_eq!(room.take(201, 1), None);
        assert_eq!(Room::of(0).take(2, usize::MAX), None);
        assert_eq!(Room::of(usize::MAX).take(usize::MAX, 1), Some(()));
        assert_eq!((room.take_names(BASE_NAMES + 100), room.take_names(1)), (Some(()), None));
    }
}
