//! A tenant wants what another tenant's source holds.
//!
//! They hold: the role `edit` in a namespace of their own; in the later stories also the right to write statuses there, and the
//! digest of the artifact. They write addresses and digests into statuses that consumers read. They must not get the content, nor
//! learn its digest.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{self, text};

use crate::scene::{HELM, KUSTOMIZE, SOURCE, Scene, play};

const ZERO: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
/// Where nothing is.
const DEAD: &str = "http://127.0.0.1:1/none.tar.gz";

/// A status that names an artifact.
fn status(url: &str, digest: &str) -> Value {
    json!({
        "observedGeneration": 1,
        "artifact": {"url": url, "digest": digest, "revision": "main@sha1:1", "path": "a/b/c.tar.gz",
            "lastUpdateTime": "2026-01-01T00:00:00Z", "size": 1},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    })
}

/// An ExternalArtifact of the attacker that says this of itself.
async fn external(scene: &Scene, name: &str, url: &str, digest: &str) -> Result<()> {
    let object = json!({"apiVersion": SOURCE, "kind": "ExternalArtifact",
        "metadata": {"name": name, "namespace": scene.attacker}, "spec": {}});
    scene.apply(&object).await?;
    let artifacts = scene.api(SOURCE, "ExternalArtifact", &scene.attacker);
    scene.write_status(&artifacts, name, status(url, digest)).await
}

/// Has it applied, and returns why it is not.
async fn applied(scene: &Scene, name: &str, source: (&str, &str)) -> Result<String> {
    scene.apply(&scene.kustomization(name, source)).await?;
    let kustomizations = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
    let refused = scene.refused(&kustomizations, name).await?;
    scene.nothing_is_stolen().await?;
    Ok(refused)
}

/// The artifact that is wanted: its address, that of the newest one, and its digest.
fn wanted(source: &DynamicObject) -> (String, String, String) {
    let url = text(source, "/status/artifact/url").to_owned();
    let latest = match url.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/latest.tar.gz"),
        None => url.clone(),
    };
    (url, latest, text(source, "/status/artifact/digest").to_owned())
}

fn tells_nothing(message: &str, digest: &str) -> Result<()> {
    let hex = digest.trim_start_matches("sha256:");
    ensure!(!message.contains(hex), "the digest is told: {message}");
    Ok(())
}

#[test]
fn an_address_of_another_tenants_artifact_gives_neither_it_nor_its_digest() {
    play("address", |scene| async move {
        let (_repository, source) = scene.secret_source().await?;
        let (url, latest, digest) = wanted(&source);
        for (number, address) in [&url, &latest].into_iter().enumerate() {
            // Under other names for the same host, too.
            for (spelling, address) in [
                address.clone(),
                address.replace("127.0.0.1", "localhost"),
                address.replace("127.0.0.1", "127.1"),
            ]
            .iter()
            .enumerate()
            {
                let name = format!("thief-{number}-{spelling}");
                external(&scene, &name, address, ZERO).await?;
                let refused = applied(&scene, &name, ("ExternalArtifact", &name)).await?;
                tells_nothing(&refused, &digest)?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_digest_that_somebody_knows_gives_nothing_without_the_object_that_has_it() {
    play("digest", |scene| async move {
        let (_repository, source) = scene.secret_source().await?;
        let (url, _, digest) = wanted(&source);
        for (name, address) in [("dead", DEAD), ("right", url.as_str())] {
            external(&scene, name, address, &digest).await?;
            applied(&scene, name, ("ExternalArtifact", name)).await?;
        }
        // A source of a kind that source-controller makes, left alone by it because it is suspended.
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        let mut own = objects::git_repository(&scene.attacker, "own", repository.url(), "main");
        own["spec"]["suspend"] = json!(true);
        scene.apply(&own).await?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.attacker);
        for (name, address) in [("own-dead", DEAD), ("own-right", url.as_str())] {
            scene
                .write_status(&sources, "own", status(address, &digest))
                .await?;
            applied(&scene, name, ("GitRepository", "own")).await?;
        }
        Ok(())
    });
}

#[test]
fn a_chart_that_is_known_by_its_digest_is_not_released_for_whoever_names_it() {
    play("chart", |scene| async move {
        let (_repository, _) = scene.secret_source().await?;
        let release = |namespace: &str, spec: Value| {
            let metadata = json!({"name": "app", "namespace": namespace});
            let object = json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": metadata,
                "spec": {"interval": "1h"}});
            objects::with_spec(object, spec)
        };
        // The victim's own release: the chart is loaded, and kept.
        let chart = json!({"chart": {"spec": {"chart": "./chart",
            "sourceRef": {"kind": "GitRepository", "name": "app"}}}});
        scene.apply(&release(&scene.victim, chart)).await?;
        let releases = scene.api(HELM, "HelmRelease", &scene.victim);
        testkit::wait_for(&releases, "app", objects::is_ready, crate::scene::PATIENCE).await?;
        let charts = scene.api(SOURCE, "HelmChart", &scene.victim);
        let chart = charts.get(&format!("{}-app", scene.victim)).await?;
        let (url, _, digest) = wanted(&chart);
        let revision = text(&chart, "/status/artifact/revision").to_owned();

        for (name, address) in [("dead", DEAD), ("right", url.as_str())] {
            external(&scene, name, address, &digest).await?;
            let artifacts = scene.api(SOURCE, "ExternalArtifact", &scene.attacker);
            let mut status = status(address, &digest);
            status["artifact"]["revision"] = json!(revision);
            scene.write_status(&artifacts, name, status).await?;
            let spec = json!({"chartRef": {"kind": "ExternalArtifact", "name": name}});
            scene.apply(&release(&scene.attacker, spec)).await?;
            let releases = scene.api(HELM, "HelmRelease", &scene.attacker);
            scene.refused(&releases, "app").await?;
            scene.nothing_is_stolen().await?;
        }
        Ok(())
    });
}

#[test]
fn a_generator_does_not_copy_what_an_address_of_its_own_controller_gives() {
    play("generator", |scene| async move {
        let (_repository, source) = scene.secret_source().await?;
        let (url, latest, digest) = wanted(&source);
        for (number, address) in [
            url.clone(),
            url.replace("127.0.0.1", "localhost"),
            url.replace("127.0.0.1", "127.1"),
            latest,
        ]
        .iter()
        .enumerate()
        {
            let name = format!("copy-{number}");
            external(&scene, &name, address, &digest).await?;
            let generator = json!({
                "apiVersion": "source.extensions.fluxcd.io/v1beta1", "kind": "ArtifactGenerator",
                "metadata": {"name": name, "namespace": scene.attacker},
                "spec": {"sources": [{"alias": "theirs", "kind": "ExternalArtifact", "name": name}],
                    "artifacts": [{"name": format!("made-{number}"), "copy": [{"from": "@theirs/**", "to": "@artifact/"}]}]},
            });
            scene.apply(&generator).await?;
            let generators = scene.api(
                "source.extensions.fluxcd.io/v1beta1",
                "ArtifactGenerator",
                &scene.attacker,
            );
            scene.refused(&generators, &name).await?;
            let made = scene.api(SOURCE, "ExternalArtifact", &scene.attacker);
            ensure!(
                made.get_opt(&format!("made-{number}")).await?.is_none(),
                "{address}"
            );
        }
        Ok(())
    });
}
