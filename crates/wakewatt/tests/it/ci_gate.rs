//! The gate as pipelines use it: exit codes, what is written, and the shipped jobs with their steps run one after the other.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, host, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::record::mask::Names;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::LoadRun;
use wakewatt_testing::{Lacks, skipped};

const HERE: &str = "packaging/ci";

/// A load in six windows around this rate, saved as `load --save` would.
fn made_up(file: &Path, title: &str, per_s: f64) {
    let level = |jitter: f64| {
        let json = json!({ "ask": { "share": 0.5 }, "phases_ns": [0, 0, 1, 0], "target_per_s": 500.0,
            "window": { "start_at_ns": 0, "end_at_ns": 1_000_000_000 }, "n_planned": 1000, "n_done": 1000, "n_failed": 0,
            "per_s": per_s * (1.0 + jitter), "parts": [], "cpu_ns": 500_000_000, "system_ns": 1, "cpus": [], "idle": [],
            "disturbances": [], "is_invalid": [] });
        serde_json::from_value(json).unwrap()
    };
    let levels = [0.0, 0.004, -0.003, 0.001, -0.002, 0.002].map(level).to_vec();
    let load = LoadRun { title: title.into(), levels, ..LoadRun::default() };
    let evidence = Evidence::of(Samples { load: vec![load], ..Samples::default() });
    let facts = fs::read_to_string(host("sklep0")).unwrap();
    let made = RunFile::of(&evidence, facts, Names::default(), "load steps", "2026-11-23T09:00:00Z".into()).unwrap();
    fs::write(file, wakewatt::output::json("run", &made).unwrap()).unwrap();
}

/// A folder with a run before, one after that is the same, and one that is a quarter slower.
fn runs() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_path_buf();
    let at = move |name: &str| folder.join(name).to_str().unwrap().to_string();
    for (name, per_s) in [("before.run", 500.0), ("same.run", 501.0), ("slow.run", 375.0)] {
        made_up(Path::new(&at(name)), "steps", per_s);
    }
    (dir, at)
}

#[test]
fn the_code_says_what_became_of_the_gate() {
    let (_dir, at) = runs();
    let gate = |after: &str, rules: &[&str]| -> Said {
        let (before, after) = (at("before.run"), at(after));
        let mut args = vec!["compare", before.as_str(), after.as_str()];
        rules.iter().for_each(|rule| args.extend(["--fail-on", rule]));
        run(&args)
    };
    let (same, slow) = (gate("same.run", &["slower:5%"]), gate("slow.run", &["slower:5%"]));
    assert!(same.code == Some(0) && same.out.contains("The gate passed"), "{same:?}");
    assert!(slow.code == Some(1) && slow.out.contains("worse beyond doubt"), "{slow:?}");
    assert_eq!(gate("slow.run", &["slower:60%,cpu:60%", "unsure"]).code, Some(0), "allowed");
    let nothing = gate("slow.run", &["watts:5%"]);
    assert!(nothing.code == Some(3) && nothing.out.contains("no power was measured on both sides"), "{nothing:?}");
    for (rules, says) in [("unsure", "add one such as"), ("slower", "slower:5%"), ("slower:x%", "METRIC:PERCENT")] {
        let said = gate("slow.run", &[rules]);
        assert!(said.code == Some(2) && said.err.contains(says), "{rules}: {said:?}");
    }
    let hosts = host("sklep0").to_str().unwrap().to_string();
    let said = run(&["compare", &hosts, &hosts, "--fail-on", "slower:5%"]);
    assert!(said.code == Some(2) && said.err.contains("name two run files"), "{said:?}");
    assert_eq!(run(&["compare", &hosts, &hosts, "--junit", "x.xml"]).code, Some(2), "without a rule there is no test");
}

#[test]
fn markdown_junit_and_json_say_the_same() {
    let (_dir, at) = runs();
    // Markup in a title must not become any.
    made_up(Path::new(&at("a.run")), "<b>&\"x\"", 500.0);
    made_up(Path::new(&at("b.run")), "<b>&\"x\"", 375.0);
    let (a, b, xml) = (at("a.run"), at("b.run"), at("gate.xml"));
    let said = run(&["compare", &a, &b, "--fail-on", "slower:5%,watts:5%", "--junit", &xml, "--markdown"]);
    assert!(said.code == Some(1) && said.out.contains("| slower:5% |") && !said.out.contains("<b>"), "{said:?}");
    let xml = fs::read_to_string(xml).unwrap();
    assert!(xml.contains("failures=\"1\" errors=\"1\"") && xml.contains("&lt;b&gt;&amp;&quot;x&quot;"), "{xml}");
    let said = run(&["compare", &a, &b, "--fail-on", "slower:5%", "--json"]);
    let document = assert_valid(&validator("compare"), "compare", &said.out);
    assert_eq!(
        (&document["gate"]["end"], &document["gate"]["checks"][0]["standing"]),
        (&"failed".into(), &"worse".into())
    );
    let unwritable = run(&["compare", &a, &a, "--fail-on", "slower:5%", "--junit", "/no/such/folder/x.xml"]);
    assert_eq!(unwritable.code, Some(4), "{unwritable:?}");
}

/// Whatever the machine is like that runs the tests: a document, all that was looked at, and a code that fits it.
/// Measured on a busy machine, and kept: rate cannot be told there, CPU time can (docs/ci.md shows it).
#[test]
fn the_kept_gate_says_the_same_today() {
    let kept = top().join("bench/runs/2026-11-23-vm-2cpu-epyc/gate");
    let dir = tempfile::tempdir().unwrap();
    let runs = ["before-1", "before-2", "before-3", "after-1", "after-2", "after-3"].map(|name| {
        let (mut text, file) = (String::new(), dir.path().join(format!("{name}.run")));
        let mut packed = wakewatt_host::material::open(&kept.join(format!("{name}.run.gz"))).unwrap();
        std::io::Read::read_to_string(&mut packed, &mut text).unwrap();
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_string()
    });
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let junit = dir.path().join("gate.xml").to_str().unwrap().to_string();
    let mut args = [&["compare"], &runs[..3], &["--against"], &runs[3..]].concat();
    args.extend(["--fail-on", "cpu:5%,slower:5%", "--junit", &junit, "--markdown"]);
    let said = run(&args);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(said.out, fs::read_to_string(kept.join("gate.md")).unwrap());
    assert_eq!(fs::read_to_string(&junit).unwrap(), fs::read_to_string(kept.join("gate.xml")).unwrap());
}

#[test]
fn the_preflight_is_a_document_and_says_what_it_could_not_do() {
    let said = run(&["doctor", "--preflight", "--json"]);
    let document = assert_valid(&validator("doctor-preflight"), "preflight", &said.out);
    let is_measured = document["self_difference"].is_object();
    assert_eq!(said.code, Some(if is_measured { 0 } else { 3 }), "{said:?}");
    assert_eq!(is_measured, document["not_measured_because"].is_null(), "{document}");
    assert!(document["looked"].as_array().unwrap().len() == 8 && document["took_ns"].as_u64() > Some(0), "{document}");
    let strict = run(&["doctor", "--preflight", "--require", "0%"]);
    assert!(strict.code == Some(1) && strict.out.contains("Unfit: the machine may differ from itself"), "{strict:?}");
    assert_eq!(run(&["doctor", "--preflight", "--require", "much"]).code, Some(2));
    assert_eq!(run(&["doctor", "--require", "5%"]).code, Some(2), "nothing is required of what is not asked");
}

/// The one thing a plan of an observer needs, and what it would do; nothing is run.
#[test]
fn an_observer_has_to_be_named_and_is_shown_before_it_runs() {
    let host = host("sklep0").to_str().unwrap().to_string();
    let said = run(&["experiment", "observer", "--dry-run", "--host", &host]);
    assert!(said.code == Some(2) && said.err.contains("name it behind --"), "{said:?}");
    let said = run(&["experiment", "observer", "--dry-run", "--host", &host, "--", "agent", "--scrape=1s"]);
    assert!(said.code == Some(0) && said.out.contains("\"agent --scrape=1s\" runs meanwhile"), "{said:?}");
    let said = run(&["experiment", "idle", "--dry-run", "--host", &host, "--", "agent"]);
    assert!(said.code == Some(2) && said.err.contains("no place for a program"), "{said:?}");
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(command: &mut Command, test: &str, program: &'static str) -> Option<Output> {
    let output = command.output();
    if output.is_err() {
        skipped(test, Lacks::Program(program), "the shipped jobs are not looked at");
    }
    output.ok()
}

/// A YAML file as JSON; none where nobody here reads YAML.
fn yaml(test: &str, name: &str) -> Option<Value> {
    let file = top().join(HERE).join(name);
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let said = output(Command::new("python3").args(["-c", script]).arg(&file), test, "python3")?;
    if !said.status.success() {
        skipped(test, Lacks::Program("python3-yaml"), "nobody reads YAML");
        return None;
    }
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

#[test]
fn the_shipped_jobs_are_yaml_that_a_linter_likes() {
    let rules = "{extends: default, rules: {line-length: {max: 140}, truthy: {check-keys: false}, comments: {min-spaces-from-content: 1}}}";
    let mut lint = Command::new("yamllint");
    lint.args(["--strict", "-d", rules, "."]).current_dir(top().join(HERE));
    let Some(said) = output(&mut lint, "ci_gate::lint", "yamllint") else { return };
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

/// The program's folder first in PATH, as on a runner whose image has it.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_wakewatt"));
    format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default())
}

/// The steps of the action, as a runner takes them: inputs into the environment, `if`, a file for the summary and one for outputs.
fn act(dir: &Path, given: &[(&str, &str)]) -> Option<(Option<i32>, String)> {
    let action = yaml("ci_gate::action", "github/action.yml")?;
    let input = |name: &str| {
        let known = &action["inputs"][name];
        assert!(known.is_object(), "a step uses the input {name}, which there is not");
        let given = given.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_string());
        given.unwrap_or_else(|| known["default"].as_str().unwrap_or_default().to_string())
    };
    let filled = |text: &str| {
        let name = text.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
        assert_eq!(text, format!("${{{{ inputs.{name} }}}}"), "nothing else is pasted");
        input(name)
    };
    for step in action["runs"]["steps"].as_array().unwrap() {
        let condition = step["if"].as_str().unwrap_or_default();
        let is_left_out = condition == "inputs.require != ''" && input("require").is_empty();
        assert!(condition.is_empty() || condition == "inputs.require != ''", "{condition}");
        if is_left_out {
            continue;
        }
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "an expression inside a script is a way in");
        // As GitHub starts `shell: bash`.
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(dir).env("PATH", path());
        bash.env("GITHUB_STEP_SUMMARY", dir.join("summary")).env("GITHUB_OUTPUT", dir.join("outputs"));
        for (name, value) in step["env"].as_object().unwrap() {
            bash.env(name, filled(value.as_str().unwrap()));
        }
        let said = bash.output().unwrap();
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        if said.status.code() != Some(0) {
            return Some((said.status.code(), text));
        }
    }
    Some((Some(0), String::new()))
}

#[test]
fn the_action_passes_fails_and_writes_its_summary() {
    let (dir, at) = runs();
    let sides = |after: &'static str| [("before", "before.run same.run"), ("after", after)];
    let Some((code, text)) = act(dir.path(), &sides("same.run before.run")) else { return };
    assert_eq!(code, Some(0), "{text}");
    assert!(fs::read_to_string(at("summary")).unwrap().contains("The gate passed"), "summary");
    assert!(fs::read_to_string(at("wakewatt-gate.xml")).unwrap().contains("<testsuites"));
    made_up(Path::new(&at("slow2.run")), "steps", 374.0);
    let (code, text) = act(dir.path(), &sides("slow.run slow2.run")).unwrap();
    assert_eq!(code, Some(1), "{text}");
    assert!(fs::read_to_string(at("outputs")).unwrap().contains("code=1"));
    // What is given is data: this would leave a file if it were a command.
    let evil = [("before", "before.run"), ("after", "same.run"), ("fail-on", "$(touch pwned);`touch pwned`")];
    let (code, _) = act(dir.path(), &evil).unwrap();
    assert!(code == Some(2) && !dir.path().join("pwned").exists());
    // No machine differs from itself by nothing at all, and the gate is not reached.
    let (code, text) = act(dir.path(), &[("before", "x"), ("after", "x"), ("require", "0%")]).unwrap();
    assert!(code == Some(1) && text.contains("Unfit"), "{code:?} {text}");
}

#[test]
fn the_gitlab_job_measures_takes_turns_and_judges() {
    let Some(file) = yaml("ci_gate::gitlab", "gitlab.yml") else { return };
    let job = &file["wakewatt-gate"];
    let (dir, at) = runs();
    let copy = |from: &str| format!("cp {} \"$RUN\" && echo \"$RUN\" >> order", at(from));
    for (after, wanted) in [("same.run", 0), ("slow.run", 1)] {
        let script: Vec<&str> = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        // How fit the machine is that runs the tests is no matter of theirs.
        assert!(script[0].starts_with("wakewatt doctor --preflight --require"), "{script:?}");
        let mut bash = Command::new("bash");
        bash.args(["-eo", "pipefail", "-c", &script[1..].join("\n")]).current_dir(dir.path()).env("PATH", path());
        for (name, value) in job["variables"].as_object().unwrap() {
            bash.env(name, value.as_str().unwrap());
        }
        bash.env("MEASURE_BEFORE", copy("before.run")).env("MEASURE_AFTER", copy(after));
        let said = bash.output().unwrap();
        assert_eq!(said.status.code(), Some(wanted), "{}", String::from_utf8_lossy(&said.stderr));
        let order = fs::read_to_string(dir.path().join("order")).unwrap();
        assert!(order.starts_with("before-1.run\nafter-1.run\nbefore-2.run\n"), "{order}");
    }
    assert!(fs::read_to_string(at("wakewatt-gate.xml")).unwrap().contains("failures=\"1\""));
}
