//! Contestants of a benchmark: whose controllers are measured, and how they are started.

pub mod flux;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use testkit::controller::ControllerOptions;
use testkit::process::Usage;
use testkit::{ControlPlane, Controller};

/// Contestant of a benchmark.
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

/// Second controller, beside source-controller.
#[derive(Clone, Copy)]
enum Second {
    Kustomizations,
    Releases,
}

enum Program {
    Windlass(Box<Controller>),
    Flux(flux::Started),
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
        self.start_pair(control_plane, Second::Kustomizations).await
    }

    /// Starts source-controller and helm-controller, and waits until both are ready.
    pub async fn start_for_releases(&self, control_plane: &ControlPlane) -> Result<Running> {
        self.start_pair(control_plane, Second::Releases).await
    }

    async fn start_pair(&self, control_plane: &ControlPlane, second: Second) -> Result<Running> {
        let kubeconfig = control_plane.kubeconfig_path();
        match self {
            Self::Windlass => {
                let options = ControllerOptions::default;
                let source = Controller::start_source(kubeconfig, options()).await?;
                let second = match second {
                    Second::Kustomizations => Controller::start_apply(kubeconfig, &source, options()).await?,
                    Second::Releases => Controller::start_helm(kubeconfig, &source, options()).await?,
                };
                Ok(Running::ours([source, second]))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, kubeconfig)?;
                let second = match second {
                    Second::Kustomizations => "kustomize-controller",
                    Second::Releases => "helm-controller",
                };
                let (source, second) = tokio::try_join!(peer.source(&[]), peer.other(second))?;
                Ok(Running::peers([source, second], peer))
            }
        }
    }

    /// Starts source-, kustomize- and helm-controller, which write Events into the cluster, and waits until they are ready.
    pub async fn start_for_all(&self, control_plane: &ControlPlane, concurrent: usize) -> Result<Running> {
        let kubeconfig = control_plane.kubeconfig_path();
        let concurrent = format!("--concurrent={concurrent}");
        match self {
            Self::Windlass => {
                let options = || ControllerOptions {
                    flags: vec![concurrent.clone()],
                    ..ControllerOptions::default()
                };
                let source = Controller::start_source(kubeconfig, options()).await?;
                let (apply, helm) = tokio::try_join!(
                    Controller::start_apply(kubeconfig, &source, options()),
                    Controller::start_helm(kubeconfig, &source, options())
                )?;
                Ok(Running::ours([source, apply, helm]))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, kubeconfig)?;
                // Its client waits before requests beyond a number, and before attempts.
                let fast = [
                    "--kube-api-qps=500",
                    "--kube-api-burst=1000",
                    "--min-retry-delay=100ms",
                    "--max-retry-delay=1s",
                ];
                let flags = [&[concurrent.as_str()], &fast[..]].concat();
                let (source, apply, helm) = tokio::try_join!(
                    peer.source(&flags),
                    peer.with_flags("kustomize-controller", &flags),
                    peer.with_flags("helm-controller", &flags)
                )?;
                Ok(Running::peers([source, apply, helm], peer))
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

    /// Starts the controllers of images, ours or Flux's two, and waits until they are ready.
    pub async fn start_images(&self, control_plane: &ControlPlane) -> Result<Running> {
        let kubeconfig = control_plane.kubeconfig_path();
        match self {
            Self::Windlass => {
                let images = Controller::start_image(kubeconfig, ControllerOptions::default()).await?;
                Ok(Running::ours([images]))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, kubeconfig)?;
                let (reflector, automation) =
                    tokio::try_join!(peer.reflector(), peer.other("image-automation-controller"))?;
                Ok(Running::peers([reflector, automation], peer))
            }
        }
    }

    /// Starts pipeline-controller, which has no peer, and waits until it is ready.
    pub async fn start_pipelines(control_plane: &ControlPlane) -> Result<Running> {
        let kubeconfig = control_plane.kubeconfig_path();
        let pipelines = Controller::start_pipeline(kubeconfig, ControllerOptions::default()).await?;
        Ok(Running::ours([pipelines]))
    }

    /// Starts notification-controller alone and waits until it is ready; also says where events are posted to.
    pub async fn start_notification(&self, control_plane: &ControlPlane) -> Result<(Running, String)> {
        let kubeconfig = control_plane.kubeconfig_path();
        match self {
            Self::Windlass => {
                let controller =
                    Controller::start_notification(kubeconfig, ControllerOptions::default()).await?;
                let address = controller.events_url();
                Ok((Running::ours([controller]), address))
            }
            Self::Flux(folder) => {
                let peer = flux::Peer::new(folder, kubeconfig)?;
                let (started, address) = peer.notification().await?;
                Ok((Running::peers([started], peer), address))
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

    fn peers(processes: impl IntoIterator<Item = flux::Started>, peer: flux::Peer) -> Self {
        Self {
            controllers: processes.into_iter().map(Program::Flux).collect(),
            _directory: Some(peer.into_directory()),
        }
    }

    /// Returns the usage of each so far, in the order of their start: source-controller first.
    pub fn usage(&self) -> Result<Vec<Usage>> {
        self.controllers
            .iter()
            .map(|program| match program {
                Program::Windlass(controller) => controller.usage(),
                Program::Flux(started) => started.process.usage(),
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

    /// How many requests each has sent to the API server so far, by its own count, in the order of their start.
    pub async fn requests(&self) -> Result<Vec<u64>> {
        let mut counts = Vec::new();
        for program in &self.controllers {
            let metrics = match program {
                Program::Windlass(controller) => controller.metrics().await?,
                Program::Flux(started) => started.metrics().await?,
            };
            counts.push(sum(&metrics, "rest_client_requests_total{"));
        }
        Ok(counts)
    }

    /// The ends of the logs, for a failure.
    pub fn log_tails(&self) -> String {
        let tails = self.controllers.iter().map(|program| match program {
            Program::Windlass(controller) => controller.log_tail(20),
            Program::Flux(started) => started.process.log_tail(20),
        });
        tails.collect::<Vec<_>>().join("\n")
    }
}

/// Adds up the samples whose line begins with `prefix`.
fn sum(metrics: &str, prefix: &str) -> u64 {
    let samples = metrics.lines().filter(|line| line.starts_with(prefix));
    let values = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.map(|value| value as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn samples_of_one_name_are_added_up() {
        let metrics = "# HELP a b\na_total{code=\"200\"} 3\na_total{code=\"404\"} 1e3\nab_total{} 7\n";
        assert_eq!(sum(metrics, "a_total{"), 1003);
    }
}
