//! What a node's shell is given: one line for a POSIX shell, in which every word that is not ours is quoted.
//!
//! ssh joins its arguments with blanks and hands them to the login shell there, so whatever is not quoted is code. Between
//! single quotes nothing has a meaning but the quote itself (POSIX, Shell Command Language, 2.2.2). The line is given to
//! `sh -c` once more, so that a login shell of another family reads nothing but one quoted word.

/// Exit codes of ours: the copy that was there is not there any more, so nothing was begun.
pub(super) const GONE: i32 = 92;
/// Beside those of wakewatt (0 to 9, 130) and of ssh (255).
pub(super) const FOREIGN: i32 = 93;
/// `sudo -n` was refused.
pub(super) const NO_SUDO: i32 = 94;
/// Other bytes arrived than were sent.
pub(super) const OTHER: i32 = 95;

/// One word, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn for_sh(script: &str) -> String {
    format!("sh -c {}", quoted(script))
}

/// Which wakewatt is run there.
#[derive(Debug)]
pub(super) enum Program {
    /// One that was there.
    There(String),
    /// Ours.
    Copied(Copy),
}

impl Program {
    /// Runs it with these arguments.
    pub(super) fn run(&self, arguments: &[String], is_sudo: bool) -> String {
        let arguments: Vec<String> = arguments.iter().map(|a| quoted(a)).collect();
        let arguments = arguments.join(" ");
        let (prepare, program) = match self {
            Program::There(path) => (String::new(), quoted(path)),
            Program::Copied(copy) => {
                (format!("{}; [ -x \"$d/wakewatt\" ] || exit {GONE}; ", copy.folder()), "\"$d/wakewatt\"".into())
            }
        };
        let sudo = match is_sudo {
            true => (format!("sudo -n true 2>/dev/null || exit {NO_SUDO}; "), "sudo -n -- "),
            false => (String::new(), ""),
        };
        // What it says goes into documents: not in the language that ssh may pass on.
        for_sh(&format!("LC_ALL=C; export LC_ALL; {prepare}{}exec {}{program} {arguments}", sudo.0, sudo.1))
    }
}

/// Our program there: a folder of the login user's, named after what is in it. Nobody else may write into it, and in a folder
/// that is sticky nobody else can put another in its place.
#[derive(Debug)]
pub(super) struct Copy {
    digest: String,
}

impl Copy {
    /// With this SHA-256.
    pub(super) fn new(digest: &str) -> Copy {
        Copy { digest: digest.into() }
    }

    fn folder(&self) -> String {
        format!("d=/var/tmp/wakewatt-$(id -u)-{}", &self.digest[..16.min(self.digest.len())])
    }

    fn is_whole(&self, file: &str) -> String {
        format!("echo \"{}  {file}\" | sha256sum -c - >/dev/null 2>&1", self.digest)
    }

    /// Ends with 0 if it is there and whole.
    pub(super) fn is_there(&self) -> String {
        let (folder, whole) = (self.folder(), self.is_whole("$d/wakewatt"));
        for_sh(&format!("{folder}; [ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d\" ] && {whole}"))
    }

    /// Takes it from standard input.
    pub(super) fn take(&self) -> String {
        let (folder, whole) = (self.folder(), self.is_whole("$n"));
        for_sh(&format!(
            "{folder}; umask 077; mkdir -m 700 \"$d\" 2>/dev/null; \
             {{ [ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d\" ] && chmod 700 \"$d\"; }} || exit {FOREIGN}; \
             n=\"$d/new.$$\"; cat >\"$n\" && chmod 700 \"$n\" || {{ rm -f \"$n\"; exit 1; }}; \
             {whole} || {{ rm -f \"$n\"; exit {OTHER}; }}; mv -f \"$n\" \"$d/wakewatt\""
        ))
    }

    /// Takes it away, and what a cut-short copy has left.
    pub(super) fn remove(&self) -> String {
        let folder = self.folder();
        for_sh(&format!(
            "{folder}; [ -O \"$d\" ] && [ ! -L \"$d\" ] || exit 0; rm -f \"$d/wakewatt\" \"$d\"/new.*; rmdir \"$d\""
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// What a login shell makes of a line, as ssh gives it.
    fn through(shell: &str, line: &str) -> Vec<u8> {
        let out = Command::new(shell).args(["-c", line]).output().unwrap();
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn arguments_arrive_as_they_were_whatever_is_in_them(
            arguments in prop::collection::vec("[^\0]{0,40}|[$`'\"\\\\;&|<>(){}*?!~# \n\t-]{0,20}", 1..5)
        ) {
            // printf in place of wakewatt: each argument and an end that none of them can hold.
            let mut all = vec!["%s\\0".to_string()];
            all.extend(arguments.iter().cloned());
            let line = Program::There("/usr/bin/printf".into()).run(&all, false);
            let expected: Vec<u8> = arguments.iter().flat_map(|a| a.bytes().chain([0])).collect();
            for shell in ["sh", "bash"] {
                prop_assert_eq!(through(shell, &line), expected.clone(), "{}", shell);
            }
        }
    }

    #[test]
    fn a_copy_is_taken_checked_and_removed() {
        let bytes = b"#!/bin/sh\necho \"$1\"\n";
        let copy = Copy::new(&crate::audit::sha256(bytes));
        let shell = |line: &str, input: &[u8]| {
            use std::io::Write;
            let mut command = Command::new("sh");
            let mut child = command.args(["-c", line]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            let _ = child.stdin.take().unwrap().write_all(input);
            child.wait().unwrap().code()
        };
        assert_ne!(shell(&copy.is_there(), b""), Some(0));
        assert_eq!(shell(&copy.take(), b"something else"), Some(OTHER));
        assert_eq!(shell(&copy.take(), bytes), Some(0));
        assert_eq!(shell(&copy.is_there(), b""), Some(0));
        let said =
            through("sh", &Program::Copied(Copy::new(&crate::audit::sha256(bytes))).run(&["it's".into()], false));
        assert_eq!(said, b"it's\n");
        assert_eq!(shell(&copy.remove(), b""), Some(0));
        assert_ne!(shell(&copy.is_there(), b""), Some(0));
        // In its place something of another kind: refused.
        let folder = String::from_utf8(through("sh", &format!("{}; echo $d", copy.folder()))).unwrap();
        std::os::unix::fs::symlink("/tmp", folder.trim()).unwrap();
        assert_eq!(shell(&copy.take(), bytes), Some(FOREIGN));
        std::fs::remove_file(folder.trim()).unwrap();
    }
}
