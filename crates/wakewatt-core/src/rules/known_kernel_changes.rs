//! Does the running kernel carry a change of idle behaviour that was taken back later, or came just before?
//!
//! Case K3: random reads lost 10 % between 5.3.18 and 5.14.17, because more C6 was chosen. The table lists changes to
//! idle drivers, governors and timers, with the first version, and where one was taken back, the version that did; stable
//! kernels got some of them by patch number. Only what is in use counts: menu's changes say nothing of a host on teo. A
//! kernel between the two versions of a change that was taken back is a finding. Of any other it is not known whether the
//! machine came from an older kernel, so the rule cannot tell, and the way to check is to compare captures from before and
//! after the upgrade. Distributions backport, so that a version is a reason to suspect, not a proof, and of a vendor's kernel
//! (openEuler, Anolis, RHEL, Ubuntu and others, facts/kernel_vendor.rs) nothing is concluded. Sources: differences
//! of the kernel's own files between the versions (docs/governors.md, docs/knobs/idle.md).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::kernel::KernelVersion;
use wakewatt_words::{say, told, word};

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first version that has it.
    pub since: KernelVersion,
    /// The first version that has it no more, where it was taken back.
    pub until: Option<KernelVersion>,
    /// Which part of idle it belongs to.
    pub part: Part,
    /// What moved.
    pub what: &'static str,
    /// Which file of the kernel.
    pub source: &'static str,
}

/// What must be in use for a change to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Any idle driver.
    Core,
    /// intel_idle, on these models of family 6; all of them where none is listed.
    IntelIdle(&'static [u64]),
    /// This governor, or one of these.
    Governor(&'static [&'static str]),
    /// amd-pstate, in any mode, on AMD's processors from this family on.
    AmdPstate(u64),
}

impl Part {
    /// Is it in use? What is not known is not left out, but the table of one processor is nothing to another's.
    pub fn concerns(self, facts: &Snapshot) -> bool {
        let driver = facts.idle.driver.get().map(String::as_str);
        match self {
            Part::Core => driver != Some("none"),
            Part::IntelIdle(models) => {
                let model = facts.topology.processor().and_then(|p| p.model);
                let is_other = facts.topology.processor().is_some_and(|p| !p.is_intel());
                let has_table = |model: u64| models.contains(&model);
                driver.is_none_or(|d| d == "intel_idle")
                    && !is_other
                    && (models.is_empty() || model.is_some_and(has_table))
            }
            Part::AmdPstate(from) => {
                let driver = facts.freq.policies.driver.uniform();
                let processor = facts.topology.processor();
                driver.is_none_or(|d| d.starts_with("amd-pstate"))
                    && processor.is_some_and(|p| p.is_amd() && p.family.is_none_or(|family| family >= from))
            }
            Part::Governor(names) => facts.idle.governor.get().is_none_or(|g| names.contains(&g.as_str())),
        }
    }
}

const MENU: Part = Part::Governor(&["menu"]);

const fn change(major: u32, minor: u32, patch: u32, part: Part, what: &'static str, source: &'static str) -> Change {
    Change { since: KernelVersion::new(major, minor, patch), until: None, part, what, source }
}

const fn taken_back(since: [u32; 3], until: [u32; 3], part: Part, what: &'static str, source: &'static str) -> Change {
    let until = Some(KernelVersion::new(until[0], until[1], until[2]));
    Change { until, ..change(since[0], since[1], since[2], part, what, source) }
}

const CHANGES: &[Change] = &[
    change(
        5,
        4,
        0,
        Part::Core,
        "polling ends at the residency of the first state of 10us or more, not of the very first",
        "drivers/cpuidle/cpuidle.c",
    ),
    change(
        5,
        6,
        0,
        Part::IntelIdle(&[]),
        "intel_idle reads the BIOS list: states that it lacks are registered as disabled",
        "drivers/idle/intel_idle.c",
    ),
    change(
        5,
        8,
        0,
        Part::Core,
        "the idle governor can be changed while running, so it may differ from boot",
        "drivers/cpuidle/sysfs.c",
    ),
    change(
        5,
        14,
        0,
        Part::IntelIdle(&[0x55]),
        "Skylake servers: C6 claims 92us instead of 133us where package C6 is off, so it is chosen earlier",
        "drivers/idle/intel_idle.c",
    ),
    change(
        5,
        18,
        0,
        Part::IntelIdle(&[0x8f]),
        "Sapphire Rapids gets its own table (C6 290us, 190us where package C6 is off)",
        "drivers/idle/intel_idle.c",
    ),
    taken_back(
        [6, 1, 141],
        [6, 1, 158],
        MENU,
        "menu takes the longest of its last intervals where they do not agree, instead of none: shallower states",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 1, 157, MENU, "menu notes entries that the driver refused", "drivers/cpuidle/governors/menu.c"),
    change(
        6,
        1,
        165,
        Part::Core,
        "no governor runs where the driver has one state only",
        "drivers/cpuidle/cpuidle.c, kernel/sched/idle.c",
    ),
    change(
        6,
        6,
        0,
        Part::Governor(&["menu", "teo"]),
        "menu and teo look at the next timer only for longer sleeps: short ones may poll or stay shallow",
        "drivers/cpuidle/governors/{menu,teo}.c",
    ),
    change(
        6,
        9,
        0,
        Part::Core,
        "timers may be handled by another CPU: idle CPUs wake less often, some later",
        "kernel/time/timer_migration.c",
    ),
    taken_back(
        [6, 12, 31],
        [6, 12, 56],
        MENU,
        "menu takes the longest of its last intervals where they do not agree, instead of none: shallower states",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        12,
        44,
        MENU,
        "menu no longer goes shallower for tasks that wait for I/O: disk reads may wake slower",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        12,
        58,
        MENU,
        "menu's search reordered: more polling before a short sleep",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        12,
        75,
        MENU,
        "menu always asks for the next timer once the tick has stopped",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        13,
        0,
        MENU,
        "menu no longer goes shallower for tasks that wait for I/O: disk reads may wake slower",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(6, 14, 0, Part::Governor(&["teo"]), "teo rewritten around short sleeps", "drivers/cpuidle/governors/teo.c"),
    taken_back(
        [6, 15, 0],
        [6, 17, 6],
        MENU,
        "menu discards outliers on both sides, and takes the longest of its last intervals where they do not agree: shallower states",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        18,
        0,
        MENU,
        "menu's search reordered: more polling before a short sleep",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        5,
        15,
        196,
        MENU,
        "menu takes the longest of its last intervals no more: deeper states again, and lost throughput was reported",
        "drivers/cpuidle/governors/menu.c; linux-pm, \"Performance regressions introduced via Revert\", 2025-12 to 2026-02",
    ),
    change(
        6,
        6,
        115,
        MENU,
        "menu takes the longest of its last intervals no more: deeper states again",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        6,
        12,
        56,
        MENU,
        "menu takes the longest of its last intervals no more: deeper states again, and lost throughput was reported",
        "drivers/cpuidle/governors/menu.c; linux-pm, \"Performance regressions introduced via Revert\", 2025-12 to 2026-02",
    ),
    change(
        6,
        8,
        0,
        Part::IntelIdle(&[0xaf, 0xb6]),
        "Sierra Forest and Grand Ridge get tables of their own (C6S 270us, C6SP 310us; C6S 140us)",
        "drivers/idle/intel_idle.c; linux-pm, \"intel_idle: add Sierra Forest SoC support\"",
    ),
    change(
        6,
        12,
        0,
        Part::IntelIdle(&[0xad, 0xae]),
        "Granite Rapids gets a table of its own (C6 170us, C6P 210us)",
        "drivers/idle/intel_idle.c",
    ),
    change(
        6,
        13,
        0,
        Part::AmdPstate(0x1a),
        "servers of family 1Ah (Turin) get amd-pstate where nobody asks for another driver, instead of acpi-cpufreq",
        "drivers/cpufreq/amd-pstate.c",
    ),
    change(
        6,
        14,
        0,
        Part::IntelIdle(&[0xdd]),
        "Clearwater Forest gets Sierra Forest's table (C6S 270us, C6SP 310us)",
        "drivers/idle/intel_idle.c; linux-pm, \"intel_idle: add Clearwater Forest SoC support\"",
    ),
    change(
        7,
        0,
        0,
        MENU,
        "menu no longer takes a deep state for a short sleep once the tick has stopped",
        "drivers/cpuidle/governors/menu.c",
    ),
    change(
        7,
        0,
        0,
        Part::IntelIdle(&[]),
        "intel_idle.table= overrides the table, and intel_idle.preferred_cstates= is gone and ignored silently",
        "drivers/idle/intel_idle.c",
    ),
    change(
        7,
        0,
        0,
        Part::Governor(&["teo"]),
        "teo counts wake-ups by the tick apart",
        "drivers/cpuidle/governors/teo.c",
    ),
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

/// Is it in this kernel, and was it taken back later?
fn is_carried(change: &Change, running: KernelVersion) -> bool {
    let Some(until) = change.until else { return false };
    let is_series =
        change.since.patch == 0 || (change.since.major, change.since.minor) == (running.major, running.minor);
    is_series && change.since <= running && running < until
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

/// What moved, of every listed change: looked up where it is shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    CHANGES.iter().map(|change| change.what)
}

pub(super) struct KnownKernelChanges;

impl Rule for KnownKernelChanges {
    fn id(&self) -> &'static str {
        "rule.known-kernel-changes"
    }
    fn question(&self) -> &'static str {
        word!(
            "does the running kernel carry a change of idle or frequency behaviour that was taken back later, or came just before?"
        )
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let kernel = &evidence.facts.kernel;
        let version = match (kernel.version.get(), kernel.version.gap()) {
            (Some(version), _) => *version,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("not known")),
        };
        if let Some(vendor) = kernel.vendor() {
            return Answer::cannot_tell(
                say!(
                    "a vendor kernel ({}): it has changes of later versions, so {version} does not say which",
                    vendor.name
                ),
                word!(
                    "wakewatt measure wakeup on both kernels, or wakewatt compare of captures from before and after an upgrade"
                ),
            );
        }
        let in_use = || CHANGES.iter().filter(|change| change.part.concerns(&evidence.facts));
        let carried: Vec<&Change> = in_use().filter(|change| is_carried(change, version)).collect();
        if carried.is_empty() {
            let near: Vec<String> =
                in_use().filter(|c| is_near(c, version)).map(|c| format!("{} ({})", told(c.what), c.since)).collect();
            if near.is_empty() {
                return Answer::no(say!("no listed change to what is in use here is near {version}"));
            }
            return Answer::cannot_tell(
                say!("whether this machine came to {version} across one of these is not known: {}", near.join("; ")),
                word!(
                    "wakewatt compare of captures from before and after an upgrade, or wakewatt measure wakeup on both kernels"
                ),
            );
        }
        let what: Vec<&str> = carried.iter().map(|change| told(change.what)).collect();
        let title =
            say!("Kernel {version} carries a change of idle behaviour that was taken back later: {}", what.join("; "));
        let cost = Cost::unknown(word!(
            "CPUs may sleep less deeply than with the versions before and after: more watts, faster wake-ups; not measured"
        ));
        let release = kernel.release.get().cloned().unwrap_or_default();
        let mut finding =
            Finding::new(self, Weight::Note, Confidence::Medium, title, cost).on("/proc/sys/kernel/osrelease", release);
        for change in carried {
            let until = change.until.map_or(String::new(), |until| say!(", taken back in {until}"));
            finding = finding.on(say!("{}, since {}{until}", change.source, change.since), told(change.what));
        }
        finding
            .remedy(
                word!("Nothing, until the kernel is changed: then expect deeper states and slower wake-ups again. Where latency \
                    matters, have a latency limit ready rather than rely on this."),
                word!("None: this is to know before an upgrade."),
                word!("wakewatt measure wakeup on both kernels, and wakewatt compare their captures"),
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
        let host = |release: &str, governor: &str| {
            let governor = format!("//- /sys/devices/system/cpu/cpuidle/current_governor\n{governor}\n");
            ask(&KnownKernelChanges, &format!("//- /proc/sys/kernel/osrelease\n{release}\n{governor}"))
        };
        assert!(
            host("6.12.40", "menu").starts_with("yes note unknown: kernel 6.12.40 carries a change of idle behaviour")
        );
        assert!(host("6.16.10-200.fc42.x86_64", "menu").starts_with("yes note"), "since 6.15 and until 6.17.6");
        assert!(host("6.12.60", "menu").starts_with("cannot tell: whether this machine came to 6.12.60"));
        let teo = host("6.16.10", "teo");
        assert!(teo.starts_with("cannot tell") && teo.contains("teo rewritten") && !teo.contains("menu"), "{teo}");
        let xeon = |model: u32, release: &str| {
            let cpu = format!(
                "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n"
            );
            let driver = "//- /sys/devices/system/cpu/cpuidle/current_driver\nintel_idle\n";
            ask(&KnownKernelChanges, &format!("//- /proc/sys/kernel/osrelease\n{release}\n{cpu}\n{driver}"))
        };
        assert!(
            xeon(0xdd, "6.19.0").contains("Clearwater Forest gets") && !xeon(0xad, "6.19.0").contains("Clearwater")
        );
        assert!(
            xeon(0xaf, "6.10.0").contains("Sierra Forest and") && !xeon(0xaf, "6.7.0").contains("Sierra Forest and")
        );
        let epyc = |family: u32, release: &str| {
            let cpu = format!(
                "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : AuthenticAMD\ncpu family : {family}\nmodel : 2\n"
            );
            let root = "//- /sys/devices/system/cpu";
            let driver = format!(
                "{root}/cpufreq/policy0/affected_cpus\n0\n{root}/cpufreq/policy0/scaling_driver\namd-pstate-epp\n"
            );
            let cpus = format!("{root}/online\n0\n{root}/present\n0\n");
            ask(&KnownKernelChanges, &format!("//- /proc/sys/kernel/osrelease\n{release}\n{cpus}{cpu}\n{driver}"))
        };
        assert!(epyc(0x1a, "6.14.2").contains("family 1Ah (Turin) get amd-pstate"), "{}", epyc(0x1a, "6.14.2"));
        assert!(!epyc(0x1a, "6.12.0").contains("Turin") && !epyc(0x19, "6.14.2").contains("Turin"));
        let acpi = "ladder\n//- /sys/devices/system/cpu/cpuidle/current_driver\nacpi_idle";
        assert!(host("7.0.0", acpi).starts_with("no: no listed change to what is in use here is near 7.0.0"));
        assert!(host("4.19.0", "menu").starts_with("no: no listed change"));
        assert!(ask(&KnownKernelChanges, "").starts_with("cannot tell"));
        let patched = |patch| {
            CHANGES.iter().filter(|c| is_near(c, KernelVersion::new(6, 12, patch)) && c.since.patch > 0).count()
        };
        assert_eq!((patched(0), patched(44), patched(60), patched(80)), (0, 2, 4, 5));
        assert!(host("6.12.60", "menu").contains("deeper states again, and lost throughput was reported (6.12.56)"));
    }

    #[test]
    fn a_vendors_version_concludes_nothing() {
        for release in ["6.12.40-5.el10.x86_64", "6.12.40-1.oe2503.x86_64"] {
            let said = ask(&KnownKernelChanges, &format!("//- /proc/sys/kernel/osrelease\n{release}\n"));
            assert!(said.starts_with("cannot tell: a vendor kernel ("), "{said}");
        }
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
