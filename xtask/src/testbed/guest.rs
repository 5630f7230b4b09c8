//! The inside of a machine: what the initramfs holds, and what comes back from it.
//!
//! `init.sh` is the first program; beside it lie the command, the list of modules and the list of files to fetch. Results
//! come as records through a virtio port, raw and with their sizes, because a console changes bytes and mixes in the
//! kernel's own lines.

use super::initramfs::Archive;
use super::kernel::Kernel;
use super::modules::Module;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const INIT: &str = include_str!("init.sh");

/// What goes inside.
pub(super) struct Inside<'a> {
    /// Kernel and busybox.
    pub kernel: &'a Kernel,
    /// Modules in the order to load them.
    pub modules: &'a [Module],
    /// The wakewatt binary, if there is one for this architecture.
    pub wakewatt: Option<&'a Path>,
    /// Further files: here, and there.
    pub files: &'a [(PathBuf, String)],
    /// The command, word by word.
    pub command: &'a [String],
    /// Paths to send back.
    pub fetch: &'a [String],
}

/// The archive.
pub(super) fn archive(inside: &Inside) -> Result<Vec<u8>> {
    use std::os::unix::fs::PermissionsExt;
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "root", "etc", "sbin", "usr/bin", "var/lib"] {
        archive.folder(folder);
    }
    // The kernel opens the console before anything is mounted.
    archive.device("dev/console", 5, 1);
    archive.device("dev/null", 1, 3);
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("{}: not readable", path.display()));
    archive.file("bin/busybox", 0o755, &read(&inside.kernel.busybox)?);
    archive.link("bin/sh", "busybox");
    archive.file("init", 0o755, INIT.as_bytes());
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n");
    archive.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
    if let Some(wakewatt) = inside.wakewatt {
        archive.file("bin/wakewatt", 0o755, &read(wakewatt)?);
    }
    let mut list = String::new();
    for module in inside.modules {
        archive.file(&format!("testbed/modules/{}.ko", module.name), 0o644, &module.bytes);
        list += &format!("{} {}\n", module.name, module.parameters);
    }
    archive.file("testbed/modules.list", 0o644, list.as_bytes());
    archive.file("testbed/command", 0o644, command_line(inside.command).as_bytes());
    let fetch: String = inside.fetch.iter().map(|path| format!("{path}\n")).collect();
    archive.file("testbed/fetch.list", 0o644, fetch.as_bytes());
    for (here, there) in inside.files {
        let permissions = std::fs::metadata(here).map_or(0o644, |m| m.permissions().mode() & 0o777);
        archive.file(there, permissions, &read(here)?);
    }
    Ok(archive.finish())
}

/// The command as a shell reads it back unchanged.
fn command_line(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    format!("exec {}\n", quoted.join(" "))
}

/// What came back through the port.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Results {
    /// Uptime at which the command was started, in seconds.
    pub boot_s: Option<f64>,
    /// The command's exit code.
    pub code: Option<u8>,
    /// Modules the kernel refused, with its words.
    pub refused: Vec<String>,
    /// Path and content of every file sent.
    pub files: Vec<(String, Vec<u8>)>,
    /// Paths that could not be read.
    pub missing: Vec<String>,
    /// Nothing is cut off.
    pub is_whole: bool,
}

/// Reads the records; stops, without an error, where they are cut off.
pub(super) fn results(mut bytes: &[u8]) -> Results {
    let mut found = Results::default();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes = &bytes[end + 1..];
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let first = rest.split(' ').next().unwrap_or_default();
        match word {
            "boot" => found.boot_s = first.parse().ok(),
            "exit" => found.code = first.parse().ok(),
            "module" => found.refused.push(rest.to_string()),
            "missing" => found.missing.push(rest.to_string()),
            "file" => {
                let Some((size, path)) = rest.split_once(' ') else { break };
                let Some(content) = size.parse().ok().and_then(|size: usize| bytes.get(..size)) else { break };
                found.files.push((path.to_string(), content.to_vec()));
                bytes = &bytes[content.len()..];
            }
            "end" => found.is_whole = true,
            _ => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["printf", "%s|", "it's", "a b", "$HOME", "", "\"*\"\n"].map(String::from);
        let script = command_line(&words);
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's|a b|$HOME||\"*\"\n|");
    }

    #[test]
    fn records_are_read_and_may_be_cut_off() {
        let whole = b"module x: no\nboot 4.25\nexit 3 9.0\nfile 4 /a b\n\0\n\xffxmissing /c\nend\n";
        let found = results(whole);
        assert_eq!((found.boot_s, found.code, found.is_whole), (Some(4.25), Some(3), true));
        assert_eq!(found.files, [("/a b".to_string(), b"\0\n\xffx".to_vec())]);
        assert_eq!((found.missing, found.refused), (vec!["/c".to_string()], vec!["x: no".to_string()]));
        for end in 0..whole.len() - 1 {
            assert!(!results(&whole[..end]).is_whole);
        }
    }
}
