//! From the text of a plan to its meaning; an error names the key and, for a wrong word, the nearest right one.

use super::file::{ArmFile, PlanFile, WorkloadFile};
use super::{ArmLimit, CommandMetric, Plan, PlanArm, PlanKind, PlanWorkload};
use crate::experiment::SHORT_NS;
use crate::noise::Limits;
use toml::{Table, Value};
use wakewatt_core::file_keys::keys_of;
use wakewatt_core::nearest::nearest;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::units::{LatencyLimit, parse_bytes, parse_ns};
use wakewatt_tune::knobs;
use wakewatt_tune::profile::Profile;
use wakewatt_tune::request::{Place, Request};

/// Which options a kind takes beside kind, name and measure.
const OPTIONS: &[(&str, &[&str])] = &[
    ("wakeup", &["cpu", "from_cpu", "pauses"]),
    ("network", &["peer", "transport", "cpu"]),
    ("disk", &["path", "engine", "block", "depth", "sequential", "size"]),
    ("steps", &["levels", "service"]),
    ("shop", &["clients"]),
    ("alone", &[]),
    ("command", &["command", "metric"]),
];

/// Reads a plan. `profile` gives a profile by name or file.
pub fn parse(text: &str, profile: &dyn Fn(&str) -> Result<Profile, String>) -> Result<Plan, String> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_string())?;
    check_keys(&table)?;
    let file: PlanFile =
        Value::Table(table).try_into().map_err(|e: toml::de::Error| e.to_string().trim_end().replace('\n', " "))?;
    if file.format != 1 {
        return Err(format!("format = {}: this wakewatt reads format 1", file.format));
    }
    let time = |key: &str, text: &Option<String>, otherwise_ns: u64| match text {
        Some(text) => parse_ns(text).map_err(|why| format!("{key}: {why}")),
        None => Ok(otherwise_ns),
    };
    let measure_ns = time("measure", &file.measure, 2_000_000_000)?;
    let looks = match (&file.looks, file.blocks) {
        (Some(_), Some(_)) => return Err("looks and blocks: give one of them".into()),
        (Some(looks), None) => looks.clone(),
        (None, Some(n)) => vec![n],
        (None, None) => vec![8, 12, 20, 32],
    };
    let margin_percent = file.margin_percent.unwrap_or(5.0);
    if !(0.1..=50.0).contains(&margin_percent) {
        return Err(format!("margin_percent = {margin_percent}: give 0.1 to 50"));
    }
    let mut arms = Vec::new();
    for arm in &file.arm {
        arms.push(self::arm(arm, profile).map_err(|why| format!("arm {}: {why}", arm.name))?);
    }
    baseline_first(&mut arms, file.baseline.as_deref())?;
    let workload = |w: &WorkloadFile| workload(w, measure_ns).map_err(|why| format!("workload {}: {why}", w.kind));
    let workloads = file.workload.iter().map(workload).collect::<Result<Vec<_>, _>>()?;
    if workloads.is_empty() {
        return Err("[[workload]]: nothing is measured; give one, such as kind = \"wakeup\"".into());
    }
    let limits = match &file.reject {
        None => Limits::default(),
        Some(reject) => {
            let share = |key, wanted: Option<f64>| wanted.map_or(Ok(f64::INFINITY), |wanted| percent(key, wanted));
            Limits {
                steal_ratio: share("steal_percent", reject.steal_percent)?,
                foreign_ratio: share("others_percent", reject.others_percent)?,
                is_throttling_spoilt: reject.throttling.unwrap_or(false),
            }
        }
    };
    // A run that ends at an early look must have enough pairs by then to know the host's own noise.
    let again_every = file.again_every.unwrap_or(if looks.iter().any(|n| *n <= EARLY_LOOK) { 1 } else { 2 });
    Ok(Plan {
        name: name("name", &file.name)?,
        question: file.question.trim().into(),
        primary: file.primary,
        primary_with_meter: file.primary_with_meter,
        arms,
        workloads,
        budget_ns: time("budget", &file.budget, 1_800_000_000_000)?,
        settle_ns: time("settle", &file.settle, 500_000_000)?,
        measure_ns,
        looks,
        short_ns: short(file.interleave.as_deref())?,
        again_every,
        margin_ratio: 1.0 + margin_percent / 100.0,
        seed: file.seed,
        is_strict: file.strict.unwrap_or(false),
        limits,
    })
}

/// How long a short measurement takes, after which variants are swapped; none where all are long.
fn short(text: Option<&str>) -> Result<Option<u64>, String> {
    let ns = match text {
        None => return Ok(Some(SHORT_NS)),
        Some("off") => return Ok(None),
        Some(text) => parse_ns(text).map_err(|why| format!("interleave: {why}"))?,
    };
    // Shorter, and it is mostly warm-up; longer, and a hundred rounds take minutes.
    let is_fine = (100_000_000..=2_000_000_000).contains(&ns);
    if is_fine { Ok(Some(ns)) } else { Err("interleave: give 100ms to 2s, or off".into()) }
}

/// As a ratio; a limit that is no share would reject every block, or none without a word.
fn percent(key: &str, percent: f64) -> Result<f64, String> {
    match (0.0..=100.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err(format!("reject.{key} = {percent}: give 0 to 100")),
    }
}

/// Up to here, every second round has fewer baseline pairs than a test needs.
const EARLY_LOOK: usize = 8;

/// A name becomes part of file names and of metrics.
fn name(key: &str, text: &str) -> Result<String, String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
    if text.is_empty() || text.starts_with('.') || text.len() > 60 || !text.chars().all(is_fine) {
        return Err(format!("{key} = {text:?}: give letters, digits, - and _"));
    }
    Ok(text.into())
}

fn arm(file: &ArmFile, profile: &dyn Fn(&str) -> Result<Profile, String>) -> Result<PlanArm, String> {
    let mut arm = PlanArm { name: name("name", &file.name)?, ..PlanArm::default() };
    arm.title = file.title.clone().unwrap_or_else(|| arm.name.clone());
    arm.is_control = file.control.unwrap_or(false);
    let mut requests = Vec::new();
    if let Some(name) = &file.profile {
        let profile = profile(name)?;
        requests.extend(profile.all_requests());
        if !profile.boot_arguments.is_empty() {
            arm.notes.push(format!("profile {name}: its kernel parameters act at the next boot only and are left out"));
        }
    }
    for text in file.set.iter().flatten() {
        let request = Request::parse(text)?;
        if knobs::find(&request.name).is_none() {
            let ids = knobs::KNOBS.iter().map(|k| k.about().id);
            let hint = nearest(&request.name, ids).map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(format!("set: {}: no such knob{hint} (wakewatt tune knobs lists them)", request.name));
        }
        // What is said by hand overrules the profile.
        requests.retain(|r: &Request| r.name != request.name || r.place != request.place);
        requests.push(request);
    }
    if let Some(text) = &file.max_latency {
        arm.limit = Some(match text.as_str() {
            "shallowest" => ArmLimit::Shallowest,
            text => ArmLimit::At(LatencyLimit::parse(text).map_err(|why| format!("max_latency: {why}"))?),
        });
    }
    for request in requests {
        // A limit on the whole machine is held by the experiment itself.
        if request.name == "qos.global" && request.place == Place::Everywhere {
            let text = request.to.first().map_or("", String::as_str);
            let limit = LatencyLimit::parse(text).map_err(|why| format!("qos.global: {why}"))?;
            arm.limit.get_or_insert(ArmLimit::At(limit));
        } else {
            arm.requests.push(request);
        }
    }
    arm.command = match (&file.command, &file.undo_command) {
        (Some(run), Some(undo)) => Some((run.argv(), undo.argv())),
        (None, None) => None,
        (Some(_), None) => return Err("command without undo_command: say how it is taken back".into()),
        (None, Some(_)) => return Err("undo_command without command".into()),
    };
    if arm.command.as_ref().is_some_and(|(run, undo)| run.is_empty() || undo.is_empty()) {
        return Err("command: an empty list".into());
    }
    arm.beside = file.beside.as_ref().map(super::file::Words::argv);
    if arm.beside.as_ref().is_some_and(Vec::is_empty) {
        return Err("beside: an empty list".into());
    }
    let is_changed = !arm.requests.is_empty() || arm.limit.is_some() || arm.command.is_some() || arm.beside.is_some();
    if arm.is_control && is_changed {
        return Err("control: a control changes nothing; give it no settings".into());
    }
    Ok(arm)
}

fn baseline_first(arms: &mut [PlanArm], baseline: Option<&str>) -> Result<(), String> {
    if arms.len() < 2 {
        return Err(
            "[[arm]]: at least two are needed, the first to compare with; one with only a name is as found".into()
        );
    }
    for (at, arm) in arms.iter().enumerate() {
        if arms[..at].iter().any(|other| other.name == arm.name) {
            return Err(format!("arm {}: named twice", arm.name));
        }
    }
    if let Some(name) = baseline {
        let at = arms.iter().position(|arm| arm.name == name).ok_or_else(|| {
            let names: Vec<&str> = arms.iter().map(|a| a.name.as_str()).collect();
            let hint = nearest(name, names.iter().copied())
                .map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("did you mean {near}?"));
            format!("baseline: no arm {name}; {hint}")
        })?;
        arms[..=at].rotate_right(1);
    }
    Ok(())
}

fn workload(file: &WorkloadFile, measure_ns: u64) -> Result<PlanWorkload, String> {
    let bytes = |key: &str, text: &Option<String>, otherwise: u64| match text {
        Some(text) => parse_bytes(text).map_err(|why| format!("{key}: {why}")),
        None => Ok(otherwise),
    };
    let kind = match file.kind.as_str() {
        "wakeup" => PlanKind::Wakeup {
            cpu: file.cpu,
            from_cpu: file.from_cpu,
            is_fixed: match file.pauses.as_deref() {
                None | Some("random") => false,
                Some("fixed") => true,
                Some(other) => return Err(format!("pauses = {other:?}: give random or fixed")),
            },
        },
        "network" => PlanKind::Network {
            peer: file.peer.clone(),
            is_tcp: one_of("transport", file.transport.as_deref(), &["udp", "tcp"])? == 1,
            cpu: file.cpu,
        },
        "disk" => PlanKind::Disk {
            path: file.path.clone(),
            is_uring: one_of("engine", file.engine.as_deref(), &["psync", "io_uring"])? == 1,
            block_bytes: bytes("block", &file.block, 4096)?,
            depth: file.depth.unwrap_or(1),
            is_sequential: file.sequential.unwrap_or(false),
            size_bytes: bytes("size", &file.size, 1 << 30)?,
        },
        "steps" => {
            let percent = file.levels.clone().unwrap_or_else(|| (0..=10).rev().map(|n| f64::from(n) * 10.0).collect());
            if percent.is_empty() || percent.iter().any(|p| !(0.0..=100.0).contains(p)) {
                return Err("levels: give percent of the maximum, such as [100, 50, 0]".into());
            }
            // Their metrics are named by whole percents.
            once("levels", percent.iter().map(|p| format!("{p:.0}")))?;
            let service = file.service.as_deref().map(parse_ns).transpose();
            PlanKind::Steps {
                shares: percent.iter().map(|p| p / 100.0).collect(),
                service_ns: service.map_err(|why| format!("service: {why}"))?,
            }
        }
        "shop" => match &file.clients {
            Some(clients) if !clients.is_empty() => {
                once("clients", clients.iter().map(ToString::to_string))?;
                PlanKind::Shop { clients: clients.clone() }
            }
            _ => return Err("clients: say how many, level by level, such as [500, 1000]".into()),
        },
        "alone" => PlanKind::Alone,
        _ => command(file)?,
    };
    let measure_ns = match &file.measure {
        Some(text) => parse_ns(text).map_err(|why| format!("measure: {why}"))?,
        None => measure_ns,
    };
    let name = file.name.as_deref().map(|text| name("name", text)).transpose()?;
    Ok(PlanWorkload { name, measure_ns, kind })
}

fn command(file: &WorkloadFile) -> Result<PlanKind, String> {
    let argv = file.command.as_ref().map(super::file::Words::argv).unwrap_or_default();
    if argv.is_empty() {
        return Err("command: say what to run".into());
    }
    let mut metrics = Vec::new();
    for metric in file.metric.iter().flatten() {
        let regex = regex_lite::Regex::new(&metric.regex).map_err(|e| format!("metric {}: {e}", metric.name))?;
        if regex.captures_len() != 2 {
            return Err(format!("metric {}: put the number into one group: 'score: ([0-9.]+)'", metric.name));
        }
        let better = match one_of("better", Some(&metric.better), &["lower", "higher"])? {
            0 => Better::Lower,
            _ => Better::Higher,
        };
        metrics.push(CommandMetric { id: name("name", &metric.name)?, regex: metric.regex.clone(), better });
    }
    Ok(PlanKind::Command { argv, metrics })
}

/// A level that stands there twice has no metrics of its own.
fn once(key: &str, levels: impl Iterator<Item = String>) -> Result<(), String> {
    let mut seen: Vec<String> = Vec::new();
    for level in levels {
        if seen.contains(&level) {
            return Err(format!("{key}: {level} twice"));
        }
        seen.push(level);
    }
    Ok(())
}

/// Which of some words; the first when none is given.
fn one_of(key: &str, word: Option<&str>, known: &[&str]) -> Result<usize, String> {
    let Some(word) = word else { return Ok(0) };
    known.iter().position(|k| *k == word).ok_or_else(|| format!("{key} = {word:?}: {}", hint(word, known)))
}

fn hint(word: &str, known: &[&str]) -> String {
    nearest(word, known.iter().copied())
        .map_or_else(|| format!("known are {}", known.join(", ")), |near| format!("did you mean {near}?"))
}

fn check_keys(table: &Table) -> Result<(), String> {
    only(table, keys_of::<PlanFile>(), "")?;
    let tables = |key: &str| table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    let title = |t: &Table, key: &str| t.get(key).and_then(Value::as_str).unwrap_or("").to_string();
    for arm in tables("arm") {
        only(arm, keys_of::<ArmFile>(), &format!("arm {}: ", title(arm, "name")))?;
    }
    for workload in tables("workload") {
        let kind = title(workload, "kind");
        let kinds: Vec<&str> = OPTIONS.iter().map(|(k, _)| *k).collect();
        let Some((_, options)) = OPTIONS.iter().find(|(k, _)| *k == kind) else {
            return Err(format!("workload: kind = {kind:?}: no such kind; {}", hint(&kind, &kinds)));
        };
        let known = ["kind", "name", "measure"].iter().chain(*options).copied().collect::<Vec<_>>();
        only(workload, &known, &format!("workload {kind}: "))?;
    }
    if let Some(reject) = table.get("reject").and_then(Value::as_table) {
        only(reject, keys_of::<super::file::RejectFile>(), "reject.")?;
    }
    Ok(())
}

fn only(table: &Table, known: &[&str], prefix: &str) -> Result<(), String> {
    match table.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("{prefix}{key}: no such key; {}", hint(key, known))),
    }
}
