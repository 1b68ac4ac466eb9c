//! Whose controllers are measured, and how they are started.

mod flux;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use testkit::controller::ControllerOptions;
use testkit::process::{Process, Usage};
use testkit::{ControlPlane, Controller};

/// Whose controllers.
#[derive(Debug, Clone)]
pub enum Contestant {
    /// Ours.
    Windlass,
    /// Flux's binaries in this folder.
    Flux(PathBuf),
}

/// Running controllers.
pub struct Running {
    controllers: Vec<Program>,
    /// Storage and logs of Flux's; removed when dropped.
    _directory: Option<TempDir>,
}

enum Program {
    Windlass(Box<Controller>),
    Flux(Process),
}

impl Contestant {
    /// The peer, when its folder is given, and then ours.
    pub fn all(peer: Option<&Path>) -> impl Iterator<Item = Self> {
        let peer = peer.map(|folder| Self::Flux(folder.to_owned()));
        peer.into_iter().chain([Self::Windlass])
    }

    /// The name in the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Windlass => "Windlass",
            Self::Flux(_) => "Flux",
        }
    }

    /// Starts source-controller and what applies, and waits until both are ready.
    pub async fn start_both(&self, control_plane: &ControlPlane) -> Result<Running> {
        match self {
            Self::Windlass => {
                let kubeconfig = control_plane.kubeconfig_path();
                let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
                let apply =
                    Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
                Ok(Running::ours([source, apply]))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, control_plane.kubeconfig_path())?;
                let (source, apply) = tokio::try_join!(peer.source(&[]), peer.kustomize())?;
                Ok(Running::peers([source, apply], peer))
            }
        }
    }

    /// Starts source-controller alone, with empty storage, and waits until it is ready.
    pub async fn start_source(&self, control_plane: &ControlPlane, flags: &[&str]) -> Result<Running> {
        match self {
            Self::Windlass => {
                let options = ControllerOptions {
                    flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                    ..ControllerOptions::default()
                };
                let source = Controller::start_source(control_plane.kubeconfig_path(), options).await?;
                Ok(Running::ours([source]))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, control_plane.kubeconfig_path())?;
                let source = peer.source(flags).await?;
                Ok(Running::peers([source], peer))
            }
        }
    }
}

impl Running {
    fn ours(controllers: impl IntoIterator<Item = Controller>) -> Self {
        Self {
            controllers: controllers
                .into_iter()
                .map(|controller| Program::Windlass(Box::new(controller)))
                .collect(),
            _directory: None,
        }
    }

    fn peers(processes: impl IntoIterator<Item = Process>, peer: flux::Peer) -> Self {
        Self {
            controllers: processes.into_iter().map(Program::Flux).collect(),
            _directory: Some(peer.into_directory()),
        }
    }

    /// What each has used so far, in the order of their start: source-controller first.
    pub fn usage(&self) -> Result<Vec<Usage>> {
        self.controllers
            .iter()
            .map(|program| match program {
                Program::Windlass(controller) => controller.usage(),
                Program::Flux(process) => process.usage(),
            })
            .collect()
    }

    /// Processor time of all together so far.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(self.usage()?.iter().map(|usage| usage.cpu_time).sum())
    }

    /// Resident memory of all together, in bytes.
    pub fn resident(&self) -> Result<u64> {
        Ok(self.usage()?.iter().map(|usage| usage.resident_bytes).sum())
    }

    /// The ends of the logs, for a failure.
    pub fn log_tails(&self) -> String {
        let tails = self.controllers.iter().map(|program| match program {
            Program::Windlass(controller) => controller.log_tail(20),
            Program::Flux(process) => process.log_tail(20),
        });
        tails.collect::<Vec<_>>().join("\n")
    }
}
