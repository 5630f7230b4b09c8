//! Does an argument of the command line have no effect here?
//!
//! The kernel drops what it does not read without a word, so an argument of a tuning guide may stand there for years. Who
//! reads it tells the driver that is in charge: `amd_pstate=` chooses a mode of a driver that may refuse to load (no CPPC in
//! the firmware, an Intel processor); `intel_pstate=disable` is dropped where firmware has switched HWP on, since nothing can
//! switch it off again; `intel_idle.*` is nothing to acpi_idle; `idle=` is x86's and `nohlt` the others'; a governor must be
//! built in. `processor.max_cstate` under intel_idle has a rule of its own. Sources: admin-guide/kernel-parameters.txt;
//! admin-guide/pm/{intel_pstate,amd-pstate,intel_idle,cpuidle}.rst.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::kernel::KernelVersion;
use wakewatt_words::{say, word};

pub(super) struct ArgumentsIgnored;

/// An argument that changes nothing.
pub(super) struct Ignored {
    /// Its name.
    pub(super) name: &'static str,
    /// As it is on the command line.
    word: String,
    /// Why.
    why: String,
}

/// The arguments of this boot that change nothing, as far as the drivers in charge tell.
pub(super) fn ignored(facts: &Snapshot) -> Vec<Ignored> {
    const NAMES: &[&str] = &[
        "amd_pstate",
        "intel_pstate",
        "intel_idle.max_cstate",
        "intel_idle.states_off",
        "intel_idle.table",
        "intel_idle.preferred_cstates",
        "processor.max_cstate",
        "idle",
        "nohlt",
        "cpuidle.governor",
        "cpufreq.default_governor",
    ];
    let Some(line) = facts.boot.cmdline.get() else { return Vec::new() };
    let of = |name: &&'static str| {
        let value = line.value(name);
        (value.is_some() || line.has(name)).then_some(())?;
        let why = why(facts, name, value.unwrap_or_default())?;
        Some(Ignored { name, word: value.map_or((*name).to_string(), |value| format!("{name}={value}")), why })
    };
    NAMES.iter().filter_map(of).collect()
}

/// Why an argument could change nothing on this machine, at any boot; none where it could, or where that is not known.
pub fn cannot_act(facts: &Snapshot, name: &str, value: &str) -> Option<String> {
    let (is_intel, is_x86) = (Where::Intel.holds(facts), Where::X86.holds(facts));
    let is_amd = facts.topology.processor().map(|p| p.is_amd());
    let foreign = || word!("it is for another maker's processors").to_string();
    match name {
        "amd_pstate" | "amd_prefcore" if is_amd == Some(false) => Some(foreign()),
        "intel_pstate" if is_intel == Some(false) => Some(foreign()),
        name if name.starts_with("intel_idle.") && is_intel == Some(false) => Some(foreign()),
        "intel_idle.preferred_cstates" => {
            let version = *facts.kernel.version.get()?;
            (version >= KernelVersion::new(7, 0, 0)).then(|| word!("kernel 7.0 and later do not have it").into())
        }
        "idle" | "processor.max_cstate" => (is_x86 == Some(false)).then(|| word!("only x86 reads it").into()),
        "nohlt" => (is_x86 == Some(true)).then(|| word!("x86 does not read it").into()),
        "cpuidle.governor" => {
            let all = facts.idle.governors_available.get()?;
            (!all.iter().any(|g| g == value)).then(|| say!("the kernel offers {}", all.join(", ")))
        }
        _ => None,
    }
}

/// Why an argument of this boot changes nothing; none where it does something, or where that is not known.
fn why(facts: &Snapshot, name: &str, value: &str) -> Option<String> {
    if let Some(why) = cannot_act(facts, name, value) {
        return Some(why);
    }
    let policies = &facts.freq.policies;
    let clock = policies.driver.uniform().map(String::as_str);
    let other_driver = |driver: &str| say!("the driver in charge is {driver}");
    match name {
        "amd_pstate" if value != "disable" => match clock? {
            driver if !driver.starts_with("amd-pstate") => Some(other_driver(driver)),
            driver => other_mode(
                value,
                &[("active", "amd-pstate-epp"), ("passive", "amd-pstate"), ("guided", "amd-pstate")],
                driver,
            ),
        },
        "intel_pstate" if value == "no_hwp" && clock.is_some_and(|d| d.starts_with("intel_")) => {
            let is_on = facts.msr.is_set("pm_enable", "hwp").unwrap_or(!policies.energy_preference.is_unknown());
            is_on.then(|| word!("firmware had switched HWP on, and then the kernel uses it").into())
        }
        "intel_pstate" if value == "disable" => clock.filter(|d| d.starts_with("intel_")).map(|driver| {
            say!(
                "{driver} is in charge all the same: firmware had switched HWP on, and then the kernel keeps the driver"
            )
        }),
        "intel_pstate" => match clock? {
            driver if !driver.starts_with("intel_") => Some(other_driver(driver)),
            driver => other_mode(value, &[("active", "intel_pstate"), ("passive", "intel_cpufreq")], driver),
        },
        // 0 is read before the driver hands over.
        "intel_idle.max_cstate" if value == "0" => None,
        "intel_idle.max_cstate" | "intel_idle.states_off" | "intel_idle.table" => {
            match facts.idle.driver.get().map(String::as_str)? {
                "intel_idle" if name == "intel_idle.max_cstate" => excludes_nothing(facts, value),
                "intel_idle" => None,
                driver => Some(other_driver(driver)),
            }
        }
        "processor.max_cstate" if facts.idle.driver.get().is_some_and(|driver| driver == "acpi_idle") => {
            excludes_nothing(facts, value)
        }
        "cpuidle.governor" => {
            let now = facts.idle.governor.get().filter(|now| *now != value)?;
            Some(say!("the governor in charge is {now}: it was changed since"))
        }
        "cpufreq.default_governor" => {
            let all = policies.governors_available.uniform()?;
            (!all.iter().any(|g| g == value)).then(|| say!("the kernel offers {}", all.join(", ")))
        }
        _ => None,
    }
}

/// Why a cap on idle states excludes none: all of them lie within it, or some lie beyond and are there all the same.
fn excludes_nothing(facts: &Snapshot, value: &str) -> Option<String> {
    let cap: u32 = value.parse().ok()?;
    let last = facts.idle.states.iter().max_by_key(|state| state.index)?;
    match last.index.cmp(&cap) {
        std::cmp::Ordering::Less => Some(say!("the table ends with state {}, {}", last.index, last.label())),
        // States that the cap removed are not listed in sysfs.
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(say!("state {}, {}, is there all the same", last.index, last.label())),
    }
}

fn is_amd_pstate_in_charge(facts: &Snapshot) -> bool {
    facts.freq.policies.driver.known().any(|(_, driver)| driver.starts_with("amd-pstate"))
}

/// Why a mode of a driver is not the one in force: it was changed since.
fn other_mode(value: &str, modes: &[(&str, &str)], driver: &str) -> Option<String> {
    let (_, wanted) = modes.iter().find(|(mode, _)| *mode == value)?;
    (*wanted != driver).then(|| say!("the driver in charge is {driver}: the mode was changed since (status)"))
}

impl Rule for ArgumentsIgnored {
    fn id(&self) -> &'static str {
        "rule.arguments-ignored"
    }
    fn question(&self) -> &'static str {
        word!("does an argument of the command line have no effect here?")
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let all = ignored(&evidence.facts).into_iter();
        all.map(|ignored| Assertion::ArgumentIgnored(ignored.name.into())).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        if let Some(gap) = evidence.facts.boot.cmdline.gap() {
            return Answer::gap(gap);
        }
        let found = ignored(&evidence.facts);
        let words: Vec<&str> = found.iter().map(|ignored| ignored.word.as_str()).collect();
        let title = match &found[..] {
            [] => return Answer::no(word!("no argument is known here to be without effect")),
            [one] => say!("{} has no effect: {}", one.word, one.why),
            _ => say!("Without effect on the command line: {}", words.join(", ")),
        };
        let cost = Cost::unknown(word!("what it was meant to do is not done; what that costs is not known"));
        let finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, cost);
        found
            .iter()
            .fold(finding, |finding, ignored| finding.on("/proc/cmdline", say!("{}: {}", ignored.word, ignored.why)))
            .remedy(
                match found.iter().any(|ignored| ignored.name == "amd_pstate") && !is_amd_pstate_in_charge(&evidence.facts) && evidence.facts.topology.processor().is_some_and(|p| p.is_amd()) {
                    true => word!(
                        "dmesg says why amd_pstate did not load: CPPC off in the BIOS, a kernel built without it, or a processor \
                         that it does not know. Mend that, or take it off the command line."
                    ),
                    false => {
                        word!("Find out what it was meant to do, and take it off the command line or set it where it acts.")
                    }
                },
                word!("A reboot."),
                word!("wakewatt inspect boot idle freq after the reboot"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, policy};
    use super::*;

    #[test]
    fn arguments_that_nobody_reads() {
        let host = |vendor: &str, driver: &str, line: &str| {
            let cpu = |n: u32| format!("processor : {n}\nvendor_id : {vendor}\ncpu family : 6\nmodel : 85\n");
            let clock = policy(&[("scaling_driver", driver)]);
            ask(
                &ArgumentsIgnored,
                &format!("{clock}//- /proc/cpuinfo\n{}{}//- /proc/cmdline\n{line}\n", cpu(0), cpu(1)),
            )
        };
        let (intel, amd) = ("GenuineIntel", "AuthenticAMD");
        assert_eq!(
            host(amd, "acpi-cpufreq", "ro amd_pstate=active"),
            "yes risk unknown: amd_pstate=active has no effect: the driver in charge is acpi-cpufreq"
        );
        assert!(host(amd, "amd-pstate-epp", "amd_pstate=active").starts_with("no"));
        assert!(host(amd, "acpi-cpufreq", "amd_pstate=disable").starts_with("no"));
        assert!(host(intel, "intel_pstate", "intel_pstate=disable").contains("firmware had switched hwp on"));
        assert!(host(intel, "acpi-cpufreq", "intel_pstate=disable").starts_with("no"));
        assert!(host(amd, "acpi-cpufreq", "intel_pstate=active").contains("another maker's"));
        assert!(host(intel, "intel_pstate", "nohlt amd_pstate=passive").contains("amd_pstate=passive, nohlt"));
        let acpi = icx().replace("intel_idle\n", "acpi_idle\n") + "//- /proc/cmdline\nintel_idle.max_cstate=1\n";
        assert!(ask(&ArgumentsIgnored, &acpi).ends_with("the driver in charge is acpi_idle"));
        assert!(ask(&ArgumentsIgnored, &acpi.replace("cstate=1", "cstate=0")).starts_with("no"));
        assert!(host(amd, "amd-pstate-epp", "amd_pstate=passive").contains("the mode was changed since"));
        assert!(host(amd, "amd-pstate", "amd_pstate=guided").starts_with("no"));
        assert!(host(intel, "intel_pstate", "intel_pstate=passive").contains("the mode was changed since"));
        let hwp = "//- msr 0x770 cpu0 1\n//- msr 0x770 cpu1 1\n";
        let no_hwp = policy(&[("scaling_driver", "intel_pstate")]) + "//- /proc/cmdline\nintel_pstate=no_hwp\n";
        assert!(ask(&ArgumentsIgnored, &no_hwp).starts_with("no"));
        assert!(ask(&ArgumentsIgnored, &(no_hwp + hwp)).contains("firmware had switched hwp on"));
        let cap =
            |n: u32| ask(&ArgumentsIgnored, &(icx() + &format!("//- /proc/cmdline\nintel_idle.max_cstate={n}\n")));
        assert!(cap(9).ends_with("the table ends with state 3, c6"), "{}", cap(9));
        assert!(cap(3).starts_with("no") && cap(2).ends_with("state 3, c6, is there all the same"));
        assert!(ask(&ArgumentsIgnored, "").starts_with("cannot tell"));
    }
}
