//! Idle driver, and the states of every CPU: how many, which, and which of them start disabled.
//!
//! A limit is only good if it holds everywhere: a CPU that came online late, or a second kind of core, may have another
//! table. Each CPU's table is read and equal ones are put together, so that the answer names the CPUs that differ.

use super::{BootWanted, Check, text};
use std::collections::BTreeMap;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::source::Source;

const ROOT: &str = "/sys/devices/system/cpu";

/// The driver that the parameters imply, where they imply one.
pub(super) fn driver(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let path = format!("{ROOT}/cpuidle/current_driver");
    let limit = wanted.value("intel_idle.max_cstate");
    let (should, holds): (&str, fn(&str) -> bool) = match (wanted.value("idle"), limit) {
        (Some("poll" | "halt"), _) => ("none", |d| d == "none"),
        (Some(_), _) | (None, Some("0")) => ("not intel_idle", |d| d != "intel_idle"),
        (None, Some(_)) => ("intel_idle", |d| d == "intel_idle"),
        (None, None) => return,
    };
    let check = Check::new("idle driver", &path, should);
    checks.push(match text(source, &path) {
        Err(why) => check.cannot_tell("", why),
        // The other half of the pair limits whatever driver there is.
        Ok(now) if !holds(&now) && should == "intel_idle" && wanted.value("processor.max_cstate").is_some() => {
            let why = "intel_idle is not in charge, so its limit is not in force; processor.max_cstate is the one that counts";
            check.cannot_tell(now, why)
        }
        Ok(now) => {
            let is_so = holds(&now);
            check.found(now, is_so)
        }
    });
}

/// Name and default of each state of one CPU.
type Table = Vec<(String, Option<String>)>;

/// The tables of all running CPUs.
pub(super) fn states(source: &dyn Source, wanted: &BootWanted, checks: &mut Vec<Check>) {
    let path = format!("{ROOT}/cpu*/cpuidle");
    let online = text(source, &format!("{ROOT}/online")).and_then(|t| CpuSet::parse(&t));
    let check = Check::new("idle states of every CPU", &path, "the same table");
    let cpus = match online {
        Ok(cpus) => cpus,
        Err(why) => return checks.push(check.cannot_tell("", format!("{ROOT}/online: {why}"))),
    };
    let mut tables: BTreeMap<Table, CpuSet> = BTreeMap::new();
    for cpu in cpus.iter() {
        tables.entry(table(source, cpu)).or_default().insert(cpu);
    }
    let shown = |table: &Table| match table.as_slice() {
        [] => "none".to_string(),
        all => all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" "),
    };
    let all = tables.iter().map(|(t, cpus)| format!("CPU {cpus}: {}", shown(t))).collect::<Vec<_>>().join("; ");
    checks.push(match tables.len() {
        0 => check.cannot_tell("", "no CPU is listed as online"),
        1 => check.found(all.clone(), true),
        _ => check.cannot_tell(all.clone(), "CPUs differ; that is normal only on processors with two kinds of cores"),
    });
    for (limit, what) in [limit(source, wanted)].into_iter().flatten() {
        let check = Check::new(what, &path, format!("POLL and at most {limit} more on every CPU"));
        let deeper: Vec<String> = tables
            .iter()
            .filter(|(t, _)| t.iter().filter(|(name, _)| name != "POLL").count() > limit)
            .map(|(t, cpus)| format!("CPU {cpus}: {}", shown(t)))
            .collect();
        let is_empty = tables.keys().all(Vec::is_empty);
        checks.push(match deeper.as_slice() {
            _ if is_empty => check.cannot_tell("no state at all", "no idle driver has registered states"),
            [] => check.found(all.clone(), true),
            some => check.found(some.join("; "), false),
        });
    }
    if let Some(mask) = wanted.value("intel_idle.states_off").and_then(mask) {
        checks.push(switched_off(&tables, mask, &path));
    }
}

fn table(source: &dyn Source, cpu: u32) -> Table {
    let folder = format!("{ROOT}/cpu{cpu}/cpuidle");
    let names = source.list(&folder).unwrap_or_default();
    let mut indexes: Vec<u32> = names.iter().filter_map(|n| n.strip_prefix("state")?.parse().ok()).collect();
    indexes.sort_unstable();
    let read = |index: u32, file: &str| text(source, &format!("{folder}/state{index}/{file}"));
    indexes
        .into_iter()
        .map(|i| (read(i, "name").unwrap_or_else(|_| "?".into()), read(i, "default_status").ok()))
        .collect()
}

/// How many states besides POLL may exist, by the limit of the driver in charge.
fn limit(source: &dyn Source, wanted: &BootWanted) -> Option<(usize, String)> {
    let driver = text(source, &format!("{ROOT}/cpuidle/current_driver")).unwrap_or_default();
    let key = match driver.as_str() {
        "intel_idle" => "intel_idle.max_cstate",
        "acpi_idle" => "processor.max_cstate",
        _ => return None,
    };
    let value: usize = wanted.value(key)?.parse().ok()?;
    Some((value.max(1), format!("states beyond {key}={value}")))
}

fn mask(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The states of a mask must be disabled by default, on every CPU.
fn switched_off(tables: &BTreeMap<Table, CpuSet>, mask: u64, path: &str) -> Check {
    let check = Check::new("states switched off", format!("{path}/state*/default_status"), "disabled by default");
    let (mut on, mut is_unknown) = (Vec::new(), false);
    for (table, cpus) in tables {
        for (index, (name, status)) in table.iter().enumerate().filter(|(i, _)| *i < 64 && mask >> i & 1 == 1) {
            match status.as_deref() {
                Some("disabled") => {}
                Some(_) => on.push(format!("CPU {cpus}: state {index} {name} is enabled")),
                None => is_unknown = true,
            }
        }
    }
    match (on.is_empty(), is_unknown) {
        (false, _) => check.found(on.join("; "), false),
        (true, true) => check.cannot_tell("", "this kernel does not show default_status (before 5.6)"),
        (true, false) => check.found("disabled", true),
    }
}
