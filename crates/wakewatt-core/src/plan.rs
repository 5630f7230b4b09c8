//! A plan: ordered changes with their reasons, in the vocabulary of `wakewatt tune`. Pure data; wakewatt-tune carries it out.
//!
//! A step says what a person would type, so a plan is also three lines to paste: look (changes nothing), apply, undo.
//! Names come from the machine (idle states, interfaces), and the lines end in somebody's shell: a step whose words are
//! not plain text, or that the command line would take apart elsewhere, is left out rather than quoted cleverly.

use crate::cpuset::CpuSet;
use crate::facts::Cpus;
use serde::Serialize;

/// The knob of a step that is a kernel parameter for the next boots.
pub const BOOT: &str = "boot";

/// How long an applied plan waits for `wakewatt tune confirm` before it goes back.
pub const CONFIRM_WITHIN: &str = "60s";

/// One setting to be changed, in the words of `wakewatt tune`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The setting's full name as `tune plan --set` takes it (`freq.governor`, `idle.state.C6`), or `boot`.
    pub knob: String,
    /// Where: `cpus:0-3`, `package:0`, `eth0`; none is everywhere.
    pub on: Option<String>,
    /// The new value in the words the knob takes; of `boot`, the parameter.
    pub to: String,
    /// The file or parameter that shows it.
    pub path: String,
    /// Why the setting is advised.
    pub reason: String,
}

/// A plan as lines for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commands {
    /// Shows what would change; changes nothing.
    pub look: String,
    /// Makes the changes. Settings go back by themselves unless confirmed; a kernel parameter waits for the next boot.
    pub apply: String,
    /// The line that takes the settings back.
    pub undo: String,
}

/// Changes in the order they must be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    steps: Vec<Step>,
    commands: Commands,
}

impl Step {
    /// Can it be said on a command line and arrive as it is? Printable ASCII, and no sign that divides name from place,
    /// place from value, or one value from the next.
    fn is_sayable(&self) -> bool {
        let is_plain = |text: &str, dividers: &[char]| {
            !text.trim().is_empty()
                && text.trim() == text
                && text.chars().all(|c| (c == ' ' || c.is_ascii_graphic()) && !dividers.contains(&c))
        };
        let is_value = if self.is_boot() { is_plain(&self.to, &[' ']) } else { is_plain(&self.to, &['|']) };
        is_value && is_plain(&self.knob, &['@', '=']) && self.on.as_ref().is_none_or(|on| is_plain(on, &['=']))
    }
    /// A kernel parameter, which acts at the next boot?
    pub fn is_boot(&self) -> bool {
        self.knob == BOOT
    }
    /// A budget of wake-up latency, which has an option of its own.
    fn is_budget(&self) -> bool {
        self.knob.starts_with("qos.") && self.to != "none"
    }
    fn as_set(&self) -> [String; 2] {
        let on = self.on.as_ref().map_or(String::new(), |on| format!("@{on}"));
        ["--set".into(), format!("{}{on}={}", self.knob, self.to)]
    }
}

impl Plan {
    /// A plan of these steps.
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Plan {
        let mut plan = Plan::default();
        steps.into_iter().for_each(|step| plan.push(step));
        plan
    }
    /// One more step; left out where it cannot be said on a command line.
    pub fn push(&mut self, step: Step) {
        if step.is_sayable() {
            self.steps.push(step);
            self.commands = self.to_commands();
        }
    }
    /// In order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
    /// To paste.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }
    /// The CPUs that its settings reach, in words, so that advice and line have the same scope.
    pub fn reach(&self, cpus: &Cpus) -> String {
        let running: CpuSet = cpus.running().collect();
        let mut places: Vec<&str> =
            self.steps.iter().filter(|s| !s.is_boot()).map(|s| s.on.as_deref().unwrap_or("")).collect();
        places.dedup();
        match places.iter().all(|place| place.is_empty()) {
            true => cpus.extent(&running),
            false => places.join(", "),
        }
    }
    /// The options of `wakewatt tune plan` and `apply`, one word each, unquoted.
    pub fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let (boot, settings): (Vec<&Step>, Vec<&Step>) = self.steps.iter().partition(|s| s.is_boot());
        // The scope's options reach every setting without a place, so they serve a plan of one step only.
        let is_alone = settings.len() == 1;
        for step in settings {
            let scope = step.on.as_deref().and_then(|on| on.split_once(':'));
            match (step.on.is_none() && step.knob == "qos.global", scope) {
                _ if !step.is_budget() => options.extend(step.as_set()),
                (true, _) => options.extend(["--max-latency".into(), step.to.clone()]),
                (_, Some((kind @ ("cpus" | "package" | "node"), which))) if is_alone => {
                    options.extend(["--max-latency".into(), step.to.clone(), format!("--{kind}"), which.into()]);
                }
                _ => options.extend(step.as_set()),
            }
        }
        boot.iter().for_each(|step| options.extend(["--boot-arg".into(), step.to.clone()]));
        options
    }

    fn to_commands(&self) -> Commands {
        let options: String = self.options().iter().map(|word| format!(" {}", quoted(word))).collect();
        // Nothing that could be confirmed happens before the next boot.
        let confirm = if self.steps.iter().all(Step::is_boot) {
            String::new()
        } else {
            format!(" --confirm-within {CONFIRM_WITHIN}")
        };
        Commands {
            look: format!("wakewatt tune plan{options}"),
            apply: format!("sudo wakewatt tune apply{options}{confirm}"),
            undo: "sudo wakewatt tune undo".into(),
        }
    }
}

/// A word for a POSIX shell: as it is where every character means itself, else in single quotes.
pub fn quoted(word: &str) -> String {
    let is_itself = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_itself) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(knob: &str, on: &str, to: &str) -> Step {
        let on = (!on.is_empty()).then(|| on.to_string());
        Step { knob: knob.into(), on, to: to.into(), path: "/sys/x".into(), reason: "why".into() }
    }

    fn look(steps: &[(&str, &str, &str)]) -> String {
        let line = Plan::of(steps.iter().map(|(knob, on, to)| step(knob, on, to))).commands().look.clone();
        line.strip_prefix("wakewatt tune plan").unwrap_or(&line).trim().to_string()
    }

    #[test]
    fn a_plan_is_three_lines_to_paste() {
        let plan = Plan::of([
            step("freq.governor", "", "performance"),
            step(BOOT, "", "processor.max_cstate=1"),
            step("idle.state.C6", "cpus:0-7", "off"),
        ]);
        let options =
            "--set freq.governor=performance --set idle.state.C6@cpus:0-7=off --boot-arg processor.max_cstate=1";
        assert_eq!(plan.commands().look, format!("wakewatt tune plan {options}"));
        assert_eq!(plan.commands().apply, format!("sudo wakewatt tune apply {options} --confirm-within 60s"));
        assert_eq!(plan.commands().undo, "sudo wakewatt tune undo");
        let boot = Plan::of([step(BOOT, "", "amd_pstate=active")]);
        assert_eq!(boot.commands().apply, "sudo wakewatt tune apply --boot-arg amd_pstate=active");
        assert_eq!(Plan::default().commands().look, "");
    }

    #[test]
    fn a_latency_budget_is_said_as_one() {
        assert_eq!(look(&[("qos.global", "", "4us")]), "--max-latency 4us");
        assert_eq!(look(&[("qos.cpu", "cpus:0-3", "4us")]), "--max-latency 4us --cpus 0-3");
        assert_eq!(look(&[("qos.cpu", "package:1", "4us")]), "--max-latency 4us --package 1");
        assert_eq!(look(&[("qos.cpu", "", "none")]), "--set qos.cpu=none");
        assert_eq!(look(&[("qos.cpu", "", "1us")]), "--set qos.cpu=1us");
        assert_eq!(
            look(&[("qos.cpu", "cpus:0", "4us"), ("qos.cpu", "cpus:1", "2us")]),
            "--set qos.cpu@cpus:0=4us --set qos.cpu@cpus:1=2us"
        );
    }

    #[test]
    fn a_shell_sees_one_word_for_each() {
        assert_eq!(look(&[("idle.state.haltpoll idle", "", "off")]), "--set 'idle.state.haltpoll idle=off'");
        assert_eq!(look(&[("idle.state.C6'$(x)", "", "off")]), r"--set 'idle.state.C6'\''$(x)=off'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_would_arrive_as_something_else_is_left_out() {
        for evil in ["C6=off", "C6@cpu0", "C6\n--x", "C6\u{202e}", "C6 "] {
            assert_eq!(look(&[(&format!("idle.state.{evil}"), "", "off")]), "", "{evil:?}");
        }
        assert_eq!(look(&[("a", "", "b|c"), ("a", "x=y", "b"), (BOOT, "", "a b"), ("a", "", "")]), "");
    }
}
