//! A line as a tool printed it, from a line as it arrived.
//!
//! Text that people send has been through terminals, chats, tickets and office programs: colours as escape sequences, carriage
//! returns, hard blanks, full-width letters and digits of East Asian input methods, quotes `> ` of mails, UTF-16. None of it
//! changes what the tool said, so it is undone before anything is read. What is undone here is not guessed: every change has one
//! meaning only. Numbers with a comma for the point are read by [`number`], because whether a comma divides thousands depends on
//! what follows it.

use std::borrow::Cow;

/// Longer lines are cut: no tool that is read here prints them.
pub const MAX_LINE: usize = 64 << 10;

/// Bytes as text: UTF-8, or UTF-16 by its mark; what is neither becomes replacement characters.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
        Cow::Owned(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// The line as it was printed.
pub fn line(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches(['\r', '\n']);
    let is_plain = |c: char| matches!(c, ' '..='~' | '\t');
    if text.len() <= MAX_LINE && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(MAX_LINE));
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() >= MAX_LINE {
            break;
        }
        match c {
            // A terminal's colours: ESC [ … letter.
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| matches!(*c, '0'..='9' | ';' | '?')).is_some() {}
                    chars.next_if(char::is_ascii_alphabetic);
                }
            }
            '\u{8}' => drop(out.pop()),
            '\u{ff01}'..='\u{ff5e}' => out.extend(char::from_u32(c as u32 - 0xfee0)),
            '\u{3000}' | '\u{a0}' | '\u{202f}' | '\u{2000}'..='\u{200a}' => out.push(' '),
            '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}' | '\r' | '\0' => {}
            '\u{2013}' | '\u{2212}' => out.push('-'),
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' => out.push('"'),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A number as a person or a locale writes it: `2100`, `1.25`, `1,25`, `2100,0000`, `1,234,567`.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let sign = text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let value: f64 = if body.parse::<f64>().is_ok() {
        body.parse().ok()?
    } else {
        let groups: Vec<&str> = body.split([',', ' ', '\'']).collect();
        let is_grouped =
            groups.len() > 2 && groups.iter().all(|g| is_digits(g)) && groups[1..].iter().all(|group| group.len() == 3);
        let (whole, fraction) = body.rsplit_once(',').unwrap_or((body, "0"));
        if is_grouped {
            groups.concat().parse().ok()?
        } else if is_digits(fraction) && whole.split('.').all(is_digits) {
            format!("{}.{fraction}", whole.replace('.', "")).parse().ok()?
        } else {
            return None;
        }
    };
    value.is_finite().then_some(if sign { -value } else { value })
}

/// A whole number, whatever stands between its digits' groups.
pub fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(n) = text.parse() {
        return Some(n);
    }
    let n = number(text)?;
    // Below 2^53 every whole number is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (n.fract() == 0.0 && (0.0..9.0e15).contains(&n)).then_some(n as u64)
}

/// Hexadecimal with `0x`.
pub fn hex(text: &str) -> Option<u64> {
    let digits = text.trim().strip_prefix("0x").or_else(|| text.trim().strip_prefix("0X"))?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

/// A frequency with its unit as kHz: `800 MHz`, `3.80 GHz`, `2,10 GHz`, `1200000 kHz`.
pub fn khz(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let scale = match text[split..].split(|c: char| !c.is_ascii_alphabetic()).next()?.to_ascii_lowercase().as_str() {
        "ghz" => 1e6,
        "mhz" => 1e3,
        "khz" => 1.0,
        "hz" => 1e-3,
        _ => return None,
    };
    let value = number(&text[..split])? * scale;
    // A positive number below a terahertz.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..1e9).contains(&value).then_some(value.round() as u64)
}

/// `key: value` with blanks about both; the first colon divides.
pub fn pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim();
    (!key.is_empty()).then_some((key, value.trim()))
}

/// Is the one the other, but for case and the number of blanks between words?
pub fn is_same(text: &str, words: &str) -> bool {
    let fold = |s: &str| s.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    text.len() <= 4 * words.len() + 64 && fold(text) == fold(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_and_chats_do_is_undone() {
        let said = [
            ("\u{1b}[1;32mC6:\u{1b}[0m\r", "C6:"),
            ("\u{ff23}\u{ff10}\u{ff1a}\u{3000}\u{ff11}\u{ff12}", "C0: 12"),
            ("a\u{a0}b\u{200b}c", "a bc"),
            ("\u{201e}menu\u{201c}", "\"menu\""),
            ("plain\ttext", "plain\ttext"),
        ];
        for (from, to) in said {
            assert_eq!(line(from), to);
        }
        assert_eq!(decoded(&[0xff, 0xfe, b'C', 0, b'6', 0]), "C6");
        assert_eq!(decoded(b"\xef\xbb\xbfok"), "ok");
        assert_eq!(line(&"x".repeat(MAX_LINE * 2)).len(), MAX_LINE);
    }

    #[test]
    fn numbers_of_several_locales() {
        let same = |text, want| assert_eq!(number(text), want, "{text}");
        same("2100", Some(2100.0));
        same("2100,0000", Some(2100.0));
        same("1.234,5", Some(1234.5));
        same("1,234,567", Some(1_234_567.0));
        same("-1", Some(-1.0));
        same("inf", None);
        same("12a", None);
        same("", None);
        assert_eq!(khz("3.80 GHz"), Some(3_800_000));
        assert_eq!(khz("3,80 GHz"), Some(3_800_000));
        assert_eq!(khz("800 MHz."), Some(800_000));
        assert_eq!((khz("GHz"), khz("8")), (None, None));
        assert_eq!((whole("12"), whole("1.5"), whole("1e300")), (Some(12), None, None));
        assert_eq!(hex("0x1e008403 (x)"), Some(0x1e00_8403));
    }
}
