//! Deleting what left, and only what is ours.

use std::time::Duration;

use kube::api::DeleteParams;
use kube_apply::{SkipReason, inventory};
use manifest::ObjectId;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn what_left_the_inventory_is_deleted_with_one_request_each() {
    let f = Fixture::new("prune").await;
    let mut drifts = f.engine.managed().subscribe();
    let old = [
        f.config_map("a", "1"),
        f.config_map("b", "1"),
        f.deployment("web", "nginx"),
        f.config_map("gone", "1"),
    ];
    f.apply(&old).await;
    f.engine
        .managed()
        .forget_object(&id("ConfigMap", &f.namespace, "gone"));
    f.config_maps()
        .delete("gone", &DeleteParams::default())
        .await
        .unwrap();
    let left = inventory::diff(&f.inventory(&old).await, &f.inventory(&old[..1]).await);
    f.apply(&old[..1]).await;
    f.requests();
    let pruned = f.engine.prune(&f.owner, &left, &Default::default()).await;
    assert!(
        pruned.failed.is_empty() && pruned.skipped.is_empty(),
        "{pruned:?}"
    );
    let deleted: Vec<_> = pruned
        .deleted
        .iter()
        .map(|id| format!("{}/{}", id.kind, id.name))
        .collect();
    assert_eq!(deleted, ["Deployment/web", "ConfigMap/gone", "ConfigMap/b"]);
    let requests = f.requests();
    assert!(
        requests.contains(&"DELETE b".to_owned()) && !requests.contains(&"GET b".to_owned()),
        "{requests:?}"
    );
    f.engine
        .wait_terminated(&left, Duration::from_secs(30))
        .await
        .unwrap();
    assert!(f.config_maps().get_opt("b").await.unwrap().is_none());
    assert!(f.config_maps().get_opt("a").await.unwrap().is_some());
    use futures::StreamExt as _;
    assert_eq!(futures::poll!(drifts.next()), std::task::Poll::Pending);
}

#[tokio::test]
async fn objects_that_ask_to_stay_or_belong_to_another_owner_stay() {
    let f = Fixture::new("stay").await;
    let annotated = |name: &str, key: &str, value: &str| {
        let mut map = f.config_map(name, "1");
        map["metadata"]["annotations"] = json!({format!("kustomize.toolkit.fluxcd.io/{key}"): value});
        map
    };
    let set = [
        annotated("keep", "prune", "disabled"),
        f.config_map("moved", "1"),
        f.config_map("unlabelled", "1"),
        f.config_map("shielded", "1"),
    ];
    f.apply(&set).await;
    f.another("other")
        .await
        .apply(&[f.config_map("moved", "1")])
        .await;
    let unlabel = json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": null, "kustomize.toolkit.fluxcd.io/namespace": null}}});
    f.edit(&f.config_maps(), "unlabelled", "kubectl-edit", unlabel)
        .await;
    let shield = json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}});
    f.edit(&f.config_maps(), "shielded", "kubectl-edit", shield).await;

    // At once: whatever the watch has told until now, the decision is made on the object as it is.
    let pruned = f
        .engine
        .prune(&f.owner, &f.inventory(&set).await.sorted(), &Default::default())
        .await;
    assert!(
        pruned.deleted.is_empty() && pruned.failed.is_empty(),
        "{pruned:?}"
    );
    let mut skipped: Vec<_> = pruned
        .skipped
        .into_iter()
        .map(|(id, reason)| (id.name, reason))
        .collect();
    skipped.sort_by(|a, b| a.0.cmp(&b.0));
    let other = kube_apply::Owner {
        name: "other".into(),
        ..f.owner.clone()
    };
    assert_eq!(
        skipped,
        [
            ("keep".to_owned(), SkipReason::PruneDisabled),
            ("moved".to_owned(), SkipReason::OwnedBy(other)),
            ("shielded".to_owned(), SkipReason::Excluded),
            ("unlabelled".to_owned(), SkipReason::NotOwned),
        ]
    );
}

#[tokio::test]
async fn kinds_and_versions_that_are_gone_do_not_block_a_prune() {
    let f = Fixture::new("gone").await;
    f.apply(&[f.deployment("web", "nginx")]).await;
    let old_version = (id("Deployment", &f.namespace, "web"), "v1beta1".to_owned());
    let old_version = (
        ObjectId {
            group: "apps".into(),
            ..old_version.0
        },
        old_version.1,
    );
    let no_kind = (
        ObjectId {
            group: "no.such.group".into(),
            ..id("Widget", &f.namespace, "w")
        },
        "v1".to_owned(),
    );
    let pruned = f
        .engine
        .prune(&f.owner, &[old_version, no_kind], &Default::default())
        .await;
    assert_eq!(pruned.deleted.len(), 2, "{pruned:?}");
}

#[tokio::test]
async fn objects_held_by_a_finalizer_are_told_when_time_is_up() {
    let f = Fixture::new("held").await;
    let mut held = f.config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let set = [held, f.config_map("free", "1")];
    f.apply(&set).await;
    let ids = f.inventory(&set).await.sorted();
    let pruned = f.engine.prune(&f.owner, &ids, &Default::default()).await;
    assert_eq!(pruned.deleted.len(), 2);
    let left = f
        .engine
        .wait_terminated(&ids, Duration::from_millis(500))
        .await
        .unwrap_err();
    assert_eq!(left, [id("ConfigMap", &f.namespace, "held")]);
    f.edit(
        &f.config_maps(),
        "held",
        "kubectl-edit",
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    f.engine
        .wait_terminated(&ids, Duration::from_secs(10))
        .await
        .unwrap();
}

fn id(kind: &str, namespace: &str, name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    }
}
