//! Did the running kernel series bring a change that moved idle behaviour?
//!
//! Case K3: random reads lost 10 % between 5.3.18 and 5.14.17, because more C6 was chosen. The table lists changes to
//! idle drivers, governors and timers, with the first version; stable kernels got some of them by patch number. A
//! version is a reason to suspect, not a proof, and distributions backport: so this is a note, and the way to check is
//! to compare captures from before and after the upgrade. Sources: differences of the kernel's own files between the
//! versions (docs/governors.md, docs/knobs/idle.md).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::facts::kernel::KernelVersion;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first version that has it.
    pub since: KernelVersion,
    /// What moved.
    pub what: &'static str,
    /// Which file of the kernel.
    pub source: &'static str,
}

const fn change(major: u32, minor: u32, patch: u32, what: &'static str, source: &'static str) -> Change {
    Change { since: KernelVersion::new(major, minor, patch), what, source }
}

const CHANGES: &[Change] = &[
    change(
        5,
        4,
        0,
        "polling ends at the residency of the first state of 10us or more, not of the very first",
        "drivers/cpuidle/cpuidle.c",
    ),
    change(
        5,
        6,
        0,
        "intel_idle reads the BIOS list: states that it lacks are registered as disabled",
        "drivers/idle/intel_idle.c",
    ),
    change(
        5,
        8,
        0,
        "the idle governor can be changed while running, so it may differ from boot",
        "drivers/cpuidle/sysfs.c",
    ),
    change(
        5,
        14,
        0,
        "Skylake servers: C6 claims 92us instead of 133us where package C6 is off, so it is chosen earlier",
        "drivers/idle/intel_idle.c",
    ),
    change(
        5,
        18,
        0,
        "Sapphire Rapids gets its own table (C6 290us, 190us where package C6 is off)",
        "drivers/idle/intel_idle.c",
    ),
    change(
        6,
        1,
        141,
        "menu keeps the longest of its last intervals when they do not agree (taken back in 6.1.158): deeper states",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 1, 157, "menu notes entries that the driver refused", "drivers/cpuidle/governors/menu.c"),
    change(
        6,
        1,
        165,
        "no governor runs where the driver has one state only",
        "drivers/cpuidle/cpuidle.c, kernel/sched/idle.c",
    ),
    change(
        6,
        6,
        0,
        "menu and teo look at the next timer only for longer sleeps: short ones may poll or stay shallow",
        "drivers/cpuidle/governors/{menu,teo}.c",
    ),
    change(
        6,
        9,
        0,
        "timers may be handled by another CPU: idle CPUs wake less often, some later",
        "kernel/time/timer_migration.c",
    ),
    change(
        6,
        12,
        31,
        "menu keeps the longest of its last intervals when they do not agree (taken back in 6.12.56): deeper states",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        12,
        44,
        "menu no longer goes shallower for tasks that wait for I/O: disk reads may wake slower",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 12, 58, "menu's search reordered: more polling before a short sleep", "drivers/cpuidle/governors/menu.c"),
    change(
        6,
        12,
        75,
        "menu always asks for the next timer once the tick has stopped",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        13,
        0,
        "menu no longer goes shallower for tasks that wait for I/O: disk reads may wake slower",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 14, 0, "teo rewritten around short sleeps", "drivers/cpuidle/governors/teo.c"),
    change(
        6,
        15,
        0,
        "menu discards outliers on both sides, and keeps the longest interval until 6.17",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 18, 0, "menu's search reordered: more polling before a short sleep", "drivers/cpuidle/governors/menu.c"),
];

/// Mainline releases in a row: 5.0 follows 4.20, 6.0 follows 5.19, 7.0 follows 6.19.
fn ordinal(version: KernelVersion) -> Option<u32> {
    let base = match version.major {
        4 => 0,
        5 => 21,
        6 => 41,
        7 => 61,
        _ => return None,
    };
    Some(base + version.minor)
}

/// How many releases back a change still counts as near: about a year.
const NEAR: u32 = 5;

fn is_near(change: &Change, running: KernelVersion) -> bool {
    let since = change.since;
    if since.patch > 0 {
        return (since.major, since.minor) == (running.major, running.minor) && running.patch >= since.patch;
    }
    match (ordinal(running), ordinal(since)) {
        (Some(now), Some(then)) => now >= then && now - then <= NEAR,
        _ => false,
    }
}

/// The listed changes that came between two versions, for a comparison of runs. One with a patch number is counted only
/// where `to` is of its own series: what another series got when is not in the list.
pub fn between(from: KernelVersion, to: KernelVersion) -> Vec<&'static Change> {
    let is_between = |change: &&Change| {
        let since = change.since;
        since > from && since <= to && (since.patch == 0 || (since.major, since.minor) == (to.major, to.minor))
    };
    CHANGES.iter().filter(is_between).collect()
}

pub(super) struct KnownKernelChanges;

impl Rule for KnownKernelChanges {
    fn id(&self) -> &'static str {
        "rule.known-kernel-changes"
    }
    fn question(&self) -> &'static str {
        "did the running kernel series bring a change that moved idle behaviour?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let kernel = &evidence.facts.kernel;
        let version = match (kernel.version.get(), kernel.version.gap()) {
            (Some(version), _) => *version,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no("not known"),
        };
        let near: Vec<&Change> = CHANGES.iter().filter(|c| is_near(c, version)).collect();
        if near.is_empty() {
            return Answer::no(format!("no listed change is near {version}"));
        }
        let title = format!(
            "Kernel {version}: {} listed changes to idle behaviour are recent; an upgrade across one can move latency",
            near.len()
        );
        let cost = Cost::unknown("only if the machine was upgraded across the change; then compare before and after");
        let release = kernel.release.get().cloned().unwrap_or_default();
        let mut finding =
            Finding::new(self, Weight::Note, Confidence::Low, title, cost).on("/proc/sys/kernel/osrelease", release);
        for change in near {
            finding = finding.on(format!("{}, since {}", change.source, change.since), change.what);
        }
        finding
            .remedy(
                "If latency moved with an upgrade, boot the older kernel on one machine and compare; a latency \
                    limit makes both behave alike.",
                "A reboot of one machine.",
                "wakewatt compare the captures of both kernels; wakewatt measure wakeup on both",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn near_changes() {
        let check = |release: &str| ask(&KnownKernelChanges, &format!("//- /proc/sys/kernel/osrelease\n{release}\n"));
        assert!(
            check("5.14.17-default").starts_with("yes note unknown: kernel 5.14.17: 1 listed"),
            "{}",
            check("5.14.17")
        );
        assert!(check("4.19.0").starts_with("no: no listed change is near 4.19.0"));
        assert!(ask(&KnownKernelChanges, "").starts_with("cannot tell"));
        let patched = |patch| {
            CHANGES.iter().filter(|c| is_near(c, KernelVersion::new(6, 12, patch)) && c.since.patch > 0).count()
        };
        assert_eq!((patched(0), patched(44), patched(80)), (0, 2, 4));
    }

    #[test]
    fn changes_between_two_versions() {
        let between = |a: (u32, u32, u32), b: (u32, u32, u32)| {
            between(KernelVersion::new(a.0, a.1, a.2), KernelVersion::new(b.0, b.1, b.2)).len()
        };
        assert_eq!(between((5, 3, 18), (5, 14, 17)), 4, "case K3");
        assert_eq!(between((5, 14, 17), (5, 3, 18)), 0, "the other way round is for the caller");
        assert_eq!((between((6, 12, 40), (6, 12, 50)), between((6, 1, 100), (6, 2, 0))), (1, 0));
    }
}
