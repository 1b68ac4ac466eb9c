//! The real `flux` command against our controllers: what its users see and do with sources, artifacts and Kustomizations.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, field, is_ready, text};
use testkit::tools::Package;
use testkit::{HelmRepository, ObjectStore, wait_for};

use crate::world::{PATIENCE, SOURCE, Test, config_map, deployment, run};

#[test]
fn what_flux_pushes_is_delivered_and_what_it_pulls_is_the_same() {
    run("flux-push", |test| async move {
        let flux = Flux::start(&test).await?;
        let folder = testkit::scratch::directory("flux")?;
        let files = folder.path().join("files");
        std::fs::create_dir_all(files.join("sub"))?;
        let manifest = config_map(&test.namespace, "pushed", "1");
        std::fs::write(files.join("a.yaml"), &manifest)?;
        std::fs::write(files.join("sub/run.sh"), "#!/bin/sh\n")?;
        let url = format!("oci://{}/{}", test.world.registry.address(), test.namespace);
        let tagged = format!("{url}:v1");
        let said = flux
            .run(&[
                "push",
                "artifact",
                &tagged,
                "--insecure-registry",
                "--source=https://git.example/app",
            ])
            .args(&["--revision=main@sha1:0123456789012345678901234567890123456789"])
            .path(&files)
            .done()
            .await?;
        ensure!(said.contains("artifact successfully pushed to"), "{said}");
        let digest = said.rsplit_once("@sha256:").context("no digest")?.1;
        let digest = digest.split_whitespace().next().unwrap_or_default();

        flux.run(&[
            "create",
            "source",
            "oci",
            "app",
            "--insecure",
            "--tag=v1",
            "--interval=1h",
        ])
        .args(&["--url", &url])
        .done()
        .await?;
        let object = wait_for(&test.oci_repositories(), "app", is_ready, PATIENCE).await?;
        ensure!(text(&object, "/status/artifact/revision") == format!("v1@sha256:{digest}"));
        flux.run(&[
            "create",
            "kustomization",
            "app",
            "--source=OCIRepository/app",
            "--path=./",
        ])
        .args(&["--prune=true", "--interval=1h"])
        .done()
        .await?;
        test.config_map_has("pushed", "key", "1").await?;
        let said = flux.run(&["trace", "configmap", "pushed"]).done().await?;
        for words in [
            "Origin Revision: main@sha1:0123456789",
            "https://git.example/app",
            "Managed by Flux",
        ] {
            ensure!(said.contains(words), "{words:?} is not in\n{said}");
        }

        let pulled = folder.path().join("pulled");
        std::fs::create_dir(&pulled)?;
        let output = pulled.display().to_string();
        flux.run(&[
            "pull",
            "artifact",
            &tagged,
            "--insecure-registry",
            "--output",
            &output,
        ])
        .done()
        .await?;
        ensure!(std::fs::read_to_string(pulled.join("a.yaml"))? == manifest);
        ensure!(pulled.join("sub/run.sh").is_file());
        flux.run(&["diff", "artifact", &tagged, "--insecure-registry"])
            .path(&files)
            .done()
            .await?;
        flux.run(&["tag", "artifact", &tagged, "--tag=v2"]).done().await?;
        let patch = json!({"spec": {"ref": {"tag": "v2"}}});
        objects::apply(&test.client, &merged(&test, "OCIRepository", "app", &url, patch)).await?;
        let moved = |object: &DynamicObject| text(object, "/status/artifact/revision").starts_with("v2@");
        wait_for(&test.oci_repositories(), "app", moved, PATIENCE).await?;
        test.delete_kustomization("app").await
    });
}

#[test]
fn flux_gets_reconciles_suspends_and_exports_every_source() {
    run("flux-sources", |test| async move {
        let flux = Flux::start(&test).await?;
        let sources = Sources::start(&test, &flux).await?;
        for (word, kind, name, revision) in sources.all() {
            let seen = flux.run(&["get", "sources", word]).done().await?;
            ensure!(
                seen.contains(name) && seen.contains("True"),
                "get sources {word}:\n{seen}"
            );
            let shown = revision
                .split_at(revision.find(':').map_or(revision.len(), |at| at + 8))
                .0;
            ensure!(seen.contains(shown), "{shown:?} is not in\n{seen}");
            let said = flux.run(&["reconcile", "source", word, name]).done().await?;
            ensure!(
                said.contains("fetched revision") && said.contains(&revision),
                "reconcile {word}:\n{said}"
            );

            let said = flux.run(&["suspend", "source", word, name]).done().await?;
            ensure!(said.contains("suspended"), "suspend {word}:\n{said}");
            let seen = flux.run(&["get", "sources", word, name]).done().await?;
            ensure!(seen.contains("True"), "get suspended {word}:\n{seen}");
            let refused = flux.run(&["reconcile", "source", word, name]).fails().await?;
            ensure!(
                refused.contains("suspended"),
                "reconcile suspended {word}:\n{refused}"
            );
            let said = flux.run(&["resume", "source", word, name]).done().await?;
            ensure!(
                said.contains("resumed") && said.contains("reconciliation completed"),
                "resume {word}:\n{said}"
            );

            let exported = flux.run(&["export", "source", word, name]).done().await?;
            ensure!(
                exported.contains(&format!("kind: {kind}")),
                "export {word}:\n{exported}"
            );
            ensure!(!exported.contains("status:"), "export {word}:\n{exported}");
        }
        let all = flux.run(&["get", "sources", "all"]).done().await?;
        for (_, kind, name, _) in sources.all() {
            ensure!(
                all.contains(&format!("{}/{name}", kind.to_lowercase())),
                "{kind}:\n{all}"
            );
        }
        let all = flux.run(&["get", "all"]).done().await?;
        ensure!(all.contains("gitrepository/app"), "{all}");
        Ok(())
    });
}

#[test]
fn flux_reconciles_a_kustomization_with_its_source_and_shows_why_one_fails() {
    run("flux-sync", |test| async move {
        let flux = Flux::start(&test).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let commit = repository.commit(
            "main",
            "change",
            &[Change::write(
                "deploy/a.yaml",
                config_map(&test.namespace, "a", "2"),
            )],
        )?;
        let said = flux
            .run(&["reconcile", "kustomization", "app", "--with-source"])
            .done()
            .await?;
        ensure!(
            said.contains(&format!("applied revision main@sha1:{commit}")),
            "{said}"
        );
        test.config_map_has("a", "key", "2").await?;
        let tree = flux.run(&["tree", "kustomization", "app"]).done().await?;
        ensure!(
            tree.contains(&format!("ConfigMap/{}/a", test.namespace)),
            "{tree}"
        );

        let mut broken = objects::git_repository(&test.namespace, "broken", repository.url(), "nowhere");
        broken["spec"]["timeout"] = json!("10s");
        test.apply(&broken).await?;
        test.not_ready(&test.git_repositories(), "broken", "GitOperationFailed")
            .await?;
        let seen = flux.run(&["get", "sources", "git", "broken"]).done().await?;
        ensure!(seen.contains("False") && seen.contains("nowhere"), "{seen}");
        // As with Flux's controllers: what is tried again is not over yet, so the command waits.
        let said = flux
            .run(&["reconcile", "source", "git", "broken", "--timeout=3s"])
            .fails()
            .await?;
        ensure!(said.contains("context deadline exceeded"), "{said}");

        // What ArtifactGenerators make.
        test.apply(&json!({
            "apiVersion": "source.extensions.fluxcd.io/v1beta1", "kind": "ArtifactGenerator",
            "metadata": {"name": "made", "namespace": test.namespace},
            "spec": {"sources": [{"alias": "git", "kind": "GitRepository", "name": "app"}],
                     "artifacts": [{"name": "copied", "copy": [{"from": "@git/**", "to": "@artifact/"}]}]},
        }))
        .await?;
        wait_for(
            &test.objects(SOURCE, "ExternalArtifact"),
            "copied",
            is_ready,
            PATIENCE,
        )
        .await?;
        let seen = flux.run(&["get", "artifacts", "generators"]).done().await?;
        ensure!(seen.contains("made") && seen.contains("True"), "{seen}");
        let seen = flux.run(&["get", "sources", "external"]).done().await?;
        ensure!(seen.contains("copied") && seen.contains("True"), "{seen}");
        test.delete_kustomization("app").await
    });
}

#[test]
fn flux_creates_traces_counts_and_compares_a_kustomization() {
    run("flux-questions", |test| async move {
        let ns = &test.namespace;
        let flux = Flux::start(&test).await?;
        let variable = config_map(ns, "a", "${value}");
        let web = deployment(ns, "web", "example.com/web:1", 1);
        let repository = test.repository(&[("deploy/a.yaml", variable), ("deploy/web.yaml", web)])?;
        test.git_source(&repository).await?;
        test.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vars", "namespace": ns},
            "data": {"value": "one"}}),
        )
        .await?;
        let check = format!("--health-check=Deployment/web.{ns}");
        let said = flux
            .run(&[
                "create",
                "kustomization",
                "app",
                "--source=GitRepository/app",
                "--path=./deploy",
                "--prune",
                "--interval=10m",
                check.as_str(),
            ])
            .done()
            .await?;
        ensure!(said.contains("applied revision main@sha1:"), "{said}");
        let from =
            json!({"spec": {"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]}}});
        test.kustomizations()
            .patch("app", &PatchParams::default(), &Patch::Merge(from))
            .await?;
        test.config_map_has("a", "key", "one").await?;

        let traced = flux.run(&["trace", "configmap", "a"]).done().await?;
        for words in ["Kustomization:  app", "GitRepository:  app", "Managed by Flux"] {
            let found = traced.split_whitespace().collect::<Vec<_>>().join(" ");
            let wanted = words.split_whitespace().collect::<Vec<_>>().join(" ");
            ensure!(found.contains(&wanted), "{words:?} is not in\n{traced}");
        }
        let tree = flux.run(&["tree", "kustomization", "app"]).done().await?;
        ensure!(tree.contains(&format!("Deployment/{ns}/web")), "{tree}");
        let counted = flux.run(&["stats"]).done().await?;
        ensure!(
            counted.contains("Kustomization") && counted.contains("GitRepository"),
            "{counted}"
        );
        let events = flux.run(&["events", "--for", "Kustomization/app"]).done().await?;
        ensure!(events.contains("ReconciliationSucceeded"), "{events}");
        let variables = flux
            .run(&["debug", "kustomization", "app", "--show-vars"])
            .done()
            .await?;
        ensure!(variables.contains("value=one"), "{variables}");
        let history = flux
            .run(&["debug", "kustomization", "app", "--show-history"])
            .done()
            .await?;
        ensure!(history.contains("ReconciliationSucceeded"), "{history}");

        // A checkout in which one object differs.
        let checkout = tempfile::tempdir()?;
        let changed = config_map(ns, "a", "${value} and more");
        std::fs::write(checkout.path().join("a.yaml"), changed)?;
        let web = deployment(ns, "web", "example.com/web:1", 1);
        std::fs::write(checkout.path().join("web.yaml"), web)?;
        let path = format!("--path={}", checkout.path().display());
        let differs = flux
            .run(&[
                "diff",
                "kustomization",
                "app",
                path.as_str(),
                "--progress-bar=false",
            ])
            .fails()
            .await?;
        ensure!(
            differs.contains(&format!("ConfigMap/{ns}/a drifted")) && !differs.contains("web drifted"),
            "{differs}"
        );
        test.delete_kustomization("app").await
    });
}

/// One source of each kind.
struct Sources {
    _helm: HelmRepository,
    _store: ObjectStore,
    revisions: Vec<(&'static str, &'static str, &'static str, String)>,
}

impl Sources {
    async fn start(test: &Test, flux: &Flux<'_>) -> Result<Self> {
        let ns = &test.namespace;
        let repository = test.repository(&[
            (
                "chart/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.2.3\n".to_owned(),
            ),
            ("chart/templates/a.yaml", config_map(ns, "a", "1")),
        ])?;
        let registry = &test.world.registry;
        registry
            .push_files(ns, &["v1"], "v1", &[("a.yaml", "a: 1\n")])
            .await?;
        let (helm, store) = (
            HelmRepository::start().await?,
            ObjectStore::start(Package::Moto).await?,
        );
        store.make_s3("app").await?;
        store.put_s3("app", "a.yaml", "a: 1\n").await?;
        let (url, oci) = (
            repository.url().to_owned(),
            format!("oci://{}/{ns}", registry.address()),
        );
        for arguments in [
            &[
                "create",
                "source",
                "git",
                "app",
                "--branch=main",
                "--interval=1h",
                "--url",
                &url,
            ][..],
            &[
                "create",
                "source",
                "oci",
                "app",
                "--tag=v1",
                "--interval=1h",
                "--insecure",
                "--url",
                &oci,
            ],
            &[
                "create",
                "source",
                "helm",
                "app",
                "--interval=1h",
                "--url",
                helm.url(),
            ],
            &[
                "create",
                "source",
                "bucket",
                "app",
                "--bucket-name=app",
                "--interval=1h",
                "--insecure=true",
                "--access-key=key",
                "--secret-key=secret",
                "--endpoint",
                &store.address(),
            ],
            &[
                "create",
                "source",
                "chart",
                "web",
                "--source=GitRepository/app",
                "--chart=./chart",
                "--interval=1h",
            ],
        ] {
            flux.run(arguments).done().await?;
        }
        let mut revisions = Vec::new();
        for (word, kind, name) in [
            ("git", "GitRepository", "app"),
            ("oci", "OCIRepository", "app"),
            ("helm", "HelmRepository", "app"),
            ("bucket", "Bucket", "app"),
            ("chart", "HelmChart", "web"),
        ] {
            let object = wait_for(&test.objects(SOURCE, kind), name, is_ready, PATIENCE).await?;
            let revision = field(&object, "/status/artifact/revision").and_then(Value::as_str);
            revisions.push((word, kind, name, revision.context("no revision")?.to_owned()));
        }
        Ok(Self {
            _helm: helm,
            _store: store,
            revisions,
        })
    }

    fn all(&self) -> Vec<(&'static str, &'static str, &'static str, String)> {
        self.revisions.clone()
    }
}

/// An OCIRepository as it was made, with other fields.
fn merged(test: &Test, kind: &str, name: &str, url: &str, patch: Value) -> Value {
    let mut object = json!({
        "apiVersion": SOURCE, "kind": kind, "metadata": {"name": name, "namespace": test.namespace},
        "spec": {"url": url, "interval": "1h", "insecure": true},
    });
    if let (Some(spec), Value::Object(fields)) = (object["spec"].as_object_mut(), patch["spec"].clone()) {
        spec.extend(fields);
    }
    object
}

/// The program, in the namespace of the test.
pub struct Flux<'a> {
    test: &'a Test,
}

impl<'a> Flux<'a> {
    pub async fn start(test: &'a Test) -> Result<Self> {
        let ensure = || Package::Flux.ensure(&mut |line| eprintln!("{line}"));
        tokio::task::spawn_blocking(ensure).await??;
        Ok(Self { test })
    }

    pub fn run(&self, arguments: &[&str]) -> Call {
        let mut call = Call {
            arguments: Vec::new(),
        };
        let kubeconfig = self
            .test
            .world
            .control_plane
            .kubeconfig_path()
            .display()
            .to_string();
        let ours = ["--kubeconfig", &kubeconfig, "--namespace", &self.test.namespace];
        // Of those that are given twice, the last counts.
        call.add(&["--timeout=1m"]);
        call.add(arguments);
        call.add(&ours);
        call
    }
}

/// A call of the program.
pub struct Call {
    arguments: Vec<String>,
}

impl Call {
    fn add(&mut self, more: &[&str]) {
        self.arguments.extend(more.iter().map(|one| (*one).to_owned()));
    }

    fn args(mut self, more: &[&str]) -> Self {
        self.add(more);
        self
    }

    fn path(self, folder: &Path) -> Self {
        let folder = folder.display().to_string();
        self.args(&["--path", &folder])
    }

    /// Returns the output of both of its streams after success.
    pub async fn done(self) -> Result<String> {
        let (success, said) = self.end().await?;
        ensure!(success, "flux failed:\n{said}");
        Ok(said)
    }

    /// Returns the output after a failure.
    async fn fails(self) -> Result<String> {
        let (success, said) = self.end().await?;
        ensure!(!success, "flux did not fail:\n{said}");
        Ok(said)
    }

    async fn end(self) -> Result<(bool, String)> {
        let home = testkit::scratch::directory("home")?;
        let mut command = Command::new(Package::Flux.path()?);
        command
            .args(&self.arguments)
            .env("HOME", home.path())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        drop(home);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let said = format!("$ flux {}\n{text}", self.arguments.join(" "));
        println!("{said}");
        Ok((output.status.success(), said))
    }
}
