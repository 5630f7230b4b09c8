//! Our words out of a boot file that somebody has edited since: nothing else in it changes by a byte.
//!
//! Undo compares and sets: a file that is not as we left it is not put back whole, because that would throw out what
//! others wrote. But our words need not stay for that. The journal has the file before and after, so their difference is
//! ours. A line of ours that stands there as we wrote it goes; of a line that was edited our words go, if each stands there
//! exactly once. A word that is gone is gone. What is ambiguous (a word twice, or inside a quoted value; words that we had
//! taken out to make room) is left alone, and undo names the file as before.
//!
//! The result is computed from what is there now, so doing it again, after a crash at any point, gives the same file.
//! Not here: what grubby, rpm-ostree and bootc keep; their own commands take words out one by one.

use super::{flatcar, grub_debian, record, systemd_boot};

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One kernel line: a quoted part belongs to its word.
    Line,
    /// Assignments of a shell or of GRUB: the words stand inside quotes.
    Shell,
    /// A line is a line.
    Lines,
}

fn kind(path: &str) -> Option<Kind> {
    match path {
        systemd_boot::LINE => Some(Kind::Line),
        grub_debian::DROP_IN => Some(Kind::Shell),
        record::RECORD => Some(Kind::Lines),
        _ => path.strip_suffix("/grub.cfg").filter(|folder| flatcar::FOLDERS.contains(folder)).map(|_| Kind::Shell),
    }
}

/// What the file shall hold without our words: `Some(None)` if it shall not exist. None: not such a file, or ambiguous.
pub(crate) fn take_out(path: &str, before: Option<&str>, ours: Option<&str>, now: &str) -> Option<Option<String>> {
    let kind = kind(path)?;
    let (was, ours) = (before.unwrap_or_default(), ours?);
    let (mut text, mut words) = (now.to_string(), Vec::new());
    match (kind, difference(lines(was), lines(ours))) {
        (Kind::Lines | Kind::Shell, Some(added)) => {
            for line in added.into_iter().filter(|l| !l.trim().is_empty()) {
                match lines(&text).filter(|l| *l == line).count() {
                    0 => words.extend(words_of(line, kind)),
                    1 => text = text.split_inclusive('\n').filter(|l| l.trim_end_matches(END) != line).collect(),
                    _ => return None,
                }
            }
            // An edited line of a list has no part that could go by itself.
            if kind == Kind::Lines && words.iter().any(|w| text.contains(w.as_str())) {
                return None;
            }
        }
        (Kind::Lines, None) => return None,
        (Kind::Line | Kind::Shell, _) => {
            words = difference(words_of(was, kind).into_iter(), words_of(ours, kind).into_iter())?;
        }
    }
    for word in &words {
        text = without_word(&text, word, kind)?;
    }
    if kind == Kind::Shell {
        text = without_idle_assignments(&text, was);
    }
    let is_ours_alone = before.is_none() || path == grub_debian::DROP_IN;
    Some((!(is_ours_alone && text.trim().is_empty())).then_some(text))
}

/// How a line may end, also in an editor of another system.
const END: [char; 2] = ['\r', '\n'];

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.trim_end_matches(END))
}

/// What `after` has more than `before`; none if it lacks something.
fn difference<T: PartialEq>(before: impl Iterator<Item = T>, after: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let mut more: Vec<T> = after.collect();
    for item in before {
        let at = more.iter().position(|m| *m == item)?;
        more.remove(at);
    }
    Some(more)
}

/// The words of a text that could be kernel parameters of ours, comments and the frame around them left out.
fn words_of(text: &str, kind: Kind) -> Vec<String> {
    let spans = spans(text, kind).into_iter().map(|(from, to)| text[from..to].to_string());
    match kind {
        Kind::Line => spans.collect(),
        _ => spans.filter(|w| !w.contains('$') && !w.ends_with('=') && w != "set").collect(),
    }
}

/// Where the words stand, outside comment lines.
fn spans(text: &str, kind: Kind) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim_start().starts_with('#') {
            let (mut from, mut is_quoted) = (None, false);
            for (i, c) in line.char_indices().chain([(line.len(), '\n')]) {
                let is_quote = matches!(c, '"' | '\'');
                is_quoted ^= kind == Kind::Line && c == '"';
                let is_end = (c.is_whitespace() && !is_quoted) || (is_quote && kind != Kind::Line) || i == line.len();
                match (is_end, from) {
                    (true, Some(start)) => {
                        found.push((at + start, at + i));
                        from = None;
                    }
                    (false, None) => from = Some(i),
                    _ => {}
                }
            }
        }
        at += line.len();
    }
    found
}

/// Without the word, which must stand there once or not at all, and without the blank that came with it.
fn without_word(text: &str, word: &str, kind: Kind) -> Option<String> {
    let found: Vec<_> = spans(text, kind).into_iter().filter(|(from, to)| &text[*from..*to] == word).collect();
    match found.as_slice() {
        [] => (!is_hidden(text, word, kind)).then(|| text.to_string()),
        [(from, to)] => {
            let (head, tail) = (&text[..*from], &text[*to..]);
            let is_blank = |c: char| matches!(c, ' ' | '\t');
            Some(match (head.strip_suffix(is_blank), tail.strip_prefix(is_blank)) {
                (Some(head), _) => head.to_string() + tail,
                (None, Some(tail)) => head.to_string() + tail,
                (None, None) => head.to_string() + tail,
            })
        }
        _ => None,
    }
}

/// Does the word stand inside another one, quoted or glued to it? Then a person must look.
fn is_hidden(text: &str, word: &str, kind: Kind) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !(c.is_ascii_alphanumeric() || "._-=,:/+@".contains(c)));
    spans(text, kind).into_iter().map(|(from, to)| &text[from..to]).any(|other| {
        let hit = |(at, _): (usize, &str)| {
            is_edge(other[..at].chars().next_back()) && is_edge(other[at + word.len()..].chars().next())
        };
        other.match_indices(word).any(hit)
    })
}

/// `A="$A"` does nothing: it is what our line leaves when nobody has added a word to it. Our comment goes with it.
fn without_idle_assignments(text: &str, was: &str) -> String {
    let is_idle = |line: &str| {
        let line = line.trim();
        let pair = line.strip_prefix("set ").unwrap_or(line).split_once('=');
        pair.is_some_and(|(name, value)| {
            let value = value.trim_matches(['"', '\'']).trim();
            [grub_debian::VARIABLE, flatcar::VARIABLE].contains(&name)
                && (value == format!("${name}") || value == format!("${{{name}}}"))
        })
    };
    let is_new = |line: &&str| !lines(was).any(|l| l == line.trim_end_matches(END));
    if !text.lines().any(is_idle) {
        return text.to_string();
    }
    let is_comment = |line: &str| grub_debian::HEAD.lines().chain([flatcar::MARK]).any(|ours| line.trim_end() == ours);
    let goes = |line: &&str| (is_idle(line) && is_new(line)) || is_comment(line);
    text.split_inclusive('\n').filter(|line| !goes(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = systemd_boot::LINE;

    fn line(now: &str) -> Option<Option<String>> {
        take_out(LINE, Some("root=/dev/sda1 ro\n"), Some("root=/dev/sda1 ro idle=poll nosmt\n"), now)
    }

    #[test]
    fn our_words_go_and_every_other_byte_stays() {
        for (now, left) in [
            ("root=/dev/sda1 ro idle=poll nosmt quiet\n", "root=/dev/sda1 ro quiet\n"),
            ("root=/dev/sda1 ro idle=poll debug nosmt\n", "root=/dev/sda1 ro debug\n"),
            ("quiet root=/dev/sda2  ro\tidle=poll nosmt", "quiet root=/dev/sda2  ro"),
            ("idle=poll root=x nosmt a=\"b  c\"\n\n", "root=x a=\"b  c\"\n\n"),
            ("# idle=poll is wakewatt's\nroot=x idle=poll nosmt\n", "# idle=poll is wakewatt's\nroot=x\n"),
            ("root=x idle=halt nosmt\n", "root=x idle=halt\n"),
            ("root=x xidle=poll idle=poll2 nosmt=force\n", "root=x xidle=poll idle=poll2 nosmt=force\n"),
            ("root=x\n", "root=x\n"),
        ] {
            assert_eq!(line(now), Some(Some(left.into())), "{now:?}");
            // Again, as after a crash.
            assert_eq!(line(left), Some(Some(left.into())), "{now:?}");
        }
    }

    #[test]
    fn what_is_ambiguous_is_left() {
        for now in
            ["root=x idle=poll nosmt idle=poll\n", "root=x \"idle=poll\" nosmt\n", "root=x a=\"b idle=poll\" nosmt\n"]
        {
            assert_eq!(line(now), None, "{now:?}");
        }
        let replaced = take_out(LINE, Some("a idle=poll\n"), Some("a idle=halt\n"), "a b idle=halt\n");
        assert_eq!(replaced, None, "what we took out cannot be put back in a place of its own");
        assert_eq!(take_out("/etc/passwd", Some("a\n"), Some("a b\n"), "a b c\n"), None);
        assert_eq!(take_out("/home/x/grub.cfg", None, Some("a\n"), "a\nb\n"), None);
        assert_eq!(take_out(LINE, Some("a"), None, "a b"), None);
    }

    #[test]
    fn a_drop_in_keeps_what_others_wrote_into_it() {
        let variable = grub_debian::VARIABLE;
        let ours = format!("{}{variable}=\"${variable} idle=poll nosmt\"\n", grub_debian::HEAD);
        let out = |now: &str| take_out(grub_debian::DROP_IN, None, Some(&ours), now).unwrap();
        assert_eq!(out(&ours), None);
        assert_eq!(out(&format!("GRUB_TIMEOUT=3\n{ours}# mine\n")), Some("GRUB_TIMEOUT=3\n# mine\n".into()));
        let words = |line: &str| out(&format!("{}{line}\n", grub_debian::HEAD));
        assert_eq!(
            words(&format!("{variable}=\"${variable} idle=poll quiet nosmt\"")).unwrap(),
            format!("{variable}=\"${variable} quiet\"\n")
        );
        assert_eq!(words(&format!("{variable}='idle=poll quiet nosmt'")).unwrap(), format!("{variable}='quiet'\n"));
        assert_eq!(words(&format!("{variable}=\"${{{variable}}} nosmt idle=poll\"")), None);
        let twice = format!("{}{variable}=\"${variable} idle=poll idle=poll nosmt\"\n", grub_debian::HEAD);
        assert_eq!(take_out(grub_debian::DROP_IN, None, Some(&ours), &twice), None);
    }

    #[test]
    fn flatcars_mark_goes_with_our_words_so_that_no_later_plan_takes_theirs() {
        let before = "set oem_id=\"ec2\"\n";
        let ours = format!("{before}{}\nset linux_append=\"$linux_append idle=poll\"\n", flatcar::MARK);
        let out = |now: &str| take_out("/oem/grub.cfg", Some(before), Some(&ours), now).unwrap().unwrap();
        assert_eq!(out(&format!("# by hand\n{ours}\n")), format!("# by hand\n{before}\n"));
        let edited = ours.replace("idle=poll", "console=ttyS0 idle=poll quiet");
        assert_eq!(out(&edited), format!("{before}set linux_append=\"$linux_append console=ttyS0 quiet\"\n"));
    }

    #[test]
    fn the_record_loses_whole_lines_only() {
        let ours = "# Written by wakewatt\nloader x\nadded idle=poll\n";
        let out = |now: &str| take_out(record::RECORD, None, Some(ours), now);
        assert_eq!(out("# why\n# Written by wakewatt\nloader x\nadded idle=poll\n"), Some(Some("# why\n".into())));
        assert_eq!(out("loader x\nadded idle=poll\n\n"), Some(None));
        assert_eq!(out("loader x\nadded idle=poll nosmt\n"), None);
        assert_eq!(out("# why\r\nloader x\r\nadded idle=poll\r\n"), Some(Some("# why\r\n".into())));
    }
}
