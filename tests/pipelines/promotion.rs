//! From one environment to the next.

use anyhow::ensure;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, apply, condition, field};
use testkit::wait_for;

use crate::world::{DELIVERY, HELM, KUSTOMIZE, PATIENCE, app, play, release, release_of, waits};

#[test]
fn a_release_of_a_chart_goes_through_all_environments() {
    play("promote", async |scene| {
        let [dev, staging, eu, us] = scene.targets(["dev", "staging", "eu", "us"]).await?;
        let team = &scene.namespace;
        let file = |namespace: &str, version: &str, tag: &str| release(namespace, team, version, tag);
        let repository = scene
            .fleet(&[
                ("dev", file(&dev, "1.0.0", "v1")),
                ("staging", file(&staging, "1.0.0", "v1")),
                ("eu", file(&eu, "1.0.0", "v1")),
                ("us", file(&us, "1.0.0", "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "staging", "targets": [{"namespace": staging}], "soak": "1s"},
            {"name": "production", "targets": [{"namespace": eu}, {"namespace": us}]},
        ]);
        scene.pipeline("HelmRelease", environments).await?;
        let first = scene
            .wait(|pipeline| (0..3).all(|at| release_of(pipeline, at) == Some(1)))
            .await?;
        let values = field(&first, "/status/releases/0/values")
            .cloned()
            .unwrap_or_default();
        let carried = json!({"HelmRelease/shop: chart": "1.0.0", "HelmRelease/shop: image h.io/web": "v1"});
        ensure!(values == carried, "{values}");
        ensure!(
            repository.git(&["rev-list", "--count", "main"])?.trim() == "1",
            "nothing was to be done"
        );

        let next = Change::write("dev/shop.yaml", file(&dev, "1.1.0", "v2"));
        repository.commit("main", "by a person", &[next])?;
        let chart = "/status/history/0/chartVersion";
        for namespace in [&dev, &staging, &eu, &us] {
            scene
                .has((HELM, "HelmRelease"), namespace, chart, "1.1.0")
                .await?;
        }
        // All targets have a release before all are healthy with it.
        let done = (
            "True",
            "Succeeded",
            "dev: release 2; staging: release 2; production: release 2",
        );
        scene
            .wait(|pipeline| condition(pipeline, "Ready") == Some(done))
            .await?;
        for (name, namespace) in [("staging", &staging), ("eu", &eu), ("us", &us)] {
            let text = repository.git(&["show", &format!("main:{name}/shop.yaml")])?;
            ensure!(
                text.trim_end() == file(namespace, "1.1.0", "v2").trim_end(),
                "{text}"
            );
        }
        let log = repository.git(&["log", "--reverse", "--format=%an|%s", "main"])?;
        let promoted = |environment: &str| {
            format!("pipeline-controller|Promote release 2 of {team}/shop to {environment}")
        };
        let lines: Vec<_> = log.lines().skip(2).map(str::to_owned).collect();
        ensure!(lines == [promoted("staging"), promoted("production")], "{log}");
        Ok(())
    });
}

#[test]
fn an_environment_that_fails_keeps_the_next_as_it_is_until_it_is_mended() {
    play("fails", async |scene| {
        let [dev, staging, production] = scene.targets(["dev", "staging", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("staging", app(&staging, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "staging", "targets": [{"namespace": staging}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 2) == Some(1)).await?;
        // In staging the objects are forbidden: its ServiceAccount is not there.
        let broken = app(&staging, team, "v1")
            .replace("  prune: true\n", "  prune: true\n  serviceAccountName: nobody\n");
        let next = [
            Change::write("dev/shop.yaml", app(&dev, team, "v2")),
            Change::write("staging/shop.yaml", broken.clone()),
        ];
        repository.commit("main", "by a person", &next)?;
        scene
            .wait(|pipeline| {
                let has_begun = field(pipeline, "/status/environments/1/targets/0/newest") == Some(&json!(2));
                has_begun && waits(pipeline, 2) == ["release 2 is not healthy in staging"]
            })
            .await?;
        let text = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(text.contains("v1 # of the day"), "{text}");
        let mended = Change::write("staging/shop.yaml", app(&staging, team, "v2"));
        repository.commit("main", "mended", &[mended])?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await
    });
}

#[test]
fn a_target_without_a_namespace_is_in_that_of_the_pipeline() {
    play("own", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(team, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        ensure!(field(&pipeline, "/status/environments/1/targets/0/name") == Some(&json!(team)));
        let message = repository.git(&["log", "-1", "--format=%B", "main"])?;
        ensure!(message.contains(&format!("Targets: {team}\n")), "{message}");
        Ok(())
    });
}

#[test]
fn a_value_that_is_not_in_the_files_of_a_target_is_named() {
    play("notfound", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        // The tag of production comes from a patch, in words of its own.
        let patch = "resources: [shop.yaml]\npatches:\n  - target: {kind: Kustomization}\n    patch: |-\n      - op: add\n        \
             path: /spec/images\n        value: [{name: h.io/web, newTag: v1}]\n";
        let bare = app(&production, team, "v1");
        let bare = bare.split("  images:").next().unwrap_or_default().to_owned();
        let files = [
            Change::write("production/kustomization.yaml", patch),
            Change::write("production/shop.yaml", bare),
        ];
        repository.commit("main", "a patch", &files)?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let said = format!(
            "{production}: no file below 'production' has Kustomization/shop: image h.io/web: where the value comes from a base \
             or a variable, mark it with # {{\"$promotion\": \"{team}:shop:production:h.io/web:tag\"}}"
        );
        let pipeline = scene
            .wait(|pipeline| waits(pipeline, 1) == [said.clone()])
            .await?;
        let (status, reason, message) = condition(&pipeline, "Ready").unwrap_or_default();
        ensure!((status, reason) == ("False", "TargetNotReadable"), "{message}");
        ensure!(message == format!("production: {said}"), "{message}");
        Ok(())
    });
}

/// Applications by their labels: those of the first environment, with what comes to them later.
#[test]
fn applications_are_selected_by_their_labels() {
    play("labels", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        // Two applications in one file, one of which has the label.
        let file = |namespace: &str, tag: &str, other: &str| {
            let labelled = |name: &str, tag: &str, label: &str| {
                app(namespace, team, tag).replace(
                    "  name: shop\n",
                    &format!("  name: {name}\n  labels: {{part-of: {label}}}\n"),
                )
            };
            format!(
                "{}---\n{}",
                labelled("web", tag, "shop"),
                labelled("other", "v1", other)
            )
        };
        let repository = scene
            .fleet(&[
                ("dev", file(&dev, "v1", "other")),
                ("production", file(&production, "v1", "other")),
            ])
            .await?;
        let pipeline = |label: &str| {
            let targets = |namespace: &str| json!([{"namespace": namespace}]);
            json!({
                "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": team},
                "spec": {
                    "serviceAccountName": "promoter",
                    "apps": [{"kind": "Kustomization", "selector": {"matchLabels": {"part-of": label}}}],
                    "environments": [
                        {"name": "dev", "targets": targets(&dev)},
                        {"name": "production", "targets": targets(&production)},
                    ],
                },
            })
        };
        apply(&scene.client, &pipeline("nothing")).await?;
        let none = format!("nothing is promoted: no Kustomization in {dev} has the labels part-of=nothing");
        let says = |wanted: &str| {
            let wanted = ("False", "AppsNotFound", wanted.to_owned());
            move |pipeline: &DynamicObject| {
                condition(pipeline, "Ready").is_some_and(|(status, reason, message)| {
                    (status, reason, message) == (wanted.0, wanted.1, wanted.2.as_str())
                })
            }
        };
        scene.wait(says(&none)).await?;
        apply(&scene.client, &pipeline("shop")).await?;
        let first = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let found = |pipeline: &DynamicObject| -> Vec<String> {
            let apps = field(pipeline, "/status/apps").and_then(serde_json::Value::as_array);
            let names = apps.into_iter().flatten().filter_map(|app| app["name"].as_str());
            names.map(str::to_owned).collect()
        };
        ensure!(found(&first) == ["web"], "{:?}", found(&first));
        let deploy =
            |text: String| repository.commit("main", "by a person", &[Change::write("dev/shop.yaml", text)]);
        deploy(file(&dev, "v2", "other"))?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        let text = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(
            text.trim_end() == file(&production, "v2", "other").trim_end(),
            "{text}"
        );

        // Another one gets the label: where it lacks it, it is not changed, as whoever sets labels in dev may have no say there.
        deploy(file(&dev, "v2", "shop"))?;
        scene.wait(|pipeline| found(pipeline) == ["other", "web"]).await?;
        let lacks = format!(
            "production: {production}: Kustomization/other lacks the labels part-of=shop in namespace {production}"
        );
        scene
            .wait(|pipeline| {
                condition(pipeline, "Ready") == Some(("False", "TargetNotReadable", lacks.as_str()))
            })
            .await?;
        let theirs = Change::write("production/shop.yaml", file(&production, "v2", "shop"));
        repository.commit("main", "by a person", &[theirs])?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(3)).await?;

        // An account that may read some of them by name learns nothing of the others.
        let rights = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader", "namespace": dev},
            "rules": [{
                "apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"], "verbs": ["get"],
                "resourceNames": ["web", "other"],
            }],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "reader", "namespace": dev},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": team}],
        });
        let mut narrow = pipeline("shop");
        narrow["metadata"]["name"] = json!("narrow");
        narrow["spec"]["serviceAccountName"] = json!("reader");
        for object in [&rights, &binding, &narrow] {
            apply(&scene.client, object).await?;
        }
        let refused = format!(
            "nothing is promoted: the ServiceAccount {team}/reader must be allowed to get all kustomizations in namespace {dev}"
        );
        let api = objects::api(&scene.client, DELIVERY, "Pipeline", team);
        wait_for(&api, "narrow", says(&refused), PATIENCE).await.map(drop)
    });
}
