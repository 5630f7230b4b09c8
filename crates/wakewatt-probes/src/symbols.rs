//! Addresses of kernel functions, from `/proc/kallsyms`: zero for everybody when kptr_restrict hides them.

use std::io::{BufRead, BufReader};

/// The address of the first of these functions the kernel has. Streams the file: it has some 200,000 lines.
pub(crate) fn address_of(functions: &[&str]) -> Option<u64> {
    let file = std::fs::File::open("/proc/kallsyms").ok()?;
    find(BufReader::with_capacity(1 << 16, file), functions)
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
    fn finds_a_function_and_takes_zero_for_hidden() {
        let text = "ffff1 t other\nffff2 T tick_x\t[module]\nffff3 t tick_nohz_handler\n";
        assert_eq!(find(text.as_bytes(), &["tick_sched_timer", "tick_nohz_handler"]), Some(0xffff3));
        assert_eq!(find(text.as_bytes(), &["tick_x"]), None);
        assert_eq!(find("0000000000000000 t tick_nohz_handler\n".as_bytes(), &["tick_nohz_handler"]), None);
    }
}
