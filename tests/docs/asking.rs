//! docs/operations/asking.md, over objects that Flux's own controllers left behind.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::tools::repository_root;
use testkit::{ControlPlane, Controller, Options, install_all_crds};

use crate::page::{Piece, Treatment, read};
use crate::shell::Shell;

const PATIENCE: Duration = Duration::from_secs(240);
const OBJECTS: &str = "tests/cases/flux-objects/objects.json";

const TREATMENTS: &[(&str, Treatment)] = &[(
    "curl -sSN -H \"Authorization: Bearer $WINDLASS_TOKEN\" \"$WINDLASS_CONSOLE/api/v1/watch?kind=ks&since=1\"",
    Treatment::Prints("event: reset"),
)];

/// Beginnings of commands, in the order of the page, and what their answers have.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "ask objects -d status=Failed",
        &["\"name\":\"broken\"", "\"total\":1"],
    ),
    ("windlass query --status Failed", &["broken", "Failed"]),
    (
        "ask objects/local/ks/apps/broken/why",
        &["\"state\":\"NotReady\"", "nothing"],
    ),
    (
        "ask objects/local/Deployment/apps/podinfo/trace",
        &[
            "Kustomization/apps/podinfo",
            "https://git.example.com/team/podinfo.git",
        ],
    ),
    (
        "ask objects -d repository=team/podinfo",
        &["GitRepository", "HelmChart", "HelmRelease", "\"total\":5"],
    ),
    (
        "ask objects -d revision=",
        &["\"name\":\"podinfo\"", "Kustomization"],
    ),
    (
        "ask where",
        &["example.com/podinfo", "6.8.0", "Deployment/podinfo"],
    ),
    ("windlass where", &["example.com/podinfo"]),
    (
        "ask objects -d image=podinfo",
        &["\"kind\":\"Kustomization\"", "\"total\":1"],
    ),
    ("ask charts", &["chart,version,appVersion", "podinfo,6.8.0"]),
    ("windlass charts", &["podinfo", "6.8.0"]),
    ("ask deliveries", &["\"items\":["]),
    ("windlass history", &["podinfo", "Succeeded"]),
    ("ask actions", &["\"items\":[]"]),
    ("ask dora", &["podinfo", "deployments"]),
    ("ask objects --data-urlencode", &["broken", "\"total\":1"]),
    ("ask objects -d format=csv", &[]),
    ("curl -sS --fail-with-body", &["\"code\":200"]),
    (
        "ask actions -d fields",
        &[
            "\"verb\":\"reconcile\"",
            "to see whether it is well",
            "\"end\":\"Done\"",
        ],
    ),
];

/// Puts in what Flux's controllers left, with its status, and Pods of its Deployment.
async fn fleet(control_plane: &ControlPlane) -> Result<String> {
    let client = control_plane.client();
    install_all_crds(&client).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}});
    apply(&client, &namespace).await?;
    let text = fs::read_to_string(repository_root().join(OBJECTS))?;
    let all: Vec<Value> = serde_json::from_str(&text)?;
    ensure!(all.len() == 5, "{} objects", all.len());
    let mut commit = String::new();
    for object in &all {
        apply(&client, object).await?;
        let (api, name) = objects::api_of(&client, object)?;
        let status = Patch::Merge(json!({"status": object["status"]}));
        api.patch_status(&name, &PatchParams::default(), &status).await?;
        if object["kind"] == "GitRepository" {
            let revision = object
                .pointer("/status/artifact/revision")
                .and_then(Value::as_str);
            let digest = revision.and_then(|revision| revision.rsplit_once(':'));
            commit = digest.context("there is no commit")?.1[..12].to_owned();
        }
    }
    let labels = json!({"app": "podinfo"});
    let containers = json!([{"name": "podinfo", "image": "example.com/podinfo:6.8.0"}]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "podinfo", "namespace": "apps"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    });
    apply(&client, &deployment).await?;
    Ok(commit)
}

#[tokio::test]
async fn who_asks_by_the_page_is_answered() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let commit = fleet(&control_plane).await?;
    let ledger = testkit::scratch::directory("ledger")?;
    let options = ControllerOptions {
        flags: vec![
            format!(
                "--ledger-url=sqlite:{}",
                ledger.path().join("ledger.db").display()
            ),
            // The objects are as old as their recording.
            "--ledger-retention=876000h".to_owned(),
            "--actions=fine-grained".to_owned(),
        ],
        ..ControllerOptions::default()
    };
    let console = Controller::start_console(control_plane.kubeconfig_path(), options).await?;
    let url = console.api_url().replace("/api/v1", "");
    let mut shell = Shell::new(control_plane.kubeconfig_path()).await?;
    let placeholders = [("http://127.0.0.1:9080", &*url), ("COMMIT", &commit)];
    let steps = read("docs/operations/asking.md", &[], &placeholders, TREATMENTS)?;
    let mut answers = ANSWERS.iter().peekable();
    for step in steps {
        let Piece::Command(command) = &step.piece else {
            shell.take(&step).await?;
            continue;
        };
        if command.starts_with("export ") || command.starts_with("ask()") {
            shell.remember(command).await?;
            continue;
        }
        let Some((_, expected)) = answers.next_if(|(begins, _)| command.starts_with(begins)) else {
            shell.take(&step).await?;
            continue;
        };
        let asking = async {
            loop {
                let said = shell.run(command).await?;
                if expected.iter().all(|part| said.contains(part)) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(200)).await; // Pods come, and are recorded, in their time
            }
        };
        let asked = tokio::time::timeout(PATIENCE, asking).await;
        asked.with_context(|| format!("`{command}` does not answer {expected:?}"))??;
    }
    let left: Vec<_> = answers.collect();
    ensure!(left.is_empty(), "not on the page: {left:?}");
    Ok(())
}
