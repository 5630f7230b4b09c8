//! Model-specific registers: what firmware and hardware really do, where sysfs shows only the kernel's wish.
//!
//! **Reading disturbs.** On a live machine an MSR read is an interrupt that wakes the CPU it is read on, so a live
//! source is asked on the first CPU of each package only, and what is per core is a sample of one; a recording is read
//! whole. Opening `/dev/cpu/N/msr` needs CAP_SYS_RAWIO in the first user namespace: then every register is a gap, and
//! the sheet shows that once. [`registers::REGISTERS`] says which are read; the vendor is taken from the CPU's
//! modalias, since asking for the other vendor's registers would only give errors. In a guest nothing is taken from them: what
//! a hypervisor emulates says nothing of the hardware.

pub mod package_limit;
pub mod registers;

use super::{Cpus, Domain, cpuinfo, cpus::ROOT, virt};
use crate::fact::{Fact, Gap, GapKind, PerCpu, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, ReadError, Source};
use crate::units::Cpu;
use package_limit::PackageLimit;
use registers::{Form, REGISTERS, Register, Vendor, register};
use serde::Serialize;
use std::collections::BTreeSet;
use wakewatt_words::{told, word};

/// Why no register of a guest counts.
const EMULATED: &str = "a guest: a hypervisor's emulation says nothing of the hardware";

/// The registers that were read.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Msr {
    /// In the order of the table.
    pub registers: Vec<Reading>,
    /// Only the first CPU of each package was read.
    pub is_sample: bool,
    /// The deepest package C-state that firmware allows; empty on models whose code is not known here.
    pub package_limit: PerCpu<PackageLimit>,
}

/// One register on the CPUs it was read on.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// Its id in the table.
    pub id: String,
    /// The number given to RDMSR.
    pub address: u32,
    /// Raw values of the register, by CPU.
    pub value: PerCpu<u64>,
}

/// Package power limits in force, in watts' millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerLimits {
    /// Long-term limit (PL1), in microwatts.
    pub pl1_uw: u64,
    /// Is it in force?
    pub is_pl1_on: bool,
    /// Short-term limit (PL2), in microwatts.
    pub pl2_uw: u64,
    /// Is it in force?
    pub is_pl2_on: bool,
    /// May the operating system not change them?
    pub is_locked: bool,
}

impl Msr {
    /// A whole register, by id ("power_ctl").
    pub fn value(&self, id: &str) -> Option<&PerCpu<u64>> {
        self.registers.iter().find(|reading| reading.id == id).map(|reading| &reading.value)
    }

    /// One field of it ("power_ctl", "c1e"), grouped by the field's value.
    pub fn field(&self, id: &str, field: &str) -> Option<PerCpu<u64>> {
        let cut = register(id)?.fields.iter().find(|f| f.id == field)?;
        Some(regroup(self.value(id)?, |value| cut.of(*value)))
    }

    /// A one-bit field, if every CPU that was read agrees.
    pub fn is_set(&self, id: &str, field: &str) -> Option<bool> {
        self.field(id, field)?.uniform().map(|bit| *bit != 0)
    }

    /// PL1 and PL2, with the unit applied.
    pub fn power_limits(&self) -> Option<PerCpu<PowerLimits>> {
        let unit = self.power_unit()?;
        Some(regroup(self.value("pkg_power_limit")?, |raw| PowerLimits {
            pl1_uw: to_uw(raw & 0x7fff, unit),
            is_pl1_on: raw & 1 << 15 != 0,
            pl2_uw: to_uw(raw >> 32 & 0x7fff, unit),
            is_pl2_on: raw & 1 << 47 != 0,
            is_locked: raw & 1 << 63 != 0,
        }))
    }

    /// The package's design power.
    pub fn tdp_uw(&self) -> Option<PerCpu<u64>> {
        let unit = self.power_unit()?;
        Some(regroup(self.value("pkg_power_info")?, |raw| to_uw(raw & 0x7fff, unit)))
    }

    /// The n of "1/2^n W".
    fn power_unit(&self) -> Option<u32> {
        u32::try_from(*self.field("rapl_unit", "power")?.uniform()?).ok()
    }
}

/// A raw power in units of 1/2^n W.
fn to_uw(raw: u64, unit: u32) -> u64 {
    raw.saturating_mul(1_000_000).checked_shr(unit).unwrap_or(0)
}

/// Maps the values and joins groups that became equal; linear in groups, not in CPUs.
fn regroup<T, U: PartialEq>(facts: &PerCpu<T>, f: impl Fn(&T) -> U) -> PerCpu<U> {
    let mut groups: Vec<crate::fact::Group<U>> = Vec::new();
    for group in &facts.0 {
        let fact = group.fact.map(&f);
        match groups.iter_mut().find(|g| g.fact == fact) {
            Some(same) => same.cpus = same.cpus.union(&group.cpus),
            None => groups.push(crate::fact::Group { cpus: group.cpus.clone(), fact }),
        }
    }
    PerCpu(groups)
}

/// `cpu:type:x86,ven0000fam0006mod00CF:feature:…`: whose it is, family and model.
pub(crate) fn identity(modalias: &str) -> Option<(Vendor, u64, u64)> {
    let (vendor, rest) = modalias.split_once(",ven")?.1.split_once("fam")?;
    let (family, rest) = rest.split_once("mod")?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let vendor = match vendor {
        "0000" => Vendor::Intel,
        "0002" | "0009" => Vendor::Amd,
        _ => return None,
    };
    Some((vendor, hex(family)?, hex(rest.split_once(':')?.0)?))
}

/// Is this a guest? The list of features in the modalias tells (X86_FEATURE_HYPERVISOR); /proc/cpuinfo is asked where it does not.
fn is_guest(src: &dyn Source, modalias: Option<&str>) -> bool {
    const HYPERVISOR: &str = "009F";
    let features = modalias.and_then(|text| text.split_once(":feature:")).map(|(_, features)| features.trim());
    match features.filter(|features| !features.is_empty()) {
        Some(features) => features.split(',').any(|feature| feature.eq_ignore_ascii_case(HYPERVISOR)),
        None => virt::hypervisor_flag(src).get() == Some(&true),
    }
}

/// The codes of the package limit; /proc/cpuinfo is asked only where the modalias does not tell.
fn limit_codes(src: &dyn Source, identity: Option<(Vendor, u64, u64)>) -> Option<&'static package_limit::Codes> {
    match identity {
        Some((Vendor::Intel, 6, model)) => package_limit::codes(model),
        Some(_) => None,
        None => package_limit::codes_of(cpuinfo::read(src).processor.uniform()?),
    }
}

/// The first running CPU of each package, or the first of all where packages are not told.
fn samples(src: &dyn Source, cpus: &Cpus) -> Vec<Cpu> {
    let id = |cpu: Cpu| format!("{ROOT}/cpu{cpu}/topology/physical_package_id");
    let packages = regroup(&PerCpu::read(src, cpus.running(), id, parse::signed), |id| *id);
    let firsts: BTreeSet<Cpu> = packages.0.iter().filter_map(|group| group.cpus.first()).collect();
    firsts.into_iter().collect()
}

impl Domain for Msr {
    const TITLE: &'static str = "Registers (MSR)";
    const HELP: &'static str = "C-state limit, C1E, demotion, HWP, power limits, throttle reasons, SMI count";

    fn read(src: &dyn Source, cpus: &Cpus) -> Msr {
        let is_sample = src.is_live();
        let on = if is_sample { samples(src, cpus) } else { cpus.running().collect() };
        let modalias = fact(src, &format!("{ROOT}/modalias"), parse::word);
        let identity = modalias.get().and_then(|text| identity(text));
        let vendor = identity.map(|(vendor, ..)| vendor);
        let is_guest = is_guest(src, modalias.get().map(String::as_str));
        let read = |register: &Register| {
            let one = |cpu: Cpu| {
                let gap = |error: &ReadError| Gap::from_read(&format!("msr 0x{:x}", register.address), error);
                let fact = match src.msr(cpu, register.address) {
                    Ok(_) if is_guest => Fact::Gap(gap(&ReadError::new(ErrorKind::Absent, EMULATED))),
                    Ok(value) => Fact::Known(value),
                    Err(error) => Fact::Gap(gap(&error)),
                };
                (cpu, fact)
            };
            Reading {
                id: register.id.into(),
                address: register.address,
                value: PerCpu::group(on.iter().map(|cpu| one(*cpu))),
            }
        };
        let asked = REGISTERS.iter().filter(|register| vendor.is_none_or(|vendor| register.vendor == vendor));
        let mut msr = Msr { registers: asked.map(read).collect(), is_sample, package_limit: PerCpu::default() };
        if let Some(register) = msr.value("pkg_cst_config").filter(|value| !value.is_unknown()) {
            if let Some(codes) = limit_codes(src, identity) {
                msr.package_limit = regroup(register, |raw| codes.of(*raw));
            }
        }
        msr
    }

    fn show(&self, sheet: &mut Sheet) {
        if self.registers.iter().all(|reading| reading.value.is_unknown()) {
            if let Some((_, gap)) = self.registers.iter().flat_map(|reading| reading.value.gaps()).next() {
                sheet.fact("msr", word!("registers"), &Fact::<u64>::Gap(gap.clone()), |v| Cell::Hex(*v));
            }
            return;
        }
        if self.is_sample {
            sheet.say("msr.sample", word!("read on"), Cell::text("the first CPU of each package"));
        }
        for reading in &self.registers {
            let Some(register) = register(&reading.id) else { continue };
            // Most models lack some of these; only a refusal is worth a row.
            let is_silent = |gap: &Gap| matches!(gap.kind, GapKind::NotRecorded | GapKind::Absent | GapKind::Failed);
            if reading.value.is_unknown() && reading.value.gaps().all(|(_, gap)| is_silent(gap)) {
                continue;
            }
            show_register(sheet, register, &reading.value);
        }
        sheet.per_cpu("msr.package_limit", word!("deepest package C-state allowed"), &self.package_limit, |v| {
            Cell::text(v)
        });
        if let Some(limits) = self.power_limits() {
            sheet.per_cpu("msr.pl1", word!("package power limit PL1"), &regroup(&limits, |l| l.pl1_uw), |v| {
                Cell::Uw(*v)
            });
            sheet.per_cpu("msr.pl2", word!("package power limit PL2"), &regroup(&limits, |l| l.pl2_uw), |v| {
                Cell::Uw(*v)
            });
        }
        if let Some(tdp) = self.tdp_uw() {
            sheet.per_cpu("msr.tdp", word!("package design power"), &tdp, |v| Cell::Uw(*v));
        }
    }
}

fn show_register(sheet: &mut Sheet, register: &Register, value: &PerCpu<u64>) {
    if !register.is_counter {
        let label = format!("0x{:x} {}", register.address, told(register.help));
        sheet.per_cpu(&format!("msr.{}", register.id), &label, value, |v| Cell::Hex(*v));
    }
    for field in register.fields {
        let id = format!("msr.{}.{}", register.id, field.id);
        let (values, label) = (regroup(value, |v| field.of(*v)), told(field.label));
        match field.form {
            Form::Flag => sheet.per_cpu(&id, label, &values, |v| Cell::Flag(*v != 0)),
            Form::Count => sheet.per_cpu(&id, label, &values, |v| Cell::Count(*v)),
            Form::Ratio100Mhz => sheet.per_cpu(&id, label, &values, |v| Cell::Khz(v * 100_000)),
            Form::Live => sheet.span(&id, label, &values, |v| Cell::Count(*v)),
        }
    }
}

#[cfg(test)]
mod tests;
