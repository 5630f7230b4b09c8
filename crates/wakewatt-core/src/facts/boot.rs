//! What the machine was booted with: the command line, the parameters of the modules that matter, a few sysctls.
//!
//! `/proc/cmdline` is what the loader passed; a parameter of the right name may still be ignored (a typo, a built-in
//! that read it differently), so the module's own `/sys/module/*/parameters` are read beside it: that is the verdict.
//! The kernel takes `-` and `_` in names as equal, the last of two wins, double quotes keep blanks together, and
//! everything after `--` belongs to init (Documentation/admin-guide/kernel-parameters.rst).

use super::{Cpus, Domain};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::word;

/// Modules whose parameters decide about idle, frequency, power of links and disks, or tracing.
pub const MODULES: &[&str] = &[
    "intel_idle",
    "processor",
    "intel_pstate",
    "amd_pstate",
    "acpi_cpufreq",
    "haltpoll",
    "cpuidle",
    "cpuidle_haltpoll",
    "cpufreq",
    "nvme_core",
    "nvme",
    "pcie_aspm",
    "intel_uncore_frequency",
    "intel_rapl_msr",
    "kvm",
    "kvm_intel",
    "msr",
    "workqueue",
    "clocksource",
];

/// Of modules with a long list, only the parameters that begin so.
const ONLY: &[(&str, &str)] = &[("kvm", "halt_poll"), ("workqueue", "power_efficient")];

/// Sysctls under /proc/sys/kernel besides all `sched_*`.
const SYSCTLS: &[&str] = &["timer_migration", "nmi_watchdog", "watchdog", "watchdog_cpumask", "hung_task_timeout_secs"];

/// The kernel command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cmdline {
    /// In the order given.
    pub tokens: Vec<BootToken>,
}

/// One word of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootToken {
    /// Before the `=`, as written.
    pub key: String,
    /// After it; none for a bare word.
    pub value: Option<String>,
}

impl Cmdline {
    /// Splits a command line as the kernel does.
    pub fn parse(text: &str) -> Cmdline {
        let mut tokens = Vec::new();
        let (mut word, mut is_quoted, mut is_started) = (String::new(), false, false);
        for c in text.chars().chain([' ']) {
            match c {
                '"' => (is_quoted, is_started) = (!is_quoted, true),
                c if c.is_whitespace() && !is_quoted => {
                    if is_started && word == "--" {
                        return Cmdline { tokens };
                    }
                    if is_started && !word.is_empty() {
                        tokens.push(BootToken::from_word(&word));
                    }
                    word.clear();
                    is_started = false;
                }
                c => {
                    word.push(c);
                    is_started = true;
                }
            }
        }
        if is_quoted && !word.trim().is_empty() {
            tokens.push(BootToken::from_word(word.trim_end()));
        }
        Cmdline { tokens }
    }

    /// The value of the last token of that name that has one.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.tokens.iter().rev().find(|t| is_same_name(&t.key, key)).and_then(|t| t.value.as_deref())
    }

    /// Is the name there, with or without a value?
    pub fn has(&self, key: &str) -> bool {
        self.tokens.iter().any(|t| is_same_name(&t.key, key))
    }
}

impl BootToken {
    fn from_word(word: &str) -> BootToken {
        match word.split_once('=') {
            Some((key, value)) => BootToken { key: key.into(), value: Some(value.into()) },
            None => BootToken { key: word.into(), value: None },
        }
    }
}

/// The kernel's parameqn: `-` and `_` are one character.
pub fn is_same_name(a: &str, b: &str) -> bool {
    let plain = |c: char| if c == '-' { '_' } else { c };
    a.chars().map(plain).eq(b.chars().map(plain))
}

/// One module parameter or sysctl.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// The module, or `sysctl`.
    pub module: String,
    /// Name of the parameter.
    pub name: String,
    /// As the kernel prints it.
    pub value: Fact<String>,
}

/// The boot's choices.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Boot {
    /// What the loader passed.
    pub cmdline: Fact<Cmdline>,
    /// The parameters of the modules that matter.
    pub parameters: Vec<Setting>,
    /// Scheduler, timer and watchdog sysctls.
    pub sysctls: Vec<Setting>,
    /// CPUs kept from the scheduler's load balancing (isolcpus).
    pub isolated: Fact<CpuSet>,
    /// CPUs whose tick stops while one task runs.
    pub nohz_full: Fact<CpuSet>,
}

impl Boot {
    /// The value of a module parameter, if known.
    pub fn parameter(&self, module: &str, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|p| p.module == module && p.name == name)?;
        found.value.get().map(String::as_str)
    }

    /// The value of a sysctl under /proc/sys/kernel, if known.
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.iter().find(|p| p.name == name)?.value.get().map(String::as_str)
    }

    /// The value of a command line parameter, if the line is known and has it.
    pub fn argument(&self, key: &str) -> Option<&str> {
        self.cmdline.get()?.value(key)
    }

    /// Is the tick kept from stopping? The kernel reads a truth value (kstrtobool).
    pub fn is_nohz_off(&self) -> bool {
        self.argument("nohz").is_some_and(|value| {
            value.starts_with(['n', 'N', '0', 'f', 'F']) || value.to_ascii_lowercase().starts_with("of")
        })
    }
}

impl Domain for Boot {
    const TITLE: &'static str = "Boot parameters";
    const HELP: &'static str = "kernel command line, module parameters, isolated CPUs, scheduler sysctls";

    fn read(src: &dyn Source, _: &Cpus) -> Boot {
        let as_is = |text: &str| Ok(text.trim().to_string());
        let mut parameters = Vec::new();
        for module in MODULES {
            let folder = format!("/sys/module/{module}/parameters");
            let front = ONLY.iter().find(|(long, _)| long == module).map_or("", |(_, front)| front);
            for name in src.list(&folder).unwrap_or_default().into_iter().filter(|n| n.starts_with(front)) {
                let value = fact(src, &format!("{folder}/{name}"), as_is);
                parameters.push(Setting { module: (*module).into(), name, value });
            }
        }
        let listed = src.list("/proc/sys/kernel").unwrap_or_default();
        let names = listed.iter().map(String::as_str).filter(|n| n.starts_with("sched_") && *n != "sched_domain");
        let sysctl = |name: &str| Setting {
            module: "sysctl".into(),
            name: name.into(),
            value: fact(src, &format!("/proc/sys/kernel/{name}"), as_is),
        };
        let cpus = |name: &str| {
            // With nohz_full built in and not used, the kernel prints "(null)".
            let list = |text: &str| if text.trim() == "(null)" { Ok(CpuSet::new()) } else { parse::cpus(text) };
            fact(src, &format!("{}/{name}", super::cpus::ROOT), list)
        };
        Boot {
            cmdline: fact(src, "/proc/cmdline", |text| Ok(Cmdline::parse(text))),
            parameters,
            sysctls: names.chain(SYSCTLS.iter().copied()).map(sysctl).collect(),
            isolated: cpus("isolated"),
            nohz_full: cpus("nohz_full"),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("boot.cmdline", word!("command line"), &self.cmdline, |v| {
            let word = |t: &BootToken| match &t.value {
                Some(value) if value.contains(' ') => format!("{}=\"{value}\"", t.key),
                Some(value) => format!("{}={value}", t.key),
                None => t.key.clone(),
            };
            Cell::Text(v.tokens.iter().map(word).collect::<Vec<_>>().join(" "))
        });
        let cpus = |v: &CpuSet| Cell::Text(if v.is_empty() { "none".into() } else { v.to_string() });
        sheet.fact("boot.isolated", word!("isolated CPUs"), &self.isolated, cpus);
        sheet.fact("boot.nohz_full", word!("tickless CPUs (nohz_full)"), &self.nohz_full, cpus);
        for setting in self.parameters.iter().chain(&self.sysctls) {
            let name = format!("{}.{}", setting.module, setting.name);
            sheet.fact(format!("boot.{name}"), name, &setting.value, |v| {
                Cell::text(if v.is_empty() { "(empty)" } else { v })
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn the_command_line_is_split_as_the_kernel_does() {
        let line = Cmdline::parse(
            "quiet  intel_idle.max_cstate=9 intel-idle.max_cstate=1 dyndbg=\"file a +p\" \"x=a b\" idle= -- idle=poll\n",
        );
        assert_eq!(line.value("intel_idle.max_cstate"), Some("1"), "the last wins, and - is _");
        assert_eq!((line.value("dyndbg"), line.value("x")), (Some("file a +p"), Some("a b")));
        assert!(line.has("quiet") && !line.has("poll") && line.value("quiet").is_none());
        assert_eq!(line.value("idle"), Some(""), "what follows -- is init's");
    }

    #[test]
    fn no_text_breaks_it() {
        for text in ["", "\"", "a=\"b", "=", "\"\"", "--", "a--b \u{0}"] {
            let _ = Cmdline::parse(text);
        }
        assert_eq!(Cmdline::parse("a=\"b c").value("a"), Some("b c"));
        assert!(Cmdline::parse("").tokens.is_empty());
    }

    #[test]
    fn reads_parameters_and_null_lists() {
        let tree = Tree::from_text(
            "//- /sys/module/intel_idle/parameters/max_cstate\n1\n//- /sys/module/processor/parameters/max_cstate!denied\n
             //- /sys/devices/system/cpu/nohz_full\n(null)\n//- /sys/devices/system/cpu/isolated\n\n
             //- /proc/sys/kernel/sched_autogroup_enabled\n1\n",
        );
        let boot = Boot::read(&tree, &Cpus::default());
        assert_eq!(boot.parameter("intel_idle", "max_cstate"), Some("1"));
        assert_eq!(boot.parameter("processor", "max_cstate"), None);
        assert_eq!(boot.nohz_full.get(), Some(&CpuSet::new()));
        assert_eq!(boot.sysctl("sched_autogroup_enabled"), Some("1"));
        assert!(boot.cmdline.gap().is_some());
    }
}
