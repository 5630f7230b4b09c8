//! What is to be conducted: a new rollout of a plan, or the one in the book, gone on with or undone.

use super::{dry, now_ms, read};
use crate::cli::rollout::RolloutArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::trusted::{self, Use};
use crate::view::Style;
use anyhow::Result;
use wakewatt_bios::concepts::CONCEPTS;
use wakewatt_bios::wish::Wish;
use wakewatt_carry::book::Book;
use wakewatt_carry::rollout::{look, new_id};
use wakewatt_carry::{Carrier, NodeName};
use wakewatt_core::nearest::nearest;
use wakewatt_core::units::LatencyLimit;
use wakewatt_fleet::rollout::machine;
use wakewatt_fleet::rollout::plan::{GateKind, Plan, parse};
use wakewatt_fleet::rollout::state::{Beginning, Phase, Rollout};
use wakewatt_host::input;
use wakewatt_tune::knobs;
use wakewatt_tune::profile;
use wakewatt_tune::request::Request;

/// What is to be conducted.
pub(super) struct Begun {
    pub(super) plan: Plan,
    pub(super) rollout: Rollout,
}

/// By the command line.
pub(super) fn begun(args: &RolloutArgs, carrier: &dyn Carrier, book: &mut dyn Book, by: &str) -> Result<Begun> {
    let found = read(book)?;
    if args.resume || args.undo {
        let Some(rollout) = found else {
            return Err(Failure::error(Code::Usage, "this book holds no rollout; name another one with --book"));
        };
        return again(args, carrier, rollout, by);
    }
    let (text, plan) = plan_of(args, Use::Acting)?;
    may_be_asked(args, &plan)?;
    may_be_carried(&plan, carrier)?;
    if let Some(old) = found {
        if old.phase != Phase::Ended {
            let why = format!(
                "{} is not at its end; go on with --resume, put it back with --undo, or use another --book",
                old.id
            );
            return Err(Failure::error(Code::Busy, why));
        }
    }
    let nodes = targets(&plan, carrier)?;
    let id = new_id(&plan.name).map_err(|why| Failure::error(Code::BadFile, why))?;
    let beginning = Beginning { id, carrier: carrier.word().into(), by: by.into(), now_ms: now_ms() };
    let names = nodes.into_iter().map(String::from).collect();
    Ok(Begun { rollout: Rollout::new(&plan, &text, names, beginning), plan })
}

fn again(args: &RolloutArgs, carrier: &dyn Carrier, mut rollout: Rollout, by: &str) -> Result<Begun> {
    let usage = |why: String| Failure::error(Code::Usage, why);
    let plan =
        parse(&rollout.plan).map_err(|why| Failure::error(Code::BadFile, format!("the plan in the book: {why}")))?;
    if args.plan.is_some() && plan_of(args, Use::Acting)?.0 != rollout.plan {
        return Err(usage(
            "the plan is not the one that the rollout began with; leave it out to go on with that one".into(),
        ));
    }
    if rollout.carrier != carrier.word() {
        return Err(usage(format!("this rollout reaches its nodes by {}", rollout.carrier)));
    }
    if args.resume {
        if rollout.phase == Phase::Ended {
            return Err(usage(format!("{} has ended; --status shows how, --undo puts it back", rollout.id)));
        }
        // Whoever may write there could have put a command in; in a folder only its owner can.
        let is_of_cluster = args.kubernetes.kubernetes && args.book.is_none();
        let runs = plan.gates.iter().any(|g| matches!(g.kind, GateKind::Command { .. }));
        if is_of_cluster && args.plan.is_none() && runs {
            return Err(usage(
                "a gate runs a command here, and the plan comes from the cluster: name your own plan file".into(),
            ));
        }
        may_be_asked(args, &plan)?;
    }
    machine::resume(&mut rollout, now_ms());
    if args.undo {
        machine::undo_all(&mut rollout, format!("{by} put it back"));
    }
    Ok(Begun { plan, rollout })
}

/// The plan file, with what only tune can know checked.
fn plan_of(args: &RolloutArgs, used: Use) -> Result<(String, Plan)> {
    let Some(name) = &args.plan else { return Err(Failure::error(Code::Usage, "name a plan; --example prints one")) };
    let bad = |why: String| Failure::error(Code::BadFile, format!("{name}: {why}"));
    let text = trusted::text(name, input::ROLLOUT, used)?;
    let plan = parse(&text).map_err(bad)?;
    plan.change.bios.iter().try_for_each(|word| wish(word)).map_err(bad)?;
    plan.change.profile.as_deref().map(profile::shipped).transpose().map_err(bad)?;
    plan.change.max_latency.as_deref().map(LatencyLimit::parse).transpose().map_err(bad)?;
    for setting in &plan.change.set {
        let request = Request::parse(setting).map_err(bad)?;
        if knobs::find(&request.name).is_none() {
            let near = nearest(&request.name, knobs::KNOBS.iter().map(|k| k.about().id));
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(bad(format!(
                "change.set: {}: no such setting{hint} (wakewatt tune knobs lists them)",
                request.name
            )));
        }
    }
    Ok((text, plan))
}

/// A word of `bios plan`; whether a machine has it is for its own registry to say.
fn wish(word: &str) -> Result<(), String> {
    let Wish::Concept { id, .. } = Wish::parse(word).map_err(|why| format!("change.bios: {word}: {why}"))? else {
        return Ok(());
    };
    if CONCEPTS.iter().any(|concept| concept.id == id) {
        return Ok(());
    }
    let near = nearest(&id, CONCEPTS.iter().map(|concept| concept.id));
    let hint = near.map_or(String::new(), |near| format!("; did you mean bios.{near}?"));
    Err(format!(
        "change.bios: bios.{id}: there is no such thing{hint} (wakewatt bios show lists them; attr:NAME=VALUE is any attribute)"
    ))
}

/// Firmware is reached through BMCs, and nothing else is.
fn may_be_carried(plan: &Plan, carrier: &dyn Carrier) -> Result<()> {
    let why = match (plan.change.is_firmware(), carrier.firmware().is_some()) {
        (true, false) => "this plan changes firmware: name the nodes' BMCs with --bmc LIST",
        (false, true) => "this plan changes what Linux sets: reach the nodes with --ssh HOSTS or --kubernetes",
        _ => return Ok(()),
    };
    Err(Failure::error(Code::Usage, why))
}

/// Gates that need a store have one.
fn may_be_asked(args: &RolloutArgs, plan: &Plan) -> Result<()> {
    let asks = |kind: &GateKind| matches!(kind, GateKind::Promql { .. } | GateKind::Compare(_));
    match plan.gates.iter().find(|g| asks(&g.kind)) {
        Some(gate) if args.prometheus.is_none() => Err(Failure::error(
            Code::Usage,
            format!("gate {} asks Prometheus: name it with --prometheus URL", gate.name),
        )),
        _ => Ok(()),
    }
}

/// The nodes that are meant, in the order in which they are changed.
fn targets(plan: &Plan, carrier: &dyn Carrier) -> Result<Vec<NodeName>> {
    let all = carrier.nodes().map_err(|why| super::reach::failure(&why))?;
    for host in plan.targets.hosts.iter().chain(&plan.targets.except) {
        if !all.iter().any(|n| n.name.as_str() == host) {
            let hint = nearest(host, all.iter().map(|n| n.name.as_str()))
                .map_or(String::new(), |n| format!("; did you mean {n}?"));
            return Err(Failure::error(Code::Usage, format!("targets: {host}: no such node{hint}")));
        }
    }
    let meant: Vec<NodeName> =
        all.into_iter().filter(|n| plan.targets.has(n.name.as_str(), &n.labels)).map(|n| n.name).collect();
    match plan.unfit(meant.len()) {
        Some(why) => Err(Failure::error(Code::Usage, why)),
        None => Ok(meant),
    }
}

/// Each node's own plan, held against the canary's.
pub(super) fn dry_run(args: &RolloutArgs, carrier: &dyn Carrier, style: Style) -> Result<Code> {
    let (_, plan) = plan_of(args, Use::Looking)?;
    may_be_carried(&plan, carrier)?;
    let nodes = targets(&plan, carrier)?;
    let looked = look(carrier, &plan, &nodes);
    nodes.iter().for_each(|node| {
        if let Err(why) = carrier.leave(node) {
            output::complain(&why.to_string());
        }
    });
    let n_left_out = looked.iter().filter(|l| l.left_out.is_some()).count();
    let is_canary_out = looked.first().is_some_and(|l| l.left_out.is_some());
    output::print(&if args.json {
        output::json("fleet-rollout-plan", &dry::DryRun::of(&plan, looked))?
    } else {
        dry::text(&plan, &looked, style)
    })?;
    Ok(if n_left_out > plan.max_left_out || is_canary_out { Code::Refused } else { Code::Fine })
}
