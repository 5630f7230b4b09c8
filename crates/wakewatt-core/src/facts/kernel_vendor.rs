//! Whose kernel runs: vendors that keep a version for years and bring newer changes back into it.
//!
//! The number in `uname -r` of such a kernel says when its development began, not which idle changes it has: RHEL's
//! 5.14.0, openEuler's 5.10.0 and Ubuntu's 6.8.0 all carry some of later versions. So nothing is concluded from it. Told by
//! the tag in the release or by a word of the build; the tags are those the vendors' packages are named with. Debian and
//! plain mainline builds follow the stable series and are no vendors in this sense.

/// A vendor whose kernels carry backports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// As people call the distribution.
    pub name: &'static str,
    /// Parts of the release that tell it.
    tags: &'static [&'static str],
    /// Words of the build that tell it.
    build: &'static [&'static str],
}

const fn vendor(name: &'static str, tags: &'static [&'static str], build: &'static [&'static str]) -> Vendor {
    Vendor { name, tags, build }
}

/// More special tags first: Oracle's and Anolis' releases may hold `el8` too.
const VENDORS: &[Vendor] = &[
    vendor("openEuler", &[".oe1", ".oe2"], &[]),
    vendor("Anolis OS or Alibaba Cloud Linux", &[".an7", ".an8", ".an23", ".al7", ".al8", ".alnx"], &[]),
    vendor("openvelinux", &["velinux", ".bsk."], &[]),
    vendor("deepin or UOS", &["deepin", "-amd64-desktop", "-arm64-desktop", ".uel", ".uos"], &[]),
    vendor("TencentOS", &[".tl2", ".tl3", ".tl4", "tlinux"], &[]),
    vendor("Oracle UEK", &["uek"], &[]),
    vendor("Amazon Linux", &[".amzn"], &[]),
    vendor("RHEL or a rebuild of it", &[".el7", ".el8", ".el9", ".el10"], &[]),
    vendor("SUSE Linux Enterprise or Leap", &["-lp15", "-150", "-160"], &[]),
    vendor("Ubuntu", &[], &["Ubuntu"]),
];

/// Whose kernel this is, by `uname -r` and `uname -v`; none where it is no vendor's that is known here.
pub fn of(release: &str, build: &str) -> Option<&'static Vendor> {
    let has_word = |word: &str| build.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == word);
    VENDORS.iter().find(|v| v.tags.iter().any(|tag| release.contains(tag)) || v.build.iter().any(|word| has_word(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_by_release_or_build() {
        let name = |release: &str, build: &str| of(release, build).map_or("none", |v| v.name);
        for (release, vendor) in [
            ("5.10.0-136.12.0.86.oe2203sp1.x86_64", "openEuler"),
            ("5.10.134-16.2.an8.x86_64", "Anolis OS or Alibaba Cloud Linux"),
            ("5.10.134-18.al8.x86_64", "Anolis OS or Alibaba Cloud Linux"),
            ("5.15.120.bsk.2-amd64", "openvelinux"),
            ("6.6.40-amd64-desktop-hwe", "deepin or UOS"),
            ("5.4.119-19.0009.tl3", "TencentOS"),
            ("5.15.0-200.131.27.el8uek.x86_64", "Oracle UEK"),
            ("5.14.0-427.13.1.el9_4.x86_64", "RHEL or a rebuild of it"),
            ("6.1.79-99.167.amzn2023.x86_64", "Amazon Linux"),
            ("5.14.21-150500.55.19-default", "SUSE Linux Enterprise or Leap"),
        ] {
            assert_eq!(name(release, "#1 SMP"), vendor, "{release}");
        }
        assert_eq!(name("6.8.0-40-generic", "#40~22.04.3-Ubuntu SMP PREEMPT_DYNAMIC"), "Ubuntu");
        for (release, build) in [
            ("6.1.0-50-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)"),
            ("6.12.44", "#1 SMP"),
            ("6.6.88-flatcar", "#1 SMP"),
            ("7.1.0-rc3", "#1 SMP"),
        ] {
            assert_eq!(name(release, build), "none", "{release}");
        }
    }
}
