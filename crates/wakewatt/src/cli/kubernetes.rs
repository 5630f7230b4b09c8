//! Machines that are reached through a Kubernetes cluster: which one, and what a pod there is made of.

use clap::Args;
use std::path::PathBuf;

/// Machines that are reached through a Kubernetes cluster.
#[derive(Debug, Default, Args)]
pub struct KubernetesArgs {
    /// Reach nodes through a Kubernetes cluster: a Job each, through your own kubectl; docs/kubernetes.md has the rights it takes
    #[arg(long, conflicts_with = "ssh")]
    pub kubernetes: bool,
    /// The kubeconfig's context, not its current one
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    pub context: Option<String>,
    /// A kubeconfig, not the one that kubectl finds by itself
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    pub kubeconfig: Option<PathBuf>,
    /// The namespace of the Jobs and of the rollout's state, as the chart has set it up
    #[arg(long, value_name = "NAME", default_value = "wakewatt", requires = "kubernetes")]
    pub namespace: String,
    /// An image with wakewatt at /wakewatt, as packaging/Containerfile makes it
    #[arg(long, value_name = "IMAGE", requires = "kubernetes")]
    pub image: Option<String>,
    /// Cordon a node while it is changed, and put that back; nothing is drained
    #[arg(long, requires = "kubernetes")]
    pub cordon: bool,
}
