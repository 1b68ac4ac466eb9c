//! The whole as users have it: images in a registry, the chart installed by the real helm, containers that run with what their images
//! hold and with the rights, tokens, volumes and ports that the chart gives them.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::git::Repository;
use testkit::{GitServer, MessageSink, Node, Registry, node};

use crate::cluster::{Cluster, NAMESPACE};
use crate::images;

/// A cluster with one node, on which the images run.
pub struct World {
    pub cluster: Cluster,
    pub node: Node,
    pub repository: Repository,
    pub sink: MessageSink,
    pub registry: Arc<Registry>,
    _git: GitServer,
}

impl World {
    /// Starts everything but the chart.
    pub async fn start() -> Result<Self> {
        Self::start_beside(Arc::new(Self::images().await?), &[]).await
    }

    /// A registry with our images.
    pub async fn images() -> Result<Registry> {
        let registry = Registry::start().await?;
        images::push(&registry).await?;
        Ok(registry)
    }

    /// The same with these images, and with more addresses that containers reach.
    pub async fn start_beside(registry: Arc<Registry>, addresses: &[SocketAddr]) -> Result<Self> {
        let (cluster, git, sink) = tokio::try_join!(
            async { Ok(Cluster::start().await) },
            GitServer::start(),
            MessageSink::start(),
        )?;
        let sink_address = sink
            .url("")
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .parse::<SocketAddr>()?;
        let own = [git.address(), registry.address().parse()?, sink_address];
        let reachable = [&own, addresses].concat();
        Ok(Self {
            node: Node::join(&cluster.control_plane, "node", &reachable).await?,
            repository: git.create_repository("shop")?,
            cluster,
            sink,
            registry,
            _git: git,
        })
    }

    /// Installs or upgrades the chart with our images, on the node that runs them.
    pub async fn install(&self, arguments: &[&str]) -> Result<()> {
        let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
        std::fs::write(file.path(), self.values().to_string())?;
        let values = file.path().display().to_string();
        let installed = self
            .cluster
            .install(&[&["--values", values.as_str()], arguments].concat())
            .await;
        match installed {
            Ok(_) => Ok(()),
            Err(problem) => Err(problem.context(self.logs().await)),
        }
    }

    /// Values of the chart for our images, on the node that runs them.
    pub fn values(&self) -> Value {
        let place = json!({
            "nodeSelector": {node::KEY: ""},
            "tolerations": [{"key": node::KEY, "operator": "Exists"}],
        });
        json!({
            "image": {"registry": self.registry.address(), "repository": images::REPOSITORY, "tag": images::TAG},
            "source": place, "apply": place, "helm": place, "notification": place, "singlePod": place,
            "images": {"enabled": true, "nodeSelector": place["nodeSelector"], "tolerations": place["tolerations"]},
        })
    }

    /// Those of the controllers.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), NAMESPACE);
        Ok(pods.list(&ListParams::default()).await?.items)
    }

    /// Logs of the containers, for a failure.
    pub async fn logs(&self) -> String {
        let mut logs = String::new();
        for pod in self.pods().await.unwrap_or_default() {
            let status = serde_json::to_string(&pod.status).unwrap_or_default();
            logs += &format!("{} {status}\n{}\n", pod.name_any(), self.node.log(&pod));
        }
        logs
    }
}
