//! Comma-separated values (RFC 4180) as every table is written: of a run, of charts, of comparisons, and the rows of `watch`.
//!
//! A spreadsheet runs a field that begins like a formula, and names of devices, processes and hosts are foreign text: such a
//! field gets an apostrophe in front. Numbers stay numbers, whatever sign they begin with.

use csv::{Terminator, WriterBuilder};
use std::borrow::Cow;
use wakewatt_core::visible;

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// As files of this system do.
    Unix,
    /// As the standard has it, for programs elsewhere.
    Standard,
}

/// These rows as text, the head among them.
pub fn text<'a>(ends: Ends, rows: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    let terminator = match ends {
        Ends::Unix => Terminator::Any(b'\n'),
        Ends::Standard => Terminator::CRLF,
    };
    let mut writer = WriterBuilder::new().terminator(terminator).flexible(true).from_writer(Vec::new());
    for row in rows {
        // Memory takes everything.
        let _ = writer.write_record(row.iter().map(|field| harmless(field).into_owned()));
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Foreign text without control characters, and never a formula.
fn harmless(field: &str) -> Cow<'_, str> {
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let field = visible::line(field);
    if is_formula { format!("'{field}").into() } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(field: &str) -> String {
        text(Ends::Unix, [&vec!["a".to_string(), field.to_string()]])
    }

    #[test]
    fn what_would_break_a_row_is_quoted() {
        let rows = [vec!["a".to_string(), "b_ns".into()], vec!["say \"no\", twice".into(), String::new()]];
        assert_eq!(text(Ends::Unix, &rows), "a,b_ns\n\"say \"\"no\"\", twice\",\n");
        assert_eq!(text(Ends::Standard, &rows[..1]), "a,b_ns\r\n");
    }

    #[test]
    fn foreign_text_is_no_formula_and_numbers_stay_numbers() {
        for (field, written) in [
            ("=1+1", "'=1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-x", "'-x"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\t=1"),
            ("\r=1", "'\\r=1"),
            ("-5.25", "-5.25"),
            ("+1e3", "+1e3"),
            ("-inf", "-inf"),
            ("\u{202e}=1", "\\u{202e}=1"),
        ] {
            assert_eq!(one(field), format!("a,{written}\n"));
        }
    }
}
