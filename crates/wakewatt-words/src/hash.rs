//! The name under which a translation is kept in the program.

/// FNV-1a of 64 bits (draft-eastlake-fnv): the program keeps hashes, so that the English does not stand in it twice.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
