//! Follows plain assignments in a shell file, without running it: `A="x y"`, `A='x'`, `A="$A z"`, `A=x`.
//!
//! /etc/default/grub is a program. To see which words are there already it is enough to read the assignments that
//! people and installers write; whatever needs a real shell (command substitution, `if`, other variables) is reported
//! as not followed. The result is used for notes and to avoid doubles, never to write such a file back.

use std::collections::BTreeMap;

/// The variables that are followed.
pub(crate) struct Variables {
    values: BTreeMap<&'static str, String>,
}

impl Variables {
    /// All empty, as a shell starts.
    pub(crate) fn new(names: &[&'static str]) -> Variables {
        Variables { values: names.iter().map(|n| (*n, String::new())).collect() }
    }

    /// The value so far.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Follows one file. False: an assignment of interest could not be followed, and the value is a guess.
    pub(crate) fn source(&mut self, text: &str) -> bool {
        let mut is_sure = true;
        let mut depth = 0usize;
        for line in text.lines().map(str::trim) {
            let first = line.split([' ', ';']).next().unwrap_or_default();
            match first {
                "if" | "case" | "for" | "while" => depth += 1,
                "fi" | "esac" | "done" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, rest)) = line.split_once('=') else { continue };
            let Some(name) = self.values.keys().copied().find(|n| *n == name) else {
                // An assignment behind something else on the line: seen, not followed.
                let hides_one = self.values.keys().any(|n| line.contains(&format!("{n}="))) && !line.starts_with('#');
                is_sure &= !hides_one;
                continue;
            };
            match self.expand(rest) {
                Some(value) => {
                    is_sure &= depth == 0;
                    self.values.insert(name, value);
                }
                None => is_sure = false,
            }
        }
        is_sure
    }

    /// The right side of an assignment; none if it needs a shell.
    fn expand(&self, text: &str) -> Option<String> {
        let mut value = String::new();
        let mut chars = text.chars().peekable();
        let mut quote = None;
        while let Some(c) = chars.next() {
            match (c, quote) {
                ('\'', None) | ('"', None) => quote = Some(c),
                (c, Some(q)) if c == q => quote = None,
                (c, Some('\'')) => value.push(c),
                ('\\', _) => value.push(chars.next()?),
                ('`', _) => return None,
                ('$', _) => {
                    let is_braced = chars.next_if_eq(&'{').is_some();
                    let mut name = String::new();
                    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                    if is_braced && chars.next() != Some('}') {
                        return None;
                    }
                    value.push_str(self.values.get(name.as_str())?);
                }
                (c, None) if c.is_whitespace() || c == ';' => {
                    let rest: String = chars.collect();
                    let rest = rest.trim_start();
                    return (rest.is_empty() || rest.starts_with('#')).then_some(value);
                }
                (c, _) => value.push(c),
            }
        }
        quote.is_none().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(text: &str) -> (bool, String) {
        let mut shell = Variables::new(&["L", "D"]);
        let is_sure = shell.source(text);
        (is_sure, shell.get("D").to_string())
    }

    #[test]
    fn follows_what_installers_write() {
        assert_eq!(followed("D=\"quiet splash\"\n"), (true, "quiet splash".into()));
        assert_eq!(followed("D='a b' # why\nexport D=\"$D c\"\n"), (true, "a b c".into()));
        assert_eq!(followed("L=x\nD=\"${L} y\"\n#D=no\n  D=\"$D z\""), (true, "x y z".into()));
        assert_eq!(followed("D=a\nD=\n"), (true, String::new()));
    }

    #[test]
    fn says_when_it_cannot() {
        for text in
            ["D=\"$(cat /x)\"", "D=`id`", "D=\"$OTHER\"", "if true; then\nD=x\nfi", "[ -f /x ] && D=x", "D=\"open"]
        {
            assert!(!followed(text).0, "{text}");
        }
        for text in ["", "=", "D", "D=\\", "D=$", "D=${", "D=\"\\"] {
            let _ = followed(text);
        }
    }
}
