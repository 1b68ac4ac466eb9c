//! Charts in a registry whose signature is wanted, and wanted of someone else, though the chart stays what it is.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{apply, condition, with_spec};
use testkit::registry::{CosignKey, Registry, tar_gz};

use super::charts::{helm_chart, oci_charts, packaged, revision};
use super::{World, handled, ready, until};

fn keys(world: &World, name: &str, signer: &CosignKey) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": world.namespace},
        "stringData": {"cosign.pub": signer.public_key().unwrap()},
    })
}

#[tokio::test]
async fn a_chart_is_verified_again_when_the_spec_wants_another_signature() {
    let world = World::start().await;
    let registry = Registry::start().await.unwrap();
    let data = tar_gz(&[("web/Chart.yaml", "{apiVersion: v2, name: web, version: 0.3.0}")]).unwrap();
    let digest = registry
        .push("charts/web", &["0.3.0"], &packaged(&data))
        .await
        .unwrap();
    let (ours, theirs) = (CosignKey::generate().unwrap(), CosignKey::generate().unwrap());
    for (name, signer) in [("ours", &ours), ("theirs", &theirs)] {
        apply(&world.plane.client(), &keys(&world, name, signer))
            .await
            .unwrap();
    }
    apply(&world.plane.client(), &oci_charts(&world, &registry))
        .await
        .unwrap();
    let chart = |keys: &str| {
        let verify = json!({"verify": {"provider": "cosign", "secretRef": {"name": keys}}});
        with_spec(
            helm_chart(&world, "web", "HelmRepository", "charts", "web"),
            verify,
        )
    };
    let (api, name) = world.create(&chart("ours")).await;
    let refused = |object: &DynamicObject| {
        let observed = condition(object, "SourceVerified").map(|(status, reason, _)| (status, reason));
        observed == Some(("False", "VerificationError"))
    };
    let object = until(&api, &name, refused).await;
    assert_eq!(revision(&object), "", "an unsigned chart is not stored");
    let (_, reason, message) = condition(&object, "BuildFailed").unwrap();
    assert_eq!(reason, "ChartVerificationError");
    let expected = "chart verification error: failed to verify the signature using provider 'cosign': no matching signatures were found for ";
    assert!(message.starts_with(expected), "{message}");

    ours.sign(&registry, "charts/web", &digest).await.unwrap();
    handled(&api, &name).await;
    let object = ready(&api, &name).await;
    let verified = Some(("True", "Succeeded", "verified signature of version 0.3.0"));
    assert_eq!(condition(&object, "SourceVerified"), verified);
    assert!(condition(&object, "BuildFailed").is_none());

    // The version is the same, and yet it is not what is wanted now.
    apply(&world.plane.client(), &chart("theirs")).await.unwrap();
    let object = until(&api, &name, refused).await;
    assert_eq!(
        condition(&object, "Ready").map(|(status, reason, _)| (status, reason)),
        Some(("False", "VerificationError"))
    );
    assert_eq!(revision(&object), "0.3.0", "what was stored stays");
    apply(&world.plane.client(), &chart("ours")).await.unwrap();
    let object = ready(&api, &name).await;
    assert_eq!(condition(&object, "SourceVerified"), verified);
}
