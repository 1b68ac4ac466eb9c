//! Shared parts of the commands that install and remove the controllers: the embedded chart, its Helm
//! release, other installations, and permissions.
//!
//! `chart` and `helm` make the release; `plan` says what that would change; `controllers`, `definitions`, `rights` and `version`
//! look at the cluster; `lock` keeps two of these commands apart; `rollout` tells what is waited for; `leftovers` is what the
//! controllers make for themselves.

pub(crate) mod chart;
pub(crate) mod controllers;
pub(crate) mod definitions;
pub(crate) mod helm;
pub(crate) mod leftovers;
pub(crate) mod lock;
pub(crate) mod managers;
pub(crate) mod objects;
pub(crate) mod plan;
pub(crate) mod ready;
pub(crate) mod rights;
pub(crate) mod rollout;
pub(crate) mod version;

use std::path::PathBuf;

use crate::cluster::ClusterFlags;

pub(crate) use helm::Platform;

/// The name of the release.
pub(crate) const RELEASE: &str = "windlass";

/// Which cluster, and where in it the controllers are.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Place {
    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace of the controllers; the context's namespace is not used
    #[arg(long, short, value_name = "NAME", default_value = "flux-system")]
    pub(crate) namespace: String,
}

impl Place {
    pub(crate) fn cluster(&self) -> ClusterFlags {
        ClusterFlags::in_namespace(self.kubeconfig.clone(), self.context.clone(), &self.namespace)
    }
}
