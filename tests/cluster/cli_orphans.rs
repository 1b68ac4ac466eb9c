//! `windlass orphans`: what nothing delivers, and what was set by hand in what is delivered.

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;

use crate::cli::Windlass;
use crate::helm::{self, DEPLOYMENT, chart};
use crate::world::{Test, config_map, deployment, run};

/// Creates something as a person does.
async fn by_hand(test: &Test, manager: &str, object: &Value) -> Result<()> {
    let (api_version, kind) = (&object["apiVersion"], &object["kind"]);
    let api = test.objects(
        api_version.as_str().context("a version")?,
        kind.as_str().context("a kind")?,
    );
    let name = object["metadata"]["name"].as_str().context("a name")?;
    let patch = Patch::Apply(object);
    api.patch(name, &PatchParams::apply(manager).force(), &patch)
        .await?;
    Ok(())
}

#[test]
fn what_nothing_delivers_is_listed_with_its_maker() {
    run("cli-orphans", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "1")),
            ("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1)),
        ])?;
        test.deliver(&repository, json!({"prune": false})).await?;
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
        by_hand(&test, "kubectl", &map("own")).await?;
        by_hand(&test, "vault-operator", &map("made")).await?;
        by_hand(
            &test,
            "kubectl-create",
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "data": {"a": "YQ=="}}),
        )
        .await?;
        let said = windlass.run(&["orphans"], 0).await?;
        for line in [
            format!("ConfigMap/{ns}/own "),
            format!("Secret/{ns}/password "),
            "made by hand; nothing else has its content\n".to_owned(),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        // ReplicaSets and Pods of what is delivered are owned; every namespace has an account and the authority's certificate.
        for other in [
            "/a ",
            "/web",
            "made by a controller",
            "kube-root-ca.crt",
            "/default ",
            "Event",
        ] {
            ensure!(!said.contains(other), "{other} is in\n{said}");
        }
        windlass.run(&["orphans", "--exit-code"], 5).await?;
        windlass
            .run(&["orphans", "deployments", "--exit-code"], 0)
            .await?;
        let said = windlass.run(&["orphans", "cm", "--all", "-o", "json"], 0).await?;
        let json = said
            .rsplit_once(']')
            .map(|(list, _)| format!("{list}]"))
            .context("a list")?;
        let found: Vec<Value> = serde_json::from_str(&json)?;
        let makers: Vec<_> = found
            .iter()
            .map(|row| (&row["objects"][0]["name"], &row["maker"]))
            .collect();
        ensure!(
            makers.contains(&(&json!("own"), &json!("person")))
                && makers.contains(&(&json!("made"), &json!("controller")))
                && makers.contains(&(&json!("kube-root-ca.crt"), &json!("kubernetes"))),
            "{makers:?}"
        );
        let said = windlass.run(&["orphans", "nothings"], 2).await?;
        ensure!(said.contains("the cluster has no kind \"nothings\""), "{said}");

        // What left the folder without being pruned.
        let revision = test.push(&repository, &[Change::delete("deploy/a.yaml")]).await?;
        test.ready("app", &revision).await?;
        let said = windlass.run(&["orphans"], 0).await?;
        ensure!(
            said.contains(&format!("Kustomization/{ns}/app does not list it any more")),
            "{said}"
        );
        test.delete_kustomization("app").await?;
        let said = windlass.run(&["orphans"], 0).await?;
        let message = format!("its labels name Kustomization/{ns}/app, which this cluster does not have");
        ensure!(said.contains(&message), "{said}");
        Ok(())
    });
}

#[test]
fn fields_that_were_set_by_hand_are_listed() {
    run("cli-orphans-fields", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let said = windlass.run(&["orphans", "--fields"], 0).await?;
        ensure!(said.starts_with("0 fields of delivered objects"), "{said}");
        // A field of its own stays: no one else says what it should be.
        let edited = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"more": "x"}});
        by_hand(&test, "k9s", &edited).await?;
        let said = windlass.run(&["orphans", "--fields", "--exit-code"], 5).await?;
        ensure!(
            said.contains(&format!("ConfigMap/{ns}/a  .data.more  k9s ")),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn releases_of_helm_release_are_delivered_and_those_of_helm_are_not() {
    helm::run("cli-orphans-helm", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.test.namespace;
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", DEPLOYMENT)])?)
            .await?;
        test.test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let said = windlass.run(&["orphans"], 0).await?;
        ensure!(
            !said.contains("release ") && !said.contains("Deployment/") && !said.contains("Secret/"),
            "{said}"
        );
        let own = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "own", "annotations": {"meta.helm.sh/release-name": "own", "meta.helm.sh/release-namespace": ns}},
        });
        by_hand(&test.test, "helm", &own).await?;
        let said = windlass.run(&["orphans"], 0).await?;
        ensure!(
            said.contains(&format!("release {ns}/own")) && said.contains("no HelmRelease has it; 1 object"),
            "{said}"
        );
        test.delete().await
    });
}

#[test]
fn the_whole_cluster_is_looked_at_without_a_namespace() {
    run("cli-orphans-all", |test| async move {
        let windlass = Windlass { test: &test };
        let kubeconfig = test.world.control_plane.kubeconfig_path().display().to_string();
        let name = format!("{}-class", test.namespace);
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7});
        let (classes, _) = objects::api_of(&test.client, &class)?;
        classes
            .patch(&name, &PatchParams::apply("kubectl"), &Patch::Apply(&class))
            .await?;
        let said = windlass
            .run_as_typed(&["orphans", "--kubeconfig", &kubeconfig], 0)
            .await?;
        ensure!(said.contains(&format!("PriorityClass/{name} ")), "{said}");
        ensure!(
            !said.contains("PriorityClass/system-")
                && !said.contains("FlowSchema/")
                && !said.contains("ClusterRole/system:"),
            "{said}"
        );
        classes.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    });
}

#[test]
fn who_changed_what_is_listed_by_time() {
    run("cli-audit", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let edited = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"more": "x"}});
        by_hand(&test, "k9s", &edited).await?;
        let said = windlass.run(&["audit"], 0).await?;
        let hand = format!("Hand  ConfigMap/{ns}/a");
        let git = format!("Git   Kustomization/{ns}/app");
        ensure!(
            said.contains(&hand) && said.contains("k9s  .data.more\n") && said.contains(&git),
            "{said}"
        );
        let revision = format!("Succeeded main@sha1:{}", &repository.resolve("main")?[..8]);
        ensure!(said.contains(&revision), "{said}");
        let said = windlass.run(&["audit", "--by-hand", "-o", "csv"], 0).await?;
        ensure!(
            said.starts_with("at,way,object,by,what\r\n") && said.lines().count() == 2,
            "{said}"
        );
        let said = windlass
            .run(&["audit", "--since", "2099-01-01T00:00:00Z"], 0)
            .await?;
        ensure!(said == "nothing found\n", "{said}");
        test.delete_kustomization("app").await
    });
}
