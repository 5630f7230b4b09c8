//! Numbers in as few bytes as they need: seven bits a byte, lowest first; signed ones zigzag, so small stays small.

/// Appends an unsigned number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Takes one from the front; none when the bytes end or it is longer than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// A signed number folded, so that one near zero is small: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The same, back.
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Takes a signed one.
#[inline]
pub fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(unzigzag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(values in prop::collection::vec((any::<u64>(), any::<i64>()), 0..50)) {
            let mut out = Vec::new();
            for (a, b) in &values {
                put(&mut out, *a);
                put(&mut out, zigzag(*b));
            }
            let mut rest = &out[..];
            for (a, b) in &values {
                prop_assert_eq!(take(&mut rest), Some(*a));
                prop_assert_eq!(take_signed(&mut rest), Some(*b));
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_endless_number_is_refused() {
        assert_eq!(take(&mut &[0xff; 20][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
    }
}
