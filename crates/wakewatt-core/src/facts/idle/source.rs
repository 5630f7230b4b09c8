//! Where an idle table comes from, and what its numbers are worth.
//!
//! Four authors write the same files. intel_idle's own tables were measured by the vendor and carry the hardware's names. On
//! processors that it has no table for, it takes the firmware's `_CST` and calls the states `C1_ACPI`, `C2_ACPI`: the names
//! are ACPI's types, not the hardware's, and `_CST` has no target residency, so the kernel multiplies the latency. acpi_idle
//! does the same everywhere else (AMD). On Arm servers acpi_idle takes the firmware's `_LPI` (states LPI-0, LPI-1 …), which has
//! the board's own wake-up latency and minimum residency for each. psci_idle reads `arm,idle-state` from the device tree. A residency of exactly 2 or 3
//! times the latency in every sleeping state is therefore nobody's knowledge, and counters that were judged by it (`above`,
//! `below`) prove nothing. Under `_ACPI` and acpi_idle the description keeps the MWAIT hint, whose bits 7 to 4 name the
//! hardware's state (Intel SDM volume 2, MWAIT). Sources: admin-guide/pm/intel_idle.rst, ACPI 6.5 section 8.4.1 (_CST), Linux
//! devicetree bindings idle-states.yaml; that firmware numbers are placeholders: the recorded EPYCs claim 800, 400 and 100us
//! for the same kind of state.

use super::{Idle, IdleState, TableRow};
use crate::source::{ErrorKind, Source};
use serde::Serialize;
use wakewatt_words::{say, word};

/// Who wrote the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The driver's own table for this processor.
    Native,
    /// The firmware's _CST, through intel_idle: names end in _ACPI.
    FirmwareInIntelIdle,
    /// The firmware's _CST, through acpi_idle.
    Firmware,
    /// The firmware's _LPI, through acpi_idle: names begin with LPI.
    FirmwareLpi,
    /// The device tree, through psci_idle and its like.
    DeviceTree,
    /// A guest's haltpoll: one made-up microsecond.
    Guest,
    /// Who booted it, at least in part: intel_idle.table= on the command line (Linux 7.0), as `measure idle` proposes it.
    BootParameter,
}

/// How far the numbers can be believed before anyone has measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Measured by who made the processor.
    High,
    /// Written for this board by who made it; often copied.
    Medium,
    /// Made up by firmware or driver, for want of a measurement.
    Low,
}

/// The source of a machine's idle tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableSource {
    /// Who wrote the table.
    pub author: Author,
    /// What its latencies and residencies are worth.
    pub trust: Trust,
    /// Target residencies are this many times the latency in every sleeping state: computed, not known.
    pub residency_factor: Option<u64>,
}

impl TableSource {
    /// For people: `firmware (_CST) through acpi_idle; residencies are 2 times the latency`.
    pub fn words(&self) -> String {
        let who = match self.author {
            Author::Native => word!("the driver's own table"),
            Author::FirmwareInIntelIdle => word!("firmware (_CST) through intel_idle"),
            Author::Firmware => word!("firmware (_CST) through acpi_idle"),
            Author::FirmwareLpi => word!("firmware (_LPI) through acpi_idle"),
            Author::DeviceTree => word!("device tree"),
            Author::Guest => word!("the guest driver, a placeholder"),
            Author::BootParameter => word!("the driver's own table with what intel_idle.table= gave at boot"),
        };
        match self.residency_factor {
            Some(n) => say!("{who}; target residencies are computed: {n} times the latency"),
            None => who.into(),
        }
    }
    /// Numbers that a comparison or a verdict may stand on.
    pub fn is_believable(&self) -> bool {
        self.trust != Trust::Low
    }
}

impl TableSource {
    /// Where the idle tables come from; none where there is none, or where the driver is not known.
    pub(super) fn of(idle: &Idle, is_given_at_boot: bool) -> Option<TableSource> {
        let tables = idle.tables();
        let sleeps = || tables.iter().flat_map(|(_, rows)| rows).filter(|row| !row.is_polling());
        sleeps().next()?;
        let is_acpi_named = sleeps().any(|row| row.name.ends_with("_ACPI"));
        let (author, trust) = match idle.driver.get()?.as_str() {
            "intel_idle" if is_given_at_boot => (Author::BootParameter, Trust::Medium),
            "intel_idle" if is_acpi_named => (Author::FirmwareInIntelIdle, Trust::Low),
            "intel_idle" => (Author::Native, Trust::High),
            "acpi_idle" if sleeps().any(|row| row.name.starts_with("LPI")) => (Author::FirmwareLpi, Trust::Medium),
            "acpi_idle" => (Author::Firmware, Trust::Low),
            "haltpoll" => (Author::Guest, Trust::Low),
            driver if driver.contains("psci") || driver.starts_with("arm") || driver.contains("riscv") => {
                (Author::DeviceTree, Trust::Medium)
            }
            _ => return None,
        };
        let is_computed = matches!(author, Author::Firmware | Author::FirmwareInIntelIdle);
        Some(TableSource { author, trust, residency_factor: factor(sleeps()).filter(|_| is_computed) })
    }
}

/// Did the command line give latencies of its own? The kernel keeps what it was given; where only root may read that, the
/// command line tells.
pub(super) fn is_given_at_boot(src: &dyn Source) -> bool {
    const PARAMETERS: &str = "/sys/module/intel_idle/parameters";
    if !src.list(PARAMETERS).is_ok_and(|names| names.iter().any(|name| name == "table")) {
        return false;
    }
    match src.read(&format!("{PARAMETERS}/table")) {
        Ok(text) => !text.trim_ascii().is_empty(),
        Err(e) if e.kind == ErrorKind::Denied => src.read("/proc/cmdline").is_ok_and(|line| {
            String::from_utf8_lossy(&line).split_ascii_whitespace().any(|word| word.starts_with("intel_idle.table="))
        }),
        Err(_) => false,
    }
}

/// The one factor, 2 or 3, between latency and residency of all sleeping states of more than a microsecond.
fn factor<'a>(rows: impl Iterator<Item = &'a TableRow>) -> Option<u64> {
    let mut all = None;
    for row in rows {
        let (latency, residency) = (row.exit_latency_ns?, row.target_residency_ns?);
        // C1 claims 1us, which the kernel's table has with either residency.
        if latency <= 1_000 {
            continue;
        }
        let n = [2, 3].into_iter().find(|n| latency.checked_mul(*n) == Some(residency))?;
        if all.is_some_and(|known| known != n) {
            return None;
        }
        all = Some(n);
    }
    all
}

impl IdleState {
    /// The hardware's name of the state by its MWAIT hint, where the description has one that is the same on all of Intel's
    /// processors since Goldmont and Nehalem: `MWAIT 0x60` is C10. AMD gives 0 for C1.
    pub fn hardware_name(&self) -> Option<&'static str> {
        let (_, text) = self.description.known().next()?;
        let hint = text.split_once("MWAIT 0x")?.1.split_whitespace().next()?;
        match u64::from_str_radix(hint, 16).ok()? {
            0x00 => Some("C1"),
            0x01 => Some("C1E"),
            0x20 | 0x21 => Some("C6"),
            0x30..=0x33 => Some("C7"),
            0x40 => Some("C8"),
            0x50 => Some("C9"),
            0x60 => Some("C10"),
            // 0x10 is C3, and C6 on Xeon Phi.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Cpus, Domain};
    use crate::source::Tree;

    fn read(driver: &str, states: &[(&str, &str, u64, u64)]) -> Idle {
        let cpu = "/sys/devices/system/cpu";
        let mut text =
            format!("//- {cpu}/online\n0\n//- {cpu}/present\n0\n//- {cpu}/cpuidle/current_driver\n{driver}\n");
        for (index, (name, says, latency, residency)) in states.iter().enumerate() {
            let at = format!("//- {cpu}/cpu0/cpuidle/state{index}");
            text += &format!(
                "{at}/name\n{name}\n{at}/desc\n{says}\n{at}/latency\n{latency}\n{at}/residency\n{residency}\n"
            );
        }
        let tree = Tree::from_text(&text);
        Idle::read(&tree, &Cpus::read(&tree))
    }

    fn source(driver: &str, states: &[(&str, &str, u64, u64)]) -> Option<TableSource> {
        read(driver, states).source
    }

    #[test]
    fn what_the_command_line_gave_is_no_native_table() {
        let cpu = "/sys/devices/system/cpu";
        let at = format!("//- {cpu}/cpu0/cpuidle/state0");
        let text = format!(
            "//- {cpu}/online\n0\n//- {cpu}/present\n0\n//- {cpu}/cpuidle/current_driver\nintel_idle\n{at}/name\nC6\n{at}/latency\n65\n"
        );
        let author = |more: &str| {
            let tree = Tree::from_text(&(text.clone() + more));
            Idle::read(&tree, &Cpus::read(&tree)).source.unwrap().author
        };
        let file = "//- /sys/module/intel_idle/parameters/table";
        assert_eq!(author(""), Author::Native);
        assert_eq!(author(&format!("{file}\nC6:65:800\n")), Author::BootParameter);
        assert_eq!(
            author(&format!("{file}\n\n//- /proc/cmdline\nintel_idle.table=C6:65\n")),
            Author::Native,
            "the kernel dropped it"
        );
        assert_eq!(
            author(&format!("{file}!denied\n//- /proc/cmdline\nro intel_idle.table=C6:65:800\n")),
            Author::BootParameter
        );
    }

    #[test]
    fn who_wrote_it_and_what_was_multiplied() {
        let rpl = [
            ("POLL", "", 0, 0),
            ("C1_ACPI", "ACPI FFH MWAIT 0x0", 1, 1),
            ("C3_ACPI", "ACPI FFH MWAIT 0x60", 1048, 3144),
        ];
        let found = source("intel_idle", &rpl).unwrap();
        assert_eq!((found.author, found.residency_factor), (Author::FirmwareInIntelIdle, Some(3)));
        let names: Vec<_> = read("intel_idle", &rpl).states.iter().map(IdleState::hardware_name).collect();
        assert_eq!(names, [None, Some("C1"), Some("C10")]);
        let epyc = source("acpi_idle", &[("POLL", "", 0, 0), ("C1", "", 1, 2), ("C2", "ACPI IOPORT 0x414", 800, 1600)])
            .unwrap();
        assert_eq!((epyc.author, epyc.trust, epyc.residency_factor), (Author::Firmware, Trust::Low, Some(2)));
        let skx = source("intel_idle", &[("POLL", "", 0, 0), ("C1E", "", 10, 20), ("C6", "", 133, 600)]).unwrap();
        assert_eq!(
            (skx.trust, skx.residency_factor),
            (Trust::High, None),
            "C1E at twice its latency is Intel's own number"
        );
        let altra = source("acpi_idle", &[("LPI-0", "WFI", 1, 1), ("LPI-1", "Core power down", 150, 500)]).unwrap();
        assert_eq!((altra.author, altra.trust, altra.residency_factor), (Author::FirmwareLpi, Trust::Medium, None));
        assert_eq!(source("psci_idle", &[("WFI", "", 1, 1)]).unwrap().author, Author::DeviceTree);
        assert_eq!((source("intel_idle", &[("POLL", "", 0, 0)]), source("other", &rpl)), (None, None));
    }
}
