//! Which kernel runs, what it keeps time with, and what it forbids.
//!
//! Idle behaviour changes between kernel versions, so [`KernelVersion`] orders them; distributions backport, so a
//! version is a reason to suspect, not a proof. A clocksource other than `tsc` makes every time stamp slow and marks a
//! machine whose TSC the kernel distrusts. Debian's release stays at `6.1.0` while the kernel follows the stable series, and
//! says the true version in the build's words only. Lockdown decides whether MSRs can be written. BTF, which tracing needs, is
//! looked for in a listing and never read: it is megabytes long.

use super::kernel_vendor::{self, Vendor};
use super::{Cpus, Domain};
use crate::fact::{Fact, Gap, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, ReadError, Source};
use serde::Serialize;
use std::fmt;
use wakewatt_words::{told, word};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// A kernel version without its distribution suffix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelVersion {
    /// First number: 6 of 6.12.3.
    pub major: u32,
    /// Second number: 12 of 6.12.3.
    pub minor: u32,
    /// 3 of 6.12.3; 0 where not given.
    pub patch: u32,
}

impl KernelVersion {
    /// From parts.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        KernelVersion { major, minor, patch }
    }

    /// Reads the front of a release such as `5.14.0-305.el8.x86_64` or `7.2-rc1`.
    pub fn parse(release: &str) -> Result<Self, String> {
        let release = release.trim();
        let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
        let mut parts = release[..end].split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => {
                Ok(KernelVersion { major, minor, patch: parts.next().and_then(Result::ok).unwrap_or(0) })
            }
            _ => Err("expected a kernel release such as 6.12.3".into()),
        }
    }

    /// The version in Debian's build words, `#1 SMP Debian 6.1.176-1 (2026-07-02)`; other builds have none.
    fn of_debian_build(build: &str) -> Option<Self> {
        let mut words = build.split_whitespace().skip_while(|word| *word != "Debian");
        Self::parse(words.nth(1)?).ok()
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Kernel {
    /// The vendor whose backports make the version say little; none where there is none, or it is not known.
    pub fn vendor(&self) -> Option<&'static Vendor> {
        kernel_vendor::of(self.release.get()?, self.build.get().map_or("", String::as_str))
    }
}

/// The running kernel.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// As `uname -r` says it.
    pub release: Fact<String>,
    /// The numbers at the front of the release, which can be compared.
    pub version: Fact<KernelVersion>,
    /// The build's own words: `#1 SMP PREEMPT_DYNAMIC …`.
    pub build: Fact<String>,
    /// The preemption mode in force; from debugfs, else from the build's words.
    pub preemption: Fact<String>,
    /// What time is read from.
    pub clocksource: Fact<String>,
    /// What it could be read from.
    pub clocksources_available: Fact<Vec<String>>,
    /// none, integrity or confidentiality.
    pub lockdown: Fact<String>,
    /// Taint bits; 0 is clean.
    pub taint_bits: Fact<u64>,
    /// Type information for tracing is there.
    pub has_btf: Fact<bool>,
    /// The scheduler that is loaded as a BPF program (sched_ext); a gap where none is.
    pub sched_ext: Fact<String>,
    /// Who may use performance events; above 0 not system-wide without privilege.
    pub perf_event_paranoid: Fact<i64>,
}

impl Domain for Kernel {
    const TITLE: &'static str = "Kernel";
    const HELP: &'static str = "release, preemption, clocksource, lockdown, taint, type information";

    fn read(src: &dyn Source, _: &Cpus) -> Kernel {
        let release = match fact(src, "/proc/sys/kernel/osrelease", parse::word) {
            Fact::Gap(_) => fact(src, "/proc/version", |text| {
                text.split_whitespace().nth(2).map(str::to_string).ok_or_else(|| "no release in it".to_string())
            }),
            known => known,
        };
        let version = match &release {
            Fact::Gap(gap) => Fact::Gap(gap.clone()),
            Fact::Known(text) => match KernelVersion::parse(text) {
                Ok(version) => Fact::Known(version),
                Err(reason) => Fact::Gap(Gap::malformed("/proc/sys/kernel/osrelease", reason)),
            },
        };
        let build = match fact(src, "/proc/sys/kernel/version", parse::word) {
            Fact::Gap(_) => fact(src, "/proc/version", |text| {
                text.find('#').map(|at| text[at..].trim().to_string()).ok_or_else(|| "no build number in it".into())
            }),
            known => known,
        };
        let debian = build.get().and_then(|words| KernelVersion::of_debian_build(words));
        let version = match (version, debian) {
            (Fact::Known(known), Some(true_one))
                if known.patch == 0 && (known.major, known.minor) == (true_one.major, true_one.minor) =>
            {
                Fact::Known(true_one)
            }
            (version, _) => version,
        };
        let preemption = match fact(src, "/sys/kernel/debug/sched/preempt", parse_preempt) {
            Fact::Gap(_) => build.map(|words| preempt_of(words).to_string()),
            known => known,
        };
        let has_btf = match src.list("/sys/kernel/btf") {
            Ok(names) => Fact::Known(names.iter().any(|n| n == "vmlinux")),
            Err(error) if error.kind == ErrorKind::Absent => Fact::Known(false),
            Err(error) => Fact::Gap(Gap::from_read("/sys/kernel/btf", &error)),
        };
        Kernel {
            release,
            version,
            build,
            preemption,
            clocksource: fact(src, &format!("{CLOCKSOURCE}/current_clocksource"), parse::word),
            clocksources_available: fact(src, &format!("{CLOCKSOURCE}/available_clocksource"), parse::words),
            lockdown: fact(src, "/sys/kernel/security/lockdown", parse::chosen),
            taint_bits: fact(src, "/proc/sys/kernel/tainted", parse::number),
            has_btf,
            sched_ext: sched_ext(src),
            perf_event_paranoid: fact(src, "/proc/sys/kernel/perf_event_paranoid", parse::signed),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("kernel.release", word!("release"), &self.release, |v| Cell::text(v));
        sheet.fact("kernel.build", word!("build"), &self.build, |v| Cell::text(v));
        if let Some(vendor) = self.vendor() {
            sheet.say("kernel.vendor", word!("vendor kernel with backports"), Cell::text(vendor.name));
        }
        sheet.fact("kernel.preemption", word!("preemption"), &self.preemption, |v| {
            Cell::text(if PREEMPT.contains(&v.as_str()) { told(v) } else { v })
        });
        sheet.fact("kernel.clocksource", word!("clocksource"), &self.clocksource, |v| Cell::text(v));
        sheet.fact(
            "kernel.clocksources_available",
            word!("clocksources available"),
            &self.clocksources_available,
            |v| Cell::text(v.join(" ")),
        );
        sheet.fact("kernel.lockdown", word!("lockdown"), &self.lockdown, |v| Cell::text(v));
        sheet.fact("kernel.taint", word!("taint bits"), &self.taint_bits, |v| Cell::Hex(*v));
        sheet.fact("kernel.btf", word!("type information (BTF)"), &self.has_btf, |v| Cell::Flag(*v));
        if let Some(name) = self.sched_ext.get() {
            sheet.say("kernel.sched_ext", word!("scheduler loaded (sched_ext)"), Cell::text(name));
        }
        sheet.fact("kernel.perf_event_paranoid", word!("perf_event_paranoid"), &self.perf_event_paranoid, |v| {
            Cell::text(v)
        });
    }
}

/// The name of the loaded scheduler (Documentation/scheduler/sched-ext.rst); the folder may be there with none loaded.
fn sched_ext(src: &dyn Source) -> Fact<String> {
    match fact(src, "/sys/kernel/sched_ext/state", parse::word) {
        Fact::Known(state) if state == "enabled" => fact(src, "/sys/kernel/sched_ext/root/ops", parse::word),
        Fact::Known(state) => {
            let gap = Gap::from_read("/sys/kernel/sched_ext/state", &ReadError::new(ErrorKind::Absent, state));
            Fact::Gap(gap)
        }
        gap => gap,
    }
}

/// `none voluntary (full) lazy`.
fn parse_preempt(text: &str) -> Result<String, String> {
    text.split_whitespace()
        .find_map(|w| w.strip_prefix('(')?.strip_suffix(')'))
        .map(str::to_string)
        .ok_or_else(|| "expected one (choice)".to_string())
}

/// What a build's words come to, where the kernel itself has no word for it.
pub(crate) const PREEMPT: [&str; 2] = ["chosen at boot", "none or voluntary"];

fn preempt_of(build: &str) -> &'static str {
    let has = |word: &str| build.split_whitespace().any(|w| w == word);
    if has("PREEMPT_RT") {
        "realtime"
    } else if has("PREEMPT_DYNAMIC") {
        PREEMPT[0]
    } else if has("PREEMPT") {
        "full"
    } else {
        PREEMPT[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn versions_order_and_junk_is_refused() {
        let version = |text| KernelVersion::parse(text).unwrap();
        assert!(version("5.3.18-lp152.106-default") < version("5.14.17"));
        assert!(version("6.18.44-fc-v669") > version("6.9"));
        assert_eq!(version("7.2-rc1"), KernelVersion::new(7, 2, 0));
        assert!(version("6.12.0") > version("6.11.9"));
        for junk in ["", "linux", "6", ".", "6.", "99999999999.1", "ünï"] {
            assert!(KernelVersion::parse(junk).is_err(), "{junk}");
        }
    }

    #[test]
    fn debian_tells_the_true_version_in_the_build() {
        let version = |release: &str, build: &str| {
            let text = format!("//- /proc/sys/kernel/osrelease\n{release}\n//- /proc/sys/kernel/version\n{build}\n");
            Kernel::read(&Tree::from_text(&text), &Cpus::default()).version.get().unwrap().to_string()
        };
        assert_eq!(version("6.1.0-50-arm64", "#1 SMP Debian 6.1.176-1 (2026-07-02)"), "6.1.176");
        assert_eq!(version("6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)"), "6.1.27");
        assert_eq!(version("6.12.74", "#1 SMP Debian 6.1.176-1"), "6.12.74", "another series: not this kernel's");
        assert_eq!(version("6.1.0", "#1 SMP Debian"), "6.1.0");
    }

    #[test]
    fn a_loaded_scheduler_is_named() {
        let of = |text: &str| Kernel::read(&Tree::from_text(text), &Cpus::default()).sched_ext;
        let at = "/sys/kernel/sched_ext";
        let loaded = of(&format!("//- {at}/state\nenabled\n//- {at}/root/ops\np2dq_1.0.10\n"));
        assert_eq!(loaded.get().map(String::as_str), Some("p2dq_1.0.10"));
        assert_eq!(of(&format!("//- {at}/state\ndisabled\n//- {at}/root/ops\nold\n")).get(), None);
        assert_eq!(of("").get(), None);
    }

    #[test]
    fn falls_back_to_proc_version() {
        let tree = Tree::from_text(
            "//- /proc/version\nLinux version 6.1.0-18-amd64 (x@y) (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n
             //- /sys/kernel/security/lockdown\nnone [integrity] confidentiality\n//- /sys/kernel/btf/vmlinux\n\n",
        );
        let kernel = Kernel::read(&tree, &Cpus::default());
        assert_eq!(kernel.version.get(), Some(&KernelVersion::new(6, 1, 0)));
        assert_eq!(kernel.build.get().unwrap(), "#1 SMP PREEMPT_DYNAMIC Debian");
        assert_eq!(kernel.preemption.get().unwrap(), "chosen at boot");
        assert_eq!((kernel.lockdown.get().unwrap().as_str(), kernel.has_btf.get()), ("integrity", Some(&true)));
        assert!(kernel.clocksource.gap().is_some());
    }
}
