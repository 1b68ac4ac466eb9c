//! Adopting what kubectl made, and what another controller of the same name made.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn what_kubectl_made_is_adopted_and_its_leftovers_go() {
    let f = Fixture::new("adopt").await;
    let mut by_kubectl = f.config_map("c", "1");
    by_kubectl["data"]["leftover"] = json!("x");
    by_kubectl["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"});
    let made = PatchParams {
        field_manager: Some("kubectl-client-side-apply".into()),
        ..PatchParams::default()
    };
    let object = serde_json::from_value(by_kubectl).unwrap();
    let create = kube::api::PostParams {
        field_manager: made.field_manager.clone(),
        ..Default::default()
    };
    f.config_maps().create(&create, &object).await.unwrap();
    f.edit(&f.config_maps(), "c", "hpa", json!({"data": {"theirs": "y"}}))
        .await;

    let set = [f.config_map("c", "1"), f.config_map("d", "1")];
    assert_eq!(
        f.apply(&set).await,
        ["ConfigMap/c configured", "ConfigMap/d created"]
    );
    let requests: Vec<_> = f
        .requests()
        .into_iter()
        .filter(|request| request.ends_with(" c"))
        .collect();
    assert_eq!(requests, ["DRY c", "GET c", "PATCH c", "APPLY c"]);
    let live = f.config_maps().get("c").await.unwrap();
    assert_eq!(live.data["data"], json!({"key": "1", "theirs": "y"}));
    let annotations = live.metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key("kubectl.kubernetes.io/last-applied-configuration"));
    let managers: Vec<_> = live
        .metadata
        .managed_fields
        .unwrap()
        .into_iter()
        .filter_map(|m| m.manager)
        .collect();
    assert!(
        managers.len() == 2 && managers.contains(&"hpa".into()),
        "{managers:?}"
    );

    f.age(&f.config_maps(), "c").await;
    f.age(&f.config_maps(), "d").await;
    let restarted = f.another(&f.owner.name).await;
    assert_eq!(
        restarted.apply(&set).await,
        ["ConfigMap/c unchanged", "ConfigMap/d unchanged"]
    );
    assert_eq!(restarted.requests().len(), 2);
}

#[tokio::test]
async fn what_kubectl_adds_is_undone_unless_the_object_says_merge() {
    let f = Fixture::new("undo").await;
    let mut merge = f.config_map("merge", "1");
    merge["metadata"]["annotations"] = json!({"kustomize.toolkit.fluxcd.io/ssa": "Merge"});
    let set = [f.config_map("c", "1"), merge];
    f.apply(&set).await;
    let mut drifts = f.engine.managed().subscribe();
    f.edit(
        &f.config_maps(),
        "merge",
        "kubectl-edit",
        json!({"data": {"added": "x"}}),
    )
    .await;
    f.edit(
        &f.config_maps(),
        "c",
        "kubectl-edit",
        json!({"data": {"added": "x"}}),
    )
    .await;
    assert_eq!(crate::fixture::next_drift(&mut drifts).await.object.name, "c");
    assert_eq!(
        f.apply(&set).await,
        ["ConfigMap/c configured", "ConfigMap/merge unchanged"]
    );
    assert_eq!(
        f.config_maps().get("c").await.unwrap().data["data"],
        json!({"key": "1"})
    );
    assert_eq!(
        f.config_maps().get("merge").await.unwrap().data["data"],
        json!({"key": "1", "added": "x"})
    );
}

#[tokio::test]
async fn objects_of_flux_are_taken_over_without_a_write() {
    let f = Fixture::new("flux").await;
    let mut by_flux = f.deployment("web", "nginx");
    by_flux["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = json!("TCP");
    by_flux["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/name": f.owner.name, "kustomize.toolkit.fluxcd.io/namespace": f.owner.namespace});
    by_flux["metadata"]["creationTimestamp"] = json!(null);
    let deployments = f.api("apps/v1", "Deployment", "deployments");
    let params = PatchParams::apply("kustomize-controller").force();
    let uid = deployments
        .patch("web", &params, &Patch::Apply(&by_flux))
        .await
        .unwrap()
        .metadata
        .uid;
    f.age(&deployments, "web").await;
    let set = [f.deployment("web", "nginx"), f.config_map("c", "1")];
    assert_eq!(
        f.apply(&set).await,
        ["ConfigMap/c created", "Deployment/web unchanged"]
    );
    assert!(!f.requests().contains(&"APPLY web".to_owned()));
    assert_eq!(deployments.get("web").await.unwrap().metadata.uid, uid);
}
