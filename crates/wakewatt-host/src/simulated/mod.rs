//! A machine in memory that can be written to, fail, be killed and lose power: where crash safety is proved.
//!
//! It has kernel attributes that behave like the real ones where that matters for order and undo (a governor brings its
//! tunables and refuses energy preferences, turbo moves the limits, an offline CPU takes its files along), and a disk
//! that forgets what was not fsynced. Every operation counts; a [`Fault`] strikes at one of them. It is a model: the
//! same proof is sampled on a real kernel in the testbed.

use crate::exec::Runner;
use crate::sink::{Sink, SinkError};
use crate::store::Store;
use disk::Inode;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::source::{ErrorKind, Read, ReadError, Source, Tree};
use wakewatt_core::units::Cpu;

pub mod cpus;
mod disk;

/// What goes wrong at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This operation fails, later ones work.
    Once,
    /// This one and all later ones fail.
    Forever,
    /// The process is killed before it: nothing it does later has an effect. A file being written is left half.
    Kill,
    /// The disk is read-only from this one on, as after `errors=remount-ro`; the kernel's attributes still work.
    ReadOnly,
}

/// What happens when an attribute is written, besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The kernel refuses, in these words.
    Refuse(String),
    /// The kernel takes it and keeps the old value.
    Ignore,
    /// This CPU goes offline at that moment.
    Offline(Cpu),
}

#[derive(Clone, Debug, Default)]
struct State {
    attributes: BTreeMap<String, String>,
    hidden: BTreeMap<String, String>,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    n_operations: usize,
    fault: Option<(usize, Fault)>,
    n_boots: u32,
    at_boot: BTreeMap<String, String>,
    ran: Vec<String>,
    events: BTreeMap<String, Event>,
    missing: Vec<String>,
}

/// Attributes, a disk with what was and was not fsynced, and the fault to come.
#[derive(Debug, Default)]
pub struct SimulatedMachine {
    state: RefCell<State>,
}

const CPU: &str = "/sys/devices/system/cpu";

impl SimulatedMachine {
    /// A machine with these attributes (`Tree`'s mini-language), just booted.
    pub fn new(text: &str) -> SimulatedMachine {
        let tree = Tree::from_text(text);
        let value = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_string();
        let attributes: BTreeMap<String, String> =
            tree.files.iter().filter_map(|(p, r)| Some((p.clone(), value(r.as_ref().ok()?)))).collect();
        let state = State { at_boot: attributes.clone(), attributes, n_boots: 1, ..State::default() };
        SimulatedMachine { state: RefCell::new(state) }
    }

    /// The fault to come: at this operation, counted from 0 from now on.
    pub fn fail_at(&self, at: usize, fault: Fault) {
        let mut state = self.state.borrow_mut();
        (state.n_operations, state.fault) = (0, Some((at, fault)));
    }
    /// All is well again; the count starts anew.
    pub fn heal(&self) {
        let mut state = self.state.borrow_mut();
        (state.n_operations, state.fault) = (0, None);
    }
    /// Operations since the count began.
    pub fn n_operations(&self) -> usize {
        self.state.borrow().n_operations
    }
    /// All attributes and all files but those below `except`: what must be the same afterwards.
    pub fn snapshot(&self, except: &str) -> BTreeMap<String, String> {
        let state = self.state.borrow();
        let files = state.names.iter().filter(|(p, _)| !p.starts_with(except));
        let files = files.map(|(p, i)| (format!("file:{}", p.display()), text(&state.inodes[*i].seen)));
        state.attributes.clone().into_iter().chain(files).collect()
    }
    /// The power fails and comes back: attributes start afresh, of files only what was fsynced is left.
    pub fn power_cycle(&self) {
        let mut state = self.state.borrow_mut();
        state.attributes = state.at_boot.clone();
        state.hidden.clear();
        state.names = state.durable_names.clone();
        for inode in &mut state.inodes {
            inode.seen = inode.durable.clone();
        }
        state.n_boots += 1;
        (state.n_operations, state.fault) = (0, None);
    }
    /// The id of the running boot.
    pub fn boot_id(&self) -> String {
        format!("boot-{}", self.state.borrow().n_boots)
    }
    /// Somebody else writes an attribute, whatever it takes.
    pub fn meddle(&self, path: &str, value: &str) {
        self.state.borrow_mut().attributes.insert(path.into(), value.into());
    }
    /// Something happens whenever this attribute is written.
    pub fn on(&self, path: &str, event: Event) {
        self.state.borrow_mut().events.insert(path.into(), event);
    }
    /// A CPU goes, and its files with it.
    pub fn take_offline(&self, cpu: Cpu) {
        self.state.borrow_mut().switch_cpu(cpu, false);
    }
    /// It comes back, with the values it had.
    pub fn bring_online(&self, cpu: Cpu) {
        self.state.borrow_mut().switch_cpu(cpu, true);
    }
    /// There is no such program, from now on.
    pub fn lose_program(&self, name: &str) {
        self.state.borrow_mut().missing.push(name.into());
    }
    /// A file of the kernel's goes, with its device.
    pub fn lose_attributes(&self, prefix: &str) {
        self.state.borrow_mut().attributes.retain(|path, _| !path.starts_with(prefix));
    }
    /// The commands that were run.
    pub fn ran(&self) -> Vec<String> {
        self.state.borrow().ran.clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl State {
    /// Counts an operation; is it struck?
    fn is_struck(&mut self) -> bool {
        let now = self.n_operations;
        self.n_operations += 1;
        match self.fault {
            Some((at, Fault::Once)) => now == at,
            Some((at, Fault::Forever | Fault::Kill)) => now >= at,
            Some((_, Fault::ReadOnly)) | None => false,
        }
    }
    /// The same for an operation that changes the disk.
    fn is_disk_struck(&mut self) -> bool {
        let now = self.n_operations;
        self.is_struck() || matches!(self.fault, Some((at, Fault::ReadOnly)) if now >= at)
    }
    /// Is this the very write at which the process dies?
    fn is_torn(&self) -> bool {
        matches!(self.fault, Some((at, Fault::Kill)) if at + 1 == self.n_operations)
    }

    /// Hides or shows a CPU's files, and says in `online` who is left.
    fn switch_cpu(&mut self, cpu: Cpu, is_on: bool) {
        let prefixes = [format!("{CPU}/cpu{cpu}/"), format!("{CPU}/cpufreq/policy{cpu}/")];
        let is_of_cpu = |p: &String| prefixes.iter().any(|x| p.starts_with(x)) && !p.ends_with("/online");
        let (from, to) =
            if is_on { (&mut self.hidden, &mut self.attributes) } else { (&mut self.attributes, &mut self.hidden) };
        let moving: Vec<String> = from.keys().filter(|p| is_of_cpu(p)).cloned().collect();
        for path in moving {
            let value = from.remove(&path).unwrap_or_default();
            to.insert(path, value);
        }
        let mut online =
            self.attributes.get(&format!("{CPU}/online")).and_then(|t| CpuSet::parse(t).ok()).unwrap_or_default();
        let mut only = CpuSet::new();
        only.insert(cpu);
        online = if is_on { online.union(&only) } else { online.minus(&only) };
        self.attributes.insert(format!("{CPU}/online"), online.to_string());
    }

    /// The kernel's own doings when an attribute is written; an error is an errno in words.
    fn write_attribute(&mut self, path: &str, value: &str) -> Result<(), &'static str> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let sibling = |name: &str| format!("{folder}/{name}");
        match file {
            "scaling_governor" => {
                let known = self.attributes.get(&sibling("scaling_available_governors")).cloned().unwrap_or_default();
                if !known.split_whitespace().any(|g| g == value) {
                    return Err("Invalid argument");
                }
                self.attributes.insert(path.into(), value.into());
                let others = self.attributes.clone();
                let in_use = |g: &str| others.iter().any(|(p, v)| p.ends_with("/scaling_governor") && v == g);
                for (governor, name, default) in TUNABLES {
                    let tunable = format!("{CPU}/cpufreq/{governor}/{name}");
                    if in_use(governor) {
                        self.attributes.entry(tunable).or_insert_with(|| (*default).into());
                    } else {
                        self.attributes.remove(&tunable);
                    }
                }
                // amd-pstate keeps the preference that `performance` forced; so do we.
                if value == "performance" && self.attributes.contains_key(&sibling("energy_performance_preference")) {
                    self.attributes.insert(sibling("energy_performance_preference"), "performance".into());
                }
                return Ok(());
            }
            "energy_performance_preference" => {
                let governor = self.attributes.get(&sibling("scaling_governor")).map_or("", String::as_str);
                if governor == "performance" && value != "performance" {
                    return Err("Device or resource busy");
                }
            }
            "no_turbo" | "boost" => {
                let is_on = (file == "boost") == (value == "1");
                let limit = if is_on { "cpuinfo_max_freq" } else { "base_frequency" };
                let policies: Vec<String> =
                    self.attributes.keys().filter(|p| p.ends_with("/scaling_max_freq")).cloned().collect();
                for max in policies {
                    let from = max.replace("scaling_max_freq", limit);
                    if let Some(khz) = self.attributes.get(&from).cloned() {
                        self.attributes.insert(max, khz);
                    }
                }
            }
            "online" => {
                if let Some(cpu) = folder.rsplit_once("/cpu").and_then(|(_, n)| n.parse().ok()) {
                    self.switch_cpu(cpu, value == "1");
                }
            }
            // The lower one must stay below the upper one at every moment, as in the kernel's conservative governor.
            "down_threshold" | "up_threshold" => {
                let limit = |name: &str| self.attributes.get(&sibling(name)).and_then(|v| v.parse::<u32>().ok());
                let new = value.parse::<u32>().map_err(|_| "Invalid argument")?;
                let is_wrong = match file {
                    "down_threshold" => limit("up_threshold").is_some_and(|up| new >= up),
                    _ => limit("down_threshold").is_some_and(|down| new <= down),
                };
                if is_wrong {
                    return Err("Invalid argument");
                }
            }
            _ => {}
        }
        self.attributes.insert(path.into(), value.into());
        Ok(())
    }
}

/// Tunables that come with their governor, with the values they come with.
const TUNABLES: &[(&str, &str, &str)] = &[
    ("ondemand", "up_threshold", "95"),
    ("ondemand", "sampling_rate", "10000"),
    ("conservative", "up_threshold", "80"),
    ("conservative", "down_threshold", "20"),
];

fn io(path: &str) -> SinkError {
    SinkError { path: path.into(), what: "Input/output error".into(), is_absent: false }
}

fn absent(path: &str) -> SinkError {
    SinkError { path: path.into(), what: "No such file or directory".into(), is_absent: true }
}

impl Sink for SimulatedMachine {
    fn write(&self, path: &str, value: &str) -> Result<(), SinkError> {
        if let Some(file) = path.strip_prefix("file:") {
            let file = Path::new(file);
            return crate::store::replace(self, file, value.as_bytes(), 0o644).map_err(|_| io(path));
        }
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(io(path));
        }
        if path.starts_with("hold:") {
            // No holder leaves no trace; one ends with the power.
            match value {
                "none" => state.attributes.remove(path),
                limit => state.attributes.insert(path.into(), limit.into()),
            };
            return Ok(());
        }
        if !state.attributes.contains_key(path) {
            return Err(absent(path));
        }
        match state.events.get(path).cloned() {
            Some(Event::Refuse(what)) => return Err(SinkError { path: path.into(), what, is_absent: false }),
            Some(Event::Ignore) => return Ok(()),
            Some(Event::Offline(cpu)) => state.switch_cpu(cpu, false),
            None => {}
        }
        let refuse = |what: &str| SinkError { path: path.into(), what: what.into(), is_absent: false };
        state.write_attribute(path, value).map_err(refuse)
    }
    fn read(&self, path: &str) -> Result<String, SinkError> {
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(io(path));
        }
        if let Some(file) = path.strip_prefix("file:") {
            let at = state.names.get(Path::new(file)).copied();
            return at.map(|at| text(&state.inodes[at].seen)).ok_or_else(|| absent(path));
        }
        if path.starts_with("hold:") {
            return Ok(state.attributes.get(path).cloned().unwrap_or_else(|| "none".into()));
        }
        state.attributes.get(path).cloned().ok_or_else(|| absent(path))
    }
    fn remove(&self, path: &str) -> Result<(), SinkError> {
        let file = path.strip_prefix("file:").ok_or_else(|| io(path))?;
        crate::store::remove(self, Path::new(file)).map_err(|_| io(path))
    }
    fn make_durable(&self, path: &str) -> Result<(), SinkError> {
        let Some(file) = path.strip_prefix("file:").map(Path::new) else { return Ok(()) };
        crate::store::tidy(self, file).map_err(|_| io(path))?;
        let is_there = self.state.borrow().names.contains_key(file);
        let synced = if is_there { self.sync(file) } else { Ok(()) };
        synced.and_then(|()| self.sync_folder(crate::store::folder_of(file))).map_err(|_| io(path))
    }
}

impl Source for SimulatedMachine {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(ReadError::new(ErrorKind::Failed, "Input/output error"));
        }
        let file = state.names.get(Path::new(path)).map(|at| state.inodes[*at].seen.clone());
        let attribute = state.attributes.get(path).map(|v| format!("{v}\n").into_bytes());
        attribute.or(file).ok_or_else(ReadError::absent)
    }
    fn list(&self, path: &str) -> Read<Vec<String>> {
        let mut state = self.state.borrow_mut();
        if state.is_struck() {
            return Err(ReadError::new(ErrorKind::Failed, "Input/output error"));
        }
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let paths = state.attributes.keys().cloned().chain(state.names.keys().map(|p| p.display().to_string()));
        let mut names: Vec<String> =
            paths.filter_map(|p| Some(p.strip_prefix(&prefix)?.split('/').next()?.to_string())).collect();
        names.sort();
        names.dedup();
        if names.is_empty() { Err(ReadError::absent()) } else { Ok(names) }
    }
    fn link(&self, _: &str) -> Read<String> {
        Err(ReadError::absent())
    }
    fn msr(&self, _: Cpu, _: u32) -> Read<u64> {
        Err(ReadError::absent())
    }
    fn origin(&self) -> String {
        "a machine in memory".into()
    }
}

/// The file that [`SimulatedMachine`]'s only command makes from the drop-in: a boot menu, as `update-grub` would.
pub const GENERATED: &str = "/boot/grub/grub.cfg";
/// The drop-in it is made from.
pub const DROP_IN: &str = "/etc/default/grub.d/zz-wakewatt.cfg";

impl Runner for SimulatedMachine {
    fn find(&self, program: &str) -> Result<(), String> {
        let is_missing = self.state.borrow().missing.iter().any(|name| name == program);
        if is_missing { Err(format!("{program}: no such program")) } else { Ok(()) }
    }
    fn run(&self, argv: &[String]) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        if state.is_disk_struck() {
            return Err("exit status: 1".into());
        }
        if let Some(lost) = state.missing.iter().find(|name| argv.first() == Some(name)) {
            return Err(format!("{lost}: cannot be run: No such file or directory"));
        }
        state.ran.push(argv.join(" "));
        let drop_in = state.names.get(Path::new(DROP_IN)).map_or(String::new(), |at| text(&state.inodes[*at].seen));
        let menu = format!("linux /vmlinuz quiet {}", drop_in.trim());
        state.inodes.push(Inode { durable: menu.clone().into(), seen: menu.into() });
        let at = state.inodes.len() - 1;
        state.names.insert(GENERATED.into(), at);
        state.durable_names.insert(GENERATED.into(), at);
        Ok(())
    }
}
