//! The last touch on a page of HTML: a list of its parts at the side, and micro signs.
//!
//! The list is made of the headings that the page really has, so that it cannot name a part that is not there. Terminals get
//! `us`, because not all of them have a µ; every browser has. Nothing that is typed is touched (`code`, `pre`, `--gap 50us`,
//! `max_latency=2us`), nor what stands inside a tag.

use std::fmt::Write as _;
use wakewatt_words::word;

/// How a part begins (see `parts.html`), up to its heading.
const PART: &str = "<details class=\"part\"><summary><h2>";
/// What holds its content.
const INSIDE: &str = "<div class=\"in\"";
/// Fewer need no list.
const LEAST_PARTS: usize = 3;
/// Elements whose text is no prose.
const AS_IS: [&str; 3] = ["code", "pre", "style"];

/// Both.
pub(super) fn finish(html: &str) -> String {
    micro(&contents(html))
}

/// Numbers the parts and lists them before the main text.
fn contents(html: &str) -> String {
    let mut pieces = html.split(PART);
    let mut out = pieces.next().unwrap_or_default().to_string();
    let (mut list, mut n) = (String::new(), 0);
    for piece in pieces {
        n += 1;
        let title = piece.split("</h2>").next().unwrap_or_default();
        let _ = write!(list, "<li><a href=\"#part-{n}\">{title}</a></li>");
        out += PART;
        out += &piece.replacen(INSIDE, &format!("{INSIDE} id=\"part-{n}\""), 1);
    }
    if n < LEAST_PARTS {
        return out;
    }
    out.replacen(
        "<main>",
        &format!("<nav class=\"contents\" aria-label=\"{}\"><ol>{list}</ol></nav>\n<main>", word!("Contents")),
        1,
    )
}

/// `31.4us` and `34 us` in running text become `31.4µs` and `34 µs`.
fn micro(html: &str) -> String {
    let mut out = String::with_capacity(html.len() + html.len() / 64);
    let mut as_is = 0usize;
    for piece in html.split_inclusive('>') {
        let (text, tag) = piece.split_at(piece.find('<').unwrap_or(piece.len()));
        if as_is == 0 {
            push_micro(&mut out, text)
        } else {
            out.push_str(text)
        }
        let name = tag.trim_start_matches('<').trim_start_matches('/');
        if AS_IS.iter().any(|known| name.split([' ', '>']).next() == Some(known)) {
            as_is = if tag.starts_with("</") { as_is.saturating_sub(1) } else { as_is + 1 };
        }
        out.push_str(tag);
    }
    out
}

fn push_micro(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find("us") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let number = before.strip_suffix([' ', '\u{a0}']).unwrap_or(before);
        let is_unit = number.ends_with(|c: char| c.is_ascii_digit()) && !after.starts_with(char::is_alphanumeric);
        let is_unit = is_unit && !is_typed(number);
        out.push_str(before);
        out.push_str(if is_unit { "µs" } else { "us" });
        rest = after;
    }
    out.push_str(rest);
}

/// Does a number end what somebody types: `max_latency=2us`, `--max-latency 2us`?
fn is_typed(number: &str) -> bool {
    let mut words = number.rsplit(char::is_whitespace);
    let is_value = words.next().is_some_and(|word| word.contains('='));
    is_value || words.next().is_some_and(|word| word.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_text_get_their_sign_and_what_is_pasted_stays() {
        let html = "<p title=\"5us\">31.4us, 34 us; 7\u{a0}us (2us)</p><pre><code>--max-latency 50us</code></pre><p>us 5usable bus 9</p>";
        let with = "<p title=\"5us\">31.4µs, 34 µs; 7\u{a0}µs (2µs)</p><pre><code>--max-latency 50us</code></pre><p>us 5usable bus 9</p>";
        assert_eq!(micro(html), with);
        assert_eq!(micro("3us"), "3µs");
        let typed = "say max_latency=2us or --max-latency 50us";
        assert_eq!(micro(typed), typed);
        assert_eq!(micro("<style>a{b:1us}</style>1us"), "<style>a{b:1us}</style>1µs");
    }

    #[test]
    fn every_part_is_listed_once_and_few_are_not() {
        let part = |title: &str| format!("{PART}{title}</h2></summary>{INSIDE}>x</div></details>");
        let page =
            |n: usize| format!("<body><main>{}</main>", (0..n).map(|i| part(&format!("T{i}"))).collect::<String>());
        let four = contents(&page(4));
        for n in 1..=4 {
            assert_eq!(four.matches(&format!("id=\"part-{n}\"")).count(), 1, "{four}");
            assert_eq!(four.matches(&format!("href=\"#part-{n}\">T{}<", n - 1)).count(), 1, "{four}");
        }
        assert!(!contents(&page(2)).contains("<nav"));
        assert_eq!(contents("plain"), "plain");
    }
}
