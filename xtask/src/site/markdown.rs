//! What of a page of Markdown is prose, and which links and anchors stand in it.
//!
//! As much of Markdown as our pages use: fences, code spans, inline links and pictures, `#` headings. Anchors are made as
//! GitHub makes them (lower case, spaces to `-`, other signs dropped, a number where a heading comes again), which is also
//! mdBook's way for headings like ours.

use std::collections::{BTreeMap, BTreeSet};

/// A piece of a line of prose.
pub(super) enum Piece<'a> {
    /// Anything else.
    Text(&'a str),
    /// `[text](target)` or, with a `!` in `text` before the bracket, a picture.
    Link { text: &'a str, target: &'a str },
    /// A code span without its backticks, where it has one on each side.
    Code(&'a str),
}

/// Lines with whether each is prose: not inside a fence, and no fence itself.
pub(super) fn lines(page: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut fence: Option<&str> = None;
    page.lines().map(move |line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        match (fence, mark) {
            (None, Some(m)) => fence = Some(m),
            (Some(open), Some(m)) if open == m => fence = None,
            (None, None) => return (line, true),
            _ => {}
        }
        (line, false)
    })
}

/// A line of prose in pieces.
pub(super) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let (mut out, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(sign) = line[at..].chars().next() {
        let found = match sign {
            '`' => code(&line[at..]),
            '[' => link(&line[at..]),
            _ => None,
        };
        match found {
            Some((piece, n)) => {
                out.push(Piece::Text(&line[from..at]));
                out.push(piece);
                at += n;
                from = at;
            }
            // An unpaired run of backticks is text, whole.
            None if sign == '`' => at += line[at..].len() - line[at..].trim_start_matches('`').len(),
            None => at += sign.len_utf8(),
        }
    }
    out.push(Piece::Text(&line[from..]));
    out
}

fn code(rest: &str) -> Option<(Piece<'_>, usize)> {
    let n = rest.len() - rest.trim_start_matches('`').len();
    let end = rest[n..].find(&rest[..n])?;
    let whole = &rest[..n + end + n];
    Some((if n == 1 { Piece::Code(&rest[1..=end]) } else { Piece::Text(whole) }, whole.len()))
}

fn link(rest: &str) -> Option<(Piece<'_>, usize)> {
    let mut depth = 0;
    let close = rest.char_indices().find_map(|(at, sign)| {
        match sign {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let target = rest[close + 1..].strip_prefix('(')?;
    let end = target.find(')')?;
    Some((Piece::Link { text: &rest[1..close], target: &target[..end] }, close + 1 + 1 + end + 1))
}

/// Targets of all links of a page, with the line they stand in.
pub(super) fn links(page: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (n, (line, _)) in lines(page).enumerate().filter(|(_, (_, is_prose))| *is_prose) {
        for piece in pieces(line) {
            if let Piece::Link { text, target } = piece {
                out.push((n + 1, target.to_string()));
                // A picture inside a link.
                out.extend(pieces(text).into_iter().filter_map(|inner| match inner {
                    Piece::Link { target, .. } => Some((n + 1, target.to_string())),
                    _ => None,
                }));
            }
        }
    }
    out
}

/// The first heading.
pub(super) fn title(page: &str) -> Option<&str> {
    lines(page).find_map(|(line, is_prose)| is_prose.then(|| line.strip_prefix("# ")).flatten())
}

/// The anchors of a page.
pub(super) fn anchors(page: &str) -> BTreeSet<String> {
    let (mut out, mut seen) = (BTreeSet::new(), BTreeMap::new());
    for (line, _) in lines(page).filter(|(_, is_prose)| *is_prose) {
        let text = line.trim_start_matches('#');
        if text.len() < line.len() && text.starts_with(' ') {
            let anchor = anchor(text.trim());
            let n = seen.entry(anchor.clone()).or_insert(0);
            out.insert(if *n == 0 { anchor } else { format!("{anchor}-{n}") });
            *n += 1;
        }
        out.extend(line.split("id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
    }
    out
}

fn anchor(heading: &str) -> String {
    let words: String = pieces(heading)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) | Piece::Link { text, .. } | Piece::Code(text) => text,
        })
        .collect();
    let kept = words.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
    kept.replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stand_in_prose_only() {
        let page =
            "[a](b.md) `[c](d.md)` ![p](q.png) [`e [f]`](g.md#h)\n```text\n[i](j.md)\n```\n[k] (l) ``[m](n)`` [o](r)";
        let found: Vec<String> = links(page).into_iter().map(|(_, target)| target).collect();
        assert_eq!(found, ["b.md", "q.png", "g.md#h", "r"]);
        assert_eq!(links(page)[3].0, 5);
    }

    #[test]
    fn anchors_are_made_as_github_makes_them() {
        let page = "# Why us, and not `C6`?\n## Twice\n```\n# no\n```\n## Twice\n<a id=\"own\"></a>\n#hash";
        assert_eq!(Vec::from_iter(anchors(page)), ["own", "twice", "twice-1", "why-us-and-not-c6"]);
        assert_eq!(title(page), Some("Why us, and not `C6`?"));
    }
}
