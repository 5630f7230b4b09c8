//! The commands printed in the documentation, run as a reader would type them: exit code, and the shape of what they say.
//!
//! Every `console` block of `site/src` and the README stands below a comment that says what becomes of it here:
//!
//! ```text
//! <!-- run -->                     run; what follows a command is its whole output
//! <!-- run; exit 7 -->             … and that is its exit code
//! <!-- run; keep 1-9 14 -->        … of the last command these lines are printed, `…` where some are left out
//! <!-- not run: why -->            needs root, minutes or another machine
//! ```
//!
//! The commands of a page run in order, in one scratch folder in which `fixtures` and `bench` lead to the repository's. In
//! the shape of a line a number is any number and a time has any unit; words, signs and the number of lines are kept.
//! `WAKEWATT_BLESS=1` rewrites the pages. The pages in Chinese are not run again: their blocks are those of the English
//! ones, line by line.

use crate::tool::{PROGRAM, Said, fixtures, said};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command and the lines that the page shows of its output.
struct Typed {
    command: String,
    shown: Vec<String>,
}

/// A block of a page.
struct Block {
    /// The line of its fence, from 0.
    at: usize,
    /// The comment above it.
    comment: String,
    typed: Vec<Typed>,
    /// The line of the closing fence.
    end: usize,
}

fn top() -> PathBuf {
    fixtures().parent().unwrap().to_path_buf()
}

/// Every page that may hold a block, in English.
fn pages() -> Vec<PathBuf> {
    let (mut todo, mut out) = (vec![top().join("site/src")], vec![top().join("README.md")]);
    while let Some(folder) = todo.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.ends_with("zh") {
                continue;
            } else if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for at in (0..lines.len()).filter(|at| lines[*at].starts_with("```console")) {
        let end = (at + 1..lines.len()).find(|n| lines[*n].starts_with("```")).unwrap();
        let mut typed: Vec<Typed> = Vec::new();
        for line in &lines[at + 1..end] {
            match (line.strip_prefix("$ "), typed.last_mut()) {
                (Some(command), _) => typed.push(Typed { command: command.to_string(), shown: Vec::new() }),
                (None, Some(last)) if last.shown.is_empty() && last.command.ends_with('\\') => {
                    last.command.pop();
                    last.command += line.trim_start();
                }
                (None, Some(last)) => last.shown.push((*line).to_string()),
                (None, None) => panic!("{}:{}: a block begins with `$ `", page.display(), at + 2),
            }
        }
        let comment = at.checked_sub(1).map_or("", |above| lines[above]);
        let comment = comment.strip_prefix("<!-- ").and_then(|c| c.strip_suffix(" -->")).unwrap_or_default();
        out.push(Block { at, comment: comment.to_string(), typed, end });
    }
    out
}

/// A line with numbers, times and columns of any width made alike.
fn shape(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(sign) = rest.chars().next() {
        // A digit inside a word is the word's: C6, p99, 0x1b0.
        let n = if sign.is_ascii_digit() && !out.ends_with(char::is_alphanumeric) {
            let n = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',').len();
            // A sentence may end with a number.
            rest[..n].trim_end_matches(['.', ',']).len()
        } else {
            0
        };
        if n == 0 {
            out.push(sign);
            rest = &rest[sign.len_utf8()..];
            continue;
        }
        out.push('0');
        rest = &rest[n..];
        let after = rest.strip_prefix(' ').unwrap_or(rest);
        let unit = ["ns", "us", "ms", "s"].iter().find(|u| {
            after.strip_prefix(**u).is_some_and(|more| !more.starts_with(|c: char| c.is_alphanumeric() || c == '/'))
        });
        if let Some(unit) = unit {
            out.push('t');
            rest = &after[unit.len()..];
        }
    }
    // A rounded half-width of 0 is not printed, and a small difference may change its side.
    let out = out.replace(" ±0 %", "").replace("+0", "0").replace("-0", "0").replace("−0", "0");
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of an output that a page keeps.
fn kept(lines: &[String], ranges: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut next = 1;
    for range in ranges.split_whitespace() {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        if from > next {
            out.push("…".into());
        }
        out.extend(lines.iter().skip(from - 1).take(to + 1 - from).cloned());
        next = to + 1;
    }
    if next <= lines.len() {
        out.push("…".into());
    }
    out
}

/// A folder to type in.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.path().join("bin/wakewatt")).unwrap();
    for name in ["fixtures", "bench"] {
        std::os::unix::fs::symlink(top().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn typed(command: &str, folder: &Path) -> Said {
    let mut shell = Command::new("/bin/sh");
    // Both streams in one, as on a terminal.
    shell.arg("-c").arg(format!("exec 2>&1; {command}")).env_clear().current_dir(folder).stdin(Stdio::null());
    shell.env("PATH", format!("{}:/usr/bin:/bin", folder.join("bin").display())).env("COLUMNS", "100");
    said(&mut shell)
}

/// What a block's comment asks for: exit code, and the lines to keep of the last command.
fn asked(comment: &str) -> Option<(i32, Option<&str>)> {
    let mut parts = comment.split("; ");
    if parts.next() != Some("run") {
        return None;
    }
    let (mut code, mut keep) = (0, None);
    for part in parts {
        match part.split_once(' ') {
            Some(("exit", n)) => code = n.parse().unwrap(),
            Some(("keep", ranges)) => keep = Some(ranges),
            _ => panic!("`{part}`: known are `exit N` and `keep RANGES`"),
        }
    }
    Some((code, keep))
}

#[test]
fn every_command_of_the_documentation_says_what_its_page_shows() {
    let is_blessing = std::env::var_os("WAKEWATT_BLESS").is_some();
    let (mut n_run, mut wrong) = (0, Vec::new());
    for page in pages() {
        let folder = scratch();
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let (mut blessed, mut copied) = (Vec::new(), 0);
        for block in blocks(&page) {
            let here = |what: &str| format!("{}:{}: {what}", page.display(), block.at + 1);
            let Some((code, keep)) = asked(&block.comment) else {
                if block.comment.strip_prefix("not run: ").is_none_or(|why| why.split_whitespace().count() < 3) {
                    wrong
                        .push(here("say above the block whether it is run: `<!-- run -->` or `<!-- not run: why -->`"));
                }
                continue;
            };
            blessed.extend_from_slice(&lines[copied..=block.at]);
            for (n, line) in block.typed.iter().enumerate() {
                n_run += 1;
                let is_last = n + 1 == block.typed.len();
                let said = typed(&line.command, folder.path());
                let mut says: Vec<String> = said.out.lines().map(|l| l.trim_end().to_string()).collect();
                if let (true, Some(ranges)) = (is_last, keep) {
                    says = kept(&says, ranges);
                }
                if said.code != Some(if is_last { code } else { 0 }) {
                    wrong.push(here(&format!("`{}` ends with {:?}: {}", line.command, said.code, said.out)));
                }
                let (now, then) = (says.iter().map(|l| shape(l)), line.shown.iter().map(|l| shape(l)));
                let differs = now.clone().zip(then.clone()).find(|(a, b)| a != b);
                if !is_blessing && (differs.is_some() || now.len() != then.len()) {
                    let (a, b) = differs.unwrap_or((format!("{} lines", now.len()), format!("{} lines", then.len())));
                    wrong.push(here(&format!("`{}`\n  says   {a}\n  shown  {b}", line.command)));
                }
                blessed.push(format!("$ {}", line.command));
                blessed.extend(says);
            }
            copied = block.end;
        }
        blessed.extend_from_slice(&lines[copied..]);
        if is_blessing {
            fs::write(&page, blessed.join("\n") + "\n").unwrap();
            let told_again = in_chinese().into_iter().find(|(_, english)| *english == page);
            told_again.into_iter().for_each(|(chinese, english)| bless(&chinese, &english));
        }
    }
    assert!(n_run > 20, "the search finds {n_run} commands");
    let how = "WAKEWATT_BLESS=1 cargo test -p wakewatt --test it stories rewrites what is shown; read the diff";
    assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
}

/// The pages in Chinese, each with the English one it tells again.
fn in_chinese() -> Vec<(PathBuf, PathBuf)> {
    let stories = (0..5).map(|n| (format!("site/src/zh/k{n}.md"), format!("site/src/stories/k{n}.md")));
    let all = stories.chain([("README.zh-CN.md".to_string(), "README.md".to_string())]);
    all.map(|(chinese, english)| (top().join(chinese), top().join(english))).collect()
}

/// Its blocks as they stand: the comment above, then every line.
fn block_lines(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    blocks(page).iter().map(|block| lines[block.at.saturating_sub(1)..=block.end].join("\n")).collect()
}

fn is_front(chinese: &Path) -> bool {
    chinese.ends_with("README.zh-CN.md")
}

/// Its blocks are those of the English page from now on.
fn bless(chinese: &Path, english: &Path) {
    if is_front(chinese) {
        return;
    }
    let mut text = fs::read_to_string(chinese).unwrap();
    for (ours, theirs) in block_lines(chinese).iter().zip(block_lines(english)) {
        text = text.replacen(ours, &theirs, 1);
    }
    fs::write(chinese, text).unwrap();
}

#[test]
fn a_page_in_chinese_has_the_very_commands_of_the_english_one() {
    for (chinese, english) in in_chinese() {
        let (mut here, mut there) = (block_lines(&chinese), block_lines(&english));
        // The page that one reads first shows what comes out in its own language: only what is typed is the same.
        if is_front(&chinese) {
            let is_typed = |line: &&str| ["$ ", "<!--", "```"].iter().any(|mark| line.starts_with(mark));
            let typed = |block: &mut String| *block = block.lines().filter(is_typed).collect::<Vec<_>>().join("\n");
            here.iter_mut().chain(&mut there).for_each(typed);
        }
        for (ours, theirs) in here.iter().zip(&there) {
            assert_eq!(ours, theirs, "{}", chinese.display());
        }
        assert_eq!(here.len(), there.len(), "{}", chinese.display());
        let headings = |page: &Path| fs::read_to_string(page).unwrap().lines().filter(|l| l.starts_with("## ")).count();
        if is_front(&chinese) {
            continue;
        }
        assert_eq!(headings(&chinese), headings(&english), "{}", chinese.display());
    }
}

#[test]
fn a_shape_keeps_words_and_forgets_numbers() {
    assert_eq!(shape("found  over poll: ×1.64 (1.48–1.78), 95 %"), "found over poll: ×0 (0–0), 0 %");
    assert_eq!(shape("p50 30.4 us, p99 1.2ms."), shape("p50 904ns, p99   13 s."));
    assert_eq!(shape("140 ms ±0.8 %   +1.1 %"), shape("110 ms          -0.6 %"));
    assert_ne!(shape("C16 92us"), shape("C19 92us"));
    assert_ne!(shape("C6 92us"), shape("C6 92us denied"));
    assert_ne!(shape("195/s done"), shape("195 done"));
    let lines: Vec<String> = (1..9).map(|n| n.to_string()).collect();
    assert_eq!(kept(&lines, "2-3 5"), ["…", "2", "3", "…", "5", "…"]);
    assert_eq!(kept(&lines, "1-8"), lines);
}
