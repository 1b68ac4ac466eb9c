//! A tenant fetches sources that a VerificationPolicy of the platform refuses, or turns policies against others.
//!
//! They hold: sources of every kind, Secrets with proxies and certificate authorities, policies of their own. Nothing may be
//! fetched from where it may not come, however it is spelled; nothing becomes an artifact that is not signed; and a refusal must not
//! tell what is in the platform's namespace.

use std::sync::PoisonError;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::HelmRepository;
use testkit::git::Change;
use testkit::objects::{self, condition};
use testkit::wait_for;

use crate::scene::{PATIENCE, SOURCE, Scene, play, serve};

/// Where the controllers are.
const PLATFORM: &str = "default";

impl Scene {
    /// A policy of the platform about the sources of one namespace, named after it.
    async fn sources_policy(&self, namespace: &str, spec: Value) -> Result<()> {
        let spec = objects::with_spec(json!({"spec": {"namespaces": [namespace]}}), spec);
        self.sources_policy_in(PLATFORM, namespace, spec["spec"].clone())
            .await
    }

    async fn sources_policy_in(&self, namespace: &str, name: &str, spec: Value) -> Result<()> {
        let policy = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "VerificationPolicy",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        self.apply(&policy).await
    }

    /// Waits until a source of the attacker is refused by a policy; returns the message of Ready.
    async fn refused_source(&self, kind: &str, name: &str) -> Result<String> {
        let api = self.api(SOURCE, kind, &self.attacker);
        let is_refused = |object: &DynamicObject| {
            let verdict = condition(object, "PoliciesMet");
            verdict.is_some_and(|(status, reason, _)| (status, reason) == ("False", "VerificationError"))
        };
        let object = wait_for(&api, name, is_refused, PATIENCE).await?;
        let artifact = objects::text(&object, "/status/artifact/digest");
        ensure!(artifact.is_empty(), "{kind}/{name} has the artifact {artifact}");
        let ready = condition(&object, "Ready").context("no condition Ready")?;
        Ok(ready.2.to_owned())
    }

    /// Waits until the policies that were written are known: a source that they refuse is refused.
    async fn policies_are_known(&self) -> Result<()> {
        let canary =
            objects::git_repository(&self.attacker, "canary", "https://canary.example.com/x", "main");
        self.apply(&canary).await?;
        let api = self.api(SOURCE, "GitRepository", &self.attacker);
        let is_judged = |object: &DynamicObject| condition(object, "PoliciesMet").is_some();
        wait_for(&api, "canary", is_judged, PATIENCE).await?;
        Ok(())
    }
}

#[test]
fn no_spelling_of_an_address_brings_in_what_is_elsewhere() {
    play("sources-spelled", |scene| async move {
        scene
            .sources_policy(
                &scene.attacker,
                json!({"sources": {"from": ["git.example.com/team/*"]}}),
            )
            .await?;
        // A policy of the tenant takes nothing away from that.
        let own = json!({"action": "Warn", "sources": {"from": ["*"]}});
        scene.sources_policy_in(&scene.attacker, "own", own).await?;
        scene.policies_are_known().await?;
        let (evil, heard) = serve(|_, _| "404 Not Found".to_owned()).await?;
        let urls = [
            ("plain", format!("http://{evil}/team/app")),
            ("user", format!("http://git.example.com%2fteam@{evil}/team/app")),
            (
                "password",
                format!("http://git.example.com:443@{evil}/git.example.com/team/app"),
            ),
            ("scheme", "http://git.example.com/team/app".to_owned()),
            ("port", "https://git.example.com:8443/team/app".to_owned()),
            (
                "longer",
                "https://git.example.com.evil.example.com/team/app".to_owned(),
            ),
            ("dots", "https://git.example.com/team/../other/app".to_owned()),
            (
                "escaped",
                "https://git.example.com/team/%2e%2e/other/app".to_owned(),
            ),
            (
                "twice",
                "https://git.example.com/team/%252e%252e/other/app".to_owned(),
            ),
            ("slash", "https://git.example.com/team/..%2fother/app".to_owned()),
            (
                "query",
                "https://git.example.com/team/app?path=../other".to_owned(),
            ),
            ("above", "https://git.example.com/teams/app".to_owned()),
            ("ssh", "ssh://git@git.example.com:2222/team/app".to_owned()),
            ("backslash", format!("ssh://git.example.com\\@{evil}/team/app")),
        ];
        for (name, url) in &urls {
            scene
                .apply(&objects::git_repository(&scene.attacker, name, url, "main"))
                .await?;
        }
        let metadata = |name: &str| json!({"name": name, "namespace": scene.attacker});
        let source = |kind: &str, name: &str, spec: Value| {
            objects::with_spec(
                json!({"apiVersion": SOURCE, "kind": kind, "metadata": metadata(name), "spec": {"interval": "1m"}}),
                spec,
            )
        };
        let others = [
            source(
                "OCIRepository",
                "oci",
                json!({"url": format!("oci://{evil}/git.example.com/team/app")}),
            ),
            source(
                "OCIRepository",
                "insecure",
                json!({"url": "oci://git.example.com/team/app", "insecure": true}),
            ),
            source(
                "HelmRepository",
                "index",
                json!({"url": format!("http://{evil}/")}),
            ),
            source(
                "Bucket",
                "bucket",
                json!({"endpoint": evil.to_string(), "bucketName": "team", "insecure": true}),
            ),
            // Whatever its endpoint says, such a bucket is at Google.
            source(
                "Bucket",
                "google",
                json!({"provider": "gcp", "endpoint": "git.example.com", "bucketName": "team"}),
            ),
        ];
        for object in &others {
            scene.apply(object).await?;
        }
        let others = others
            .iter()
            .filter_map(|object| Some((object["kind"].as_str()?, object["metadata"]["name"].as_str()?)));
        let all = urls
            .iter()
            .map(|(name, _)| ("GitRepository", *name))
            .chain(others);
        for (kind, name) in all {
            let message = scene.refused_source(kind, name).await?;
            let expected = format!("refused by VerificationPolicy {PLATFORM}/{}: ", scene.attacker);
            ensure!(message.starts_with(&expected), "{kind}/{name}: {message}");
        }
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(heard.is_empty(), "it was asked: {heard}");
        Ok(())
    });
}

#[test]
fn a_proxy_of_ones_own_answers_for_no_host() {
    play("sources-proxied", |scene| async move {
        scene
            .sources_policy(
                &scene.attacker,
                json!({"sources": {"from": ["git.example.com/*"]}}),
            )
            .await?;
        scene.policies_are_known().await?;
        let (proxy, heard) = serve(|_, _| "200 OK".to_owned()).await?;
        let server = HelmRepository::start_tls().await?;
        let authority = server.authority().context("no authority")?;
        for (name, data) in [
            ("proxy", json!({"address": format!("http://{proxy}")})),
            ("authority", json!({"ca.crt": authority})),
        ] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": scene.attacker},
                "stringData": data,
            });
            scene.apply(&secret).await?;
        }
        let (proxied, trusted) = (
            json!({"proxySecretRef": {"name": "proxy"}}),
            json!({"name": "authority"}),
        );
        let git = objects::git_repository(&scene.attacker, "git", "https://git.example.com/app", "main");
        let git = objects::with_spec(
            objects::with_spec(git, proxied.clone()),
            json!({"secretRef": trusted}),
        );
        let oci = objects::oci_repository(&scene.attacker, "oci", "oci://git.example.com/app", "latest");
        let oci = objects::with_spec(
            objects::with_spec(oci, proxied),
            json!({"certSecretRef": trusted, "insecure": false}),
        );
        for (kind, name, object) in [("GitRepository", "git", git), ("OCIRepository", "oci", oci)] {
            scene.apply(&object).await?;
            let message = scene.refused_source(kind, name).await?;
            ensure!(
                message.contains("what is fetched by a proxy of its own"),
                "{message}"
            );
        }
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(heard.is_empty(), "it was asked: {heard}");
        Ok(())
    });
}

#[test]
fn a_tenants_policy_reaches_its_own_sources_only() {
    play("sources-own", |scene| async move {
        let (repository, _) = scene.secret_source().await?;
        let everywhere = json!({"namespaces": ["*"], "sources": {"from": ["nowhere.example.com/*"]}});
        scene
            .sources_policy_in(&scene.attacker, "wide", everywhere)
            .await?;
        scene.policies_are_known().await?;
        let commit = repository.commit("main", "next", &[Change::write("deploy/next.yaml", "")])?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.victim);
        objects::poke(&sources, "app").await?;
        let revision = format!("main@sha1:{commit}");
        let arrived = |object: &DynamicObject| objects::text(object, "/status/artifact/revision") == revision;
        let object = wait_for(&sources, "app", arrived, PATIENCE).await?;
        ensure!(condition(&object, "PoliciesMet").is_none());
        Ok(())
    });
}

#[test]
fn a_refusal_of_a_source_tells_nothing_of_the_platform() {
    play("sources-told", |scene| async move {
        let git = json!({"secretRef": {"name": "keys-of-the-platform"}});
        scene
            .sources_policy(
                &scene.attacker,
                json!({"sources": {"match": ["127.0.0.1*", "http://*"], "git": git}}),
            )
            .await?;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        repository.commit("main", "one", &[Change::write("a.yaml", "")])?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        let api = scene.api(SOURCE, "GitRepository", &scene.attacker);
        let is_refused = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "VerificationError")
        };
        let object = wait_for(&api, "app", is_refused, PATIENCE).await?;
        let (_, _, message) = condition(&object, "Ready").context("no condition Ready")?;
        ensure!(
            message.contains("the policy cannot be applied; its Secrets"),
            "{message}"
        );
        ensure!(!message.contains("keys-of-the-platform"), "{message}");
        Ok(())
    });
}
