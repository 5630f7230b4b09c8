//! Every shipped plan, and single settings, on every recorded host as it is and with one thing changed: no plan orders what
//! the driver would refuse, none calls a value "already so" that another setting overrides, and none prices a change that
//! changes nothing.
//!
//! Plans are carried out on a machine in memory that does what drivers do, written from the kernel's documents and from raw
//! files, so that it shares no code with what made the plan. More hosts: `WAKEWATT_HOSTS=FOLDER cargo test -p wakewatt-tune
//! --test plans_on_hosts`.
#![allow(clippy::unwrap_used)] // A test may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::virt::Virt;
use wakewatt_core::plan;
use wakewatt_core::rules::{Answer, judge};
use wakewatt_core::source::Tree;
use wakewatt_tune::effect::NoEffect;
use wakewatt_tune::knob::Host;
use wakewatt_tune::planning::{self, PlannedStep};
use wakewatt_tune::profile::{Profile, SHIPPED};
use wakewatt_tune::request::Request;
use wakewatt_tune::resolve::Step;

const CPU: &str = "/sys/devices/system/cpu";
const GLOBAL: &str = "/dev/cpu_dma_latency";
const PSTATE: &str = "/sys/devices/system/cpu/intel_pstate";

/// Every host by its name, and whether it is one of the fixtures.
fn hosts() -> Vec<(String, Tree, bool)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let folders: Vec<PathBuf> =
        [own.clone()].into_iter().chain(std::env::var_os("WAKEWATT_HOSTS").map(PathBuf::from)).collect();
    let mut all = Vec::new();
    for folder in folders {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|e| e == "host") {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                all.push((name, first_cpus(wakewatt_host::recorded::open(&path).unwrap()), folder == own));
            }
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// So many CPUs are a machine of every kind that is recorded, and thousands of plans are made for each.
const N_CPUS: u32 = 16;

/// The machine with its first CPUs only.
fn first_cpus(mut tree: Tree) -> Tree {
    let number = |name: &str| name.strip_prefix("cpu").or(name.strip_prefix("policy"))?.parse::<u32>().ok();
    let is_kept = |name: &str| number(name).is_none_or(|n| n < N_CPUS);
    tree.files.retain(|path, _| path.split('/').all(is_kept));
    tree.folders.retain(|path, _| path.split('/').all(is_kept));
    tree.folders.values_mut().flatten().for_each(|names| names.retain(|name| is_kept(name)));
    tree.msrs.retain(|(_, cpu), _| *cpu < N_CPUS);
    for list in ["present", "online", "possible"] {
        let path = format!("{CPU}/{list}");
        let n = tree
            .files
            .get(&path)
            .and_then(|r| r.as_ref().ok())
            .and_then(|bytes| CpuSet::parse(std::str::from_utf8(bytes).unwrap().trim()).ok());
        if let Some(cpus) = n {
            let kept: CpuSet = cpus.iter().filter(|cpu| *cpu < N_CPUS).collect();
            tree.files.insert(path, Ok(kept.to_string().into_bytes()));
        }
    }
    tree
}

/// A change of a machine: its name, and whether the machine has what it changes.
type Edit = (&'static str, fn(&mut Tree) -> bool);

/// Changes every file whose path this accepts.
fn each(tree: &mut Tree, text: impl Fn(&str, &str) -> Option<String>) -> bool {
    let mut is_changed = false;
    for (path, content) in &mut tree.files {
        let Ok(old) = content.as_ref().map(|bytes| String::from_utf8_lossy(bytes).trim().to_string()) else { continue };
        if let Some(new) = text(path, &old).filter(|new| *new != old) {
            *content = Ok(new.into_bytes());
            is_changed = true;
        }
    }
    is_changed
}

fn ends(path: &str, folder: &str, file: &str) -> bool {
    path.starts_with(&format!("{CPU}/{folder}")) && path.ends_with(file)
}

fn half(text: &str) -> Option<String> {
    text.parse::<u64>().ok().map(|khz| (khz / 2).to_string())
}

const EDITS: &[Edit] = &[
    ("as recorded", |_| true),
    ("every sleeping state disabled", |tree| {
        each(tree, |path, _| {
            let is_it = path.contains("/cpuidle/state") && !path.contains("/state0/") && path.ends_with("/disable");
            is_it.then(|| "1".into())
        })
    }),
    ("idle=poll", |tree| each(tree, |path, old| (path == "/proc/cmdline").then(|| format!("{old} idle=poll")))),
    ("somebody holds 5us", |tree| tree.files.insert(GLOBAL.into(), Ok(5i32.to_ne_bytes().to_vec())).is_some()),
    ("no limit is held", |tree| {
        tree.files.insert(GLOBAL.into(), Ok(2_000_000_000i32.to_ne_bytes().to_vec())).is_some()
    }),
    ("n/a on every CPU", |tree| each(tree, |path, _| path.ends_with("resume_latency_us").then(|| "n/a".into()))),
    ("ladder", |tree| each(tree, |path, _| path.ends_with("cpuidle/current_governor").then(|| "ladder".into()))),
    ("max_perf_pct 50", |tree| each(tree, |path, _| path.ends_with("max_perf_pct").then(|| "50".into()))),
    ("min_perf_pct 100", |tree| each(tree, |path, _| path.ends_with("min_perf_pct").then(|| "100".into()))),
    ("half the clock", |tree| {
        each(tree, |path, old| ends(path, "cpufreq/policy", "/scaling_max_freq").then(|| half(old))?)
    }),
    ("no turbo", |tree| {
        each(tree, |path, _| match path.rsplit('/').next() {
            Some("no_turbo") => Some("1".into()),
            Some("boost") => Some("0".into()),
            _ => None,
        })
    }),
    ("governor performance", |tree| {
        each(tree, |path, _| match path.rsplit('/').next() {
            Some("scaling_governor") => Some("performance".into()),
            _ => None,
        }) && {
            let mut kernel = Kernel::of(tree.clone());
            for policy in kernel.policies() {
                kernel.force_preference(&policy);
            }
            *tree = kernel.tree;
            true
        }
    }),
    ("uncore limited", |tree| {
        each(tree, |path, old| {
            let is_it = path.contains("_frequency/package_00") || path.contains("_frequency/uncore0");
            if is_it && path.ends_with("/max_freq_khz") { half(old) } else { None }
        })
    }),
];

/// Settings by themselves.
const SINGLE: &[&str] = &[
    "qos.global=none",
    "qos.global=1s",
    "qos.global=20us",
    "qos.global=poll",
    "qos.cpu=1s",
    "idle.governor=menu",
    "freq.boost=off",
    "freq.boost=on",
    "freq.max=max",
    "freq.min=max",
    "freq.min=min",
    "freq.perf.max=100",
    "freq.perf.min=100",
    "freq.epp=power",
    "freq.governor=powersave",
    "uncore.min=max",
    "uncore.max=min",
];

/// What a driver makes of a write.
struct Kernel {
    tree: Tree,
    /// The preference that intel_pstate restores when `performance` is left.
    saved: BTreeMap<String, String>,
    /// The limit of our own holder, and the smallest of the others'.
    held_us: u64,
    others_us: u64,
}

impl Kernel {
    fn of(tree: Tree) -> Kernel {
        let device =
            tree.files.get(GLOBAL).and_then(|r| r.as_ref().ok()).and_then(|b| <[u8; 4]>::try_from(&b[..]).ok());
        let others_us = device.map_or(NONE_US, |bytes| u64::from(i32::from_ne_bytes(bytes).unsigned_abs()));
        Kernel { tree, saved: BTreeMap::new(), held_us: NONE_US, others_us }
    }
    fn text(&self, path: &str) -> Option<String> {
        let bytes = self.tree.files.get(path)?.as_ref().ok()?;
        Some(String::from_utf8_lossy(bytes).trim().to_string())
    }
    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
    fn put(&mut self, path: &str, text: &str) {
        self.tree.files.insert(path.into(), Ok(text.as_bytes().to_vec()));
    }
    fn policies(&self) -> BTreeSet<String> {
        let governors = self.tree.files.keys().filter_map(|path| path.strip_suffix("/scaling_governor"));
        governors.map(str::to_string).collect()
    }
    fn is_autonomous(&self, policy: &str) -> bool {
        let driver = self.text(&format!("{policy}/scaling_driver"));
        matches!(driver.as_deref(), Some("intel_pstate" | "amd-pstate-epp"))
    }
    fn is_performance(&self, policy: &str) -> bool {
        self.text(&format!("{policy}/scaling_governor")).as_deref() == Some("performance")
    }
    fn force_preference(&mut self, policy: &str) {
        let file = format!("{policy}/energy_performance_preference");
        if let Some(old) = self.text(&file).filter(|_| self.is_autonomous(policy) && self.is_performance(policy)) {
            self.saved.entry(policy.into()).or_insert(old);
            self.put(&file, "performance");
        }
    }
    /// The highest step, beyond which only boost lies.
    fn top_khz(&self, policy: &str) -> Option<u64> {
        let steps = self.text(&format!("{policy}/scaling_available_frequencies"));
        let is_table = self.text(&format!("{policy}/scaling_driver")).as_deref() == Some("acpi-cpufreq");
        let highest = steps.filter(|_| is_table).and_then(|s| s.split(' ').filter_map(|s| s.parse().ok()).max());
        highest.or_else(|| self.number(&format!("{policy}/cpuinfo_max_freq")))
    }
    fn is_turbo_off(&self) -> bool {
        self.text(&format!("{PSTATE}/no_turbo")).as_deref() == Some("1")
    }

    fn write(&mut self, path: &str, to: &str) -> Result<(), String> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = folder.to_string();
        let number = to.parse::<u64>().ok();
        let beside = |kernel: &Kernel, file: &str| kernel.number(&format!("{folder}/{file}"));
        let refuse = |why: &str| Err(format!("{path} = {to}: {why}"));
        match file {
            "energy_performance_preference" if !matches!(to, "performance" | "0") => {
                // Without hwp_epp the bias is written, which nobody refuses.
                let info = self.text("/proc/cpuinfo").unwrap_or_default();
                let is_bias = info.contains("GenuineIntel") && !info.contains(" hwp_epp");
                if self.is_autonomous(&folder) && self.is_performance(&folder) && !is_bias {
                    return refuse("EBUSY");
                }
            }
            "scaling_governor" => {
                let is_there = self
                    .text(&format!("{folder}/scaling_available_governors"))
                    .is_none_or(|list| list.split_whitespace().any(|word| word == to));
                if !is_there {
                    return refuse("EINVAL");
                }
                self.put(path, to);
                self.force_preference(&folder);
                return Ok(());
            }
            "scaling_max_freq" if number > self.top_khz(&folder) => return refuse("beyond what the driver reaches"),
            "scaling_min_freq" if number > beside(self, "scaling_max_freq") => return refuse("cut to the maximum"),
            "max_perf_pct" if number < beside(self, "min_perf_pct") => return refuse("cut to the minimum"),
            "min_perf_pct" if number > beside(self, "max_perf_pct") => return refuse("cut to the maximum"),
            "min_freq_khz" if number > beside(self, "max_freq_khz") => return refuse("crosses the maximum"),
            "max_freq_khz" if number < beside(self, "min_freq_khz") => return refuse("crosses the minimum"),
            "no_turbo" if to == "0" && self.is_turbo_off() => {
                let register = self.tree.msrs.get(&(0x1a0, 0)).and_then(|value| value.as_ref().ok());
                if register.is_some_and(|value| value >> 38 & 1 == 1) {
                    return refuse("EPERM");
                }
            }
            "hold:cpu_dma_latency" => {
                self.held_us = match to {
                    "none" => NONE_US,
                    "poll" => 0,
                    word => word.trim_end_matches("us").parse().unwrap(),
                };
                return Ok(());
            }
            _ => {}
        }
        self.put(path, to);
        Ok(())
    }

    fn read(&self, path: &str) -> Option<String> {
        match path {
            "hold:cpu_dma_latency" => Some(match self.held_us {
                NONE_US => "none".into(),
                0 => "poll".into(),
                us => format!("{us}us"),
            }),
            path => self.text(path),
        }
    }

    /// Lowest and highest clock of a policy, and whether turbo is reached: what its files and the driver's come to.
    fn clock(&self, policy: &str) -> Option<(u64, u64, bool)> {
        let number = |file: &str| self.number(&format!("{policy}/{file}"));
        let (mut low, mut high) = (number("scaling_min_freq")?, number("scaling_max_freq")?);
        let (top, base) = (self.top_khz(policy)?, number("base_frequency"));
        let is_pstate = self.text(&format!("{policy}/scaling_driver")).is_some_and(|d| d.starts_with("intel_"));
        let mut is_turbo = true;
        if is_pstate {
            for (file, is_max) in [("max_perf_pct", true), ("min_perf_pct", false)] {
                let Some(percent) = self.number(&format!("{PSTATE}/{file}")) else { continue };
                let khz = (number("cpuinfo_max_freq")? * percent / 100).max(number("cpuinfo_min_freq")?);
                if is_max { high = high.min(khz) } else { low = low.max(khz) }
            }
            is_turbo = !self.is_turbo_off() && base.is_none_or(|base| high > base);
            if self.is_turbo_off() {
                high = high.min(base.unwrap_or(high));
            }
        } else if let Some(global) = self.number(&format!("{CPU}/cpufreq/boost")) {
            is_turbo = global == 1 && high >= top;
        }
        high = high.min(number("bios_limit").unwrap_or(high));
        low = low.min(high);
        match self.text(&format!("{policy}/scaling_governor")).as_deref() {
            // In active mode amd-pstate keeps the clock at the nominal frequency or above (kernel 6.13 and later).
            Some("performance")
                if self.text(&format!("{policy}/scaling_driver")).as_deref() == Some("amd-pstate-epp") =>
            {
                let cpu = policy.rsplit_once("policy").unwrap().1;
                let nominal = self.number(&format!("{CPU}/cpu{cpu}/acpi_cppc/nominal_freq"));
                let is_old = self.text("/proc/version").is_some_and(|text| text.starts_with("Linux version 6.1."));
                low = if is_old { high } else { nominal.map_or(low, |mhz| (mhz * 1000).clamp(low.min(high), high)) };
            }
            Some("performance") => low = high,
            Some("powersave") if !self.is_autonomous(policy) => (high, is_turbo) = (low, false),
            _ => {}
        }
        Some((low, high, is_turbo))
    }

    /// The idle states that each CPU enters.
    fn sleeps(&self) -> BTreeMap<String, Vec<String>> {
        let cmdline = self.text("/proc/cmdline").unwrap_or_default();
        let is_x86 = !self.text("/proc/cpuinfo").unwrap_or_default().contains("CPU implementer");
        let is_polling = is_x86 && cmdline.split(' ').any(|word| word == "idle=poll");
        let is_ladder = self.text(&format!("{CPU}/cpuidle/current_governor")).as_deref() == Some("ladder");
        let global_us = self.held_us.min(self.others_us);
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut cut = BTreeSet::new();
        for path in self.tree.files.keys().filter(|path| path.contains("/cpuidle/state") && path.ends_with("/latency"))
        {
            let state = path.trim_end_matches("/latency");
            let (cpu, index) = state.split_once("/cpuidle/state").unwrap();
            let own_us = match self.text(&format!("{cpu}/power/pm_qos_resume_latency_us")).as_deref() {
                Some("n/a") => 0,
                Some("0") | None => NONE_US,
                Some(us) => us.parse().unwrap(),
            };
            // haltpoll looks at neither switches nor limits, but for a limit of 0.
            let is_haltpoll = self.text(&format!("{CPU}/cpuidle/current_governor")).as_deref() == Some("haltpoll");
            let is_off = !is_haltpoll && self.text(&format!("{state}/disable")).as_deref() == Some("1");
            let us = self.number(path).unwrap_or(0);
            let is_reached = !cut.contains(cpu) && (index == "0" || !is_polling);
            let limit_us = global_us.min(own_us);
            // ladder begins in the first state that sleeps, whatever its switch and any limit but 0.
            let first =
                if self.text(&format!("{cpu}/cpuidle/state0/name")).as_deref() == Some("POLL") { "1" } else { "0" };
            let is_asked = !(is_haltpoll || (is_ladder && index == first));
            let is_open = is_reached && if is_asked { !is_off && us <= limit_us } else { limit_us > 0 || us == 0 };
            if is_off && is_ladder && index > first {
                cut.insert(cpu.to_string());
            }
            let open = all.entry(cpu.into()).or_default();
            if is_open {
                open.push(index.into());
            }
        }
        all
    }

    /// What a step's knob decides, as it is now.
    fn decided(&self, step: &Step) -> String {
        let raw = || step.changes.iter().map(|change| self.read(&change.path)).collect::<Vec<_>>();
        match step.knob.as_str() {
            "qos.global" | "qos.cpu" | "idle.state" => match self.sleeps() {
                // Nothing is known of what CPUs enter.
                none if none.is_empty() => format!("{:?}", raw()),
                sleeps => format!("{sleeps:?}"),
            },
            knob @ ("freq.max" | "freq.min" | "freq.perf.max" | "freq.perf.min" | "freq.boost") => {
                let clock = |policy: &String| {
                    self.clock(policy).map(|(low, high, is_turbo)| (low, high, is_turbo && knob == "freq.boost"))
                };
                let all: Vec<_> = self.policies().iter().map(clock).collect();
                // Of what these files do not tell, the setting itself.
                let more = if all.iter().any(Option::is_none) { raw() } else { Vec::new() };
                format!("{all:?} {more:?}")
            }
            _ => format!("{:?}", raw()),
        }
    }
}

const NONE_US: u64 = 2_000_000_000;

/// Carries a plan out, and says what is wrong with it.
fn faults(tree: &Tree, steps: &[PlannedStep]) -> Vec<String> {
    let mut kernel = Kernel::of(tree.clone());
    let mut all = Vec::new();
    for planned in steps {
        let step = &planned.step;
        if step.changes.is_empty() {
            continue;
        }
        let before = kernel.decided(step);
        for change in &step.changes {
            if kernel.read(&change.path).as_ref() == Some(&change.to) {
                continue;
            }
            if let Err(why) = kernel.write(&change.path, &change.to) {
                all.push(format!("{}: orders what is refused: {why}", step.request));
            }
        }
        let after = kernel.decided(step);
        let is_priced = !planned.price.is_empty();
        if is_priced && before == after {
            all.push(format!("{}: priced ({}), and nothing changes", step.request, planned.price));
        }
        if planned.no_effect.is_some() == is_priced {
            all.push(format!("{}: {:?} beside the price {:?}", step.request, planned.no_effect, planned.price));
        }
    }
    for planned in steps {
        let step = &planned.step;
        if matches!(planned.no_effect, Some(NoEffect::SetAgain(_))) {
            continue;
        }
        for change in &step.changes {
            let now = kernel.read(&change.path);
            if now.as_deref() != Some(change.to.as_str()) {
                all.push(format!("{}: {} does not stay: {now:?}", step.request, change.path));
            }
        }
        if planned.no_effect == Some(NoEffect::AlreadySo) {
            all.extend(overridden(&kernel, planned));
        }
    }
    all
}

/// A limit of the clock that is called "already so" although another one decides.
fn overridden(kernel: &Kernel, planned: &PlannedStep) -> Vec<String> {
    let step = &planned.step;
    let is_max = match step.knob.as_str() {
        "freq.max" => true,
        "freq.min" => false,
        _ => return Vec::new(),
    };
    let wrong = step.changes.iter().filter_map(|change| {
        let folder = change.path.rsplit_once('/')?.0;
        let (low, high, _) = kernel.clock(folder)?;
        let asked: u64 = change.to.parse().ok()?;
        let in_force = if is_max { high } else { low };
        // A percentage of the highest clock is rounded.
        let rounding = kernel.number(&format!("{folder}/cpuinfo_max_freq"))? / 50;
        (asked.abs_diff(in_force) > rounding.max(asked / 20))
            .then(|| format!("{}: already {asked}, and {in_force} is in force", step.request))
    });
    wrong.collect()
}

/// What is wrong with the plans that findings advise on this machine: they change something, and nothing is refused.
fn advised(host: &Host<'_>, tree: &Tree) -> Vec<String> {
    let evidence = Evidence { facts: Snapshot::read(tree, |_| true), ..Evidence::default() };
    let mut all = Vec::new();
    for ruling in judge(&evidence) {
        let Answer::Yes(finding) = ruling.answer else { continue };
        let steps = finding.plan.iter().flat_map(|plan| plan.steps()).filter(|step| !step.is_boot());
        let request = |step: &plan::Step| {
            let on = step.on.as_ref().map_or(String::new(), |on| format!("@{on}"));
            Request::parse(&format!("{}{on}={}", step.knob, step.to)).unwrap()
        };
        let requests: Vec<Request> = steps.map(request).collect();
        if requests.is_empty() {
            continue;
        }
        let planned = planning::plan(host, "advice", &requests, None);
        let named = |why: String| format!("{}: {why}", finding.id);
        all.extend(planned.refused.iter().map(|why| named(format!("advises what is refused: {why}"))));
        if planned.is_without_effect {
            let why: Vec<_> =
                planned.steps.iter().map(|step| (step.step.request.to_string(), &step.no_effect)).collect();
            all.push(named(format!("advises what changes nothing: {why:?}")));
        }
        all.extend(faults(tree, &planned.steps).into_iter().map(named));
    }
    all
}

#[test]
fn plans_are_what_the_driver_does() {
    let shipped = SHIPPED.iter().map(|(name, text)| (*name, Profile::parse(text).unwrap().all_requests()));
    let single = SINGLE.iter().map(|text| (*text, vec![Request::parse(text).unwrap()]));
    let all: Vec<(&str, Vec<Request>)> = shipped.chain(single).collect();
    let of_host = |(name, tree, is_own): &(String, Tree, bool)| {
        let (mut wrong, mut n) = (Vec::new(), [0usize; 3]);
        for (edit, make) in EDITS {
            let mut tree = tree.clone();
            if !make(&mut tree) && *edit != "somebody holds 5us" && *edit != "no limit is held" {
                continue;
            }
            let host = Host::read(&tree);
            // Of two settings that both keep a CPU from a state, taking one back changes nothing by itself: a host that
            // somebody has changed is not changed once more.
            if *is_own || *edit == EDITS[0].0 {
                wrong.extend(advised(&host, &tree).into_iter().map(|why| format!("{name}, {edit}: {why}")));
            }
            for (what, requests) in &all {
                let planned = planning::plan(&host, what, requests, None);
                wrong.extend(
                    faults(&tree, &planned.steps).into_iter().map(|why| format!("{name}, {edit}, {what}: {why}")),
                );
                n[0] += 1;
                n[1] += planned.steps.iter().filter(|step| step.no_effect.is_some()).count();
                n[2] += planned.steps.iter().filter(|step| !step.price.is_empty()).count();
            }
        }
        (wrong, n)
    };
    let hosts = hosts();
    let found: Vec<(Vec<String>, [usize; 3])> = std::thread::scope(|threads| {
        let some = |hosts: &[(String, Tree, bool)]| hosts.iter().map(of_host).collect::<Vec<_>>();
        let started: Vec<_> =
            hosts.chunks(hosts.len().div_ceil(4)).map(|hosts| threads.spawn(move || some(hosts))).collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut wrong: Vec<String> = found.iter().flat_map(|(wrong, _)| wrong.clone()).collect();
    let n_wrong = wrong.len();
    wrong.truncate(60);
    let sum = |at: usize| found.iter().map(|(_, n)| n[at]).sum::<usize>();
    assert!(wrong.is_empty(), "{n_wrong}: {wrong:#?}");
    assert!(
        sum(0) > 3000 && sum(1) > 1000 && sum(2) > 1000,
        "{} plans, {} without effect, {} priced",
        sum(0),
        sum(1),
        sum(2)
    );
}

#[test]
fn the_price_of_a_state_says_where_its_pauses_go() {
    let mut n = [0, 0];
    for (name, tree, _) in hosts() {
        let host = Host::read(&tree);
        // There the hypervisor decides.
        if Virt::is_guest(&host.facts.virt) == Some(true) {
            continue;
        }
        for state in &host.facts.idle.states {
            let Ok(request) = Request::parse(&format!("idle.state.{}=off", state.label())) else { continue };
            let planned = planning::plan(&host, "test", &[request], None);
            let Some(step) = planned.steps.first().filter(|step| !step.price.is_empty()) else { continue };
            let mut kernel = Kernel::of(tree.clone());
            let before = kernel.sleeps();
            step.step.changes.iter().for_each(|change| kernel.write(&change.path, &change.to).unwrap());
            let after = kernel.sleeps();
            let of = |all: &BTreeMap<String, Vec<String>>, cpu: &String| -> BTreeSet<u32> {
                all.get(cpu).into_iter().flatten().map(|index| index.parse().unwrap()).collect()
            };
            // Every CPU of these hosts has the same table, or the state has another index there.
            for cpu in before.keys() {
                let (was, is) = (of(&before, cpu), of(&after, cpu));
                let Some(closed) = was.difference(&is).next() else { continue };
                // POLL takes over the shortest pauses only.
                let is_polling =
                    |index: &u32| kernel.text(&format!("{cpu}/cpuidle/state{index}/name")).as_deref() == Some("POLL");
                let is: BTreeSet<u32> = is.iter().copied().filter(|index| !is_polling(index)).collect();
                let is_shallowest = is.iter().all(|other| other > closed) && !is.is_empty();
                let says_deeper = step.price.contains("end in a deeper state");
                if is_shallowest {
                    n[0] += 1;
                    assert!(says_deeper, "{name}, {}: {}", step.step.request, step.price);
                } else if is.iter().all(|other| other < closed) {
                    n[1] += 1;
                    assert!(!says_deeper, "{name}, {}: {}", step.step.request, step.price);
                }
            }
        }
    }
    assert!(n.iter().all(|n| *n > 100), "{n:?}");
}
