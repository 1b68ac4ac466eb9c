//! Gates that ask servers.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply};
use testkit::{HelmRepository, MessageSink, Prometheus};

use crate::proposals::Forge;
use crate::world::{DELIVERY, KUSTOMIZE, Scene, app, play, release_of, waits};

/// A release that only a gate keeps out of production.
struct Gated<'s> {
    scene: &'s Scene,
    production: String,
    dev: String,
    repository: Repository,
}

impl<'s> Gated<'s> {
    async fn new(scene: &'s Scene) -> Result<Self> {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let repository = scene.fleet(&files).await?;
        Ok(Self {
            scene,
            production,
            dev,
            repository,
        })
    }

    /// Makes the pipeline with a gate, or changes it.
    async fn gate(&self, gate: &Value) -> Result<()> {
        let mut gate = gate.clone();
        gate["name"] = json!("tests");
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": self.dev}]},
            {"name": "production", "targets": [{"namespace": self.production}], "gates": [gate]},
        ]);
        self.scene.pipeline("Kustomization", environments).await
    }

    async fn deploy(&self) -> Result<()> {
        let scene = self.scene;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&self.dev, &scene.namespace, "v2"));
        self.repository.commit("main", "by a person", &[next]).map(drop)
    }

    async fn is_closed(&self, said: &str) -> Result<()> {
        let wanted = format!("gate tests: {said}");
        let closed = self.scene.wait(|pipeline| waits(pipeline, 1) == [wanted.clone()]);
        closed.await.map(drop)
    }

    async fn opens(&self) -> Result<()> {
        let kind = (KUSTOMIZE, "Kustomization");
        let tag = "/spec/images/0/newTag";
        self.scene.has(kind, &self.production, tag, "v2").await
    }
}

#[test]
fn a_gate_asks_an_http_server_that_the_operator_lists() {
    play("gate-http", async |scene| {
        let gated = Gated::new(&scene).await?;
        let server = HelmRepository::start().await?;
        server.set_credentials("ana", "right");
        server.set_file(
            "health.json",
            Some(br#"{"healthy": false, "secret": "sesame"}"#.to_vec()),
        );
        let secret = |password: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "health", "namespace": scene.namespace},
                "stringData": {"username": "ana", "password": password},
            })
        };
        apply(&scene.client, &secret("wrong")).await?;
        let url = format!("{}/health.json", server.url().trim_end_matches('/'));
        let elsewhere = url.replace("127.0.0.1", "localhost");
        gated
            .gate(&json!({"http": {"url": elsewhere, "secretRef": {"name": "health"}}}))
            .await?;
        gated.deploy().await?;
        // The same server by a name that is not listed.
        gated
            .is_closed("the host 'localhost' is not one that gates may ask (--gate-hosts)")
            .await?;
        ensure!(server.take_requests().is_empty(), "it was asked");

        gated
            .gate(&json!({"http": {"url": url, "secretRef": {"name": "health"}}}))
            .await?;
        gated
            .is_closed(&format!("GET {url} answered 401 Unauthorized"))
            .await?;
        apply(&scene.client, &secret("right")).await?;
        let expr = "response.status == 200 && response.body.healthy && release.number == 2 && pipeline.name == 'shop'";
        gated
            .gate(&json!({"http": {"url": url, "secretRef": {"name": "health"}}, "expr": expr}))
            .await?;
        gated
            .is_closed(&format!("GET {url} does not fulfil it yet"))
            .await?;
        server.set_file("health.json", Some(br#"{"healthy": true}"#.to_vec()));
        gated.opens().await
    });
}

#[test]
fn a_gate_sends_the_release_and_follows_no_redirect() {
    play("gate-post", async |scene| {
        let gated = Gated::new(&scene).await?;
        let server = MessageSink::start().await?;
        server.answer(302);
        let url = server.url("change");
        gated
            .gate(&json!({"http": {"url": url, "method": "POST"}}))
            .await?;
        gated.deploy().await?;
        gated.is_closed(&format!("POST {url} answered 302 Found")).await?;
        server.answer(200);
        let call = server.until("change", |_| true).await?;
        let body = call.json;
        ensure!(
            body["pipeline"] == json!({"namespace": scene.namespace, "name": "shop"})
                && body["environment"] == "production"
                && body["release"]["number"] == 2
                && body["release"]["values"] == json!({"Kustomization/shop: image h.io/web": "v2"}),
            "{body}"
        );
        gated.opens().await
    });
}

#[test]
fn a_gate_asks_prometheus() {
    play("gate-query", async |scene| {
        let gated = Gated::new(&scene).await?;
        let prometheus = Prometheus::start(&[&scene.world.pipelines]).await?;
        prometheus.until("max(up)", 1.0).await?;
        let address = prometheus.url();
        let gate = |query: &str, expr: &str| json!({"prometheus": {"address": address, "query": query}, "expr": expr});
        gated.gate(&gate("sum(", "value > 0.5")).await?;
        gated.deploy().await?;
        let asked = format!("GET {address}/api/v1/query");
        gated
            .is_closed(&format!(
                "{asked} answered 400 Bad Request: the query failed: bad_data"
            ))
            .await?;
        gated.gate(&gate("no_such_series", "value > 0.5")).await?;
        gated
            .is_closed(&format!("{asked}: the query gives nothing"))
            .await?;
        gated.gate(&gate("up", "value < 0.5")).await?;
        gated
            .is_closed(&format!("{asked} does not fulfil it yet"))
            .await?;
        let expr =
            "value > 0.5 && result.all(series, series.labels.job == 'windlass' && series.value == 1.0)";
        gated.gate(&gate("up", expr)).await?;
        gated.opens().await
    });
}

/// What a server says after the release is there: it counts as failed, and goes back.
#[test]
fn a_check_that_turns_bad_has_a_release_go_back() {
    play("check", async |scene| {
        let gated = Gated::new(&scene).await?;
        let server = HelmRepository::start().await?;
        let set = |errors: f64| {
            let text = json!({"errors": errors}).to_string();
            server.set_file("errors.json", Some(text.into_bytes()));
        };
        set(0.0);
        let url = format!("{}/errors.json", server.url().trim_end_matches('/'));
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": gated.dev}]},
            {"name": "production", "targets": [{"namespace": gated.production}], "rollout": {"rollbackWithin": "10m"},
                "checks": [{"name": "errors", "http": {"url": url}, "expr": "response.body.errors < 0.5"}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        gated.deploy().await?;
        gated.opens().await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;

        // One that does not answer is no failure.
        server.set_failing(Some(503));
        let message = "/status/environments/1/targets/0/message";
        let said = |wanted: &'static str| {
            move |pipeline: &kube::api::DynamicObject| objects::text(pipeline, message).starts_with(wanted)
        };
        scene.wait(said("check errors: ")).await?;
        let pipeline = scene.wait(|_| true).await?;
        ensure!(release_of(&pipeline, 1) == Some(2));
        server.set_failing(None);
        let is_well = |pipeline: &kube::api::DynamicObject| objects::text(pipeline, message).is_empty();
        scene.wait(is_well).await?;

        set(0.9);
        let kind = (KUSTOMIZE, "Kustomization");
        scene
            .has(kind, &gated.production, "/spec/images/0/newTag", "v1")
            .await?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let log = gated.repository.git(&["log", "-1", "--format=%B", "main"])?;
        ensure!(log.contains("Asked for by the failure of release 2"), "{log}");
        ensure!(release_of(&pipeline, 0) == Some(2), "the others stay as they are");
        Ok(())
    });
}

/// A gate that says two things, or nothing, stops the pipeline, and says so.
#[test]
fn a_gate_says_one_thing() {
    play("gate-two", async |scene| {
        let gated = Gated::new(&scene).await?;
        let gate = json!({"http": {"url": "http://127.0.0.1:1"}, "prometheus": {"address": "http://127.0.0.1:1", "query": "up"}});
        gated.gate(&gate).await?;
        let api = objects::api(&scene.client, DELIVERY, "Pipeline", &scene.namespace);
        let refused = |object: &kube::api::DynamicObject| {
            objects::condition(object, "Ready").is_some_and(|(_, reason, text)| {
                reason == "InvalidSpec" && text.contains("must have one of object, http")
            })
        };
        testkit::wait_for(&api, "shop", refused, crate::world::PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn a_gate_asks_the_clock() {
    play("gate-clock", async |scene| {
        let gated = Gated::new(&scene).await?;
        gated
            .gate(&json!({"expr": "timestamp(now) < timestamp('2020-01-01T00:00:00Z')"}))
            .await?;
        gated.deploy().await?;
        gated.is_closed("the expression is false").await?;
        let expr = "timestamp(now) > timestamp('2020-01-01T00:00:00Z') && timestamp(now).getHours('Europe/Berlin') < 24";
        gated.gate(&json!({ "expr": expr })).await?;
        gated.opens().await
    });
}

/// What CI says of the commit that a release comes from, at a real Gitea.
#[test]
fn a_gate_asks_for_the_statuses_of_the_commit() {
    play("gate-commit", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let forge = Forge::open(&scene, &files, json!({})).await?;
        let repository = json!({"name": "fleet"});
        let service = json!({"provider": "gitea", "secretRef": {"name": "fleet"}});
        let gate = |checks: &[&str], expr: Option<&str>| {
            let statuses = json!({"repositoryRef": repository, "forge": service, "checks": checks});
            let mut gate = json!({"name": "tests", "commitStatus": statuses});
            if let Some(expr) = expr {
                gate["expr"] = json!(expr);
            }
            json!([
                {"name": "dev", "targets": [{"namespace": dev}]},
                {"name": "production", "targets": [{"namespace": production}], "gates": [gate]},
            ])
        };
        scene
            .pipeline("Kustomization", gate(&["ci/build", "ci/scan"], None))
            .await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        let is_made = |pipeline: &kube::api::DynamicObject| {
            objects::text(pipeline, "/status/releases/1/revision").starts_with("main@sha1:")
        };
        let pipeline = scene.wait(is_made).await?;
        let revision = objects::text(&pipeline, "/status/releases/1/revision");
        let commit = forge.newest("main").await?;
        ensure!(
            revision == format!("main@sha1:{commit}"),
            "{revision} is not {commit}"
        );

        let closed = async |said: &str| {
            let wanted = format!("gate tests: commit {} {said}", &commit[..7]);
            let closed = scene.wait(|pipeline| waits(pipeline, 1) == [wanted.clone()]);
            closed.await.map(drop)
        };
        closed("waits for ci/build, ci/scan").await?;
        forge.say(&commit, "ci/build", "success").await?;
        closed("waits for ci/scan").await?;
        forge.say(&commit, "ci/scan", "failure").await?;
        let failed = format!("gate tests: commit {}: ci/scan failed", &commit[..7]);
        scene
            .wait(|pipeline| waits(pipeline, 1) == [failed.clone()])
            .await?;

        // The token reads what its own Secret opens, and no message has it.
        let elsewhere = json!({"provider": "gitea", "secretRef": {"name": "absent"}});
        let mut absent = gate(&[], None);
        absent[1]["gates"][0]["commitStatus"]["forge"] = elsewhere;
        scene.pipeline("Kustomization", absent).await?;
        let unread =
            |wait: &String| wait.starts_with("gate tests: GitRepository/fleet: ") && wait.contains("absent");
        let pipeline = scene
            .wait(|pipeline| waits(pipeline, 1).iter().any(unread))
            .await?;
        ensure!(
            !json!(pipeline.data).to_string().contains(&forge.bot.token),
            "the token is told"
        );

        let expr = "statuses['ci/build'].state == 'success' && commit.size() == 40 && release.number == 2";
        scene.pipeline("Kustomization", gate(&[], Some(expr))).await?;
        let kind = (KUSTOMIZE, "Kustomization");
        scene.has(kind, &production, "/spec/images/0/newTag", "v2").await
    });
}
