//! From the text of a plan to its meaning; an error names the key and, for a wrong one, the nearest right one.

use super::file::{ChangeFile, GateFile, OF_ALL, OF_KIND, PlanFile, StageFile, TargetsFile};
use super::{Change, Compare, Gate, GateKind, OnFailure, Plan, Size, Stage, Targets};
use crate::measure::Measure;
use toml::{Table, Value};
use wakewatt_core::file_keys::keys_of;
use wakewatt_core::nearest::nearest;
use wakewatt_core::units::parse_ns;

/// More stages or gates are no plan that anybody reads.
const MOST: usize = 100;

/// Reads a plan.
pub fn parse(text: &str) -> Result<Plan, String> {
    let said = |e: toml::de::Error| e.to_string().trim_end().replace('\n', " ");
    let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_string())?;
    check_keys(&table)?;
    let file: PlanFile = Value::Table(table).try_into().map_err(said)?;
    if file.format != 1 {
        return Err(format!("format = {}: this wakewatt reads format 1", file.format));
    }
    if file.stage.len() > MOST || file.gate.len() > MOST {
        return Err(format!("more than {MOST} stages or gates"));
    }
    let gates = file.gate.into_iter().map(gate).collect::<Result<Vec<Gate>, String>>()?;
    if let Some(gate) = gates.iter().enumerate().find_map(|(at, g)| gates[..at].iter().find(|o| o.name == g.name)) {
        return Err(format!("gate {}: two have this name", gate.name));
    }
    let stages =
        file.stage.iter().enumerate().map(|(at, s)| stage(at, s, &gates, file.on_failure)).collect::<Result<_, _>>()?;
    let plan = Plan {
        name: short("name", &file.name)?,
        change: change(file.change)?,
        targets: targets(file.targets)?,
        stages,
        gates,
        on_failure: file.on_failure,
        max_left_out: file.max_left_out,
        parallel: within("parallel", file.parallel.unwrap_or(8), 1, 256)?,
        order_ms: time("order_within", file.order_within.as_deref(), 60_000)?,
        confirm_ms: file.confirm_within.as_deref().map(|t| time("confirm_within", Some(t), 0)).transpose()?,
    };
    if plan.change.is_firmware() {
        if plan.confirm_ms.is_some() {
            return Err("confirm_within: a BMC undoes nothing by itself; leave it out where firmware is changed".into());
        }
        if let Some(gate) = plan.gates.iter().find(|g| matches!(g.kind, GateKind::Experiment { .. })) {
            return Err(format!(
                "gate {}: an experiment runs on a node, and a BMC runs nothing; give a query or a command",
                gate.name
            ));
        }
    }
    match plan.stages.is_empty() {
        true => Err("[[stage]]: there is none; begin with canary = 1".into()),
        false => Ok(plan),
    }
}

fn check_keys(table: &Table) -> Result<(), String> {
    only(table, keys_of::<PlanFile>(), "")?;
    let inner = |key: &str| table.get(key).and_then(Value::as_table);
    let list = |key: &str| table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    inner("change").map_or(Ok(()), |t| only(t, keys_of::<ChangeFile>(), "change."))?;
    inner("targets").map_or(Ok(()), |t| only(t, keys_of::<TargetsFile>(), "targets."))?;
    list("stage").try_for_each(|t| only(t, keys_of::<StageFile>(), "stage."))?;
    for gate in list("gate") {
        let name = gate.get("name").and_then(Value::as_str).unwrap_or_default();
        let at = format!("gate {name}: ");
        let kinds: Vec<_> = OF_KIND.iter().filter(|(kind, _)| gate.contains_key(*kind)).collect();
        let [(kind, own)] = kinds[..] else {
            // A misspelt kind is an unknown key first.
            only(gate, keys_of::<GateFile>(), &at)?;
            return Err(format!("{at}give exactly one of promql, compare, command, experiment"));
        };
        let known: Vec<&str> = OF_ALL.iter().chain(*own).chain([kind]).copied().collect();
        only(gate, &known, &at)?;
    }
    Ok(())
}

fn only(table: &Table, known: &[&str], prefix: &str) -> Result<(), String> {
    let Some(key) = table.keys().find(|k| !known.contains(&k.as_str())) else { return Ok(()) };
    let hint = nearest(key, known.iter().copied())
        .map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean {near}?"));
    Err(format!("{prefix}{key}: no such key; {hint}"))
}

fn time(key: &str, text: Option<&str>, otherwise_ms: u64) -> Result<u64, String> {
    let Some(text) = text else { return Ok(otherwise_ms) };
    let ms = parse_ns(text).map_err(|why| format!("{key}: {why}"))? / 1_000_000;
    // A rollout of a year is a mistake, and its sums must not overflow.
    within(key, ms, 1, 366 * 86_400_000)
}

fn within<T: PartialOrd + std::fmt::Display>(key: &str, value: T, low: T, high: T) -> Result<T, String> {
    if value >= low && value <= high { Ok(value) } else { Err(format!("{key} = {value}: give {low} to {high}")) }
}

/// Names go into transactions, audit lines and file names.
fn short(key: &str, text: &str) -> Result<String, String> {
    let is_good = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        && text.as_bytes()[0].is_ascii_alphanumeric();
    if is_good {
        Ok(text.into())
    } else {
        Err(format!("{key} = {text:?}: letters, digits, '.', '-' and '_', at most 64"))
    }
}

fn change(file: ChangeFile) -> Result<Change, String> {
    if let Some(name) = &file.profile {
        if name.contains('/') || name.ends_with(".toml") {
            return Err("change.profile: a file of yours is not on the nodes; name a shipped profile, or write its settings as set = [...]".into());
        }
        short("change.profile", name)?;
    }
    // They become arguments; nothing may end one early.
    let all = file.profile.iter().chain(&file.max_latency).chain(&file.set).chain(&file.bios);
    if let Some(bad) = all.clone().find(|t| t.is_empty() || t.len() > 1000 || t.chars().any(char::is_control)) {
        return Err(format!("change: {bad:?} is no setting"));
    }
    if all.count() == 0 {
        return Err(
            "change: say what is changed: profile = \"latency\", max_latency = \"50us\", set = [...], or bios = [...]"
                .into(),
        );
    }
    if let Some(word) = file.set.iter().find(|word| word.starts_with("bios.") || word.starts_with("attr:")) {
        return Err(format!("change.set: {word} is a setting of firmware; write it as bios = [...]"));
    }
    let is_firmware = !file.bios.is_empty();
    if is_firmware && (file.profile.is_some() || file.max_latency.is_some() || !file.set.is_empty()) {
        return Err("change: bios stands alone: what Linux sets goes over other ways, undoes itself, and needs no boot; write two plans".into());
    }
    if !is_firmware && (file.reboot.is_some() || file.boot_within.is_some()) {
        return Err("change.reboot and change.boot_within belong to bios = [...]".into());
    }
    let reboot = match file.reboot.as_deref() {
        None | Some("never") => None,
        Some("gently") => Some(String::new()),
        Some(kind) => Some(short("change.reboot", kind)?),
    };
    let boot_ms = time("change.boot_within", file.boot_within.as_deref(), 1_200_000)?;
    Ok(Change { profile: file.profile, max_latency: file.max_latency, set: file.set, bios: file.bios, reboot, boot_ms })
}

fn targets(file: TargetsFile) -> Result<Targets, String> {
    let is_said = file.all || !(file.hosts.is_empty() && file.groups.is_empty() && file.labels.is_empty());
    if !is_said {
        return Err("targets: say which nodes: groups, labels, hosts, or all = true".into());
    }
    Ok(Targets { is_all: file.all, hosts: file.hosts, groups: file.groups, labels: file.labels, except: file.except })
}

fn stage(at: usize, file: &StageFile, gates: &[Gate], on_failure: OnFailure) -> Result<Stage, String> {
    let name = file.name.clone().unwrap_or_else(|| if at == 0 { "canary".into() } else { format!("wave {at}") });
    let in_stage = |why: String| format!("stage {name}: {why}");
    let size = match (file.canary, file.count, file.percent) {
        (Some(n), None, None) if at == 0 => Size::Count(within("canary", n, 1, 1000).map_err(in_stage)?),
        (Some(_), None, None) => {
            return Err(in_stage("only the first stage is the canary; give count or percent".into()));
        }
        _ if at == 0 => return Err(in_stage("the first stage is the canary: canary = 1".into())),
        (None, Some(n), None) => Size::Count(within("count", n, 1, 1_000_000).map_err(in_stage)?),
        (None, None, Some(p)) => Size::Percent(within("percent", p, 0.01, 100.0).map_err(in_stage)?),
        _ => return Err(in_stage("give one of count and percent".into())),
    };
    let named = |name: &String| {
        let near = || nearest(name, gates.iter().map(|g| g.name.as_str()));
        let hint = || near().map_or(String::new(), |near| format!("; did you mean {near}?"));
        gates
            .iter()
            .position(|g| g.name == *name)
            .ok_or_else(|| in_stage(format!("gate {name}: there is none{}", hint())))
    };
    let gates = match &file.gates {
        None => (0..gates.len()).collect(),
        Some(names) => names.iter().map(named).collect::<Result<Vec<_>, _>>()?,
    };
    let pause_ms = match file.pause.as_deref() {
        None | Some("0" | "0s") => 0,
        text => time("pause", text, 0).map_err(in_stage)?,
    };
    Ok(Stage { size, pause_ms, gates, on_failure: file.on_failure.unwrap_or(on_failure), name: name.clone() })
}

fn gate(file: GateFile) -> Result<Gate, String> {
    let name = short("gate.name", &file.name)?;
    let in_gate = |why: String| format!("gate {name}: {why}");
    let kind = kind(&file).map_err(in_gate)?;
    // An experiment takes its time.
    let usual_ms = if matches!(kind, GateKind::Experiment { .. }) { 3_600_000 } else { 60_000 };
    let hold_ms = match file.hold.as_deref() {
        Some("0" | "0s") => 0,
        text => time("hold", text, 300_000).map_err(in_gate)?,
    };
    let within_ms = time("within", file.within.as_deref(), usual_ms).map_err(in_gate)?;
    let cannot_tell = file.cannot_tell.unwrap_or_default();
    Ok(Gate { kind, cannot_tell, hold_ms, within_ms, name: name.clone() })
}

fn kind(file: &GateFile) -> Result<GateKind, String> {
    let ratio = || {
        let ratio = file.at_most_ratio.ok_or("at_most_ratio is missing: 1.05 allows 5 % more")?;
        within("at_most_ratio", ratio, 0.01, 100.0)
    };
    if let Some(query) = &file.promql {
        let numbers = [file.below, file.above];
        if numbers.iter().flatten().any(|n| !n.is_finite()) || numbers.iter().flatten().count() == 0 {
            return Err("give below = NUMBER, above = NUMBER or both".into());
        }
        return Ok(GateKind::Promql { query: query.clone(), below: file.below, above: file.above });
    }
    if let Some(argv) = &file.command {
        return match argv.first().is_some_and(|program| !program.is_empty()) {
            true => Ok(GateKind::Command { argv: argv.clone() }),
            false => Err("command: a list with the program first: [\"./check\", \"--quick\"]".into()),
        };
    }
    if let Some(plan) = &file.experiment {
        let named = |key: &str, text: &Option<String>| text.clone().ok_or(format!("{key} is missing"));
        return Ok(GateKind::Experiment {
            plan: short("experiment", plan)?,
            arm: named("arm", &file.arm)?,
            metric: named("metric", &file.metric)?,
            at_most_ratio: ratio()?,
        });
    }
    let id = file.compare.as_deref().unwrap_or_default();
    let ids = || Measure::ALL.into_iter().map(Measure::id);
    let measure = Measure::ALL.into_iter().find(|m| m.id() == id).ok_or_else(|| {
        let hint =
            nearest(id, ids()).map_or_else(|| ids().collect::<Vec<_>>().join(", "), |n| format!("did you mean {n}?"));
        format!("compare = {id:?}: no such measure; {hint}")
    })?;
    if matches!(measure, Measure::P90 | Measure::P99)
        && !file.latency.as_deref().is_some_and(|l| l.contains("$quantile"))
    {
        return Err(format!("compare = {id:?} needs latency, a query that holds $quantile"));
    }
    if measure.is_cost() && file.work.is_none() {
        return Err(format!("compare = {id:?} needs work, a query of pieces of work per second by node"));
    }
    Ok(GateKind::Compare(Compare {
        measure,
        at_most_ratio: ratio()?,
        before_ms: time("before", file.before.as_deref(), 3_600_000)?,
        window_ms: time("window", file.window.as_deref(), 60_000)?.max(10_000),
        work: file.work.clone(),
        latency: file.latency.clone(),
        cpu: file.cpu.clone(),
        power: file.power.clone(),
        select: file.select.clone().unwrap_or_default(),
        node_label: file.node_label.clone().unwrap_or_else(|| "instance".into()),
    }))
}
