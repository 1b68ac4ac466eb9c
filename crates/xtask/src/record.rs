//! `record-flux-objects`: what Flux's own controllers write into the objects of a small fleet, kept in tests/cases/flux-objects.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply, is_ready};
use testkit::{ControlPlane, GitServer, Options, install_crds, wait_for};

use crate::bench::contestant::flux::Peer;
use crate::bench::figures::line;

/// Arguments of the task.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder with Flux's source-controller, kustomize-controller and helm-controller.
    #[arg(value_name = "FOLDER")]
    flux: PathBuf,
}

const NAMESPACE: &str = "apps";
const PATIENCE: Duration = Duration::from_secs(120);
const FILE: &str = "tests/cases/flux-objects/objects.json";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const HELM: &str = "helm.toolkit.fluxcd.io/v2";
const RECORDED: [(&str, &str); 4] = [
    (SOURCE, "GitRepository"),
    (SOURCE, "HelmChart"),
    (KUSTOMIZE, "Kustomization"),
    (HELM, "HelmRelease"),
];

/// Runs them, and records.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(record(arguments))
}

/// The state of the repository at a version of the app.
fn commit(repository: &Repository, version: &str) -> Result<String> {
    let deployment = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: podinfo}}\nspec:\n  selector: {{matchLabels: {{app: podinfo}}}}\n  \
         template:\n    metadata: {{labels: {{app: podinfo}}}}\n    \
         spec: {{containers: [{{name: podinfo, image: example.com/podinfo:{version}}}]}}\n"
    );
    let of_chart = deployment.replace("name: podinfo}\nspec", "name: {{ .Release.Name }}}\nspec");
    let of_chart = of_chart.replace("app: podinfo", "app: {{ .Release.Name }}");
    let chart = format!("apiVersion: v2\nname: podinfo\nversion: {version}\nappVersion: \"{version}\"\n");
    let files = [
        (
            "deploy/kustomization.yaml",
            "resources: [deployment.yaml]\n".to_owned(),
        ),
        ("deploy/deployment.yaml", deployment),
        ("charts/podinfo/Chart.yaml", chart),
        ("charts/podinfo/templates/deployment.yaml", of_chart),
    ];
    let changes = files.map(|(path, text)| Change::write(path, text));
    repository.commit("main", &format!("podinfo {version}"), &changes)
}

async fn record(arguments: &Arguments) -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    install_crds(&client).await?;
    let git = GitServer::start().await?;
    let repository = git.create_repository("podinfo")?;
    commit(&repository, "6.7.0")?;
    let peer = Peer::new(&arguments.flux, control_plane.kubeconfig_path())?;
    let _controllers = [
        peer.source(&[]).await?,
        peer.other("kustomize-controller").await?,
        peer.other("helm-controller").await?,
    ];
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(&client, &namespace).await?;
    let reference = json!({"kind": "GitRepository", "name": "podinfo"});
    let of_git = |name: &str, path: &str| {
        let object = objects::kustomization(NAMESPACE, name, ("GitRepository", "podinfo"), path);
        objects::with_spec(
            object,
            json!({"wait": true, "targetNamespace": NAMESPACE, "interval": "1h", "timeout": "1m"}),
        )
    };
    let release = json!({
        "apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "podinfo-chart", "namespace": NAMESPACE},
        "spec": {
            "interval": "1h",
            "chart": {"spec": {"chart": "./charts/podinfo", "sourceRef": reference, "reconcileStrategy": "Revision"}},
        },
    });
    let mut source = objects::git_repository(NAMESPACE, "podinfo", repository.url(), "main");
    source["spec"]["interval"] = json!("5s");
    for object in [
        source,
        of_git("podinfo", "./deploy"),
        of_git("broken", "./nothing"),
        release,
    ] {
        apply(&client, &object).await?;
    }
    let ready = async |version: &str, kind: &str, name: &str, revision: &str| {
        let api = objects::api(&client, version, kind, NAMESPACE);
        let has_it =
            |object: &DynamicObject| is_ready(object) && object.data["status"].to_string().contains(revision);
        wait_for(&api, name, has_it, PATIENCE).await.map(drop)
    };
    ready(KUSTOMIZE, "Kustomization", "podinfo", "main@").await?;
    ready(HELM, "HelmRelease", "podinfo-chart", "6.7.0").await?;
    let second = commit(&repository, "6.8.0")?;
    ready(KUSTOMIZE, "Kustomization", "podinfo", &second).await?;
    ready(HELM, "HelmRelease", "podinfo-chart", "6.8.0").await?;
    let text = recorded(&client).await?;
    // Addresses of this run say nothing.
    let host = repository.url().trim_end_matches("/podinfo.git").to_owned();
    let mut text = text.replace(&host, "https://git.example.com/team");
    while let Some(at) = text.find("http://127.0.0.1:") {
        let digits = text[at + 17..].chars().take_while(char::is_ascii_digit).count();
        text.replace_range(
            at..at + 17 + digits,
            "http://source-controller.flux-system.svc.cluster.local.",
        );
    }
    let path = testkit::tools::repository_root().join(FILE);
    let folder = path.parent().context("a file is in a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(&path, text + "\n")?;
    line(&format!("{FILE} was written"));
    Ok(())
}

/// All of them, without what the API server gives out anew.
async fn recorded(client: &Client) -> Result<String> {
    let mut all = Vec::new();
    for (version, kind) in RECORDED {
        let api = objects::api(client, version, kind, NAMESPACE);
        let mut found = api.list(&ListParams::default()).await?.items;
        found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        for object in found {
            let mut object = serde_json::to_value(&object)?;
            object["apiVersion"] = json!(version);
            object["kind"] = json!(kind);
            if let Some(metadata) = object["metadata"].as_object_mut() {
                for field in [
                    "managedFields",
                    "uid",
                    "resourceVersion",
                    "creationTimestamp",
                    "generation",
                ] {
                    metadata.remove(field);
                }
            }
            all.push(object);
        }
    }
    Ok(serde_json::to_string_pretty(&Value::Array(all))?)
}
