//! The binary: one file, static, under 20 MB. Static means no PT_INTERP program header: no loader is needed.

use super::{Measured, Row};
use anyhow::Result;
use std::path::Path;

const PT_INTERP: u32 = 3;

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let bytes = std::fs::read(binary)?;
    let megabytes = bytes.len() as f64 / 1e6;
    let is_static = interpreter(&bytes).map(|i| !i);
    let word = match is_static {
        Some(true) => "static",
        Some(false) => "needs a dynamic loader",
        None => "not a 64-bit ELF file",
    };
    let row = Row {
        what: "the binary",
        ours: format!("{megabytes:.1} MB, {word}"),
        peer: "-".into(),
        goal: "one static file, 20 MB",
        is_met: Some(megabytes < 20.0 && is_static == Some(true)),
    };
    Ok(Measured { rows: vec![row], csv: String::new() })
}

/// Does a little-endian ELF64 file ask for an interpreter?
fn interpreter(bytes: &[u8]) -> Option<bool> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, n: usize| {
        let field = bytes.get(at..at + n)?;
        Some(field.iter().rev().fold(0u64, |sum, b| sum << 8 | u64::from(*b)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for k in 0..count {
        let at = usize::try_from(table + k * size).ok()?;
        if number(at, 4)? == u64::from(PT_INTERP) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_elf_files_are_judged() {
        assert_eq!(super::interpreter(b"#!/bin/sh"), None);
        assert_eq!(super::interpreter(b"\x7fELF\x02\x01"), None, "cut short");
    }
}
