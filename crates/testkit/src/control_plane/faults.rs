//! Faults of a control plane: its API server dies, its etcd hangs.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{ControlPlane, components, ready};
use crate::process::Process;
use crate::tools::Tool;

impl ControlPlane {
    /// Kills the API server as `kill -9` does, starts it again at the same address after a while, and returns when it is
    /// ready.
    pub async fn restart_api_server(&mut self, away: Duration) -> Result<()> {
        let directory = self
            .directory
            .as_ref()
            .context("an existing cluster is left as it is")?;
        let is_api_server = |process: &Process| process.name() == Tool::KubeApiserver.name();
        let Some(index) = self.processes.iter().position(is_api_server) else {
            bail!("there is no API server");
        };
        self.processes[index].kill();
        tokio::time::sleep(away).await;
        self.processes[index] = components::start_api_server(&self.api_server_flags, directory.path())?;
        ready::wait_until_serving(&self.kubeconfig, &self.processes).await
    }

    /// Stops etcd where it is for a while: the API server has no one to ask.
    pub async fn pause_etcd(&self, pause: Duration) -> Result<()> {
        let is_etcd = |process: &&Process| process.name() == Tool::Etcd.name();
        let etcd = self.processes.iter().find(is_etcd).context("there is no etcd")?;
        etcd.pause();
        tokio::time::sleep(pause).await;
        etcd.resume();
        Ok(())
    }
}
