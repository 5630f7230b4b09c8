//! Whether a node would be changed in the same way as the canary: same knobs, by the same sort of step, with or without a reboot.
//!
//! Read from the document of `tune plan --json` on each node, or of `bios plan --json` for what its firmware holds. Values may differ (a node with more CPUs has more files), the way
//! may not: what the canary proved says nothing of a knob that it does not have. Where a setting has alternatives
//! (`schedutil|ondemand`), which of them a node takes is part of the kind.

use serde_json::Value;
use std::collections::BTreeSet;

/// A plan for what firmware holds.
pub const FIRMWARE_PLAN: &str = "wakewatt/bios-plan/v1";
/// More lines than this are no plan of ours.
const MOST: usize = 10_000;

/// The kind of a plan: a line for each thing that is done, sorted.
pub type Kind = Vec<String>;

/// Of a node's own plan. An error is why the node cannot take it.
pub fn kind_of(plan: &Value) -> Result<Kind, String> {
    if plan.get("schema").and_then(Value::as_str) == Some(FIRMWARE_PLAN) {
        return of_firmware(plan);
    }
    let list = |key: &str| plan.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if plan.get("schema").and_then(Value::as_str) != Some("wakewatt/tune-plan/v1") {
        return Err("what came is no plan of tune; is another version of wakewatt there?".into());
    }
    let refused: Vec<&str> = list("refused").iter().filter_map(Value::as_str).collect();
    if !refused.is_empty() {
        return Err(refused.join("; "));
    }
    if let Some(why) = plan.get("no_boot_because").and_then(Value::as_str) {
        return Err(why.into());
    }
    let mut kind: BTreeSet<String> = BTreeSet::new();
    for step in list("steps").iter().take(MOST) {
        kind.insert(of_step(step));
    }
    if plan.get("boot").is_some_and(|boot| !boot.is_null()) {
        kind.insert("kernel parameters, at the next boot".into());
    }
    Ok(kind.into_iter().collect())
}

/// Attributes and values as the machine's own registry has them, and what unlocks them: another maker or generation is another kind, and
/// so is a machine whose profile has to be left first. What is so already is the same way.
fn of_firmware(plan: &Value) -> Result<Kind, String> {
    let list = |key: &str| plan.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let said = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    let refused: Vec<String> =
        list("refused").iter().map(|r| format!("{}: {}", text(r, "asked"), text(r, "why"))).collect();
    if !refused.is_empty() {
        return Err(refused.join("; "));
    }
    if plan.get("is_validated").and_then(Value::as_bool) != Some(true) {
        return Err("no registry of this machine says which names and values its BIOS takes".into());
    }
    let waiting: Vec<String> =
        list("waiting").iter().map(|w| format!("{}={}", text(w, "attribute"), said(&w["pending"]))).collect();
    if !waiting.is_empty() {
        return Err(format!("somebody else's changes wait for its next boot: {}", waiting.join(", ")));
    }
    let line = |step: &Value| {
        let how = match (step.get("is_gate").and_then(Value::as_bool), text(step, "state").as_str()) {
            (Some(true), _) => ", which unlocks others",
            (_, "follows") => ", by a profile",
            _ => "",
        };
        format!("firmware {}={}{how}, at the next boot", text(step, "attribute"), said(&step["wished"]))
    };
    let kind: BTreeSet<String> = list("steps").iter().take(MOST).map(line).collect();
    if kind.is_empty() { Err("its plan has no step".into()) } else { Ok(kind.into_iter().collect()) }
}

fn of_step(step: &Value) -> String {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let request = step.get("request").cloned().unwrap_or_default();
    let changes = step.get("changes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let how = match (changes.is_empty(), step.get("later").is_some_and(|l| !l.is_null())) {
        (false, _) => "set",
        (true, true) => "set later",
        (true, false) => "left out",
    };
    let mut line = format!("{} {how}, undone {}", text(&request, "name"), text(step, "reversible").replace('_', " "));
    let n_values = request.get("to").and_then(Value::as_array).map_or(0, Vec::len);
    if n_values > 1 {
        let to: BTreeSet<String> = changes.iter().take(MOST).map(|c| text(c, "to_shown")).collect();
        line += &format!(", to {}", to.into_iter().collect::<Vec<_>>().join(" and "));
    }
    line
}

/// What a node's plan has otherwise than the canary's; `None` where they are of one kind.
pub fn difference(canary: &Kind, node: &Kind) -> Option<String> {
    let only = |a: &Kind, b: &Kind| a.iter().filter(|l| !b.contains(l)).cloned().collect::<Vec<_>>().join("; ");
    let (more, less) = (only(node, canary), only(canary, node));
    match (more.is_empty(), less.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("also has: {more}")),
        (true, false) => Some(format!("has not: {less}")),
        (false, false) => Some(format!("has: {more}; the canary has: {less}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(steps: Value) -> Value {
        json!({"schema": "wakewatt/tune-plan/v1", "steps": steps, "refused": [], "boot": null, "no_boot_because": null})
    }

    fn step(name: &str, n: usize, to: &[&str], value: &str) -> Value {
        let changes: Vec<Value> = (0..n).map(|_| json!({"to_shown": value})).collect();
        json!({"request": {"name": name, "to": to}, "changes": changes, "later": null, "reversible": "exactly"})
    }

    #[test]
    fn more_cpus_are_one_kind_and_another_way_is_not() {
        let four = kind_of(&plan(json!([step("freq.governor", 4, &["performance"], "performance")]))).unwrap();
        let many = kind_of(&plan(json!([step("freq.governor", 64, &["performance"], "performance")]))).unwrap();
        assert_eq!(difference(&four, &many), None);
        let none = kind_of(&plan(json!([step("freq.governor", 0, &["performance"], "")]))).unwrap();
        let why = difference(&four, &none).unwrap();
        assert!(why.contains("freq.governor left out") && why.contains("the canary has: freq.governor set"), "{why}");
        let either = |value| kind_of(&plan(json!([step("freq.governor", 4, &["a", "b"], value)]))).unwrap();
        assert!(difference(&either("a"), &either("b")).is_some());
        let mut boot = plan(json!([step("freq.governor", 4, &["performance"], "performance")]));
        boot["boot"] = json!({"loader": "x"});
        assert_eq!(
            difference(&four, &kind_of(&boot).unwrap()).unwrap(),
            "also has: kernel parameters, at the next boot"
        );
    }

    #[test]
    fn firmware_of_another_registry_is_another_kind() {
        let step = |name: &str, state: &str, is_gate: bool| json!({"attribute": name, "wished": "Disabled", "state": state, "is_gate": is_gate});
        let plan = |steps: Value| json!({"schema": FIRMWARE_PLAN, "steps": steps, "refused": [], "waiting": [], "is_validated": true});
        let dell =
            kind_of(&plan(json!([step("SysProfile", "will_change", true), step("ProcCStates", "will_change", false)])))
                .unwrap();
        let was_so =
            kind_of(&plan(json!([step("SysProfile", "no_change", true), step("ProcCStates", "no_change", false)])))
                .unwrap();
        assert_eq!(difference(&dell, &was_so), None);
        let hpe = kind_of(&plan(json!([step("MinProcIdlePower", "will_change", false)]))).unwrap();
        assert!(
            difference(&dell, &hpe)
                .unwrap()
                .contains("firmware MinProcIdlePower=Disabled, at the next boot; the canary has")
        );
        let mut other = plan(json!([step("ProcCStates", "will_change", false)]));
        other["waiting"] = json!([{"attribute": "X", "pending": 3}]);
        assert!(kind_of(&other).unwrap_err().contains("X=3"));
        other["is_validated"] = json!(false);
        assert!(kind_of(&other).unwrap_err().contains("registry"));
        other["refused"] = json!([{"asked": "bios.smt=off", "why": "no"}]);
        assert_eq!(kind_of(&other).unwrap_err(), "bios.smt=off: no");
    }

    #[test]
    fn what_is_refused_or_no_plan_has_no_kind() {
        let mut refused = plan(json!([]));
        refused["refused"] = json!(["freq.governor: no cpufreq here"]);
        assert_eq!(kind_of(&refused).unwrap_err(), "freq.governor: no cpufreq here");
        assert!(kind_of(&json!({"steps": []})).is_err() && kind_of(&json!([1])).is_err());
    }
}
