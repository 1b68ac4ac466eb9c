//! Capabilities of a cluster, as templates ask for them.
//!
//! Helm fakes a cluster where it has none: of the Kubernetes version that its client library is made for, with the API
//! groups that the library knows. [`Capabilities::offline`] gives the same.

mod api_versions;
mod kube_version;

use helm_chart::Helm;
pub use kube_version::{KubeVersion, KubeVersionError};

/// `.Capabilities`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The version of Kubernetes.
    pub kube_version: KubeVersion,
    /// The API versions that the cluster serves: `apps/v1`, and `apps/v1/Deployment` if the caller lists kinds as well.
    pub api_versions: Vec<String>,
    /// The version of Helm that charts see.
    pub helm_version: HelmVersion,
}

/// `.Capabilities.HelmVersion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmVersion {
    /// With a leading `v`.
    pub version: String,
    /// The commit that it was built from; empty in builds of the module.
    pub git_commit: String,
    /// `clean` or `dirty`.
    pub git_tree_state: String,
    /// The version of Go that built it.
    pub go_version: String,
    /// The version of Kubernetes' client in it; Helm 3 does not say.
    pub kube_client_version: String,
}

impl Capabilities {
    /// Capabilities that Helm assumes where it does not ask a cluster.
    pub fn offline(helm: Helm) -> Self {
        Self {
            kube_version: KubeVersion::built_in(),
            api_versions: api_versions::KNOWN
                .iter()
                .map(|version| (*version).to_owned())
                .collect(),
            helm_version: HelmVersion::from_helm(helm),
        }
    }
}

impl HelmVersion {
    /// Returns what the followed release of Helm says of itself.
    pub fn from_helm(helm: Helm) -> Self {
        let (version, kube_client_version) = match helm {
            Helm::V3 => ("v3.22.0", ""),
            Helm::V4 => ("v4.3.1", "v1.37"),
        };
        Self {
            version: version.to_owned(),
            git_commit: String::new(),
            git_tree_state: "clean".to_owned(),
            go_version: "go1.26.8".to_owned(),
            kube_client_version: kube_client_version.to_owned(),
        }
    }
}
