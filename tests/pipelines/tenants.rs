//! What a hostile pipeline tries: to look into namespaces and to write into repositories that are not its team's.

use anyhow::ensure;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{apply, condition};

use crate::world::{DELIVERY, app, play, release_of, waits};

#[test]
fn a_pipeline_sees_no_namespace_that_its_account_may_not_read() {
    play("spy", async |scene| {
        let [own] = scene.targets(["own"]).await?;
        let hidden = scene.world.control_plane.namespace("hidden").await?;
        let team = &scene.namespace;
        scene
            .fleet(&[
                ("own", app(&own, team, "v1")),
                ("hidden", app(&hidden, team, "secret-7")),
            ])
            .await?;
        let kind = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
        scene
            .has(kind, &hidden, "/spec/images/0/newTag", "secret-7")
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": hidden}]},
            {"name": "next", "targets": [{"namespace": own}]},
            {"name": "other", "targets": [{"namespace": "no-such-namespace"}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        let pipeline = scene
            .wait(|pipeline| condition(pipeline, "Ready").is_some())
            .await?;
        let (_, _, message) = condition(&pipeline, "Ready").unwrap_or_default();
        let refused = |namespace: &str| {
            format!(
                "{namespace}: the ServiceAccount {team}/promoter must be allowed to get kustomizations 'shop' in namespace {namespace}"
            )
        };
        // The same words, whether there is something or not.
        let expected = format!(
            "dev: {}; other: {}",
            refused(&hidden),
            refused("no-such-namespace")
        );
        ensure!(message == expected, "{message}");
        ensure!(!serde_json::to_string(&pipeline)?.contains("secret-7"));
        ensure!(release_of(&pipeline, 0).is_none());
        Ok(())
    });
}

#[test]
fn a_pipeline_writes_into_no_repository_of_others() {
    play("thief", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        // Another team, which may read these namespaces, and whose pipeline names them.
        let other = scene.world.control_plane.namespace("other").await?;
        for namespace in [&dev, &production] {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "other", "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "promoter"},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": other}],
            });
            apply(&scene.client, &binding).await?;
        }
        let pipeline = json!({
            "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": other},
            "spec": {
                "apps": [{"kind": "Kustomization", "name": "shop"}],
                "environments": [
                    {"name": "dev", "targets": [{"namespace": dev}]},
                    {"name": "production", "targets": [{"namespace": production}]},
                ],
            },
        });
        apply(&scene.client, &pipeline).await?;
        let api = testkit::objects::api(&scene.client, DELIVERY, "Pipeline", &other);
        let patience = crate::world::PATIENCE;
        testkit::wait_for(
            &api,
            "shop",
            |pipeline| release_of(pipeline, 1) == Some(1),
            patience,
        )
        .await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let said = format!(
            "{production}: the GitRepository {team}/fleet is in another namespace: set .spec.repositoryRef, or have its owner \
             list the namespace '{other}' in the annotation windlass.dev/access-from"
        );
        testkit::wait_for(
            &api,
            "shop",
            |pipeline| waits(pipeline, 1) == [said.clone()],
            patience,
        )
        .await?;
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains("v1 # of the day"), "{file}");
        Ok(())
    });
}

#[test]
fn a_token_goes_to_no_forge_that_the_owner_of_a_repository_chose() {
    play("token", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        // The repository's owner lets others push, and could point it to a server that reads their tokens.
        let source = testkit::objects::git_repository(team, "fleet", repository.url(), "main");
        let mut source = testkit::objects::with_spec(source, json!({"interval": "1s"}));
        source["metadata"]["annotations"] = json!({"windlass.dev/access-from": "*"});
        apply(&scene.client, &source).await?;
        let other = scene.world.control_plane.namespace("victim").await?;
        for namespace in [&dev, &production] {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "other", "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "promoter"},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": other}],
            });
            apply(&scene.client, &binding).await?;
        }
        let policy = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "review", "namespace": other},
            "spec": {"type": "PullRequest", "pullRequest": {"forge": {"provider": "gitea", "secretRef": {"name": "token"}}}},
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": other},
            "stringData": {"token": "the-victims-token"},
        });
        let pipeline = json!({
            "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": other},
            "spec": {
                "apps": [{"kind": "Kustomization", "name": "shop"}],
                "changePolicyRef": {"name": "review"},
                "environments": [
                    {"name": "dev", "targets": [{"namespace": dev}]},
                    {"name": "production", "targets": [{"namespace": production}]},
                ],
            },
        });
        for object in [&policy, &secret, &pipeline] {
            apply(&scene.client, object).await?;
        }
        let api = testkit::objects::api(&scene.client, DELIVERY, "Pipeline", &other);
        let patience = crate::world::PATIENCE;
        testkit::wait_for(
            &api,
            "shop",
            |pipeline| release_of(pipeline, 1) == Some(1),
            patience,
        )
        .await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let said = format!(
            "{production}: ChangePolicy 'review': spec.pullRequest.forge.url is required, as the GitRepository is in another \
             namespace"
        );
        testkit::wait_for(
            &api,
            "shop",
            |pipeline| waits(pipeline, 1) == [said.clone()],
            patience,
        )
        .await?;
        Ok(())
    });
}

#[test]
fn files_that_fill_the_memory_are_refused() {
    play("bulky", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        // Below the folder, and not among what is applied.
        let list = Change::write("production/kustomization.yaml", "resources: [shop.yaml]\n");
        let bulk = format!("name: shop\ntext: {}\n", "x".repeat(2 << 20));
        let mut changes = vec![list, Change::write("dev/shop.yaml", app(&dev, team, "v2"))];
        changes.extend(
            (0..17).map(|number| Change::write(&format!("production/bulk/{number}.yaml"), bulk.clone())),
        );
        repository.commit("main", "bulk", &changes)?;
        let said = format!(
            "{production}: the files below 'production' that name the applications are larger than 33554432 bytes together"
        );
        scene
            .wait(|pipeline| waits(pipeline, 1) == [said.clone()])
            .await?;
        Ok(())
    });
}
