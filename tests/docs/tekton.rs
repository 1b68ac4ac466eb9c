//! docs/ci-with-tekton.md. Tekton is not there: the scripts of its tasks run in a shell, in their order.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use manifest::yaml::read_documents;
use serde_json::Value;
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::objects::{self, field};
use testkit::{
    ControlPlane, Controller, GitServer, MessageSink, Options, Registry, install_all_crds, wait_for,
};

use crate::page::{Piece, read};
use crate::shell::Shell;

const PATIENCE: Duration = Duration::from_secs(240);
const PAGE: &str = "docs/ci-with-tekton.md";
/// Tasks that do not run here, and why.
const SKIPPED: [(&str, &str); 1] = [("scan", "trivy is not there")];

/// The Pipeline of Tekton, as far as it can be checked and run without Tekton.
struct Ci {
    tasks: Vec<Value>,
    defaults: BTreeMap<String, String>,
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn names(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer)
        .iter()
        .map(|one| text(one, "/name").to_owned())
        .collect()
}

/// The names that a text has as `$(params.NAME)`.
fn asked(text: &str) -> Vec<String> {
    let parts = text.split("$(params.").skip(1);
    parts
        .filter_map(|part| Some(part.split_once(')')?.0.to_owned()))
        .collect()
}

impl Ci {
    /// Reads it, and checks that each task has what it uses, after those that it needs.
    fn read(pipeline: &Value, run: &Value) -> Result<Self> {
        let declared = names(pipeline, "/spec/params");
        let tasks = list(pipeline, "/spec/tasks").to_vec();
        let mut before: Vec<&str> = Vec::new();
        for task in &tasks {
            let name = text(task, "/name");
            for needed in list(task, "/runAfter").iter().filter_map(Value::as_str) {
                ensure!(
                    before.contains(&needed),
                    "{name} runs after {needed}, which is not before it"
                );
            }
            let (given, wanted) = (names(task, "/params"), names(task, "/taskSpec/params"));
            ensure!(given == wanted, "{name} is given {given:?} and wants {wanted:?}");
            for value in list(task, "/params") {
                for param in asked(text(value, "/value")) {
                    ensure!(declared.contains(&param), "{name}: there is no parameter {param}");
                }
            }
            ensure!(
                names(task, "/workspaces") == names(task, "/taskSpec/workspaces"),
                "{name}: workspaces"
            );
            for step in list(task, "/taskSpec/steps") {
                for param in asked(text(step, "/script")) {
                    ensure!(wanted.contains(&param), "{name}: its script uses {param}");
                }
            }
            before.push(name);
        }
        ensure!(
            text(run, "/spec/pipelineRef/name") == text(pipeline, "/metadata/name"),
            "another pipeline"
        );
        let mut defaults = BTreeMap::new();
        for param in list(pipeline, "/spec/params") {
            let (name, default) = (text(param, "/name"), text(param, "/default"));
            let is_given = names(run, "/spec/params").contains(&name.to_owned());
            ensure!(
                is_given == default.is_empty(),
                "the parameter {name} is given twice or never"
            );
            defaults.insert(name.to_owned(), default.to_owned());
        }
        Ok(Self { tasks, defaults })
    }

    /// Runs the scripts of the tasks, of those alone that are named if any are.
    async fn run(
        &self,
        shell: &Shell,
        only: &[&str],
        params: &[(&str, &str)],
        secret: &[(&str, &str)],
    ) -> Result<()> {
        let workspace = testkit::scratch::directory("workspace")?;
        let folder = workspace.path().join("source");
        std::fs::create_dir_all(&folder)?;
        let mut values = self.defaults.clone();
        values.extend(
            params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        for task in &self.tasks {
            let name = text(task, "/name");
            if SKIPPED.iter().any(|(skipped, _)| *skipped == name)
                || !(only.is_empty() || only.contains(&name))
            {
                continue;
            }
            for step in list(task, "/taskSpec/steps") {
                let mut script = text(step, "/script").to_owned();
                for (param, value) in &values {
                    script = script.replace(&format!("$(params.{param})"), value);
                }
                // The registry has no certificate.
                script = script.replace(
                    "windlass push artifact",
                    "windlass push artifact --insecure-registry",
                );
                let file = workspace.path().join("script");
                std::fs::write(&file, script)?;
                let mut variables = String::new();
                for variable in list(step, "/env") {
                    let key = text(variable, "/valueFrom/secretKeyRef/key");
                    let (_, value) = secret
                        .iter()
                        .find(|(known, _)| *known == key)
                        .context("an unknown key")?;
                    variables += &format!("{}='{value}' ", text(variable, "/name"));
                }
                // As Tekton runs what has no other program in its first line.
                let command = format!("cd {} && {variables}sh -e {}", folder.display(), file.display());
                shell
                    .run(&command)
                    .await
                    .with_context(|| format!("task {name}"))?;
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_version_goes_from_the_ci_into_production() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    let git = GitServer::start().await?;
    let (fleet, shop) = (git.create_repository("fleet")?, git.create_repository("shop")?);
    let registry = Registry::start().await?;
    let listener = MessageSink::start().await?;
    let shell = Shell::new(control_plane.kubeconfig_path()).await?;
    let url = registry.url("shop");
    let placeholders = [
        ("https://git.example.com/team/fleet.git", fleet.url()),
        ("https://git.example.com/team/shop.git", shop.url()),
        ("oci://registry.example.com/shop", url.as_str()),
        ("https://el-shop.ci.example.com", &listener.url("listener")),
    ];
    let steps = read(PAGE, &[], &placeholders, &[])?;
    let mut manifests = Vec::new();
    for step in &steps {
        if let Piece::Manifests(text) = &step.piece {
            manifests.push(text.as_str());
        }
    }
    let of_tekton = |kind: &str| {
        let documents = manifests
            .iter()
            .flat_map(|text| read_documents(text, PAGE).unwrap_or_default());
        let mut values = documents.map(|document| document.value);
        values.find(|value| text(value, "/apiVersion") == "tekton.dev/v1" && text(value, "/kind") == kind)
    };
    let (pipeline, run) = (of_tekton("Pipeline"), of_tekton("PipelineRun"));
    let ci = Ci::read(
        &pipeline.context("no Pipeline of Tekton")?,
        &run.context("no PipelineRun")?,
    )?;

    // The shop, and its first version.
    let commit = |version: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  version: \"{version}\"\n"
        );
        let changes = [
            Change::write("deploy/kustomization.yaml", "resources: [shop.yaml]\n"),
            Change::write("deploy/shop.yaml", map),
            Change::write("test.sh", "grep -q version: deploy/shop.yaml\n"),
        ];
        shop.commit("main", version, &changes)
    };
    let first = commit("1.0.0")?;
    let given = [("version", "1.0.0"), ("commit", first.as_str())];
    ci.run(&shell, &["fetch", "test", "lint", "publish"], &given, &[])
        .await?;

    let kubeconfig = control_plane.kubeconfig_path();
    let notifying = Controller::start_notification(kubeconfig, ControllerOptions::default()).await?;
    let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
    let _applying = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
    let options = ControllerOptions {
        flags: vec![format!("--events-addr={}", notifying.events_url())],
        ..ControllerOptions::default()
    };
    let _promoting = Controller::start_pipeline(kubeconfig, options).await?;
    let release = async |environment: usize, wanted: u64| {
        let api = objects::api(&client, "delivery.windlass.dev/v1alpha1", "Pipeline", "team");
        let has = move |pipeline: &DynamicObject| {
            let pointer = format!("/status/environments/{environment}/release");
            field(pipeline, &pointer).and_then(Value::as_u64) == Some(wanted)
        };
        wait_for(&api, "shop", has, PATIENCE).await.map(drop)
    };
    let mut typed = 0;
    let mut webhook = String::new();
    for step in &steps {
        match &step.piece {
            Piece::Manifests(text) if text.contains("tekton.dev/v1") => {}
            // Files of the fleet.
            Piece::Manifests(text)
                if text.starts_with("apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository") =>
            {
                let environment = if text.contains("shop-dev") {
                    "dev"
                } else {
                    "production"
                };
                let text = text.replace(
                    "  interval: 1h\n  url:",
                    "  interval: 1h\n  insecure: true\n  url:",
                );
                let change = Change::write(&format!("environments/{environment}/shop.yaml"), text);
                fleet.commit("main", environment, &[change])?;
            }
            Piece::Manifests(text) => {
                shell
                    .apply(&text.replace("interval: 1m\n", "interval: 1s\n"))
                    .await?;
            }
            Piece::Command(text) if text.starts_with("kubectl get receiver") => {
                shell
                    .run("kubectl wait receiver ci --namespace shop-dev --for=condition=Ready --timeout=60s")
                    .await?;
                webhook = format!("{}{}", notifying.receiver_url(), shell.run(text).await?.trim());
                typed += 1;
            }
            Piece::Command(text) if text.starts_with("windlass tree") => {
                release(1, 1).await?;
                let next = commit("1.1.0")?;
                let given = [("version", "1.1.0"), ("commit", next.as_str())];
                ci.run(&shell, &[], &given, &[("token", "change-me"), ("url", &webhook)])
                    .await?;
                release(1, 2).await?;
                let said = shell.run(text).await?;
                ensure!(
                    said.contains("OCIRepository/shop: ref tag 1.0.0 → 1.1.0"),
                    "{said}"
                );
                let file = fleet.git(&["show", "main:environments/production/shop.yaml"])?;
                ensure!(file.contains("ref: {tag: 1.1.0}"), "{file}");
                typed += 1;
            }
            Piece::Command(text) if text.starts_with("windlass history") => {
                let said = shell.run(text).await?;
                ensure!(said.contains("production: release 2"), "{said}");
                typed += 1;
            }
            Piece::Command(text) => anyhow::bail!("what is `{text}`?"),
        }
    }
    ensure!(typed == 3, "{typed} commands were typed");

    // What goes back, of one more.
    let next = commit("1.2.0")?;
    let given = [("version", "1.2.0"), ("commit", next.as_str())];
    ci.run(&shell, &[], &given, &[("token", "change-me"), ("url", &webhook)])
        .await?;
    let call = listener
        .until("listener", |call| {
            text(&call.json, "/reason") == "PromotionSucceeded"
        })
        .await?;
    let event = &call.json;
    ensure!(text(event, "/metadata/environment") == "production", "{event}");
    let signature = call
        .headers
        .get("x-signature")
        .and_then(|value| value.to_str().ok());
    ensure!(
        signature.is_some_and(|text| text.starts_with("sha256=")),
        "it is not signed"
    );
    // A call that is not signed starts nothing.
    let wrong = ci
        .run(
            &shell,
            &["call"],
            &given,
            &[("token", "guessed"), ("url", &webhook)],
        )
        .await;
    ensure!(wrong.is_err(), "a call with another token is taken");
    Ok(())
}
