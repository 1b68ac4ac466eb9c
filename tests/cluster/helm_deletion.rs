//! The end of HelmReleases: uninstalled, or let go when no one can uninstall; and what tenants may.

use anyhow::ensure;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testkit::objects;

use crate::helm::{chart, run};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[test]
fn a_deleted_object_takes_its_release_along_unless_it_is_suspended() {
    run("helm-delete", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        test.delete().await?;
        test.config_map_gone("web-map").await?;
        ensure!(test.records("web").await?.is_empty());

        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
        test.releases()
            .patch("web", &PatchParams::default(), &suspend)
            .await?;
        test.delete().await?;
        test.map_has("value", "default").await?;
        ensure!(test.records("web").await?.len() == 1);

        // Whoever comes back takes over what is there.
        test.apply(&test.release(json!({"values": {"value": "again"}})))
            .await?;
        test.ready().await?;
        test.map_has("value", "again").await?;
        test.delete().await
    });
}

#[test]
fn an_object_without_release_source_or_account_does_not_hang() {
    run("helm-delete-early", |test| async move {
        // Nothing was released: the source is not there.
        test.apply(&test.release(json!({}))).await?;
        test.refused("ArtifactFailed").await?;
        test.delete().await?;

        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let account = tenant(&test, true).await?;
        test.apply(&test.release(json!({"serviceAccountName": account})))
            .await?;
        test.ready().await?;
        let accounts = test.objects("v1", "ServiceAccount");
        accounts.delete(&account, &DeleteParams::default()).await?;
        test.delete().await?;
        test.map_has("value", "default").await
    });
}

#[test]
fn a_release_is_made_with_the_rights_of_its_account() {
    run("helm-tenant", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let account = tenant(&test, false).await?;
        test.apply(&test.release(json!({"serviceAccountName": account})))
            .await?;
        let denied = |object: &_| {
            let ready = objects::condition(object, "Ready");
            ready.is_some_and(|(status, _, message)| status == "False" && message.contains("forbidden"))
        };
        test.when(denied).await?;
        test.no_config_map("web-map").await?;
        allow(&test, &account).await?;
        objects::poke(&test.releases(), "web").await?;
        test.ready().await?;
        test.delete().await
    });
}

/// Makes an account; with the rights of an administrator of the namespace or none.
async fn tenant(test: &crate::world::Test, may: bool) -> anyhow::Result<String> {
    let ns = &test.namespace;
    test.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant", "namespace": ns}}))
        .await?;
    if may {
        allow(test, "tenant").await?;
    }
    Ok("tenant".to_owned())
}

async fn allow(test: &crate::world::Test, account: &str) -> anyhow::Result<()> {
    let ns = &test.namespace;
    test.apply(&json!({
        "apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "tenant", "namespace": ns},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ns}],
    }))
    .await
}
