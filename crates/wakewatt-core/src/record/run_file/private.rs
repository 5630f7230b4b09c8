//! What a run file must not say: the names that people gave, in members made for them and in free text.
//!
//! First the members that hold a name and nothing else (a peer, a path, a process, the command line of a load): each is
//! renamed and remembered. Then every other text of the document, sentence by sentence, by those names, by the names that
//! the capture of the facts replaced, and by form (record/mask/prose.rs). A text without a blank is a word of the format
//! (an id, a metric, a state), on which runs are joined: in it only forms are looked for, never names.

use super::{RunFile, RunFileError};
use crate::record::mask::{Kind, Names};
use crate::samples::Samples;
use crate::samples::disk::DiskTarget;
use crate::samples::energy::EnergySample;
use crate::samples::load;
use crate::samples::not_done::NotDone;
use crate::samples::traced_whose::TracedWhose;
use crate::samples::wakes::WakerKind;
use serde_json::Value;

/// Masks the run.
pub(super) fn mask(run: RunFile, names: &mut Names) -> Result<RunFile, RunFileError> {
    // The facts are masked already, by the same names; the command and the hour name nobody.
    let RunFile { made_at, command, host, mut samples, chosen_because, quiet_wait, not_done, mut cited } = run;
    members(&mut samples, names);
    let damaged = |e: serde_json::Error| RunFileError::Damaged(super::short(&e.to_string()));
    // To and fro as text, which the file needs anyway: half a megabyte of code less than by way of `Value`.
    let text = serde_json::to_string(&(&samples, &chosen_because, &not_done)).map_err(damaged)?;
    let mut value: Value = serde_json::from_str(&text).map_err(damaged)?;
    learn(&value, names);
    texts(&mut value, names);
    let text = value.to_string();
    let masked: (Samples, Vec<String>, Vec<NotDone>) = serde_json::from_str(&text).map_err(|e| super::broken(&e))?;
    let (samples, chosen_because, not_done) = masked;
    for place in &mut cited {
        place.text = names.prose(place.short_text());
        place.says = names.prose(&place.says);
        place.path = names.prose(&place.path);
    }
    Ok(RunFile { made_at, command, host, samples, chosen_because, quiet_wait, not_done, cited })
}

/// Every kind by name: one that is new is asked here whether a member of it holds a name and nothing else.
fn members(samples: &mut Samples, names: &mut Names) {
    let Samples {
        wakeups: _,
        network,
        memory: _,
        cores: _,
        disk,
        disk_experiment: _,
        icmp,
        speed: _,
        idle_states: _,
        work: _,
        trace,
        experiment: _,
        conclusions,
        experiments: _,
        load,
        energy,
        timelines: _,
        replays: _,
    } = samples;
    let peers = network.iter_mut().map(|s| &mut s.peer).chain(icmp.iter_mut().map(|s| &mut s.peer));
    for peer in peers.filter(|p| *p != "loopback") {
        let new = names.of(Kind::Host, peer);
        // The address alone may stand in a sentence, too.
        if let Some((host, _)) = peer.rsplit_once(':').filter(|(host, _)| !host.is_empty()) {
            names.alias(Kind::Host, host, &new);
        }
        *peer = new;
    }
    for sample in disk {
        target(&mut sample.target, names);
    }
    for run in load.iter_mut().filter(|run| run.kind == load::Kind::Command) {
        run.title = names.command(&run.title);
    }
    let of_load = load.iter_mut().flat_map(|run| &mut run.levels).filter_map(|level| level.energy.as_mut());
    for sample in energy.iter_mut().chain(of_load) {
        meters(sample, names);
    }
    if let Some(trace) = trace {
        for row in &mut trace.processes {
            row.name = names.process(&row.name);
        }
        for row in trace.payers.iter_mut().flat_map(|payers| &mut payers.rows) {
            // Without a path the name is the format's own.
            if let Some(path) = &mut row.cgroup {
                *path = names.cgroup(path);
                row.name = names.cgroup(&row.name);
            }
        }
        for chain in trace.chains.iter_mut().flat_map(|chains| &mut chains.rows) {
            // Timers and interrupts are the kernel's names, but a driver may put a device's into one.
            let waker = chain.waker.iter_mut().filter(|_| chain.kind != WakerKind::Softirq);
            waker.chain(&mut chain.process).for_each(|name| *name = names.process(name));
            chain.cgroup.iter_mut().for_each(|path| *path = names.cgroup(path));
        }
        whose(&mut trace.scope, names);
    }
    if let Some(folder) = conclusions.as_mut().and_then(|c| c.run_dir.as_mut()) {
        *folder = names.path_in_text(folder);
    }
}

fn target(target: &mut DiskTarget, names: &mut Names) {
    target.path = names.path_in_text(&target.path);
    if let Some(device) = &mut target.device {
        *device = names.disk(device);
    }
}

fn whose(whose: &mut TracedWhose, names: &mut Names) {
    match whose {
        TracedWhose::Machine => {}
        TracedWhose::Processes(all) => all.iter_mut().for_each(|process| process.name = names.process(&process.name)),
        TracedWhose::Cgroup(path) => *path = names.cgroup(path),
        TracedWhose::Command(program) => *program = names.process(program),
        // Of no kind that is known, so any of it may be a name.
        TracedWhose::Other(text) => *text = names.prose(text),
    }
}

/// A user's own meter is called by its command line, which may hold a secret.
fn meters(energy: &mut EnergySample, names: &mut Names) {
    for meter in energy.meters.iter_mut().filter(|m| m.meter == "command") {
        let totals = meter.total.iter_mut().flat_map(|total| total.of.iter_mut().chain(&mut total.without));
        for name in meter.channels.iter_mut().map(|c| &mut c.channel.name).chain(totals) {
            *name = names.command(name);
        }
    }
}

/// Hosts that some text gives away stand bare in others, perhaps before it.
fn learn(value: &Value, names: &mut Names) {
    match value {
        Value::String(text) => names.learn_hosts(text),
        Value::Array(all) => all.iter().for_each(|v| learn(v, names)),
        Value::Object(all) => all.values().for_each(|v| learn(v, names)),
        _ => {}
    }
}

/// Every text below a value.
fn texts(value: &mut Value, names: &mut Names) {
    match value {
        Value::String(text) if text.contains(char::is_whitespace) => *text = names.prose(text),
        Value::String(text) if text.contains(['/', '@', ':']) || text.len() >= 15 => *text = names.form(text),
        Value::Array(all) => all.iter_mut().for_each(|v| texts(v, names)),
        // Keys of a map may be names of the format only.
        Value::Object(all) => all.values_mut().for_each(|v| texts(v, names)),
        _ => {}
    }
}
