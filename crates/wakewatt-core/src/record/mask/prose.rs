//! Free text of a run file: titles, remarks, reasons, names of meters. Sentences are wakewatt's own; what people named
//! stands in them as paths, URLs, addresses and names.
//!
//! Forms are replaced by form: a URL as a whole (its path may be a token), `user@host`, `host:port`, addresses, and absolute
//! paths except those of the kernel (`/sys`, `/proc`), of its devices, and of wakewatt. Names are replaced where the
//! facts or another member of the run gave them away.

use super::addresses::addresses;
use super::devices;
use super::names::{Kind, Names, is_replacement};

/// Folders whose paths say nothing about a person or a site.
const PLAIN_FOLDERS: &[&str] = &["/sys", "/proc", "/var/lib/wakewatt", "/run/wakewatt", "/etc/wakewatt"];

impl Names {
    /// Masks a sentence: names that are known, and forms.
    pub fn prose(&mut self, text: &str) -> String {
        let kinds = [Kind::Path, Kind::Host, Kind::Process, Kind::Interface, Kind::Disk, Kind::Cgroup];
        let text = self.replaced(&kinds, text);
        self.form(&text)
    }

    /// Masks what has the form of a path, a URL or an address.
    pub fn form(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let token_end = rest.find(is_border).unwrap_or(rest.len());
            if token_end == 0 {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let token = &rest[..token_end];
            let bare = token.trim_end_matches(['.', ':', '!', '?']);
            out.push_str(&self.token(bare));
            out.push_str(&token[bare.len()..]);
            rest = &rest[token_end..];
        }
        let plain = addresses(&out);
        if plain != out {
            self.count(Kind::Address);
        }
        plain
    }

    /// Remembers the bare hosts of a text's URLs, and the one that had no address.
    pub(crate) fn learn_hosts(&mut self, text: &str) {
        for token in text.split(is_border) {
            if let Some((_, rest)) = token.trim_end_matches(['.', ':', '!', '?']).split_once("://") {
                let new = self.of(Kind::Host, rest);
                self.learn_host(url_host(rest), &new);
            }
        }
        for rest in text.split(NO_ADDRESS).skip(1) {
            let host = rest.split(is_border).next().unwrap_or_default().trim_end_matches([':', '.', '!', '?']);
            let new = self.of(Kind::Host, host);
            self.learn_host(host, &new);
        }
    }

    fn learn_host(&mut self, host: &str, new: &str) {
        // An address is known by its form; everybody has a localhost.
        let is_own = !host.is_empty() && !is_replacement(host) && host != "localhost" && addresses(host) == host;
        if is_own {
            self.alias(Kind::Host, host, new);
            self.alias(Kind::Host, &host.to_ascii_lowercase(), new);
        }
    }

    fn token(&mut self, token: &str) -> String {
        if let Some((scheme, rest)) = token.split_once("://") {
            return format!("{scheme}://{}", self.of(Kind::Host, rest));
        }
        if token.starts_with('/') {
            return self.path_in_text(token);
        }
        if let Some((user, host)) = token.split_once('@') {
            let is_name =
                |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
            if is_name(user) && is_name(host) && token != "user@host" && user != "user" {
                return "user@host".into();
            }
        }
        if let Some((host, port)) = token.rsplit_once(':') {
            let is_port = !port.is_empty() && port.len() <= 5 && port.chars().all(|c| c.is_ascii_digit());
            if is_port && is_host_name(host) {
                return format!("{}:{port}", self.of(Kind::Host, host));
            }
        }
        if let Some(rest) = token.strip_prefix('=') {
            return format!("={}", self.token(rest));
        }
        match token.split_once('=') {
            Some((key, value)) if value.starts_with('/') || value.contains("://") => {
                format!("{key}={}", self.token(value))
            }
            _ if token.starts_with("enx") || token.starts_with("wlx") => devices::interface(token, self),
            _ => token.to_string(),
        }
    }

    /// A process by its bare name.
    pub fn process(&mut self, name: &str) -> String {
        super::known_process(name, self)
    }

    /// A block device or partition by its bare name.
    pub fn disk(&mut self, name: &str) -> String {
        devices::disk(name, self)
    }

    /// A control group's path below the root of its hierarchy.
    pub fn cgroup(&mut self, path: &str) -> String {
        super::cgroups::path(path, self)
    }

    /// A command line: the program's name, and how many words followed. What is set for it (`TOKEN=…`) is left out, and
    /// the line is known wherever it stands in a sentence.
    pub fn command(&mut self, line: &str) -> String {
        let mut left = line.trim();
        while let Some((_, rest)) = left.split_once(char::is_whitespace).filter(|(word, _)| is_assignment(word)) {
            left = rest.trim_start();
        }
        let new = if left.is_empty() || is_assignment(left) { "masked".into() } else { self.program(left) };
        if new != line.trim() {
            self.alias(Kind::Process, line.trim(), &new);
        }
        new
    }

    fn program(&mut self, line: &str) -> String {
        let (program, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let program = self.process(program.rsplit('/').next().unwrap_or(program));
        let is_counted =
            rest.strip_prefix('(').and_then(|r| r.strip_suffix(" words)")).is_some_and(|n| n.parse::<u32>().is_ok());
        match rest.split_whitespace().count() {
            0 => program,
            _ if is_counted => format!("{program} {rest}"),
            n => format!("{program} ({n} words)"),
        }
    }

    /// A path in a sentence or in a member of its own.
    pub fn path_in_text(&mut self, path: &str) -> String {
        if let Some(name) = path.strip_prefix("/dev/") {
            let is_limit = matches!(name, "cpu_dma_latency" | "cpu_wakeup_latency" | "null" | "shm");
            if is_limit || name.starts_with("cpu/") || devices::disk(name, &mut Names::default()) == name {
                return path.to_string();
            }
        } else if PLAIN_FOLDERS.iter().any(|root| super::below(path, root).is_some()) {
            return super::path(path, self);
        }
        // A lone slash, an option or a fraction is no path of anybody's.
        let is_path = path.len() > 1 && path[1..].contains(|c: char| c.is_alphanumeric());
        if !is_path || path == "/tmp" || is_replacement(&path[1..]) {
            return path.to_string();
        }
        let new = self.of(Kind::Path, path);
        if new.starts_with('/') { new } else { format!("/{new}") }
    }
}

/// What resolvers say (wakewatt-host/src/resolve).
const NO_ADDRESS: &str = "no address for ";

/// The host of a URL without its scheme.
fn url_host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit('@').next().unwrap_or_default();
    match place.strip_prefix('[') {
        Some(number) => number.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    }
}

/// `TOKEN=value`, as a shell takes it before a command.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_border(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\'' | '(' | ')' | '<' | '>' | '`' | '{' | '}' | '|')
}

/// `db7.corp.example`: labels with a dot between, the last of letters only.
fn is_host_name(value: &str) -> bool {
    let labels: Vec<&str> = value.split('.').collect();
    let is_label = |l: &&str| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let last = labels.last().copied().unwrap_or_default();
    labels.len() >= 2 && labels.iter().all(is_label) && last.len() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_named_goes_and_the_sentence_stays() {
        let mut names = Names::default();
        let cases = [
            ("read /home/joe/db.file: no such file", "read /masked-path-1: no such file"),
            ("tcp to db7.corp.example:7117 refused (10.1.2.3:80)", "tcp to peer-1:7117 refused (0.0.0.0)"),
            ("meter https://bmc7/redfish/v1/Chassis/SN123#0", "meter https://peer-2"),
            ("mail joe@corp.example, now", "mail user@host, now"),
            (
                "freq.governor=performance of cpu.max in /sys/fs/cgroup/acme/cpu.max",
                "freq.governor=performance of cpu.max in /sys/fs/cgroup/masked1/cpu.max",
            ),
            ("/dev/nvme0n1 and /dev/mapper/vault, ops/s and 1/2", "/dev/nvme0n1 and /masked-path-2, ops/s and 1/2"),
            ("name server 2001:db8::53: did not answer, nor 10.1.2.3.", "name server ::: did not answer, nor 0.0.0.0."),
            ("state C1, 3.5 us at 10:00, 2026-11-21T09:00:00Z", "state C1, 3.5 us at 10:00, 2026-11-21T09:00:00Z"),
        ];
        for (before, after) in cases {
            assert_eq!(names.prose(before), after);
            assert_eq!(names.prose(after), after, "masking twice changes nothing");
        }
    }

    #[test]
    fn what_is_set_for_a_command_is_left_out_and_its_line_is_known() {
        let mut names = Names::default();
        for (line, new) in [
            ("TOKEN=geheim; A_1='x y' /opt/geheim/meter --key geheim", "process-1 (3 words)"),
            ("cyclictest -q", "cyclictest (1 words)"),
            ("TOKEN=geheim", "masked"),
        ] {
            assert_eq!(names.command(line).replace("process-2", "process-1"), new);
            assert_eq!(names.command(new), new, "masking twice changes nothing");
            assert!(!names.prose(&format!("the command {line} ended")).contains("geheim"));
        }
    }

    #[test]
    fn a_host_is_known_from_its_url_and_from_the_word_after_no_address_for() {
        let mut names = Names::default();
        let text = "redfish: no address for box: not in /etc/hosts";
        for text in ["meter https://u:p@Bmc7:8443/redfish/v1#0", "see http://[::1]:8/ and http://localhost/x", text] {
            names.learn_hosts(text);
        }
        assert_eq!(names.prose("bmc7, Bmc7 and localhost"), "peer-1, peer-1 and localhost");
        assert_eq!(names.prose(text), "redfish: no address for peer-4: not in /masked-path-1");
        names.learn_hosts("no address for peer-4: no");
        assert_eq!(names.prose("peer-4"), "peer-4");
    }
}
