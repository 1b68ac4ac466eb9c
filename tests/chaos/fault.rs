//! Faults that the chaos test injects.

use std::time::Duration;

use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testkit::objects;

use crate::cluster::{Cluster, api_version};
use crate::model::Model;
use crate::random::Random;

/// A fault. Each is over when it has befallen; what it leaves behind may take longer.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// None.
    Nothing,
    /// source-controller is killed and starts again.
    KillSource,
    /// apply-controller is killed and starts again.
    KillApply,
    /// Both are killed, and start together.
    KillBoth,
    /// source-controller, and with it the artifact service, is not there for a while.
    NoArtifacts,
    /// The API server is killed and starts again.
    RestartApiServer,
    /// etcd hangs for a while.
    PauseEtcd,
    /// Someone changes an object.
    Edit,
    /// Someone deletes an object.
    Delete,
}

impl Fault {
    /// Chooses one.
    pub fn any(random: &mut Random) -> Self {
        const ALL: [Fault; 16] = [
            Fault::Nothing,
            Fault::Nothing,
            Fault::KillSource,
            Fault::KillSource,
            Fault::KillApply,
            Fault::KillApply,
            Fault::KillApply,
            Fault::KillBoth,
            Fault::KillBoth,
            Fault::NoArtifacts,
            Fault::NoArtifacts,
            Fault::RestartApiServer,
            Fault::RestartApiServer,
            Fault::PauseEtcd,
            Fault::Edit,
            Fault::Delete,
        ];
        random.pick(&ALL).copied().unwrap_or(Self::Nothing)
    }

    /// Lets it happen.
    pub async fn befall(self, cluster: &mut Cluster, model: &Model, random: &mut Random) -> Result<()> {
        let mut up_to = |milliseconds| Duration::from_millis(random.below(milliseconds));
        match self {
            Self::Nothing => Ok(()),
            Self::KillSource => {
                cluster.source.kill();
                cluster.source.restart().await
            }
            Self::KillApply => {
                cluster.apply.kill();
                cluster.apply.restart().await
            }
            Self::KillBoth => {
                cluster.source.kill();
                cluster.apply.kill();
                cluster.apply.restart_unready()?;
                cluster.source.restart().await?;
                cluster.apply.wait_ready().await
            }
            Self::NoArtifacts => {
                cluster.source.kill();
                tokio::time::sleep(up_to(3000)).await;
                cluster.source.restart().await
            }
            Self::RestartApiServer => cluster.control_plane.restart_api_server(up_to(1500)).await,
            Self::PauseEtcd => cluster.control_plane.pause_etcd(up_to(4000)).await,
            Self::Edit | Self::Delete => {
                self.tamper(cluster, model, random).await;
                Ok(())
            }
        }
    }

    /// Changes or deletes an object behind our back, if it is there.
    async fn tamper(self, cluster: &Cluster, model: &Model, random: &mut Random) {
        let Some(id) = model.any(random) else { return };
        let client = cluster.control_plane.client();
        let api = objects::api(&client, api_version(id.kind), id.kind, id.namespace);
        let done = match self {
            Self::Delete => api.delete(&id.name, &DeleteParams::default()).await.map(drop),
            _ => {
                let edit = json!({"metadata": {"annotations": {"value": "edited"}}});
                api.patch(&id.name, &PatchParams::default(), &Patch::Merge(edit))
                    .await
                    .map(drop)
            }
        };
        println!(
            "    {self:?} {} in {}: {}",
            id.name,
            id.namespace,
            done.map_or_else(|error| error.to_string(), |()| "done".into())
        );
    }
}
