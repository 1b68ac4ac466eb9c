//! Tests of artifact access (ADR 8): tokens and permissions at a real API server, and what the owner of a
//! source allows.

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::artifact_access::{self, AUDIENCE};
use testkit::git::Change;
use testkit::objects::{self, with_spec};
use testkit::wait_for;

use crate::service::{
    artifact_of, bundle, eventually, open, refusal, start_apply, start_source, start_source_without_http,
};
use crate::world::{KUSTOMIZE, PATIENCE, SOURCE, Test, config_map, run};

/// A token that no one signed, with what a good one says: header, claims (audience, until 2100) and something.
const FORGED: &str =
    "eyJhbGciOiJFUzI1NiJ9.eyJhdWQiOlsid2luZGxhc3MtYXJ0aWZhY3QiXSwiZXhwIjo0MTAyNDQ0ODAwfQ.c2ln";

#[test]
fn only_a_service_account_that_may_get_the_source_reads_its_artifacts() {
    run("readers", |test| async move {
        let (ns, client) = (&test.namespace, &test.client);
        let source = start_source(&test, &[]).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
            .await?;
        let artifact = artifact_of(&test).await?;
        let (endpoint, authority) = (source.grpc_url(), bundle(&test).await?);
        let refused = async |token: Option<&str>| refusal(&endpoint, &authority, token, &artifact).await;

        let reason = refused(None).await?;
        ensure!(reason.contains("the call has no token"), "{reason}");
        for token in ["", "x.y.z", FORGED] {
            let reason = refused(Some(token)).await?;
            ensure!(reason.contains("token"), "{token:?}: {reason}");
        }

        artifact_access::create_account(client, ns, "reader").await?;
        let other = artifact_access::token(client, ns, "reader", "somebody-else").await?;
        let reason = refused(Some(&other)).await?;
        ensure!(
            reason.contains("not for the audience \"windlass-artifact\""),
            "{reason}"
        );

        // Another kind's permission is none.
        artifact_access::create_account(client, ns, "oci-reader").await?;
        artifact_access::allow_in_namespace(client, ns, "oci-reader", "ocirepositories").await?;
        let oci = artifact_access::token(client, ns, "oci-reader", AUDIENCE).await?;
        let token = artifact_access::token(client, ns, "reader", AUDIENCE).await?;
        for (token, name) in [(&oci, "oci-reader"), (&token, "reader")] {
            let reason = refused(Some(token)).await?;
            let who = format!("system:serviceaccount:{ns}:{name} may not read");
            ensure!(
                reason.starts_with(&who) && reason.contains("the verb get"),
                "{reason}"
            );
            // The same for an object that is not there: who may not read it learns nothing of it.
            let mut absent = artifact.clone();
            absent.object.name = "absent".to_owned();
            let other = refusal(&endpoint, &authority, Some(token), &absent).await?;
            ensure!(other == reason.replace("/app:", "/absent:"), "{reason}\n{other}");
        }

        // A refusal is kept for ten seconds, no longer.
        artifact_access::allow_in_namespace(client, ns, "reader", "gitrepositories").await?;
        let tree =
            eventually(async || Ok(open(&endpoint, &authority, Some(&token), &artifact).await?)).await?;
        ensure!(tree.read("deploy/a.yaml").await? == config_map(ns, "a", "1"));
        Ok(())
    });
}

#[test]
fn a_token_file_is_read_again_when_it_is_replaced() {
    run("token-file", |test| async move {
        let (ns, client) = (&test.namespace, &test.client);
        artifact_access::allow_all(client, ns, "reader").await?;
        let folder = testkit::scratch::directory("token")?;
        let file = folder.path().join("token");
        std::fs::write(
            &file,
            artifact_access::token(client, ns, "reader", "somebody-else").await?,
        )?;

        let source = start_source_without_http(&test, &[]).await?;
        let _apply = start_apply(
            &test,
            &source,
            &[format!("--artifact-token-file={}", file.display())],
        )
        .await?;
        let repository = deliverable(&test).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ArtifactFailed")
            .await?;
        ensure!(message.contains("not for the audience"), "{message}");

        // As the kubelet does it.
        let new = folder.path().join("new");
        std::fs::write(
            &new,
            artifact_access::token(client, ns, "reader", AUDIENCE).await? + "\n",
        )?;
        std::fs::rename(&new, &file)?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;

        // And one that cannot be read is told of.
        std::fs::remove_file(&file)?;
        test.push(
            &repository,
            &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
        )
        .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ArtifactFailed")
            .await?;
        ensure!(message.contains("failed to read the token"), "{message}");
        std::fs::write(
            &file,
            artifact_access::token(client, ns, "reader", AUDIENCE).await?,
        )?;
        test.config_map_has("a", "key", "2").await?;
        test.delete_kustomization("app").await?;
        artifact_access::forbid_all(client, ns, "reader").await
    });
}

#[test]
fn the_owner_of_a_source_says_which_namespaces_may_refer_to_it() {
    run("access-from", |test| async move {
        let (ns, client) = (&test.namespace, &test.client);
        let other = test.world.control_plane.namespace("access-from-other").await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(&other, "a", "1"))])?;
        let mut git = objects::git_repository(ns, "app", repository.url(), "main");
        git["metadata"]["annotations"] = json!({"windlass.dev/access-from": "ops, team-*"});
        test.apply(&git).await?;
        artifact_of(&test).await?;

        let kustomization = objects::kustomization(&other, "app", ("GitRepository", "app"), "./deploy");
        let reference = json!({"kind": "GitRepository", "name": "app", "namespace": ns});
        test.apply(&with_spec(kustomization, json!({"sourceRef": reference})))
            .await?;
        test.apply(&generator(&other, ns)).await?;
        let kustomizations = objects::api(client, KUSTOMIZE, "Kustomization", &other);
        let generators = objects::api(client, GENERATOR, "ArtifactGenerator", &other);
        for api in [&kustomizations, &generators] {
            let message = test.not_ready(api, "app", "AccessDenied").await?;
            ensure!(
                message.contains(&format!("can't access 'GitRepository/{ns}/app'"))
                    && message.contains(&format!("does not list the namespace '{other}'")),
                "{message}"
            );
        }
        let made = objects::api(client, SOURCE, "ExternalArtifact", &other);
        ensure!(made.list(&Default::default()).await?.items.is_empty());

        annotate(&test.git_repositories(), "app", &format!("ops, {other}")).await?;
        wait_for(&kustomizations, "app", objects::is_ready, PATIENCE).await?;
        wait_for(&generators, "app", objects::is_ready, PATIENCE).await?;
        for (api, name) in [(&kustomizations, "app"), (&generators, "app")] {
            api.delete(name, &Default::default()).await?;
            testkit::wait_until_gone(api, name, PATIENCE).await?;
        }
        test.world.control_plane.delete_namespace(&other).await
    });
}

const GENERATOR: &str = "source.extensions.fluxcd.io/v1beta1";

/// Copies all of the GitRepository `app` of another namespace.
fn generator(namespace: &str, of: &str) -> Value {
    json!({
        "apiVersion": GENERATOR, "kind": "ArtifactGenerator",
        "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "sources": [{"alias": "git", "kind": "GitRepository", "name": "app", "namespace": of}],
            "artifacts": [{"name": "copied", "copy": [{"from": "@git/**", "to": "@artifact/"}]}],
        },
    })
}

async fn annotate(api: &Api<DynamicObject>, name: &str, value: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"windlass.dev/access-from": value}}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// Applies GitRepository and Kustomization `app` for the controllers of the test's own.
async fn deliverable(test: &Test) -> Result<testkit::git::Repository> {
    let ns = &test.namespace;
    let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
    test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
        .await?;
    let kustomization = test.kustomization("app", json!({"retryInterval": "1s"}));
    test.apply(&test.in_own_shard(kustomization)).await?;
    Ok(repository)
}
