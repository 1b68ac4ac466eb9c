//! Tests of builds, and of builds that can be skipped: results by content, failed ones too, and variables put
//! into them.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::json;
use testkit::Controller;
use testkit::git::Change;
use testkit::objects::{condition, is_ready, text};
use testkit::wait_for;

use crate::world::{PATIENCE, Test, config_map, run};

/// Controllers of the test's own, which tell of each build.
struct Own {
    _source: Controller,
    apply: Controller,
}

impl Own {
    async fn start(test: &Test) -> Result<Self> {
        let mut options = test.own_shard();
        options.flags.push("--log-level=debug".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, test.own_shard()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, options).await?;
        Ok(Self {
            _source: source,
            apply,
        })
    }

    /// How often kustomize ran.
    fn builds(&self) -> usize {
        self.apply.log().matches("\"msg\":\"built\"").count()
    }
}

#[test]
fn a_commit_costs_a_build_only_if_it_touches_what_was_read() {
    run("builds", |test| async move {
        let ns = &test.namespace;
        let own = Own::start(&test).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let git = testkit::objects::git_repository(ns, "app", repository.url(), "main");
        test.apply(&test.in_own_shard(git)).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        ensure!(own.builds() == 1, "{} builds", own.builds());

        for path in ["elsewhere/file", "deploy/README.md"] {
            let revision = test.push(&repository, &[Change::write(path, "text")]).await?;
            test.ready("app", &revision).await?;
            ensure!(own.builds() == 1, "{path}: {} builds", own.builds());
        }

        // A broken manifest is built once, whatever else is committed meanwhile.
        let broken = Change::write("deploy/b.yaml", "a: b: c\n");
        let revision = test.push(&repository, &[broken]).await?;
        let first = failed_with(&test, &revision).await?;
        ensure!(first.contains("deploy/b.yaml:1"), "{first}");
        ensure!(own.builds() == 2, "{} builds", own.builds());
        let elsewhere = Change::write("elsewhere/file", "more");
        let revision = test.push(&repository, &[elsewhere]).await?;
        let second = failed_with(&test, &revision).await?;
        ensure!(first == second, "{second}");
        ensure!(own.builds() == 2, "{} builds", own.builds());

        // What was there before is known still.
        let revision = test.push(&repository, &[Change::delete("deploy/b.yaml")]).await?;
        test.ready("app", &revision).await?;
        ensure!(own.builds() == 2, "{} builds", own.builds());
        // And what was looked for in vain counts when it comes.
        let kustomization = Change::write(
            "deploy/kustomization.yaml",
            "resources: [a.yaml]\nnamePrefix: x-\n",
        );
        let revision = test.push(&repository, &[kustomization]).await?;
        test.ready("app", &revision).await?;
        test.config_map_has("x-a", "key", "1").await?;
        ensure!(own.builds() == 3, "{} builds", own.builds());
        test.delete_kustomization("app").await
    });
}

/// Waits until the build of the revision has failed; returns the message.
async fn failed_with(test: &Test, revision: &str) -> Result<String> {
    let failed = |object: &DynamicObject| {
        text(object, "/status/lastAttemptedRevision") == revision
            && condition(object, "Ready")
                .is_some_and(|(status, reason, _)| status == "False" && reason == "BuildFailed")
    };
    let object = wait_for(&test.kustomizations(), "app", failed, PATIENCE).await?;
    Ok(condition(&object, "Ready")
        .map(|(_, _, message)| message.to_owned())
        .unwrap_or_default())
}

#[test]
fn kustomizations_that_differ_only_in_their_variables_share_a_build() {
    run("shared-build", |test| async move {
        let ns = &test.namespace;
        let own = Own::start(&test).await?;
        let repository =
            test.repository(&[("deploy/a.yaml", config_map(ns, "${tenant}-map", "${tenant}"))])?;
        let git = testkit::objects::git_repository(ns, "app", repository.url(), "main");
        test.apply(&test.in_own_shard(git)).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        for tenant in ["one", "two", "three"] {
            let spec = json!({"postBuild": {"substitute": {"tenant": tenant}}});
            test.apply(&test.in_own_shard(test.kustomization(tenant, spec)))
                .await?;
            test.ready(tenant, &revision).await?;
            test.config_map_has(&format!("{tenant}-map"), "key", tenant)
                .await?;
        }
        ensure!(own.builds() == 1, "{} builds", own.builds());
        for tenant in ["one", "two", "three"] {
            test.delete_kustomization(tenant).await?;
        }
        Ok(())
    });
}

#[test]
fn variables_are_followed_as_they_change() {
    run("variables", |test| async move {
        let ns = &test.namespace;
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: out, namespace: {ns}}}\ndata:\n  inline: x${{inline}}\n  \
             map: x${{map}}\n  secret: x${{secret}}\n  late: x${{late:=default}}\n"
        );
        let untouched = map.replace(
            "name: out,",
            "name: raw, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled},",
        );
        let repository = test.repository(&[("deploy/a.yaml", map), ("deploy/b.yaml", untouched)])?;
        let spec = json!({"postBuild": {
            "substitute": {"inline": "1"},
            "substituteFrom": [
                {"kind": "ConfigMap", "name": "values"}, {"kind": "Secret", "name": "values"},
                {"kind": "ConfigMap", "name": "late", "optional": true},
            ],
        }});
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", spec)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "BuildFailed")
            .await?;
        ensure!(
            message
                == "post build failed for 'ConfigMap.v1.[noGrp]/out': substitute from 'ConfigMap/values' error: \
                    configmaps \"values\" not found",
            "{message}"
        );

        // Nothing but the watch wakes it: the interval and the retry are far away.
        let maps = test.config_maps();
        let secrets: Api<Secret> = Api::namespaced(test.client.clone(), ns);
        let values = |value: &str| json!({"metadata": {"name": "values"}, "data": {"map": value, "inline": "covered"}});
        let secret = json!({"metadata": {"name": "values"}, "stringData": {"secret": "2"}});
        secrets
            .create(&PostParams::default(), &serde_json::from_value(secret)?)
            .await?;
        maps.create(&PostParams::default(), &serde_json::from_value(values("1"))?)
            .await?;
        let out = test.config_map_has("out", "map", "x1").await?;
        let data = out.data.unwrap_or_default();
        ensure!(
            data["inline"] == "x1" && data["secret"] == "x2" && data["late"] == "xdefault",
            "{data:?}"
        );
        test.config_map_has("raw", "map", "x${map}").await?;

        maps.patch("values", &PatchParams::default(), &Patch::Merge(values("2")))
            .await?;
        test.config_map_has("out", "map", "x2").await?;
        let secret = json!({"stringData": {"secret": "3"}});
        secrets
            .patch("values", &PatchParams::default(), &Patch::Merge(secret))
            .await?;
        test.config_map_has("out", "secret", "x3").await?;
        let late: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "late"}, "data": {"late": "4"}}))?;
        maps.create(&PostParams::default(), &late).await?;
        test.config_map_has("out", "late", "x4").await?;

        // What is touched and says the same starts a run that changes nothing; what is gone counts.
        let touch = json!({"metadata": {"labels": {"touched": "yes"}}});
        maps.patch("values", &PatchParams::default(), &Patch::Merge(touch))
            .await?;
        maps.delete("late", &DeleteParams::default()).await?;
        test.config_map_has("out", "late", "xdefault").await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn a_variable_without_a_value_is_refused() {
    run("strict", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "x${gone}"))])?;
        test.git_source(&repository).await?;
        let spec = json!({"postBuild": {"substitute": {"other": "1"}}});
        test.apply(&test.kustomization("app", spec)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "BuildFailed")
            .await?;
        ensure!(
            message.contains("variable not set (strict mode): \"gone\""),
            "{message}"
        );
        let spec = json!({"spec": {"postBuild": {"substitute": {"gone": "here"}}}});
        test.kustomizations()
            .patch("app", &PatchParams::default(), &Patch::Merge(spec))
            .await?;
        test.config_map_has("a", "key", "xhere").await.map(drop)
    });
}
