//! Arms made of settings: each arm of a plan resolved on this host, entered and left through tune.
//!
//! An arm is any mix of settings (a profile, `set`), a latency limit held on the whole machine, and a command with the
//! one that takes it back. What this host does not have is said before anything is changed, and the arm is left out. All
//! arms share one session of tune: one journal names what any of them writes. The limit is held by this process, so the kernel drops it however the process ends.

use crate::companion::Companion;
use crate::experiment::Arms;
use crate::idle_limits::{MAX_FORBIDDEN_RATIO, MIN_ENTRIES, all_states, entered_above, shallowest};
use crate::plan::{ArmLimit, PlanArm};
use std::collections::BTreeMap;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::pm_qos::GLOBAL;
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::experiment::Arm;
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::source::ErrorKind;
use wakewatt_core::units::LatencyLimit;
use wakewatt_host::sink::Sink;
use wakewatt_tune::knob::Host;
use wakewatt_tune::knobs::qos_global::GlobalLimit;
use wakewatt_tune::resolve::{Step, resolve};
use wakewatt_tune::session::{Session, SettingSet, is_instant};

/// An arm that can be entered here.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadyArm {
    /// Name, title and what is written.
    pub arm: Arm,
    /// Its settings and its command.
    pub set: SettingSet,
    /// Held meanwhile.
    pub limit: Option<LatencyLimit>,
    /// Runs meanwhile.
    pub beside: Option<Vec<String>>,
    /// What to know: places left out, settings that are so already.
    pub notes: Vec<String>,
    /// Is entering it a matter of microseconds that moves nothing else?
    pub is_instant: bool,
    /// Idle states it switches off: CPU and index.
    off: Vec<(u32, u32)>,
}

impl ReadyArm {
    /// Does it write settings, or run a command? A limit alone needs no journal.
    pub fn is_written(&self) -> bool {
        self.set != SettingSet::default()
    }
}

/// The arms of a plan on this host, and those it cannot have.
pub fn resolve_arms(host: &Host<'_>, arms: &[PlanArm]) -> (Vec<ReadyArm>, Vec<Skipped>) {
    let (mut ready, mut skipped) = (Vec::new(), Vec::new());
    for arm in arms {
        match resolve_arm(host, arm) {
            Ok(arm) => ready.push(arm),
            Err(why) => skipped.push(Skipped { what: format!("arm {}", arm.name), why }),
        }
    }
    (ready, skipped)
}

fn resolve_arm(host: &Host<'_>, arm: &PlanArm) -> Result<ReadyArm, String> {
    let resolved = resolve(host, &arm.requests);
    if !resolved.refused.is_empty() {
        return Err(resolved.refused.join("; "));
    }
    let mut settings: Vec<String> = resolved.steps.iter().flat_map(written).collect();
    let mut notes: Vec<String> = arm.notes.clone();
    let (mut n_changes, mut off) = (0, Vec::new());
    for step in &resolved.steps {
        notes.extend(step.left_out.iter().map(|why| format!("left out: {why}")));
        notes.extend(step.notes.iter().cloned());
        n_changes += step.changes.iter().filter(|c| !c.is_so()).count() + usize::from(step.later.is_some());
        off.extend(step.changes.iter().filter(|c| c.to == "1").filter_map(|c| state_of(&c.path)));
    }
    let mut title = arm.title.clone();
    let limit = match arm.limit {
        Some(ArmLimit::Shallowest) => {
            let (limit, state) = shallowest(&host.facts)?;
            if title == arm.name {
                title = format!("{state} only");
            }
            Some(limit)
        }
        Some(ArmLimit::At(limit)) => Some(limit).filter(|l| *l != LatencyLimit::None),
        None => None,
    };
    if arm.is_control {
        settings.push(format!("{GLOBAL} held open without a limit: switched like the others, and nothing changes"));
    }
    if let Some(limit) = limit {
        // One that is there and cannot be read (denied, not recorded) is tried; the rehearsal tells.
        if host.source.read(GLOBAL).is_err_and(|e| e.kind == ErrorKind::Absent) {
            return Err(format!("{GLOBAL}: not on this host, so no latency limit can be held"));
        }
        if let Some(found) = host.facts.qos.global.get().filter(|found| **found < limit) {
            return Err(format!("{GLOBAL}: another process holds {found} already, which is stricter than {limit}"));
        }
        let states = all_states(&host.facts);
        let is_all_allowed = !states.is_empty() && states.iter().all(|(_, _, ns)| limit.allows(*ns));
        if is_all_allowed && arm.requests.is_empty() && arm.command.is_none() && arm.beside.is_none() {
            return Err(format!(
                "it would be the machine as it is: no idle state here takes longer than {limit} to leave"
            ));
        }
        settings.push(format!("{GLOBAL} held open at {} us, released after the block", limit.as_global_us()));
    }
    if let Some((run, undo)) = &arm.command {
        settings.push(format!("runs {:?}, and {:?} to leave", run.join(" "), undo.join(" ")));
    }
    if let Some(argv) = &arm.beside {
        settings.push(format!("{:?} runs meanwhile, and ends with the block", argv.join(" ")));
    }
    let is_asked = !arm.requests.is_empty();
    if is_asked && n_changes == 0 && limit.is_none() && arm.command.is_none() {
        notes.push("the machine is so already: nothing is written".into());
    }
    if settings.is_empty() {
        settings.push("nothing is written".into());
    }
    Ok(ReadyArm {
        arm: Arm { id: arm.name.clone(), title, settings },
        set: SettingSet { requests: arm.requests.clone(), command: arm.command.clone() },
        limit: limit.or(arm.is_control.then_some(LatencyLimit::None)),
        beside: arm.beside.clone(),
        notes,
        // A limit is a write to an open file; settings are where their knobs say so, and a program never is.
        is_instant: arm.beside.is_none() && arm.command.is_none() && is_instant(&resolved),
        off,
    })
}

/// `…/cpu3/cpuidle/state2/disable`: CPU 3, state 2.
fn state_of(path: &str) -> Option<(u32, u32)> {
    let rest = path.strip_prefix("/sys/devices/system/cpu/cpu")?.strip_suffix("/disable")?;
    let (cpu, state) = rest.split_once("/cpuidle/state")?;
    Some((cpu.parse().ok()?, state.parse().ok()?))
}

/// A step in lines: equal changes together.
fn written(step: &Step) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), (CpuSet, Vec<&str>)> = BTreeMap::new();
    for change in step.changes.iter().filter(|c| !c.is_so()) {
        let group = groups.entry((&change.before_shown, &change.to_shown)).or_default();
        group.0 = group.0.union(&change.cpus);
        group.1.push(&change.path);
    }
    let mut lines: Vec<String> = groups
        .iter()
        .map(|((before, to), (cpus, paths))| {
            let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
            let at = if cpus.is_empty() { String::new() } else { format!(" on CPUs {cpus}") };
            let path = paths.first().copied().unwrap_or_default();
            format!("{}{at}: {before} -> {to} ({path}{more})", step.request.name)
        })
        .collect();
    if let Some(later) = &step.later {
        lines.push(format!("{} = {} ({later})", step.request.name, step.request.to.join("|")));
    }
    lines
}

/// Holds the latency limit of the whole machine.
pub trait LimitHolder {
    /// This one and no other; an error says what is in force instead.
    fn hold(&mut self, limit: Option<LatencyLimit>) -> Result<(), String>;
    /// What is in force, in words; none without the device.
    fn effective(&self) -> Option<String>;
}

/// `/dev/cpu_dma_latency`.
#[derive(Debug, Default)]
pub struct DeviceLimit(Option<GlobalLimit>);

impl LimitHolder for DeviceLimit {
    fn hold(&mut self, limit: Option<LatencyLimit>) -> Result<(), String> {
        self.0 = None;
        let Some(limit) = limit else { return Ok(()) };
        let held = GlobalLimit::hold(limit).map_err(|e| e.to_string())?;
        let effective = held.effective().map_err(|e| e.to_string())?;
        if effective > limit {
            return Err(format!("{GLOBAL}: asked for {limit}, {effective} is in force"));
        }
        self.0 = Some(held);
        Ok(())
    }
    fn effective(&self) -> Option<String> {
        // A request of "no limit" changes nothing: the minimum of all requests stays what it is.
        let read = |held: &GlobalLimit| held.effective().ok().map(|l| l.to_string());
        match &self.0 {
            Some(held) => read(held),
            None => read(&GlobalLimit::hold(LatencyLimit::None).ok()?),
        }
    }
}

/// The arms of a plan on this machine.
pub struct SettingArms<'a> {
    arms: Vec<ReadyArm>,
    /// The session's number of each.
    sets: Vec<usize>,
    /// None where no arm writes anything, and when it has ended.
    session: Option<Session<'a>>,
    limits: Box<dyn LimitHolder + 'a>,
    /// Of the arm that is in force.
    companion: Option<Companion>,
    /// Where the settings are read back, also after the session.
    written: Option<(&'a dyn Sink, Vec<String>)>,
    latencies_ns: Vec<(u32, String, u64)>,
    found: Vec<(String, String)>,
    is_over: bool,
}

impl<'a> SettingArms<'a> {
    /// What a session of these arms is begun with.
    pub fn sets(arms: &[ReadyArm]) -> Vec<SettingSet> {
        arms.iter().map(|a| a.set.clone()).collect()
    }

    /// With the session of their sets; nothing is changed yet. Where no arm writes settings there is none.
    pub fn new(
        arms: Vec<ReadyArm>,
        facts: &Snapshot,
        session: Option<Session<'a>>,
        limits: Box<dyn LimitHolder + 'a>,
    ) -> SettingArms<'a> {
        let written = session.as_ref().map(|session| (session.hands().sink, session.paths()));
        let (sets, latencies_ns) = ((0..arms.len()).collect(), all_states(facts));
        let (found, is_over) = (Vec::new(), false);
        let companion = None;
        let mut all = SettingArms { arms, sets, session, limits, companion, written, latencies_ns, found, is_over };
        all.found = all.state();
        all
    }

    /// Enters every arm once and leaves it; those that fail are taken out and named.
    pub fn rehearse(&mut self) -> Result<Vec<Skipped>, String> {
        let mut failed: Vec<Skipped> = Vec::new();
        let mut at = 0;
        while at < self.arms.len() {
            match self.enter(at) {
                Ok(()) => at += 1,
                Err(why) => {
                    let what = format!("arm {}", self.arms[at].arm.id);
                    failed.push(Skipped { what, why: format!("it could not be set: {why}") });
                    self.arms.remove(at);
                    self.sets.remove(at);
                    if at == 0 {
                        return Err(failed
                            .pop()
                            .map_or(String::new(), |s| format!("the baseline, {}: {}", s.what, s.why)));
                    }
                }
            }
        }
        self.companion = None;
        self.limits.hold(None)?;
        if let Some(session) = &mut self.session {
            session.leave()?;
        }
        Ok(failed)
    }
}

impl Arms for SettingArms<'_> {
    fn arms(&self) -> Vec<Arm> {
        self.arms.iter().map(|a| a.arm.clone()).collect()
    }

    fn enter(&mut self, index: usize) -> Result<(), String> {
        self.companion = None;
        self.limits.hold(None)?;
        if self.is_over {
            return Err("the session has ended".into());
        }
        if let Some(session) = &mut self.session {
            session.enter(self.sets[index]).map_err(|why| format!("{}: {why}", self.arms[index].arm.id))?;
        }
        self.limits.hold(self.arms[index].limit)?;
        self.companion = self.arms[index].beside.as_deref().map(Companion::start).transpose()?;
        Ok(())
    }

    fn leave(&mut self) -> Result<(), String> {
        self.is_over = true;
        self.companion = None;
        self.limits.hold(None)?;
        match self.session.take().map(Session::end) {
            Some(report) if !report.remains().is_empty() => Err(report.remains().join("; ")),
            _ => Ok(()),
        }
    }

    fn state(&self) -> Vec<(String, String)> {
        let limit = self.limits.effective().map(|l| (GLOBAL.to_string(), format!("effective limit {l}")));
        let written = self.written.iter().flat_map(|(sink, paths)| {
            paths.iter().map(|path| (path.clone(), sink.read(path).unwrap_or_else(|e| e.to_string())))
        });
        limit.into_iter().chain(written).collect()
    }

    fn found(&self) -> Vec<(String, String)> {
        self.found.clone()
    }

    fn is_instant(&self) -> bool {
        self.arms.iter().all(|arm| arm.is_instant)
    }

    fn contradiction(&self, index: usize, idle: &[IdleDelta]) -> Option<String> {
        let arm = self.arms.get(index)?;
        if let Some(why) = self.companion.as_ref().and_then(Companion::trouble) {
            return Some(why);
        }
        if let Some(why) = arm.limit.and_then(|limit| entered_above(limit, &self.latencies_ns, idle)) {
            return Some(why);
        }
        for delta in idle {
            let total: u64 = delta.states.iter().map(|s| s.n_usage).sum();
            for state in delta.states.iter().filter(|s| arm.off.contains(&(delta.cpu, s.index))) {
                if total >= MIN_ENTRIES && state.n_usage as f64 > total as f64 * MAX_FORBIDDEN_RATIO {
                    let (cpu, name, n) = (delta.cpu, &state.name, state.n_usage);
                    return Some(format!(
                        "CPU {cpu} entered {name} {n} times of {total}, which is switched off: the setting did not take"
                    ));
                }
            }
        }
        None
    }
}
