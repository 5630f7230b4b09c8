//! What `dmidecode` printed, as the table it was printed from (DMTF DSP0134), so that core decodes it as it does firmware's.
//!
//! Only fields that core reads are written. A speed that the text does not give stays 0, which the standard calls unknown.

/// One structure, by what is put into it.
#[derive(Debug)]
pub(super) struct Structure {
    bytes: Vec<u8>,
    strings: Vec<String>,
}

impl Structure {
    /// Of this type and length.
    pub(super) fn new(kind: u8, length: u8) -> Structure {
        let mut bytes = vec![0; usize::from(length)];
        (bytes[0], bytes[1]) = (kind, length);
        Structure { bytes, strings: Vec::new() }
    }

    /// A number of one, two or four bytes, little-endian.
    pub(super) fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    }

    /// A string; blank ones are none.
    pub(super) fn text(&mut self, at: usize, text: &str) {
        let text: String = text.chars().filter(|c| *c != '\0').take(200).collect();
        if text.trim().is_empty() || self.strings.len() >= 250 {
            return;
        }
        self.strings.push(text.trim().to_string());
        if let (Ok(number), Some(place)) = (u8::try_from(self.strings.len()), self.bytes.get_mut(at)) {
            *place = number;
        }
    }

    /// A speed in MT/s at `at`, above 65534 in the later field.
    pub(super) fn speed(&mut self, at: usize, extended: usize, mts: u64) {
        match u16::try_from(mts) {
            Ok(mts) if mts < 0xffff => self.set(at, &mts.to_le_bytes()),
            _ => {
                self.set(at, &[0xff, 0xff]);
                self.set(extended, &u32::try_from(mts).unwrap_or(0).to_le_bytes());
            }
        }
    }

    pub(super) fn append_to(&self, table: &mut Vec<u8>, handle: u16) {
        let start = table.len();
        table.extend_from_slice(&self.bytes);
        table[start + 2..start + 4].copy_from_slice(&handle.to_le_bytes());
        for text in &self.strings {
            table.extend_from_slice(text.as_bytes());
            table.push(0);
        }
        if self.strings.is_empty() {
            table.push(0);
        }
        table.push(0);
    }
}
