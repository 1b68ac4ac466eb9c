//! The programs that tests and the demo run beside us, built from `hack/go.mod` and cached outside the repository.
//!
//! A program of version V lies in `<cache>/tools/<name>-V/<name>`; the cache is `$WINDLASS_CACHE`, else
//! `$XDG_CACHE_HOME/windlass`, else `~/.cache/windlass`. [`ensure`] builds what is missing and says so on the way,
//! because the first time takes ten minutes. `KUBEBUILDER_ASSETS` is used for what it has. Nothing is downloaded but
//! Go modules, by Go itself, and the object stores of [`Package`], by pip and npm.

mod build;
mod dex;
mod folders;
mod gitea;
mod go_module;
mod helm;
mod once;
mod package;

use std::path::{Path, PathBuf};

use anyhow::Result;

use folders::cache_directory;

pub use dex::{Dex, dex};
pub use gitea::{Gitea, gitea, is_gitea_built};
pub use helm::{helm, helm_3, run_helm};
pub use package::{PACKAGES, Package};

pub use folders::{hack_directory, repository_root};

/// The source of Flux's image-automation-controller, for its test data. The folder is read-only.
///
/// # Errors
/// When Go does not download it.
pub fn image_automation_source() -> Result<PathBuf> {
    let module = go_module::GoModule::read(&hack_directory().join("image-automation"))?;
    module.download("github.com/fluxcd/image-automation-controller")
}

/// A program that is built from `hack/go.mod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// The store of the API server.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// Deployments, Jobs, namespaces, garbage collection.
    KubeControllerManager,
    /// Assigns pods to nodes.
    KubeScheduler,
    /// Makes nodes Ready and pods Running without running anything.
    Kwok,
    /// Tool that people type; for the tests of the docs.
    Kubectl,
    /// The distribution registry.
    Registry,
}

/// Tools of the control plane.
pub const CONTROL_PLANE: &[Tool] = &[
    Tool::Etcd,
    Tool::KubeApiserver,
    Tool::KubeControllerManager,
    Tool::KubeScheduler,
    Tool::Kwok,
];

/// Everything, in the order in which building takes least time (later ones share packages with earlier ones).
pub const ALL: &[Tool] = &[
    Tool::Etcd,
    Tool::KubeApiserver,
    Tool::KubeControllerManager,
    Tool::KubeScheduler,
    Tool::Kwok,
    Tool::Kubectl,
    Tool::Registry,
];

impl Tool {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::Registry => "registry",
        }
    }

    fn module(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Kwok => "sigs.k8s.io/kwok",
            Self::Registry => "github.com/distribution/distribution/v3",
            Self::KubeApiserver | Self::KubeControllerManager | Self::KubeScheduler | Self::Kubectl => {
                "k8s.io/kubernetes"
            }
        }
    }

    fn package(self) -> String {
        match self {
            Self::Etcd => self.module().to_owned(),
            other => format!("{}/cmd/{}", other.module(), other.name()),
        }
    }

    /// How long its build took on two cores when nothing but the ones before it in [`ALL`] was built.
    fn usual_build_time(self) -> &'static str {
        match self {
            Self::Etcd => "30 to 60 s",
            Self::KubeApiserver => "3 to 4 min",
            Self::KubeControllerManager | Self::Registry => "about 2 min",
            Self::KubeScheduler => "10 to 20 s",
            Self::Kwok => "20 to 60 s, alone 2 min",
            Self::Kubectl => "about 50 s",
        }
    }
}

/// Builds those of `tools` that are missing; `progress` gets a line of text for each step. Nothing is said, and no
/// Go is needed, when all are there. May be called by several processes at once: one builds, the others wait.
pub fn ensure(tools: &[Tool], progress: &mut dyn FnMut(&str)) -> Result<()> {
    let module = go_module::GoModule::read(&hack_directory())?;
    let mut missing = Vec::new();
    for tool in tools {
        let path = path_in(*tool, &module)?;
        if !path.is_file() {
            missing.push((*tool, path));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    build::build(&missing, &module, &cache_directory()?, progress)
}

/// [`ensure`] with its progress on standard error, as tests want it.
pub fn ensure_loudly(tools: &[Tool]) -> Result<()> {
    use std::io::Write as _;
    ensure(tools, &mut |line| {
        // Not eprintln: the test runner would keep it until the test is over. A closed stderr is no reason to fail.
        let _ = writeln!(std::io::stderr(), "{line}");
    })
}

/// Where `tool` is, or would be after [`ensure`].
pub fn path(tool: Tool) -> Result<PathBuf> {
    path_in(tool, &go_module::GoModule::read(&hack_directory())?)
}

fn path_in(tool: Tool, module: &go_module::GoModule) -> Result<PathBuf> {
    if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") {
        let given = Path::new(&assets).join(tool.name());
        if given.is_file() {
            return Ok(given);
        }
    }
    let version = module.version(tool.module())?;
    Ok(cache_directory()?
        .join(format!("{}-{version}", tool.name()))
        .join(tool.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_version_and_is_a_tool_of_the_go_module() {
        let module = go_module::GoModule::read(&hack_directory()).unwrap();
        for tool in ALL {
            assert!(
                module.version(tool.module()).unwrap().starts_with('v'),
                "{tool:?}"
            );
            assert!(module.has_tool(&tool.package()), "{tool:?}: {}", tool.package());
        }
    }
}
