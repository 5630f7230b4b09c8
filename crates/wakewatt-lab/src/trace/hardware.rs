//! What the hardware itself says about the states: core residency registers, where they can be read.
//!
//! Linux requests a state; firmware may demote it, and only the residency counters show that. They are model-specific
//! (SDM volume 4: 0x3FC C3, 0x3FD C6, 0x3FE C7, 0x660 C1), count TSC ticks per core, and each read is an interrupt that
//! wakes the CPU, so they are read only with `--hardware`, and twice in all: before the probe is attached and after the
//! last counters were taken.
//! A register that fails to read does not exist on this model. One that stays the same while the state was requested is
//! present but dead, or the hardware never went there; both are said. AMD and Arm have no such counters.
//! Not exercised on hardware yet: this path is tested on recorded registers only.

use std::collections::BTreeMap;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::traced::Hardware;
use wakewatt_core::source::{ErrorKind, Source};
use wakewatt_core::units::Cpu;

/// Linux's name of a state starts with this; its register.
const REGISTERS: [(&str, u32); 4] = [("C1", 0x660), ("C3", 0x3FC), ("C6", 0x3FD), ("C7", 0x3FE)];
/// The time stamp counter, the unit of the others.
const TSC: u32 = 0x10;

/// Values at the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    values: BTreeMap<(Cpu, u32), u64>,
    refusal: Option<String>,
    /// Reads done, each an interrupt of that CPU.
    pub(super) n_reads: u64,
}

/// What came since.
#[derive(Clone, Debug, Default)]
pub(super) struct Residencies {
    /// Sums over all CPUs read: register to share of the time stamp counter.
    shares: BTreeMap<u32, f64>,
    refusal: Option<String>,
}

impl Baseline {
    /// Nothing is read.
    pub(super) fn none() -> Baseline {
        Baseline {
            refusal: Some("not read (--hardware reads it, which wakes every CPU twice)".into()),
            ..Baseline::default()
        }
    }

    /// Reads what can be read; one refusal ends it, so a machine without MSRs costs one failed open.
    pub(super) fn read(src: &dyn Source, cpus: &[Cpu]) -> Baseline {
        let mut baseline = Baseline::default();
        for &cpu in cpus {
            baseline.n_reads += 1 + REGISTERS.len() as u64;
            match src.msr(cpu, TSC) {
                Ok(value) => baseline.values.insert((cpu, TSC), value),
                Err(why) => {
                    let hint = if why.kind == ErrorKind::Absent { " (no msr module loaded, or a guest)" } else { "" };
                    baseline.refusal = Some(format!("/dev/cpu/{cpu}/msr: {why}{hint}"));
                    return baseline;
                }
            };
            for (_, register) in REGISTERS {
                if let Ok(value) = src.msr(cpu, register) {
                    baseline.values.insert((cpu, register), value);
                }
            }
        }
        baseline
    }

    /// Reads again.
    pub(super) fn since(&self, src: &dyn Source) -> Residencies {
        let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (&(cpu, register), before) in self.values.iter().filter(|((_, r), _)| *r != TSC) {
            let ticks =
                src.msr(cpu, TSC).ok().zip(self.values.get(&(cpu, TSC))).map(|(now, then)| now.wrapping_sub(*then));
            if let (Some(ticks), Ok(now)) = (ticks, src.msr(cpu, register)) {
                let sum = sums.entry(register).or_default();
                sum.0 += now.wrapping_sub(*before);
                sum.1 += ticks;
            }
        }
        let share = |(in_state, all): (u64, u64)| in_state as f64 / all.max(1) as f64;
        Residencies {
            shares: sums.into_iter().map(|(register, sum)| (register, share(sum))).collect(),
            refusal: self.refusal.clone(),
        }
    }
}

impl Residencies {
    /// For one of Linux's states.
    pub(super) fn of(&self, state: &str, n_requested: u64) -> Hardware {
        if let Some(why) = &self.refusal {
            return Hardware::unavailable(why.clone());
        }
        // C1E is counted as C1 by the hardware; POLL is no C-state at all; ACPI's names number its own list, not the
        // hardware's states.
        let letters = |c: char| c.is_ascii_digit();
        let digits: String = state.strip_prefix('C').unwrap_or("").chars().take_while(|c| letters(*c)).collect();
        let is_named = |name: &str| !state.contains("ACPI") && name.strip_prefix('C') == Some(digits.as_str());
        let Some((_, register)) = REGISTERS.iter().find(|(name, _)| is_named(name)) else {
            return Hardware::unavailable(format!("no residency counter is known for {state}"));
        };
        match self.shares.get(register) {
            None => Hardware::unavailable(format!("register {register:#x} cannot be read on this model")),
            Some(share) => Hardware {
                // Zero is an answer where nothing was asked of the state.
                label: if *share > 0.0 || n_requested == 0 { Label::Measured } else { Label::PresentButDead },
                residency_ratio: Some(*share),
                source: format!("register {register:#x}, per core, in time stamp ticks"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn residency_is_a_share_a_dead_counter_is_called_dead_and_no_register_unavailable() {
        let at = |tsc: u32, c6: u32| {
            Tree::from_text(&format!("//- msr 0x10 cpu0 {tsc:x}\n//- msr 0x3fd cpu0 {c6:x}\n//- msr 0x660 cpu0 5\n"))
        };
        let since = Baseline::read(&at(1000, 100), &[0]).since(&at(3000, 1100));
        let c6 = since.of("C6", 3);
        assert_eq!((c6.label, c6.residency_ratio), (Label::Measured, Some(0.5)));
        assert_eq!(since.of("C1E", 3).label, Label::PresentButDead);
        assert_eq!((since.of("C3", 3).label, since.of("POLL", 3).label), (Label::Unavailable, Label::Unavailable));
        let none = Baseline::read(&Tree::from_text(""), &[0]).since(&Tree::from_text(""));
        assert!(none.of("C6", 3).source.contains("/dev/cpu/0/msr"));
        assert!(since.of("C10", 3).source.contains("no residency counter"), "not C1's");
        assert_eq!(since.of("C3_ACPI", 3).label, Label::Unavailable);
        assert_eq!(since.of("C1E", 0).label, Label::Measured);
        assert!(Baseline::none().since(&Tree::from_text("")).of("C6", 3).source.contains("--hardware"));
    }
}
