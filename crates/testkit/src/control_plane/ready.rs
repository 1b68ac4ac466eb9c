//! When a control plane may be used: it answers, the default namespace has its service account, nodes are Ready.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::options::SIMULATED_NODE;
use super::{Components, ControlPlane};
use crate::process::Process;
use crate::wait::wait_for;

/// Far above what it takes (3 s on an idle machine); a loaded machine is slow, not broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the API server answers `/readyz`, as its clients need it to.
pub(super) async fn wait_until_serving(kubeconfig: &Path, processes: &[Process]) -> Result<()> {
    let client = Client::try_from(super::load_config(kubeconfig).await?)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        let Err(problem) = client.request_text(request).await else {
            return Ok(());
        };
        processes.iter().try_for_each(Process::check_running)?;
        if Instant::now() > deadline {
            let tails: Vec<String> = processes
                .iter()
                .map(|process| format!("{}:\n{}", process.name(), process.log_tail(10)))
                .collect();
            bail!(
                "the API server is not ready after {PATIENCE:?}: {problem}\n{}",
                tails.join("\n")
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes the nodes and waits for everything that tests rely on.
pub(super) async fn wait(control_plane: &ControlPlane, nodes: usize) -> Result<()> {
    wait_until_serving(control_plane.kubeconfig_path(), control_plane.processes()).await?;
    let client = control_plane.client();
    wait_for(
        &Api::<Namespace>::all(client.clone()),
        "default",
        |_| true,
        PATIENCE,
    )
    .await?;
    if control_plane.components == Components::ApiServerOnly {
        return Ok(());
    }
    let everything = async {
        for number in 0..nodes {
            create_node(&client, &format!("node-{number}")).await?;
        }
        wait_for_service_account(&client, "default").await?;
        for number in 0..nodes {
            wait_for(
                &Api::<Node>::all(client.clone()),
                &format!("node-{number}"),
                is_ready,
                PATIENCE,
            )
            .await?;
        }
        Ok(())
    };
    everything
        .await
        .map_err(|error: anyhow::Error| match control_plane.check_running() {
            Ok(()) => error,
            Err(ended) => ended,
        })
}

/// Waits until pods can be made in `namespace`.
pub(super) async fn wait_for_service_account(client: &Client, namespace: &str) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    wait_for(&accounts, "default", |_| true, PATIENCE).await.map(drop)
}

async fn create_node(client: &Client, name: &str) -> Result<()> {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", SIMULATED_NODE: "",
        }},
    }))?;
    let created = Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &node)
        .await;
    created
        .map(drop)
        .with_context(|| format!("failed to create the node {name}"))
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
