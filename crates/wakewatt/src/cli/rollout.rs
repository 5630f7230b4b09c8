//! The command line of `fleet rollout`.

use super::bmcs::BmcsArgs;
use super::kubernetes::KubernetesArgs;
use super::ssh::SshArgs;
use super::store::StoreArgs;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `fleet rollout`.
#[derive(Debug, Args)]
pub struct RolloutArgs {
    /// The plan, a TOML file; --example prints one
    #[arg(value_name = "PLAN", required_unless_present_any = ["example", "resume", "undo", "status", "audit_check"])]
    pub plan: Option<String>,
    /// Print a plan to begin with, every key explained
    #[arg(long, conflicts_with_all = ["plan", "resume", "undo", "status", "dry_run"])]
    pub example: bool,
    /// Only show what each node's own plan is, and which nodes would be left out; changes nothing
    #[arg(long, conflicts_with_all = ["resume", "undo", "status"])]
    pub dry_run: bool,
    /// Go on where an interrupted or killed rollout stands
    #[arg(long, conflicts_with_all = ["undo", "status"])]
    pub resume: bool,
    /// Put everything back that the rollout in the book has changed, also after its end
    #[arg(long, conflicts_with = "status")]
    pub undo: bool,
    /// Show how far the rollout in the book is; asks no node
    #[arg(long)]
    pub status: bool,
    #[command(flatten)]
    pub ssh: SshArgs,
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    #[command(flatten)]
    pub bmcs: BmcsArgs,
    /// Where state and audit log are kept, and what refuses a second rollout; ~/.local/state/wakewatt/rollout when not given, with --kubernetes objects of the cluster
    #[arg(long, value_name = "DIR")]
    pub book: Option<PathBuf>,
    /// Sign lines of the audit log with the first line of this file of your own (mode 600)
    #[arg(long, value_name = "FILE")]
    pub sign_key: Option<PathBuf>,
    /// Check an audit log: do its lines follow each other, and with --sign-key, are they signed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "resume", "undo", "status", "example"])]
    pub audit_check: Option<PathBuf>,
    /// The Prometheus-compatible API that gates ask
    #[arg(long, value_name = "URL")]
    pub prometheus: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// One HTML page: how it went, with the moment of each stage
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
