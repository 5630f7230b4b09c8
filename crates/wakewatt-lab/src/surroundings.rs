//! How fast the measured CPUs ran in a block, and how hot the processor was after it: what an arm may change beside what it is for.
//!
//! The clock is the one while they ran: cycles that passed (APERF) per cycle of the time stamp counter that they were awake
//! (MPERF), times its rate. `scaling_cur_freq` of an idle CPU is stale, so it is not asked. A register read is an
//! interrupt of that CPU, so they are read before a block's first moment and after its last. Where they cannot be read (a guest, no
//! msr module) there is no such number, and nobody asks again. Temperatures are those of the processor's packages; cores are left
//! out, since reading one wakes it. Sources: SDM volume 3, 14.2; Documentation/hwmon/coretemp.rst, k10temp.rst.

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::sensors::Sensors;
use wakewatt_core::facts::{Cpus, Domain};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;

const TSC: u32 = 0x10;
const MPERF: u32 = 0xe7;
const APERF: u32 = 0xe8;
/// Drivers of processors' own sensors.
const PROCESSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];

/// What can be asked of the surroundings here.
pub(crate) struct Surroundings {
    sensors: Vec<String>,
    has_clock: bool,
}

/// Counters of the clock at one moment.
pub(crate) struct Running {
    at_ns: u64,
    /// CPU, time stamp, APERF, MPERF.
    cpus: Vec<(Cpu, u64, u64, u64)>,
}

impl Surroundings {
    /// Looks for sensors once.
    pub(crate) fn find(src: &dyn Source) -> Surroundings {
        let sensors = Sensors::read(src, &Cpus::default());
        let is_processor = |name: &String| PROCESSORS.contains(&name.as_str());
        let chips = sensors.chips.iter().filter(|chip| chip.name.get().is_some_and(is_processor));
        let of_package = chips.flat_map(|chip| {
            let packages = chip.temperatures.iter().filter(|t| !t.label.get().is_some_and(|l| l.starts_with("Core ")));
            packages.map(|t| format!("/sys/class/hwmon/hwmon{}/temp{}_input", chip.number, t.index))
        });
        Surroundings { sensors: of_package.collect(), has_clock: true }
    }

    /// The hottest of them now.
    pub(crate) fn temperature_mc(&self, src: &dyn Source) -> Option<i64> {
        let read = |path: &String| String::from_utf8_lossy(&src.read(path).ok()?).trim().parse::<i64>().ok();
        self.sensors.iter().filter_map(read).max()
    }

    /// The counters of these CPUs; none where one of them cannot be read, and from then on.
    pub(crate) fn clock(&mut self, src: &dyn Source, cpus: &CpuSet, at_ns: u64) -> Option<Running> {
        if !self.has_clock {
            return None;
        }
        let read = |cpu: Cpu| {
            let of = |register| src.msr(cpu, register).ok();
            Some((cpu, of(TSC)?, of(APERF)?, of(MPERF)?))
        };
        let cpus: Option<Vec<_>> = cpus.iter().map(read).collect();
        self.has_clock = cpus.is_some();
        cpus.map(|cpus| Running { at_ns, cpus })
    }
}

impl Running {
    /// From here to there, while they ran; none where they did not.
    pub(crate) fn mean_khz(&self, later: &Running) -> Option<u64> {
        let (mut ran, mut awake, mut stamps) = (0.0, 0.0, 0.0);
        for ((_, stamp, a, m), (_, stamp_then, a_then, m_then)) in later.cpus.iter().zip(&self.cpus) {
            ran += a.wrapping_sub(*a_then) as f64;
            awake += m.wrapping_sub(*m_then) as f64;
            stamps += stamp.wrapping_sub(*stamp_then) as f64;
        }
        let passed_ns = later.at_ns.saturating_sub(self.at_ns) as f64 * self.cpus.len() as f64;
        // A million nanoseconds to one thousandth of a second: kHz.
        let khz = ran / awake * stamps / passed_ns * 1e6;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a clock of some GHz")]
        (khz.is_finite() && (1.0..1e8).contains(&khz)).then_some(khz as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn the_clock_is_the_one_while_awake_and_without_registers_nobody_asks_again() {
        let cpus = CpuSet::parse("0").unwrap();
        let at = |stamp: u64, a: u64, m: u64| {
            Tree::from_text(&format!("//- msr 0x10 cpu0 {stamp:x}\n//- msr 0xe8 cpu0 {a:x}\n//- msr 0xe7 cpu0 {m:x}\n"))
        };
        let mut here = Surroundings::find(&Tree::default());
        // A second of a stamp of 2 GHz, awake for a tenth of it at 3 GHz.
        let before = here.clock(&at(0, 0, 0), &cpus, 0).unwrap();
        let after = here.clock(&at(2_000_000_000, 300_000_000, 200_000_000), &cpus, 1_000_000_000).unwrap();
        assert_eq!(before.mean_khz(&after), Some(3_000_000));
        assert_eq!(before.mean_khz(&before), None, "no time, no clock");
        assert!(here.clock(&Tree::default(), &cpus, 0).is_none() && !here.has_clock);
        assert!(here.clock(&at(1, 1, 1), &cpus, 0).is_none());
    }

    #[test]
    fn the_hottest_package_is_told_and_cores_are_not_asked() {
        let chip = "//- /sys/class/hwmon/hwmon2";
        let tree = Tree::from_text(&format!(
            "{chip}/name\ncoretemp\n{chip}/temp1_label\nPackage id 0\n{chip}/temp1_input\n45000\n\
             {chip}/temp2_label\nCore 0\n{chip}/temp2_input\n60000\n\
             //- /sys/class/hwmon/hwmon3/name\nnct6775\n//- /sys/class/hwmon/hwmon3/temp1_input\n90000\n"
        ));
        assert_eq!(Surroundings::find(&tree).temperature_mc(&tree), Some(45_000));
        assert_eq!(Surroundings::find(&Tree::default()).temperature_mc(&tree), None);
    }
}
