//! Addresses of kernel functions, from `/proc/kallsyms`: zero for everybody when kptr_restrict hides them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

/// The address of the first of these functions the kernel has. Streams the file: it has some 200,000 lines.
pub(crate) fn address_of(functions: &[&str]) -> Option<u64> {
    let file = std::fs::File::open("/proc/kallsyms").ok()?;
    find(BufReader::with_capacity(1 << 16, file), functions)
}

/// Names of the functions at these addresses, as far as they are told.
pub fn names_of(addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    match std::fs::File::open("/proc/kallsyms") {
        Ok(file) if !addresses.is_empty() => named(BufReader::with_capacity(1 << 16, file), addresses),
        _ => BTreeMap::new(),
    }
}

fn named(mut lines: impl BufRead, addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let (mut found, mut line) = (BTreeMap::new(), Vec::new());
    while found.len() < addresses.len() && lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line);
        let mut words = text.split_ascii_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(address), Some(name)) = (address.filter(|a| addresses.contains(a)), words.nth(1)) {
            found.entry(address).or_insert_with(|| name.to_string());
        }
        line.clear();
    }
    found
}

fn find(mut lines: impl BufRead, functions: &[&str]) -> Option<u64> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let text = std::str::from_utf8(&line).unwrap_or_default();
        let mut words = text.split_ascii_whitespace();
        let (Some(address), Some(_kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        // A fourth word names a module: the tick is not in one.
        if functions.contains(&name) && words.next().is_none() {
            return u64::from_str_radix(address, 16).ok().filter(|a| *a != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_functions_by_their_addresses() {
        let text = "00f1 t other\nrubbish\n00f2 T hrtimer_wakeup\t[module]\n00f2 T alias\n";
        let found = named(text.as_bytes(), &BTreeSet::from([0xf2, 0xf9]));
        assert_eq!(found, BTreeMap::from([(0xf2, "hrtimer_wakeup".to_string())]));
    }

    #[test]
    fn finds_a_function_and_takes_zero_for_hidden() {
        let text = "ffff1 t other\nffff2 T tick_x\t[module]\nffff3 t tick_nohz_handler\n";
        assert_eq!(find(text.as_bytes(), &["tick_sched_timer", "tick_nohz_handler"]), Some(0xffff3));
        assert_eq!(find(text.as_bytes(), &["tick_x"]), None);
        assert_eq!(find("0000000000000000 t tick_nohz_handler\n".as_bytes(), &["tick_nohz_handler"]), None);
    }
}
