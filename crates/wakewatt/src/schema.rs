//! The published JSON schemas: one per command, made from the types that are serialised, so they cannot drift.

use schemars::Schema;

/// A command's document.
pub struct Published {
    /// `inspect` for `wakewatt/inspect/v1`.
    pub name: &'static str,
    /// Makes its schema.
    pub schema: fn() -> Schema,
}

/// Every command that takes `--json`, and the run file.
pub const SCHEMAS: &[Published] = &[
    Published { name: "inspect", schema: inspected },
    Published { name: "explain", schema: || schemars::schema_for!(wakewatt_core::explain::Explanation) },
    #[cfg(feature = "agent")]
    Published { name: "agent-query", schema: || schemars::schema_for!(crate::cmd::agent::Document) },
    #[cfg(feature = "agent")]
    Published { name: "agent-node", schema: || schemars::schema_for!(wakewatt_agent::node::Node) },
    #[cfg(feature = "agent")]
    Published { name: "agent-past", schema: || schemars::schema_for!(wakewatt_agent::node::past::Past) },
    #[cfg(feature = "agent")]
    Published { name: "compare-past", schema: || schemars::schema_for!(wakewatt_agent::history::beside::Beside) },
    Published { name: "compare", schema: || schemars::schema_for!(wakewatt_core::compare::Comparison) },
    Published { name: "measure", schema: || schemars::schema_for!(crate::cmd::measure::Measured) },
    #[cfg(feature = "shop")]
    Published { name: "load-shop", schema: || schemars::schema_for!(wakewatt_lab::shop::levels::ShopRun) },
    Published { name: "per-node", schema: || schemars::schema_for!(wakewatt_lab::per_node::Ran) },
    Published { name: "trace", schema: || schemars::schema_for!(wakewatt_core::samples::traced::Traced) },
    Published { name: "trace-info", schema: || schemars::schema_for!(crate::cmd::trace::TraceInfo) },
    Published { name: "replay", schema: || schemars::schema_for!(wakewatt_models::replay::Replayed) },
    Published { name: "replay-sweep", schema: || schemars::schema_for!(wakewatt_models::replay::sweep::Sweep) },
    Published { name: "replay-slo", schema: || schemars::schema_for!(wakewatt_models::replay::slo::Slo) },
    Published { name: "replay-upgrade", schema: || schemars::schema_for!(wakewatt_models::replay::Upgrade) },
    Published { name: "simulate", schema: || schemars::schema_for!(wakewatt_sim::study::Study) },
    Published { name: "fit", schema: || schemars::schema_for!(crate::cmd::fit::Fits) },
    Published { name: "fleet-collect", schema: || schemars::schema_for!(wakewatt_carry::collect::Index) },
    Published { name: "fleet-compare", schema: || schemars::schema_for!(wakewatt_fleet::document::Fleet) },
    Published { name: "fleet-rollout", schema: || schemars::schema_for!(wakewatt_fleet::rollout::state::Rollout) },
    Published { name: "fleet-rollout-plan", schema: || schemars::schema_for!(crate::cmd::fleet::DryRun) },
    Published { name: "import", schema: || schemars::schema_for!(wakewatt_import::document::Document) },
    Published { name: "load", schema: || schemars::schema_for!(crate::cmd::load::Loaded) },
    Published { name: "respond", schema: || schemars::schema_for!(wakewatt_core::samples::icmp::IcmpAnswers) },
    Published { name: "watch", schema: || schemars::schema_for!(wakewatt_core::watch::Rates) },
    Published { name: "tune-knobs", schema: || schemars::schema_for!(crate::cmd::tune::Knobs) },
    Published { name: "tune-plan", schema: || schemars::schema_for!(crate::cmd::tune::Planned) },
    Published { name: "tune-apply", schema: || schemars::schema_for!(crate::cmd::tune::Applied) },
    Published { name: "tune-status", schema: || schemars::schema_for!(crate::cmd::tune::Statuses) },
    Published { name: "bios-show", schema: || schemars::schema_for!(wakewatt_bios::show::Shown) },
    Published { name: "bios-plan", schema: || schemars::schema_for!(crate::cmd::bios::Planned) },
    Published { name: "bios-apply", schema: || schemars::schema_for!(wakewatt_bios::apply::Applied) },
    Published { name: "bios-verify", schema: || schemars::schema_for!(wakewatt_bios::verify::Verified) },
    Published { name: "bios-undo", schema: || schemars::schema_for!(wakewatt_bios::undo::Undone) },
    Published { name: "report", schema: judged },
    Published { name: "run", schema: || schemars::schema_for!(wakewatt_core::record::run_file::RunFile) },
    Published { name: "experiment", schema: || schemars::schema_for!(wakewatt_core::samples::study::Study) },
    Published { name: "replicate", schema: || schemars::schema_for!(wakewatt_core::compare::replication::Replication) },
    Published { name: "experiment-plan", schema: || schemars::schema_for!(wakewatt_lab::conduct::DryRun) },
    Published { name: "doctor", schema: judged },
    Published { name: "doctor-preflight", schema: || schemars::schema_for!(crate::cmd::doctor::PreflightDocument) },
];

/// The schema of a profile's file, which is no document of a command.
pub fn profile() -> serde_json::Value {
    let mut schema = schemars::schema_for!(wakewatt_tune::profile_schema::ProfileFile).to_value();
    schema["title"] = "wakewatt profile, format 1".into();
    schema
}

/// The schema of a plan's file, likewise.
pub fn experiment_file() -> serde_json::Value {
    let mut schema = schemars::schema_for!(wakewatt_lab::plan::PlanFile).to_value();
    schema["title"] = "wakewatt experiment plan, format 1".into();
    schema
}

/// The schema of a server's file, likewise.
pub fn server_file() -> serde_json::Value {
    let mut schema = schemars::schema_for!(wakewatt_sim::server::Server).to_value();
    schema["title"] = "wakewatt server, format 1".into();
    schema
}

/// `inspect` of some topics leaves the others out, so none is required.
fn inspected() -> Schema {
    let mut schema = schemars::schema_for!(wakewatt_core::facts::Snapshot);
    if let Some(required) = schema.get_mut("required").and_then(|r| r.as_array_mut()) {
        required.retain(|name| !wakewatt_core::facts::TOPICS.iter().any(|topic| name == topic.id));
    }
    schema
}

/// Evidence that is printed has every kind of sample, empty where there is none; only a run file may lack some.
fn judged() -> Schema {
    let mut schema = schemars::schema_for!(crate::report::json::Document<'static>);
    let Some(evidence) = schema.pointer_mut("/$defs/Evidence") else { return schema };
    let mut required = Vec::new();
    for (name, property) in evidence["properties"].as_object_mut().into_iter().flatten() {
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
        if name == "facts" || property["type"] == "array" {
            required.push(name.clone());
        }
    }
    evidence["required"] = required.into();
    schema
}

/// The schema of a whole document: the body's, plus the envelope's two fields.
pub fn document(published: &Published) -> serde_json::Value {
    let mut schema = (published.schema)().to_value();
    schema["title"] = format!("wakewatt/{}/v1", published.name).into();
    schema["properties"]["schema"] = serde_json::json!({ "const": format!("wakewatt/{}/v1", published.name) });
    schema["properties"]["wakewatt"] =
        serde_json::json!({ "type": "string", "description": "version of the program that wrote this" });
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, "wakewatt".into());
        required.insert(0, "schema".into());
    } else {
        schema["required"] = serde_json::json!(["schema", "wakewatt"]);
    }
    schema
}
