//! Every JSON document of every command validates against the schema that is published for it.

use crate::tool::{host, hosts, run};
use jsonschema::Validator;
use serde_json::Value;
use wakewatt::schema;

/// The validator of one command's documents.
pub fn validator(command: &str) -> Validator {
    let published = schema::SCHEMAS.iter().find(|s| s.name == command).unwrap_or_else(|| panic!("no schema {command}"));
    jsonschema::validator_for(&schema::document(published)).unwrap()
}

/// Asserts that a document is one, and valid.
pub fn assert_valid(validator: &Validator, what: &str, text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{what}: not JSON: {e}"));
    let errors: Vec<String> =
        validator.iter_errors(&document).take(5).map(|e| format!("{}: {e}", e.instance_path())).collect();
    let short = |e: &String| e.chars().take(400).collect::<String>();
    assert!(errors.is_empty(), "{what}: {:#?}", errors.iter().map(short).collect::<Vec<_>>());
    document
}

#[test]
fn inspect_documents_are_valid() {
    let validator = validator("inspect");
    for (name, file) in hosts() {
        let said = run(&["inspect", "--json", "--host", file.to_str().unwrap()]);
        let document = assert_valid(&validator, &name, &said.out);
        assert_eq!(document["schema"], "wakewatt/inspect/v1");
    }
}

#[test]
fn an_inspect_document_of_some_topics_is_valid() {
    let validator = validator("inspect");
    let file = host("dell-latitude-5420-tgl");
    let said = run(&["inspect", "idle", "qos", "--json", "--host", file.to_str().unwrap()]);
    let document = assert_valid(&validator, "two topics", &said.out);
    assert!(document.get("idle").is_some() && document.get("freq").is_none());
}

#[test]
fn doctor_documents_are_valid() {
    let validator = validator("doctor");
    for (name, file) in hosts() {
        let said = run(&["doctor", "--json", "--no-report", "--host", file.to_str().unwrap()]);
        assert_valid(&validator, &name, &said.out);
    }
}

#[test]
fn compare_documents_are_valid() {
    let validator = validator("compare");
    let all = hosts();
    for pair in all.windows(2) {
        let said = run(&["compare", "--json", pair[0].1.to_str().unwrap(), pair[1].1.to_str().unwrap()]);
        assert_valid(&validator, &pair[0].0, &said.out);
    }
    let mut args = vec!["compare", "--json"];
    args.extend(all.iter().map(|(_, file)| file.to_str().unwrap()));
    assert_valid(&validator, "all", &run(&args).out);
}

/// The report's samples stand for live runs: every field of an experiment filled.
#[test]
fn documents_with_an_experiment_are_valid() {
    use wakewatt::report::Report;
    let validator = validator("doctor");
    for (name, report) in wakewatt::report::sample::all() {
        let report: Report = report;
        assert_valid(&validator, name, &report.to_json("doctor").unwrap());
    }
}
