//! Options of a control plane.

use crate::tools::{self, Tool};
/// Parts to start, and their options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which programs run.
    pub components: Components,
    /// How many nodes there are; 0 leaves pods Pending.
    pub nodes: usize,
    /// Further flags for kube-apiserver; a flag given here wins over ours.
    pub api_server_flags: Vec<String>,
    /// Users that the API server knows, as `token,name,uid,"group1,group2"`.
    pub users: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            components: Components::All,
            nodes: 1,
            api_server_flags: Vec::new(),
            users: Vec::new(),
        }
    }
}

impl Options {
    /// The API server and its etcd alone: starts faster, nothing moves by itself, namespaces never finish deleting.
    pub fn api_server_only() -> Self {
        Self {
            components: Components::ApiServerOnly,
            nodes: 0,
            ..Self::default()
        }
    }
}

/// The label of nodes that kwok plays; of others, someone else runs the Pods.
pub(super) const SIMULATED_NODE: &str = "testkit.windlass.dev/simulated";

/// Which programs make up the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Components {
    /// All five.
    All,
    /// etcd and kube-apiserver.
    ApiServerOnly,
}

impl Components {
    pub(super) fn tools(self) -> &'static [Tool] {
        match self {
            Self::All => tools::CONTROL_PLANE,
            Self::ApiServerOnly => &[Tool::Etcd, Tool::KubeApiserver],
        }
    }
}
