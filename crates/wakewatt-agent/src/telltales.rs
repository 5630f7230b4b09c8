//! Has a setting changed, or the machine? Files that tell so, kept open and compared as a whole, and the names in a few folders.
//!
//! Making facts of all settings opens some fifteen files for each idle state of each CPU: on 512 CPUs more work than a thousand scrapes. What a setting is changed
//! by are few of them: drivers, governors, preferences, turbo, SMT, microcode, and the switch of each state of each CPU. These are read each minute with one
//! system call a file; only where one differs from the minute before are the facts made again. What cannot change while the kernel runs is not among them.
//!
//! The same says whether there is something else to read: another driver with other states (told by the first CPU's names and claims), a CPU, a meter, a chip.

use wakewatt_core::source::{Read, Source};
use wakewatt_core::watch::layout::Reach;
use wakewatt_core::watch::{Files, Layout};

const CPU: &str = "/sys/devices/system/cpu";
/// Of the machine.
const OF_ALL: [&str; 9] = [
    "online",
    "present",
    "smt/active",
    "cpuidle/current_driver",
    "cpuidle/current_governor",
    "cpufreq/boost",
    "intel_pstate/no_turbo",
    "intel_pstate/status",
    "amd_pstate/status",
];
/// Of each frequency policy.
const OF_POLICY: [&str; 3] = ["scaling_driver", "scaling_governor", "energy_performance_preference"];
/// Of each state of the first CPU.
const OF_STATE: [&str; 3] = ["name", "latency", "residency"];
/// Where entries come and go.
const HWMON: &str = "/sys/class/hwmon";
const FOLDERS: [&str; 3] =
    ["/sys/class/powercap", "/sys/devices/system/cpu/cpufreq", "/sys/devices/system/cpu/intel_uncore_frequency"];

/// Adds the files of a machine; one that is not there may come.
pub(crate) fn add_files(src: &dyn Source, layout: &Layout, all: &mut Files) {
    let mut add = |path: String| all.add(&path, Reach::Memory);
    for name in OF_ALL {
        add(format!("{CPU}/{name}"));
    }
    let policies = src.list(&format!("{CPU}/cpufreq")).unwrap_or_default();
    for policy in policies.iter().filter(|name| name.starts_with("policy")) {
        for name in OF_POLICY {
            add(format!("{CPU}/cpufreq/{policy}/{name}"));
        }
    }
    // The number of a chip that went is given to the next one.
    let chips = src.list(HWMON).unwrap_or_default();
    for chip in &chips {
        add(format!("{HWMON}/{chip}/name"));
    }
    if let Some(first) = layout.cpus.first() {
        let states = first.states.iter().filter_map(|at| layout.states.get(*at));
        for (state, name) in states.flat_map(|state| OF_STATE.map(|name| (state, name))) {
            add(format!("{CPU}/cpu{}/cpuidle/state{}/{name}", first.cpu, state.index));
        }
    }
    for info in &layout.cpus {
        let cpu = info.cpu;
        add(format!("{CPU}/cpu{cpu}/microcode/version"));
        for state in info.states.iter().filter_map(|at| layout.states.get(*at)) {
            add(format!("{CPU}/cpu{cpu}/cpuidle/state{}/disable", state.index));
        }
    }
}

/// Adds what is listed where entries come and go.
pub(crate) fn add_names(src: &dyn Source, layout: &Layout, print: &mut Fingerprint) {
    let states = layout.cpus.first().map(|first| format!("{CPU}/cpu{}/cpuidle", first.cpu));
    for folder in FOLDERS.into_iter().chain([HWMON]).chain(states.as_deref()) {
        let names = src.list(folder).map(|names| names.join("/"));
        print.add(names.as_ref().map(|names| names.as_bytes()).map_err(Clone::clone));
    }
}

/// What they hold, all together, as a number.
#[derive(Default)]
pub(crate) struct Fingerprint(crc32fast::Hasher);

impl Fingerprint {
    /// Takes the next file; one that cannot be read differs from every text.
    pub(crate) fn add(&mut self, read: Read<&[u8]>) {
        let bytes = read.unwrap_or(&[0xff]);
        self.0.update(&bytes.len().to_le_bytes());
        self.0.update(bytes);
    }

    /// Of all files.
    pub(crate) fn finish(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::{ErrorKind, ReadError, Tree};
    use wakewatt_core::watch::{Sources, discover::discover};

    #[test]
    fn every_switch_of_every_cpu_is_among_them() {
        let state = |cpu: u32, index: u32| format!("//- {CPU}/cpu{cpu}/cpuidle/state{index}/name\nC{index}\n");
        let text = format!(
            "//- {CPU}/present\n0-1\n//- {CPU}/online\n0-1\n{}{}{}//- {CPU}/cpufreq/policy0/scaling_governor\nschedutil\n",
            state(0, 0),
            state(0, 3),
            state(1, 3)
        );
        let tree = Tree::from_text(&text);
        let mut all = Files::default();
        add_files(&tree, &discover(&tree, Sources::Quiet), &mut all);
        for name in ["cpu0/cpuidle/state3/disable", "cpu1/cpuidle/state3/disable", "cpufreq/policy0/scaling_governor"] {
            let path = format!("{CPU}/{name}");
            assert!(all.iter().any(|file| file.path == path), "{name}: {all:?}");
        }
    }

    #[test]
    fn what_moves_from_file_to_file_or_is_gone_is_a_change() {
        let of = |texts: &[Option<&'static str>]| {
            let mut print = Fingerprint::default();
            let read = |text: &Option<&'static str>| -> Read<&'static [u8]> {
                text.map(str::as_bytes).ok_or_else(|| ReadError::new(ErrorKind::Absent, "gone"))
            };
            texts.iter().for_each(|text| print.add(read(text)));
            print.finish()
        };
        let known = of(&[Some("0\n"), Some("menu\n")]);
        assert_eq!(known, of(&[Some("0\n"), Some("menu\n")]));
        for other in
            [[Some("1\n"), Some("menu\n")], [Some("0\nm"), Some("enu\n")], [Some("0\n"), None], [None, Some("menu\n")]]
        {
            assert_ne!(known, of(&other), "{other:?}");
        }
        assert_ne!(of(&[Some("")]), of(&[None]));
    }
}
