//! /proc/cpuinfo, parsed once: which processor, which flags, and the ids that x86 also keeps here.
//!
//! One block per running CPU, about 2 kB each on x86: a megabyte on a 512-CPU host, of which every block repeats the
//! one before but for the ids. x86 blocks have `vendor_id`, `cpu family`, `flags`; Arm's have `CPU implementer`,
//! `CPU part`, `Features`. The `cpu MHz` line is left alone: it is a guess about an idle CPU.

use crate::fact::{Fact, Gap, PerCpu};
use crate::source::{ErrorKind, ReadError, Source};
use crate::units::Cpu;
use serde::Serialize;

/// Stands at the end of a list of flags that is cut short, or may be: what other tools printed has been through terminals of eighty
/// columns. What is missing in such a list may be there all the same.
pub const CUT: &str = "…";
/// What the kernel's file never lacks, where a text told the rest of it.
pub(super) const UNTOLD: &str = "no imported text says it";

/// The file.
pub const PATH: &str = "/proc/cpuinfo";

/// The flags that matter for power and latency, and why.
pub const FLAGS: &[(&str, &str)] = &[
    ("hypervisor", "we are a guest"),
    ("monitor", "MWAIT: idle states deeper than HLT"),
    ("mwaitx", "AMD's timed MWAIT"),
    ("waitpkg", "TPAUSE and UMWAIT from user space"),
    ("arat", "the local timer runs in deep idle"),
    ("constant_tsc", "the TSC does not follow the frequency"),
    ("nonstop_tsc", "the TSC runs in deep idle"),
    ("tsc_known_freq", "the TSC frequency is told, not measured"),
    ("tsc_deadline_timer", "the local timer is set in TSC time"),
    ("aperfmperf", "effective frequency can be counted"),
    ("hwp", "the processor picks its own frequency"),
    ("hwp_epp", "and takes a preference"),
    ("hwp_notify", "and reports changes"),
    ("hwp_pkg_req", "and takes package-wide limits"),
    ("epb", "energy performance bias"),
    ("ida", "Intel turbo"),
    ("cpb", "AMD boost"),
    ("hw_pstate", "AMD P-states"),
    ("cppc", "AMD collaborative frequency control"),
    ("amd_hfi", "AMD hints on core ranking"),
    ("hfi", "Intel hints on core ranking"),
    ("ibrs", "IBRS: the idle driver may toggle it around deep states"),
    ("ibrs_enhanced", "no toggling needed"),
    ("evtstrm", "Arm: WFE wakes at least every 100 us (the timer's event stream)"),
    ("wfxt", "Arm: WFE and WFI with a deadline"),
    ("dtherm", "digital temperature sensor"),
    ("pts", "package temperature sensor"),
];

/// What kind of processor; a field is none where the file has no such line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Processor {
    /// GenuineIntel, AuthenticAMD, HygonGenuine … (x86).
    pub vendor: Option<String>,
    /// Family as CPUID gives it; x86 only.
    pub family: Option<u64>,
    /// Model number as CPUID gives it; x86 only.
    pub model: Option<u64>,
    /// Stepping (revision of the chip); x86 only.
    pub stepping: Option<u64>,
    /// Revision of the microcode that is loaded.
    pub microcode: Option<u64>,
    /// The name it is sold under.
    pub name: Option<String>,
    /// Arm: who designed it (0x41 is Arm Ltd).
    pub implementer: Option<u64>,
    /// Which core design, by its maker's number; Arm only.
    pub part: Option<u64>,
    /// Arm: revision within the part.
    pub revision: Option<u64>,
}

impl Processor {
    /// Intel?
    pub fn is_intel(&self) -> bool {
        self.vendor.as_deref() == Some("GenuineIntel")
    }
    /// x86? Arm's have an implementer, and mainframes a vendor of their own.
    pub fn is_x86(&self) -> bool {
        const VENDORS: &[&str] = &["GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "Shanghai"];
        self.family.is_some() || self.vendor.as_deref().is_some_and(|vendor| VENDORS.contains(&vendor))
    }
    /// AMD, or Hygon, which follows it?
    pub fn is_amd(&self) -> bool {
        matches!(self.vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
    }
}

impl std::fmt::Display for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_deref().or(self.vendor.as_deref());
        let hex = |n: Option<u64>| n.map_or("?".to_string(), |n| format!("0x{n:x}"));
        match (name, self.family, self.implementer) {
            (Some(name), Some(family), _) => {
                write!(f, "{name} (family {family} model {} stepping {})", hex(self.model), hex(self.stepping))
            }
            (name, _, Some(implementer)) => {
                write!(f, "{} implementer 0x{implementer:x} part {}", name.unwrap_or("Arm"), hex(self.part))
            }
            (name, ..) => f.write_str(name.unwrap_or("unknown")),
        }
    }
}

/// What the file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuInfo {
    pub(crate) processor: PerCpu<Processor>,
    pub(super) flags: PerCpu<Vec<String>>,
    pub(super) package_id: PerCpu<u32>,
    pub(super) core_id: PerCpu<u32>,
}

/// The lines of one block that are looked at.
#[derive(Clone, Copy, Default, PartialEq)]
struct Block<'a> {
    /// In the order of `Processor`'s fields.
    fields: [Option<&'a str>; 9],
    flags: Option<&'a str>,
    package: Option<&'a str>,
    core: Option<&'a str>,
}

/// Reads and parses it.
pub(crate) fn read(src: &dyn Source) -> CpuInfo {
    match src.read(PATH) {
        Ok(bytes) => parse(&String::from_utf8_lossy(&bytes), src.is_imported()),
        Err(error) => {
            let gap = Gap::from_read(PATH, &error);
            CpuInfo { processor: PerCpu::group([(0, Fact::Gap(gap))]), ..CpuInfo::default() }
        }
    }
}

fn parse(text: &str, is_imported: bool) -> CpuInfo {
    let mut blocks: Vec<(Cpu, Block)> = Vec::new();
    // Some architectures put what all CPUs share before the first or after the last block; it fills what blocks lack.
    let mut block: Option<(Cpu, Block)> = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim_end(), value.trim());
        if key == "processor" {
            blocks.extend(block.take());
            block = value.parse().ok().filter(|cpu| *cpu < 1 << 16).map(|cpu| (cpu, Block::default()));
            continue;
        }
        let Some((_, block)) = &mut block else { continue };
        let slot = match key {
            "vendor_id" => &mut block.fields[0],
            "cpu family" => &mut block.fields[1],
            "model" => &mut block.fields[2],
            "stepping" => &mut block.fields[3],
            "microcode" => &mut block.fields[4],
            "model name" => &mut block.fields[5],
            "CPU implementer" => &mut block.fields[6],
            "CPU part" => &mut block.fields[7],
            "CPU revision" => &mut block.fields[8],
            "flags" | "Features" => &mut block.flags,
            "physical id" => &mut block.package,
            "core id" => &mut block.core,
            _ => continue,
        };
        *slot = Some(value);
    }
    blocks.extend(block);
    let missing = |what: &str| match is_imported {
        true => Gap::from_read(PATH, &ReadError::new(ErrorKind::NotRecorded, UNTOLD)),
        false => Gap::malformed(PATH, format!("no line \"{what}\"")),
    };
    let number = |text: Option<&str>, what: &str| match text.and_then(|text| text.parse().ok()) {
        Some(n) => Fact::Known(n),
        None => Fact::Gap(missing(what)),
    };
    CpuInfo {
        processor: grouped(&blocks, |block| block.fields, |fields| Fact::Known(processor(fields))),
        flags: grouped(
            &blocks,
            |block| block.flags,
            |flags| flags.map_or_else(|| Fact::Gap(missing("flags")), |flags| Fact::Known(notable(flags))),
        ),
        package_id: grouped(&blocks, |block| block.package, |text| number(*text, "physical id")),
        core_id: grouped(&blocks, |block| block.core, |text| number(*text, "core id")),
    }
}

/// Converts each run of equal text once.
fn grouped<'a, K: PartialEq, T: Clone + PartialEq>(
    blocks: &[(Cpu, Block<'a>)],
    key: impl Fn(&Block<'a>) -> K,
    convert: impl Fn(&K) -> Fact<T>,
) -> PerCpu<T> {
    let mut last: Option<(K, Fact<T>)> = None;
    PerCpu::group(blocks.iter().map(|(cpu, block)| {
        let now = key(block);
        let fact = match last.take() {
            Some((before, fact)) if before == now => fact,
            _ => convert(&now),
        };
        last = Some((now, fact.clone()));
        (*cpu, fact)
    }))
}

fn processor(fields: &[Option<&str>; 9]) -> Processor {
    let number = |at: usize| {
        let text = fields[at]?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    };
    let word = |at: usize| fields[at].filter(|text| !text.is_empty()).map(str::to_string);
    Processor {
        vendor: word(0),
        family: number(1),
        model: number(2),
        stepping: number(3),
        microcode: number(4),
        name: word(5),
        implementer: number(6),
        part: number(7),
        revision: number(8),
    }
}

/// The flags of the table above, in its order, and whether there may be more.
fn notable(flags: &str) -> Vec<String> {
    let have: std::collections::HashSet<&str> = flags.split_whitespace().collect();
    let known = FLAGS.iter().map(|(flag, _)| *flag).chain([CUT]);
    known.filter(|flag| have.contains(flag)).map(str::to_string).collect()
}

/// Is it in this list? None where it is not and the list may be cut short before it.
pub(super) fn is_among<'a>(flag: &str, mut flags: impl Iterator<Item = &'a str> + Clone) -> Option<bool> {
    match flags.clone().any(|f| f == flag) {
        true => Some(true),
        false => (!flags.any(|f| f == CUT)).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_and_arm_blocks() {
        let x86 = parse(
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: XEON 8568Y+\n\
             stepping\t: 2\nmicrocode\t: 0x210002a9\nphysical id\t: 1\ncore id\t\t: 7\nflags\t\t: fpu arat hwp mmx monitor\n\n",
            false,
        );
        let processor = x86.processor.uniform().unwrap();
        assert_eq!(processor.to_string(), "XEON 8568Y+ (family 6 model 0xcf stepping 0x2)");
        assert_eq!(processor.microcode, Some(0x2100_02a9));
        assert_eq!(x86.flags.uniform().unwrap(), &["monitor", "arat", "hwp"]);
        assert_eq!((x86.package_id.uniform(), x86.core_id.uniform()), (Some(&1), Some(&7)));

        let arm = parse(
            "processor\t: 3\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\nCPU revision\t: 1\n",
            false,
        );
        assert_eq!(arm.processor.uniform().unwrap().to_string(), "Arm implementer 0x41 part 0xd40");
        assert_eq!(arm.flags.uniform().unwrap(), &["evtstrm"]);
        assert!(arm.package_id.is_unknown());
    }

    #[test]
    fn what_a_cut_list_lacks_may_be_there() {
        let info = parse("processor : 0\nflags : fpu hwp …\n", true);
        let flags = info.flags.uniform().unwrap();
        let has = |flag| is_among(flag, flags.iter().map(String::as_str));
        assert_eq!((has("hwp"), has("hwp_epp")), (Some(true), None));
        let missing = info.package_id.gaps().next().unwrap().1;
        assert_eq!((missing.kind, missing.reason.as_str()), (crate::fact::GapKind::NotRecorded, UNTOLD));
    }

    #[test]
    fn nonsense_is_nothing() {
        let info = parse("processor : 4294967295\nflags : hwp\nprocessor\u{fffd}: 1\n:::\nprocessor: x\n", false);
        assert!(info.processor.is_unknown() && info.flags.is_unknown());
    }
}
