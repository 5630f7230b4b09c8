//! The plan as a document: old and new value of every setting in order, why, price, risk, who else turns that knob,
//! and what only a reboot or the firmware can do. Made from facts alone, so also for a recorded host.

use crate::boot::{BootPlan, FileEdit, TryOnce, parameters};
use crate::effect::{self, Effect, NoEffect};
use crate::knob::{About, Host, Price, Reversible, Scope};
use crate::knobs;
use crate::request::Request;
use crate::resolve::{Resolved, Step, resolve};
use serde::Serialize;
use wakewatt_core::budget;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::enterable::Enterable;
use wakewatt_core::facts::virt::Virt;
use wakewatt_core::rules::cannot_act;
use wakewatt_core::units::LatencyLimit;
use wakewatt_words::{say, told, word};

/// One step, with what must be known about its knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedStep {
    /// The request, and the changes it comes to.
    #[serde(flatten)]
    pub step: Step,
    /// The knob in words.
    pub title: String,
    /// Why the step changes nothing; none where it changes something, or waits for another.
    pub no_effect: Option<NoEffect>,
    /// What the change costs, for the value asked for; empty where it changes nothing.
    pub price: String,
    /// What can go wrong.
    pub risk: String,
    /// What one setting reaches.
    pub scope: Scope,
    /// How far it can be taken back.
    pub reversible: Reversible,
    /// Running daemons that turn this same knob.
    pub also_set_by: Vec<String>,
}

impl PlannedStep {
    /// Does it change nothing, now or later?
    fn is_idle(&self) -> bool {
        self.no_effect.is_some() || (self.step.changes.is_empty() && self.step.later.is_none())
    }
}

/// What acts at the next boot, for reading: files as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedBoot {
    /// The boot loader, and the path or fact that says it is this one.
    pub loader: String,
    /// The kernel parameters to be added.
    pub arguments: Vec<String>,
    /// Those of them that wakewatt does not know, and plans only because --any-boot-argument was given.
    pub unknown: Vec<String>,
    /// The files to be written, in their order.
    pub files: Vec<PlannedFile>,
    /// Commands, in order, after the files.
    pub commands: Vec<String>,
    /// How the new line can be booted once first, or why not.
    pub try_once: String,
    /// What must be known.
    pub notes: Vec<String>,
}

/// One file that changes whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedFile {
    /// The file to be written.
    pub path: String,
    /// Its text now; none: it is not there.
    pub before: Option<String>,
    /// Its text then; none: it goes.
    pub after: Option<String>,
}

impl PlannedBoot {
    /// The plan of a loader, for reading.
    pub fn of(plan: &BootPlan, loader: String) -> PlannedBoot {
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
        let file = |e: &FileEdit| PlannedFile { path: e.path.clone(), before: text(&e.before), after: text(&e.after) };
        let try_once = match &plan.try_once {
            None => say!("nothing changes"),
            Some(TryOnce::Refused { why }) => say!("not offered: {why}"),
            Some(TryOnce::Offered { commands, to_keep, .. }) => {
                let words: Vec<String> = commands.iter().map(|c| c.argv.join(" ")).collect();
                say!("--try-once runs {commands}; {to_keep}", commands = words.join(" && "))
            }
        };
        PlannedBoot {
            loader,
            arguments: plan.arguments.iter().map(ToString::to_string).collect(),
            unknown: parameters::unknown(&plan.arguments).iter().map(ToString::to_string).collect(),
            files: plan.edits.iter().map(file).collect(),
            commands: plan.commands.iter().map(|c| format!("{} ({})", c.argv.join(" "), c.why)).collect(),
            try_once,
            notes: plan.notes.clone(),
        }
    }
}

/// A plan for a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunePlan {
    /// Which host the plan is for: this one, or a recording.
    pub origin: String,
    /// What the settings are for: a profile's name, or the command line.
    pub purpose: String,
    /// What the latency budgets come to: which idle states stay, per kind of CPU.
    pub budget: Vec<String>,
    /// Does the plan change nothing at all?
    pub is_without_effect: bool,
    /// In the order they are carried out.
    pub steps: Vec<PlannedStep>,
    /// What cannot be done here.
    pub refused: Vec<String>,
    /// What acts at the next boot.
    pub boot: Option<PlannedBoot>,
    /// Why there is none, though it was asked for.
    pub no_boot_because: Option<String>,
    /// What only a reboot, the firmware or the hypervisor can do.
    pub beyond: Vec<String>,
}

/// Makes a plan.
pub fn plan(
    host: &Host<'_>,
    purpose: &str,
    requests: &[Request],
    boot: Option<Result<PlannedBoot, String>>,
) -> TunePlan {
    let Resolved { steps, refused } = resolve(host, requests);
    let (boot, no_boot_because) = match boot {
        None => (None, None),
        Some(Ok(mut plan)) => {
            plan.notes.extend(without_effect(host, &plan.arguments));
            (Some(plan), None)
        }
        Some(Err(why)) => (None, Some(why)),
    };
    let (effects, after) = effect::of(host, &steps);
    let budget = if requests.iter().any(is_limit) { comes_to(host, &after.idle) } else { Vec::new() };
    let steps: Vec<PlannedStep> =
        steps.into_iter().zip(effects).map(|(step, effect)| explain(host, step, effect)).collect();
    TunePlan {
        origin: host.facts.origin.clone(),
        purpose: purpose.into(),
        budget,
        is_without_effect: boot.is_none()
            && no_boot_because.is_none()
            && refused.is_empty()
            && steps.iter().all(PlannedStep::is_idle),
        steps,
        refused,
        boot,
        no_boot_because,
        beyond: beyond(host, requests),
    }
}

/// The arguments that could change nothing on this machine, and why.
fn without_effect(host: &Host<'_>, arguments: &[String]) -> Vec<String> {
    let of = |argument: &String| {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let why = cannot_act(&host.facts, parameters::known(name)?.key, value)?;
        Some(say!("{argument} has no effect here: {why}"))
    };
    arguments.iter().filter_map(of).collect()
}

/// Does a request ask for a latency limit?
fn is_limit(request: &Request) -> bool {
    request.name.starts_with("qos.") && request.to.first().is_some_and(|to| LatencyLimit::parse(to).is_ok())
}

/// What the limits in force come to once the plan is made, other people's included: a line for all CPUs, or one for each group.
fn comes_to(host: &Host<'_>, after: &[Enterable]) -> Vec<String> {
    let mut all: Vec<(String, bool, CpuSet)> = Vec::new();
    for group in after.iter().filter(|group| !group.states.is_empty()) {
        let resolution = group.resolution();
        let says = resolution.to_string();
        match all.iter_mut().find(|(known, ..)| *known == says) {
            Some((.., cpus)) => *cpus = cpus.union(&group.cpus),
            None => all.push((says, resolution.ends_in_c1(), group.cpus.clone())),
        }
    }
    let is_one = all.len() == 1;
    let line = |(says, ends_in_c1, cpus): (String, bool, CpuSet)| {
        let promoted = ends_in_c1.then(|| host.c1_promoted()).flatten().map(budget::promoted).unwrap_or_default();
        if is_one { says + &promoted } else { format!("{}: {says}{promoted}", cpus.named()) }
    };
    all.into_iter().map(line).collect()
}

fn explain(host: &Host<'_>, step: Step, effect: Effect) -> PlannedStep {
    const UNKNOWN: About = About {
        id: "",
        title: "",
        unit: "",
        scope: Scope::Machine,
        io_scope: Scope::Machine,
        stage: crate::knob::Stage::Devices,
        reversible: Reversible::Exactly,
        price: Price::same(""),
        risk: "",
        overlaps: &[],
        moves: &[],
        source: "",
    };
    let about = knobs::find(&step.knob).map_or(&UNKNOWN, |k| k.about());
    PlannedStep {
        title: told(about.title).into(),
        no_effect: effect.none,
        price: effect.price,
        risk: told(about.risk).into(),
        scope: about.io_scope,
        reversible: about.reversible,
        also_set_by: also_set_by(host, about),
        step,
    }
}

/// Running daemons that turn a knob, with the word they know it by.
pub fn also_set_by(host: &Host<'_>, about: &About) -> Vec<String> {
    let daemons = host.facts.holders.daemons.iter();
    let line = |d: &wakewatt_core::facts::holders::RunningDaemon| {
        let shared: Vec<&str> = d.overlaps.iter().map(String::as_str).filter(|o| about.overlaps.contains(o)).collect();
        (!shared.is_empty()).then(|| {
            say!(
                "{name} (process {pid}) sets the {what}",
                name = d.name,
                pid = d.pid,
                what = shared.iter().map(|word| told(word)).collect::<Vec<_>>().join(word!(" and "))
            )
        })
    };
    daemons.filter_map(line).collect()
}

fn beyond(host: &Host<'_>, requests: &[Request]) -> Vec<String> {
    let mut beyond = Vec::new();
    let is_about_idle = requests.iter().any(|r| r.name.starts_with("qos.") || r.name.starts_with("idle."));
    let is_about_clock = requests.iter().any(|r| r.name.starts_with("freq.") || r.name.starts_with("uncore."));
    if Virt::is_guest(&host.facts.virt) == Some(true) {
        beyond
            .push(say!("this is a guest: the idle states, clock and turbo of the real CPUs are set on its host only"));
        return beyond;
    }
    // Sleep that is allowed again is allowed as far as the firmware lists it.
    let allows = |r: &Request| matches!(r.to.first().map(String::as_str), Some("none" | "on" | "0"));
    let idle = || requests.iter().filter(|r| r.name.starts_with("qos.") || r.name.starts_with("idle.state."));
    if is_about_idle && idle().next().is_some() && idle().all(allows) {
        beyond.push(word!("firmware: idle states that are switched off there stay away, whatever is set here").into());
    } else if is_about_idle {
        beyond.push(idle_in_firmware(host));
    }
    if is_about_clock {
        beyond.push(
            say!("firmware: a system profile such as \"OS controlled\" must leave the clock to Linux; what it locks reads back \
             unchanged and is reported as refused"),
        );
    }
    beyond
}

/// What the firmware of this kind of machine decides of idle states.
fn idle_in_firmware(host: &Host<'_>) -> String {
    let processor = host.facts.topology.processor();
    match processor {
        Some(processor) if processor.is_intel() => word!(
            "firmware: C1E, package C-states and Monitor/Mwait can be switched off there, which holds for every kernel; \
             --boot-arg takes states away at the next boot"
        ),
        Some(processor) if processor.is_amd() => word!(
            "firmware: Global C-state Control can be switched off there, which holds for every kernel; --boot-arg takes \
             states away at the next boot"
        ),
        _ => word!("firmware: it describes the idle states to the kernel, and none enters those that it leaves out"),
    }
    .into()
}
