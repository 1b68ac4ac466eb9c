//! Whose controllers are measured, and how they are started.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use testkit::controller::ControllerOptions;
use testkit::process::{Process, Usage};
use testkit::{ControlPlane, Controller, ports, scratch};

/// Whose controllers.
#[derive(Debug, Clone)]
pub enum Contestant {
    /// Ours.
    Windlass,
    /// Flux's binaries in this folder.
    Flux(PathBuf),
}

/// A running pair of controllers.
pub enum Pair {
    /// Ours.
    Windlass(Box<(Controller, Controller)>),
    /// Flux's; the folder holds storage and logs.
    Flux(
        Process,
        Process,
        #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir,
    ),
}

impl Contestant {
    /// The name in the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Windlass => "Windlass",
            Self::Flux(_) => "Flux",
        }
    }

    /// Starts both controllers and waits until they are ready.
    pub async fn start(&self, control_plane: &ControlPlane) -> Result<Pair> {
        let kubeconfig = control_plane.kubeconfig_path();
        match self {
            Self::Windlass => {
                let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
                let apply =
                    Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
                Ok(Pair::Windlass(Box::new((source, apply))))
            }
            Self::Flux(folder) => {
                let directory = scratch::directory("flux")?;
                let storage = directory.path().join("storage");
                std::fs::create_dir_all(&storage)?;
                let storage_port = ports::free_port()?;
                let start = |name: &'static str, extra: Vec<String>| -> Result<(Process, u16)> {
                    let health = ports::free_port()?;
                    let mut command = Command::new(folder.join(name));
                    command
                        .args(extra)
                        .arg(format!("--health-addr=127.0.0.1:{health}"));
                    command
                        .arg(format!("--metrics-addr=127.0.0.1:{}", ports::free_port()?))
                        .arg("--events-addr=");
                    command
                        .env("KUBECONFIG", kubeconfig)
                        .env("RUNTIME_NAMESPACE", "default");
                    command.current_dir(directory.path());
                    Ok((
                        Process::start(name, command, directory.path().join(format!("{name}.log")))?,
                        health,
                    ))
                };
                let (source, source_health) = start(
                    "source-controller",
                    vec![
                        format!("--storage-path={}", storage.display()),
                        format!("--storage-addr=127.0.0.1:{storage_port}"),
                        format!("--storage-adv-addr=127.0.0.1:{storage_port}"),
                    ],
                )?;
                let (apply, apply_health) = start("kustomize-controller", Vec::new())?;
                for (process, port) in [(&source, source_health), (&apply, apply_health)] {
                    ready(process, port).await?;
                }
                Ok(Pair::Flux(source, apply, directory))
            }
        }
    }
}

impl Pair {
    /// What both have used so far, with their names.
    pub fn usage(&self) -> Result<[(&str, Usage); 2]> {
        Ok(match self {
            Self::Windlass(pair) => [(pair.0.name(), pair.0.usage()?), (pair.1.name(), pair.1.usage()?)],
            Self::Flux(source, apply, _) => {
                [(source.name(), source.usage()?), (apply.name(), apply.usage()?)]
            }
        })
    }

    /// The ends of both logs, for a failure.
    pub fn log_tails(&self) -> String {
        match self {
            Self::Windlass(pair) => format!("{}\n{}", pair.0.log_tail(20), pair.1.log_tail(20)),
            Self::Flux(source, apply, _) => format!("{}\n{}", source.log_tail(20), apply.log_tail(20)),
        }
    }
}

async fn ready(process: &Process, port: u16) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let http = reqwest::Client::builder().no_proxy().build()?;
    while Instant::now() < deadline {
        process.check_running()?;
        let answer = http.get(format!("http://127.0.0.1:{port}/readyz")).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("{} is not ready:\n{}", process.name(), process.log_tail(20))
}
