//! wakewatt-lab disturbs the machine on purpose and puts it back.
//!
//! Benches measure one thing; an experiment runs a workload under several settings in randomised blocks. Settings are
//! changed through wakewatt-tune only.
#![forbid(unsafe_code)]

pub mod context;
pub mod refusal;
pub mod pick;
pub mod running;
pub mod bench;
pub mod watch;
pub mod trace;
pub mod capture;
pub mod survey;
pub mod table_work;
pub mod busy;
pub mod noise;
mod surroundings;
pub mod quiet;
pub mod preflight;
pub mod experiment;
pub mod figure;
pub mod kept_session;
pub mod load;
pub mod meters;
pub mod plan;
mod idle_limits;
pub mod idle_plan;
mod companion;
pub mod setting_arms;
pub mod idle_experiment;
pub mod frequency_plan;
pub mod workloads;
pub mod run_folder;
pub mod study;
pub mod disk_workload;
pub mod wake_workload;
pub mod core_pairs;
pub mod state_arms;
pub mod state_cost;
pub mod state_energy;
pub mod idle_cost;
#[cfg(feature = "shop")]
pub mod shop;
pub mod conduct;
pub mod fit_runs;
pub mod doctor;
pub mod per_node;
