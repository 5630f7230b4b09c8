//! `replay` beside this machine's own kernel: recorded as found, another setting predicted, that setting made, recorded and held against it.
//!
//! Predicted are every other governor that the kernel has (and back), a latency limit of zero, the deepest state switched off, and, under haltpoll, a
//! guest that spins before it halts. Settings are made by `tune apply --confirm-within` and taken back by `tune undo`, so that a chore
//! that is killed leaves the machine as it was a minute later. The load is threads that sleep by a seeded series, one to a CPU: it comes
//! alike each time, as far as others on the machine let it; so each load is recorded twice as found, and that difference stands beside.

use super::sleepers::Sleepers;
use super::{Measured, Row};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const RECORDED: &str = "8s";
/// A setting that nobody takes back is taken back after this.
const CONFIRM: &str = "60s";
const ATTEMPTS: u32 = 10;
/// Points of idle time and of wake-ups.
const GOAL: f64 = 5.0;
/// Fewer stays in a recording prove nothing.
const LEAST: f64 = 1000.0;
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const JOURNALS: &str = "/var/lib/wakewatt/open";
const SPIN: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// How long a load's threads sleep at most, and how long they work then.
const LOADS: [(&str, Duration, Duration); 2] = [
    ("timers", Duration::from_millis(6), Duration::from_micros(50)),
    ("often", Duration::from_micros(600), Duration::from_micros(20)),
];

/// A setting: what it is, how it is made, how a replay is asked for it.
struct Setting {
    what: &'static str,
    name: String,
    made_by: Vec<String>,
    asked_by: Vec<String>,
    /// Which governor decides under it.
    governor: String,
}

/// What stood in a recording.
struct Recorded {
    file: PathBuf,
    /// How long a guest might spin meanwhile, in nanoseconds; none where nobody can.
    spin_ns: Option<String>,
}

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured {
        rows: Vec::new(),
        csv: "load,from,to,time_points,wake_points,unchanged_time_points,identical\n".into(),
    };
    if !rustix::process::geteuid().is_root() {
        eprintln!("replay: skipped: settings of this machine are changed, which needs root");
        return Ok(all);
    }
    // What others have in force ends when they take it back, whatever is set here meanwhile.
    let open = std::fs::read_dir(JOURNALS).map_or(0, Iterator::count);
    ensure!(open == 0, "{JOURNALS}: {open} changes of settings are open; see wakewatt tune status");
    let found = std::fs::read_to_string(GOVERNOR).context(GOVERNOR)?.trim().to_string();
    let folder = tempfile::tempdir()?;
    let begun = recorded(binary, folder.path(), LOADS[0], "table")?;
    let told = replayed(binary, &begun, &[])?;
    let states: Vec<&str> =
        told["policies"][0][0]["states"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let settings = settings(&found, states.last().context("no idle state is allowed here")?)?;
    let mut worst: Vec<(&'static str, Vec<String>, f64)> = Vec::new();
    let mut fewest = f64::MAX;
    let mut twice = Vec::new();
    for load in LOADS {
        let before = recorded(binary, folder.path(), load, "found")?;
        let mut runs = Vec::new();
        for setting in &settings {
            let applied = Applied::make(binary, setting)?;
            runs.push(recorded(binary, folder.path(), load, &setting.name)?);
            applied.undo()?;
        }
        let after = recorded(binary, folder.path(), load, "found-again")?;
        let (time, wakes) =
            apart(&replayed(binary, &before, &[])?["recorded"], &replayed(binary, &after, &[])?["recorded"]);
        twice.push(format!("{} {time:.1}/{wakes:.1}", load.0));
        for (setting, run) in settings.iter().zip(&runs) {
            let mut ways = vec![(&before, run, found.clone(), setting.name.clone(), setting.asked_by.clone())];
            if setting.governor != found {
                let back = vec![format!("governor={found}")];
                ways.push((run, &before, setting.name.clone(), found.clone(), back));
            }
            for (from, to, from_name, to_name, asked) in ways {
                let predicted = replayed(binary, from, &asked)?;
                let is = replayed(binary, to, &[])?;
                fewest = fewest.min(stays(&predicted["recorded"])).min(stays(&is["recorded"]));
                let (time, wakes) = apart(&predicted["predicted"], &is["recorded"]);
                let (unchanged, _) = apart(&predicted["recorded"], &is["recorded"]);
                let identical = predicted["identical_ratio"].as_f64().unwrap_or(f64::NAN);
                let _ = writeln!(
                    all.csv,
                    "{},{from_name},{to_name},{time:.2},{wakes:.2},{unchanged:.2},{identical:.4}",
                    load.0
                );
                let line = format!("{}, {from_name} to {to_name}: {time:.1}/{wakes:.1} ({unchanged:.1})", load.0);
                match worst.iter_mut().find(|w| w.0 == setting.what) {
                    Some(kind) => {
                        kind.1.push(line);
                        kind.2 = kind.2.max(time).max(wakes);
                    }
                    None => worst.push((setting.what, vec![line], time.max(wakes))),
                }
            }
        }
    }
    let now = std::fs::read_to_string(GOVERNOR)?;
    ensure!(now.trim() == found, "the idle governor is {} and was {found}: see wakewatt tune status", now.trim());
    all.rows = worst
        .into_iter()
        .map(|(what, lines, points)| Row {
            what,
            ours: lines.join("; "),
            peer: format!("the same twice: {}; at least {fewest:.0} stays each", twice.join(", ")),
            goal: "5 points of idle time/of wake-ups (unchanged would be)",
            // Where others keep the CPUs at work nothing sleeps, and two empty tables are alike.
            is_met: (fewest >= LEAST).then_some(points <= GOAL),
        })
        .collect();
    Ok(all)
}

/// What can be set otherwise on this machine.
fn settings(found: &str, deepest: &str) -> Result<Vec<Setting>> {
    let folder = Path::new(GOVERNOR).parent().unwrap_or(Path::new("/"));
    let governors = std::fs::read_to_string(folder.join("available_governors")).unwrap_or_default();
    let one = |what, name: &str, made_by: [&str; 2], asked_by: &str, governor: &str| Setting {
        what,
        name: name.into(),
        made_by: made_by.map(String::from).into(),
        asked_by: vec![asked_by.into()],
        governor: governor.into(),
    };
    let mut all = Vec::new();
    for other in governors.split_whitespace().filter(|g| *g != found) {
        let (set, asked) = (format!("idle.governor={other}"), format!("governor={other}"));
        all.push(one("replay: another governor", other, ["--set", &set], &asked, other));
    }
    all.push(one("replay: a limit of zero", "limit", ["--max-latency", "poll"], "max-latency=poll", found));
    let (set, asked) = (format!("idle.state.{deepest}=off"), format!("disable={deepest}"));
    all.push(one("replay: the deepest state off", "off", ["--set", &set], &asked, found));
    if found == "haltpoll" {
        let set = "idle.haltpoll.guest_halt_poll_ns=200000";
        all.push(one("replay: spinning before halting", "spin", ["--set", set], "guest-halt-poll=200us", found));
    }
    ensure!(!all.is_empty(), "nothing can be set here");
    Ok(all)
}

/// A setting in force; taken back when it is dropped.
struct Applied<'a>(&'a Path, bool);

impl<'a> Applied<'a> {
    /// Where another run is changing settings it is waited for.
    fn make(binary: &'a Path, setting: &Setting) -> Result<Applied<'a>> {
        let mut left = ATTEMPTS;
        loop {
            let mut apply = Command::new(binary);
            apply.args(["tune", "apply", "--confirm-within", CONFIRM]).args(&setting.made_by);
            let said = apply.output()?;
            if said.status.success() {
                return Ok(Applied(binary, true));
            }
            left -= 1;
            let why = String::from_utf8_lossy(&said.stderr).into_owned();
            ensure!(left > 0, "tune apply {}: {why}", setting.made_by.join(" "));
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    fn undo(mut self) -> Result<()> {
        self.1 = false;
        let said = Command::new(self.0).args(["tune", "undo"]).output()?;
        ensure!(said.status.success(), "tune undo: {}", String::from_utf8_lossy(&said.stderr));
        Ok(())
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if self.1 {
            let _ = Command::new(self.0).args(["tune", "undo"]).output();
        }
    }
}

/// Records under a load.
fn recorded(binary: &Path, folder: &Path, load: (&str, Duration, Duration), name: &str) -> Result<Recorded> {
    let file = folder.join(format!("{}-{name}.wtrace", load.0));
    let running = Sleepers::start(load.1, load.2)?;
    std::thread::sleep(Duration::from_millis(300));
    let said = Command::new(binary)
        .args(["trace", "--for", RECORDED, "--window", "60s", "--json", "--force", "--record"])
        .arg(&file)
        .output()?;
    drop(running);
    ensure!(file.exists(), "trace --record: {}", String::from_utf8_lossy(&said.stderr).trim());
    Ok(Recorded { file, spin_ns: std::fs::read_to_string(SPIN).ok().map(|ns| ns.trim().into()) })
}

/// One replay, as its document.
fn replayed(binary: &Path, of: &Recorded, asked: &[String]) -> Result<Value> {
    let mut command = Command::new(binary);
    command.args(["replay", "--json"]).arg(&of.file);
    asked.iter().for_each(|set| {
        command.args(["--set", set]);
    });
    // The recording does not hold how long a guest may spin.
    if let Some(ns) = &of.spin_ns {
        command.args(["--recorded", &format!("guest-halt-poll={ns}ns")]);
    }
    let said = command.output()?;
    let told = serde_json::from_slice(&said.stdout);
    told.with_context(|| format!("replay {}: {}", of.file.display(), String::from_utf8_lossy(&said.stderr).trim()))
}

/// How many stays there are.
fn stays(side: &Value) -> f64 {
    side["states"].as_array().into_iter().flatten().filter_map(|s| s["n"].as_f64()).sum()
}

/// The largest difference of any state, in points: of idle time, and of wake-ups.
fn apart(a: &Value, b: &Value) -> (f64, f64) {
    let shares = |side: &Value| -> Vec<(String, f64, f64)> {
        let states = side["states"].as_array().cloned().unwrap_or_default();
        let number = |s: &Value, key: &str| s[key].as_f64().unwrap_or(0.0);
        let wakes = states.iter().map(|s| number(s, "n_wakes")).sum::<f64>().max(1.0);
        let share = |s: &Value| {
            (s["state"].as_str().unwrap_or_default().to_string(), number(s, "time_ratio"), number(s, "n_wakes") / wakes)
        };
        states.iter().map(share).collect()
    };
    let (a, b) = (shares(a), shares(b));
    let of =
        |all: &[(String, f64, f64)], name: &str| all.iter().find(|s| s.0 == name).map_or((0.0, 0.0), |s| (s.1, s.2));
    a.iter().chain(&b).fold((0.0f64, 0.0f64), |(time, wakes), (name, ..)| {
        let (x, y) = (of(&a, name), of(&b, name));
        (time.max(100.0 * (x.0 - y.0).abs()), wakes.max(100.0 * (x.1 - y.1).abs()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_held_against_each_other_by_name() {
        let side = |rows: &[(&str, f64, u64)]| -> Value {
            let states = rows.iter().map(|(s, t, n)| serde_json::json!({"state": s, "time_ratio": t, "n_wakes": n}));
            serde_json::json!({ "states": states.collect::<Vec<_>>() })
        };
        let (a, b) = (side(&[("POLL", 0.1, 30), ("C1", 0.9, 70)]), side(&[("C1", 1.0, 10)]));
        let (time, wakes) = apart(&a, &b);
        assert!((time - 10.0).abs() < 1e-9 && (wakes - 30.0).abs() < 1e-9, "{time} {wakes}");
        assert_eq!(apart(&a, &a), (0.0, 0.0));
    }

    #[test]
    fn what_is_asked_of_the_replay_is_what_it_takes() {
        for setting in settings("haltpoll", "haltpoll idle").unwrap() {
            for asked in &setting.asked_by {
                assert!(wakewatt_models::replay::Change::parse(asked).is_ok(), "{asked}");
            }
            let set = setting.made_by[1].as_str();
            assert!(
                setting.made_by[0] == "--max-latency" || wakewatt_tune::request::Request::parse(set).is_ok(),
                "{set}"
            );
        }
    }
}
