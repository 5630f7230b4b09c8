//! A file as the outputs it holds: a paste of a terminal has several, each behind its prompt.
//!
//! `$ cpupower idle-info`, `root@db7:~# turbostat -n 1`, `[root@db7 ~]# lscpu`: a prompt counts only in front of a command that is
//! known here, because `#` begins comments too. supportconfig puts a rule of `#==[ Command ]===#` before each output and the
//! command, or the file's path, behind `# ` on the next line. Where nobody left a prompt, one section is the whole file, and every
//! format that finds its lines there takes them.

use crate::{plain, programs};
use std::borrow::Cow;

/// More lines are not looked at; text of events goes another way.
pub const MAX_LINES: usize = 2_000_000;

/// One line.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// From 1, in its file.
    pub number: u32,
    /// As it was printed ([`plain::line`]).
    pub text: Cow<'a, str>,
}

/// Lines that belong together.
#[derive(Clone, Debug, Default)]
pub struct Section<'a> {
    /// The command that printed them, with its arguments, if a prompt says so.
    pub command: Option<String>,
    /// The kernel's file that they are, if that is said.
    pub path: Option<String>,
    /// The lines, without the prompt.
    pub lines: Vec<Line<'a>>,
    /// So wide are the lines that were cut at the edge of a screen, as far as the whole text shows.
    pub cut_at: Option<usize>,
    /// The text ends in the last of these lines, without a line end.
    pub has_open_end: bool,
}

/// Where three lines are equally wide and none is wider, they may be cut there. Tables are so too: only who reads a line that has an
/// open end by nature (a list) may conclude from it.
pub(crate) fn cut_at(text: &str) -> Option<usize> {
    let (mut widest, mut n) = (0, 0);
    for width in text.lines().take(MAX_LINES).map(width_of) {
        match width.cmp(&widest) {
            std::cmp::Ordering::Greater => (widest, n) = (width, 1),
            std::cmp::Ordering::Equal => n += 1,
            std::cmp::Ordering::Less => {}
        }
    }
    (n >= 3 && widest >= 20).then_some(widest)
}

fn width_of(line: &str) -> usize {
    line.trim_end_matches('\r').chars().count()
}

impl Section<'_> {
    /// Does this line end where a screen did?
    pub fn is_at_edge(&self, at: usize) -> bool {
        self.cut_at.is_some_and(|width| self.lines.get(at).is_some_and(|line| width_of(&line.text) == width))
    }

    /// May there be more of this line than the text has?
    pub fn may_be_cut(&self, at: usize) -> bool {
        self.is_at_edge(at) || (self.has_open_end && at + 1 == self.lines.len())
    }

    /// The files that one `cat` printed one after the other, with their stars; nothing where it was one file, or something else.
    pub fn files(&self) -> Option<Vec<&str>> {
        let (program, rest) = self.command.as_deref()?.split_once(' ')?;
        let files: Vec<&str> = rest.split_whitespace().collect();
        let is_file = |path: &&str| {
            (path.starts_with("/sys/") || path.starts_with("/proc/"))
                && !path.contains(['|', ';', '&', '>', '<', '$', '`', '(', ')'])
        };
        let is_several = files.len() > 1 || files.iter().any(|path| path.contains(['*', '?', '[', '{']));
        (programs::of(program) == "cat" && self.path.is_none() && is_several && files.iter().all(is_file))
            .then_some(files)
    }

    /// Was it printed by this program, as far as a prompt says?
    pub fn is_by(&self, program: &str) -> bool {
        self.program() == Some(program)
    }

    /// The program that printed them.
    pub fn program(&self) -> Option<&str> {
        self.command.as_deref().map(programs::of)
    }

    /// Why nobody takes a line of it.
    pub(crate) fn why_left(&self) -> String {
        // supportconfig names files in the same way as commands.
        let is_file = self.command.as_deref().is_some_and(|name| name.starts_with('/') && !name.contains("bin/"));
        match self.program() {
            Some(_) if is_file => "a file that is none of the kernel's".into(),
            Some("for" | "while" | "until") => SEVERAL.into(),
            Some(program) if !programs::is_read(program) => printed_by(program),
            Some(_) if self.command.as_deref().is_some_and(programs::is_other_output) => {
                printed_by(self.command.as_deref().unwrap_or_default())
            }
            _ if self.files().is_some() => SEVERAL.into(),
            Some("cat" | "zcat") if self.path.is_none() => "a file that is none of the kernel's".into(),
            _ => "no format that is known here".into(),
        }
    }
}

/// Of several files in one output.
pub(crate) const SEVERAL: &str =
    "several files in one output, and it is not told which line is of which: grep . FILES says it with every line";

fn printed_by(command: &str) -> String {
    format!("printed by {}, which is not read here", command.chars().take(60).collect::<String>())
}

/// The command behind a prompt, if the line is one.
pub fn prompted(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.len() > 4096 {
        return None;
    }
    for (at, mark) in line.match_indices(['$', '#', '%', '>']) {
        let rest = &line[at + mark.len()..];
        // `$(…)`, `#==`, `5%` are no prompts: a blank follows one, and before it stand a name and a place at most.
        if !rest.starts_with(' ') || line[..at].split_whitespace().count() > 3 {
            continue;
        }
        let mut words = rest.split_whitespace().peekable();
        while words.next_if(|w| matches!(*w, "sudo" | "time" | "LANG=C" | "LC_ALL=C") || w.starts_with("-n")).is_some()
        {
        }
        let Some(word) = words.next() else { continue };
        if programs::is_known(programs::of(word)) {
            let start = rest.find(word)?;
            return Some(rest[start..].trim());
        }
    }
    None
}

/// `[root@db7 ~]# systemctl …`, `$ make`: what stands behind a prompt although it is not of the list; perhaps nothing.
fn other_prompt(line: &str) -> Option<&str> {
    let line = line.trim();
    let at = line.find(['$', '#'])?;
    let (front, rest) = (&line[..at], &line[at + 1..]);
    let is_place = front.len() < 120 && front.contains('@') && front.split_whitespace().count() <= 3;
    // Alone, only the user's sign: the other begins comments.
    let is_bare = front.is_empty() && line.starts_with("$ ");
    ((rest.is_empty() || rest.starts_with(' ')) && (is_place || is_bare)).then(|| rest.trim())
}

/// `#==[ Command ]==…==#`.
fn is_rule(line: &str) -> bool {
    line.starts_with("#==[") && line.contains("]==")
}

/// The sections of a text, and how many of its lines were too many.
pub fn sections(text: &str) -> (Vec<Section<'_>>, usize) {
    let mut all = vec![Section::default()];
    let mut is_named_next = false;
    let mut n_left_out = 0;
    for (at, raw) in text.lines().enumerate() {
        if at >= MAX_LINES {
            n_left_out += 1;
            continue;
        }
        let (text, number) = (plain::line(raw), u32::try_from(at + 1).unwrap_or(u32::MAX));
        if is_rule(&text) {
            is_named_next = true;
            all.push(Section::default());
            continue;
        }
        let is_named_now = std::mem::take(&mut is_named_next);
        if let Some(name) = is_named_now.then(|| text.strip_prefix("# ")).flatten().map(str::trim) {
            let section = all.last_mut().filter(|s| s.lines.is_empty());
            if let Some(section) = section {
                match name.starts_with("/proc/") || name.starts_with("/sys/") {
                    true => section.path = Some(name.into()),
                    false => {
                        section.path = printed(name).map(str::to_string);
                        section.command = Some(name.into());
                    }
                }
                continue;
            }
        }
        if let Some(command) = prompted(&text) {
            let path = printed(command).map(str::to_string);
            all.push(Section { command: Some(command.to_string()), path, ..Section::default() });
            continue;
        }
        if let Some(command) = other_prompt(&text) {
            // Whatever runs there, what follows is no longer the file or the tool of before.
            let command = Some(command.to_string()).filter(|command| !command.is_empty());
            all.push(Section { command, ..Section::default() });
            continue;
        }
        if let Some(section) = all.last_mut() {
            section.lines.push(Line { number, text });
        }
    }
    all.retain(|section| section.lines.iter().any(|line| !line.text.trim().is_empty()));
    (all, n_left_out)
}

/// The file that `cat PATH` prints.
fn printed(command: &str) -> Option<&str> {
    let (program, path) = command.split_once(' ')?;
    (programs::of(program) == "cat").then(|| path.trim()).filter(|path| is_one_path(path))
}

fn is_one_path(text: &str) -> bool {
    (text.starts_with("/proc/") || text.starts_with("/sys/"))
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | '{' | '|' | ';' | '&'))
        && !text.contains("/../")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_cut_at_its_prompts() {
        let text = "hello\n[root@db7 ~]# lscpu\nCPU(s): 4\nuser@db7:~$ sudo cpupower idle-info\nCPUidle driver: x\n# a comment\n\
                    root@db7:/# cat /sys/module/intel_idle/parameters/max_cstate\n1\n$ cat /proc/a /proc/b\nx\n";
        let (found, n) = sections(text);
        let said: Vec<(Option<&str>, Option<&str>, usize)> =
            found.iter().map(|s| (s.command.as_deref(), s.path.as_deref(), s.lines.len())).collect();
        let file = "/sys/module/intel_idle/parameters/max_cstate";
        let cat = format!("cat {file}");
        assert_eq!(
            said,
            [
                (None, None, 1),
                (Some("lscpu"), None, 1),
                (Some("cpupower idle-info"), None, 2),
                (Some(cat.as_str()), Some(file), 1),
                (Some("cat /proc/a /proc/b"), None, 1)
            ]
        );
        assert_eq!((n, found[2].lines[0].number), (0, 5));
        assert!(found[2].is_by("cpupower"));
    }

    #[test]
    fn supportconfig_names_what_follows() {
        let text = "#==[ Command ]======================#\n# /usr/bin/lscpu\nCPU(s): 4\n\n#==[ Configuration File ]===#\n# /proc/cmdline\nquiet\n";
        let (found, _) = sections(text);
        assert!(found[0].is_by("lscpu"));
        assert_eq!((found[1].path.as_deref(), &*found[1].lines[0].text), (Some("/proc/cmdline"), "quiet"));
    }
}
