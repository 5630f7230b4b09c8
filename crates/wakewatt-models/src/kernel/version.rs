//! Reads a kernel's release from `uname -r`, from `/proc/version`, or from the name of a set of vectors.
//!
//! `6.1.0-49-amd64` is Debian's name for an interface; that it is 6.1.192 stands in `/proc/version` (`Debian 6.1.192-2`). Ubuntu's
//! `/proc/version_signature` ends in the release. Where only the name is known and the name does not say, the last release of
//! the series is assumed, because that is what a maintained machine runs. Names of vectors say the first release of a range
//! (`6.1.141_to_6.1.156`) or the first of an open one (`6.1.158plus`).

use super::vendors::{Numbers, vendor_of};

/// Stands for the last release of a series.
const LATEST: u16 = u16::MAX;

/// A release of the kernel as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Release {
    /// First number.
    pub major: u16,
    /// Second.
    pub minor: u16,
    /// Third: within a stable series.
    pub patch: u16,
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.patch {
            LATEST => write!(f, "{}.{}.y", self.major, self.minor),
            patch => write!(f, "{}.{}.{patch}", self.major, self.minor),
        }
    }
}

/// What a text says about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The release whose rules apply. Its last number is 65535 where only the series is known.
    pub release: Release,
    /// Why that is not certain; none where the text says the release.
    pub assumed: Option<String>,
}

/// Why it is no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kernel version; it should begin like 6.1 or 6.12.43")]
pub struct KernelError(String);

/// Digits at the front, and what follows them.
fn number(text: &str) -> Option<(u16, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// Two or three numbers at the front, whether there were three, and what follows.
fn release(text: &str) -> Option<(Release, bool, &str)> {
    let (major, rest) = number(text)?;
    let (minor, rest) = number(rest.strip_prefix('.')?)?;
    if let Some(rest) = rest.strip_prefix(".y").or_else(|| rest.strip_prefix(".x")) {
        return Some((Release { major, minor, patch: LATEST }, true, rest));
    }
    match rest.strip_prefix('.').and_then(number) {
        Some((patch, rest)) => Some((Release { major, minor, patch }, true, rest)),
        None => Some((Release { major, minor, patch: 0 }, false, rest)),
    }
}

impl Kernel {
    /// From `uname -r`, the whole of `/proc/version`, or a name of vectors.
    pub fn parse(text: &str) -> Result<Kernel, KernelError> {
        let text = text.trim();
        let refused = || KernelError(text.chars().take(80).collect());
        if let Some(rest) = text.strip_prefix("Linux version ") {
            let name = rest.split_whitespace().next().ok_or_else(refused)?;
            return Kernel::told(name, Some(rest)).ok_or_else(refused);
        }
        Kernel::told(text, None).ok_or_else(refused)
    }

    /// From `uname -r` and, where it can be had, `/proc/version`.
    pub fn of(uname_r: &str, proc_version: Option<&str>) -> Result<Kernel, KernelError> {
        Kernel::told(uname_r.trim(), proc_version).ok_or_else(|| KernelError(uname_r.chars().take(80).collect()))
    }

    fn told(name: &str, banner: Option<&str>) -> Option<Kernel> {
        // A range is its first release; `5.14_to_6.1.y`.
        let first = name.split("_to_").next().unwrap_or(name);
        let (found, has_patch, rest) = release(first)?;
        let certain = |release| Some(Kernel { release, assumed: None });
        if let Some(published) = banner.and_then(|b| in_banner(b, found)) {
            return certain(published);
        }
        if found.patch == LATEST {
            return Some(Kernel {
                release: found,
                assumed: Some(format!("{name} is a series: the last of {}.{} is assumed", found.major, found.minor)),
            });
        }
        let Some((vendor, numbers)) = vendor_of(rest, has_patch && found.patch == 0) else { return certain(found) };
        match numbers {
            Numbers::Release => certain(found),
            // Backports carry the release: 6.12.38-1~bpo12-amd64.
            Numbers::Series if has_patch && found.patch > 0 => certain(found),
            Numbers::Series => Some(Kernel {
                release: Release { patch: LATEST, ..found },
                assumed: Some(format!(
                    "{name} is {vendor}'s name for an interface, not a release: the last of {}.{} is assumed",
                    found.major, found.minor
                )),
            }),
            Numbers::Base => Some(Kernel {
                release: found,
                assumed: Some(format!(
                    "{name} is from {vendor}, who carry changes into it: the rules of {found} as released are assumed"
                )),
            }),
        }
    }
}

/// The release that Debian writes into `/proc/version`: `Debian 6.1.192-2`. Of the same series only.
fn in_banner(banner: &str, named: Release) -> Option<Release> {
    let words: Vec<&str> = banner.split([' ', '(', ')']).collect();
    // The compiler's own version stands there in the same way.
    let mut after = words
        .windows(2)
        .filter(|pair| pair[0] == "Debian")
        .filter_map(|pair| release(pair[1].strip_prefix("1:").unwrap_or(pair[1])));
    let same = |(found, has_patch, _): &(Release, bool, &str)| {
        *has_patch && (found.major, found.minor) == (named.major, named.minor)
    };
    after.rfind(same).map(|(found, ..)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, bool) {
        let kernel = Kernel::parse(text).unwrap();
        (kernel.release.to_string(), kernel.assumed.is_some())
    }

    #[test]
    fn published_releases_are_certain() {
        for (text, release) in [
            ("5.3.1", "5.3.1"),
            ("5.3", "5.3.0"),
            ("6.1-rc7", "6.1.0"),
            ("6.1.0-rc7+", "6.1.0"),
            ("6.6.9", "6.6.9"),
            ("6.12.117", "6.12.117"),
            ("6.1.158plus", "6.1.158"),
            ("6.1.141_to_6.1.156", "6.1.141"),
            ("5.14_to_6.1.140", "5.14.0"),
            ("6.1.0_to_6.1.133", "6.1.0"),
            ("5.14_to_6.1.y", "5.14.0"),
            ("6.1.0-rc7", "6.1.0"),
            ("6.6.9-custom", "6.6.9"),
            ("6.12.10-arch1-1", "6.12.10"),
            ("6.11.4-301.fc41.x86_64", "6.11.4"),
            ("6.1.109-118.189.amzn2023.x86_64", "6.1.109"),
            ("6.12.38+deb13-amd64", "6.12.38"),
            ("6.6.58-0-lts", "6.6.58"),
            ("5.15.153.1-microsoft-standard-WSL2", "5.15.153"),
        ] {
            assert_eq!(of(text), (release.into(), false), "{text}");
        }
    }

    #[test]
    fn vendors_numbers_are_assumptions_and_say_so() {
        for (text, release) in [
            ("5.14.0-427.13.1.el9_4.x86_64", "5.14.0"),
            ("4.18.0-553.el8.x86_64", "4.18.0"),
            ("5.3.18-150300.59.158-default", "5.3.18"),
            ("5.15.0-200.131.27.el8uek.x86_64", "5.15.0"),
            ("6.8.12-4-pve", "6.8.12"),
            ("6.1.0-49-amd64", "6.1.y"),
            ("5.15.0-91-generic", "5.15.y"),
            ("6.8.0-1021-aws", "6.8.y"),
            ("6.1.0-49-s390x", "6.1.y"),
            ("6.1.0-1036-oem", "6.1.y"),
            ("6.1.0-rpi7-rpi-v8", "6.1.y"),
            ("6.12.y", "6.12.y"),
            ("6.1.x", "6.1.y"),
            ("5.14.21-150500.33.54-azure", "5.14.21"),
        ] {
            assert_eq!(of(text), (release.into(), true), "{text}");
        }
    }

    #[test]
    fn debian_says_the_release_elsewhere() {
        let banner = "Linux version 6.1.0-49-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld) \
                      #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-10-02)";
        assert_eq!(of(banner), ("6.1.192".into(), false));
        assert_eq!(Kernel::of("6.1.0-49-amd64", Some(banner)).map(|k| k.release.patch), Ok(192));
        let other = banner.replace("-amd64", "-s390x");
        assert_eq!(of(&other), ("6.1.192".into(), false));
        let raspberry = Kernel::of("6.1.0-rpi6-rpi-v8", Some("#1 SMP PREEMPT Debian 1:6.1.58-1+rpt2 (2023-11-13)"));
        assert_eq!(raspberry.map(|k| k.release.patch), Ok(58));
        assert_eq!(Kernel::of("6.1.0-49-amd64", None).map(|k| k.assumed.is_some()), Ok(true));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "linux", "6", "6.", "99999.1", ".1.2", "Linux version "] {
            assert!(Kernel::parse(text).is_err(), "{text}");
        }
    }
}
