//! Tests of definitions and namespaces that someone deletes while they are managed.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::{wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, run};

/// A kind of this test's own.
struct Widgets {
    group: String,
}

impl Widgets {
    fn from_test(test: &Test) -> Self {
        Self {
            group: format!("{}.example.com", test.namespace),
        }
    }

    fn name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    fn definition(&self) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": self.name()},
            "spec": {"group": self.group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
        })
    }

    fn widget(&self, namespace: &str, name: &str) -> String {
        let metadata = json!({"name": name, "namespace": namespace});
        json!({"apiVersion": format!("{}/v1", self.group), "kind": "Widget", "metadata": metadata})
            .to_string()
    }

    /// Defines the kind beside what is delivered, and waits until it is served.
    async fn define(&self, test: &Test) -> Result<()> {
        test.apply(&self.definition()).await?;
        let is_established = |crd: &CustomResourceDefinition| {
            let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
        };
        wait_for(&definitions(test), &self.name(), is_established, PATIENCE).await?;
        Ok(())
    }
}

fn definitions(test: &Test) -> Api<CustomResourceDefinition> {
    Api::all(test.client.clone())
}

async fn delete_definition(test: &Test, widgets: &Widgets) -> Result<()> {
    let definitions = definitions(test);
    definitions
        .delete(&widgets.name(), &DeleteParams::default())
        .await?;
    wait_until_gone(&definitions, &widgets.name(), PATIENCE).await
}

#[test]
fn objects_of_a_definition_that_is_gone_are_pruned_and_let_their_kustomization_go() {
    run("vanished-definition", |test| async move {
        let (ns, widgets) = (&test.namespace, Widgets::from_test(&test));
        widgets.define(&test).await?;
        let files: Vec<_> = (0..20)
            .map(|number| {
                (
                    format!("deploy/{number}.yaml"),
                    widgets.widget(ns, &format!("w{number}")),
                )
            })
            .chain([("deploy/keep.yaml".to_owned(), config_map(ns, "keep", "1"))])
            .collect();
        let repository = test.repository(&files)?;
        // No drift run of its own is to find the definition missing before the prune does.
        test.deliver(&repository, json!({"retryInterval": "1h"})).await?;
        let suspend = |yes: bool| Patch::Merge(json!({"spec": {"suspend": yes}}));
        let kustomizations = test.kustomizations();
        kustomizations
            .patch("app", &PatchParams::default(), &suspend(true))
            .await?;
        delete_definition(&test, &widgets).await?;
        let changes: Vec<_> = (0..20)
            .map(|number| Change::delete(&format!("deploy/{number}.yaml")))
            .collect();
        let revision = test.push(&repository, &changes).await?;
        kustomizations
            .patch("app", &PatchParams::default(), &suspend(false))
            .await?;
        test.ready("app", &revision).await?;

        // And the other way: with the objects still in the source, its end must not hang.
        widgets.define(&test).await?;
        let repository = test.world.git.create_repository(&format!("{ns}-two"))?;
        crate::world::commit(&repository, &[("deploy/w.yaml", widgets.widget(ns, "w"))])?;
        test.apply(&objects::git_repository(ns, "two", repository.url(), "main"))
            .await?;
        let two = objects::kustomization(ns, "two", ("GitRepository", "two"), "./deploy");
        test.apply(&objects::with_spec(two, json!({"retryInterval": "2s"})))
            .await?;
        wait_for(&test.kustomizations(), "two", objects::is_ready, PATIENCE).await?;
        delete_definition(&test, &widgets).await?;
        test.delete_kustomization("two").await
    });
}

#[test]
fn a_namespace_that_somebody_deletes_is_made_again_when_it_is_gone() {
    run("vanished-namespace", |test| async move {
        let inner = format!("{}-inner", test.namespace);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}});
        let repository = test.repository(&[
            ("deploy/a.yaml", namespace.to_string()),
            ("deploy/b.yaml", config_map(&inner, "a", "1")),
            ("deploy/c.yaml", config_map(&inner, "b", "1")),
        ])?;
        let object = test
            .deliver(&repository, json!({"retryInterval": "1h", "interval": "1h"}))
            .await?;
        let namespaces: Api<Namespace> = Api::all(test.client.clone());
        let before = namespaces.get(&inner).await?.metadata.uid;
        namespaces.delete(&inner, &DeleteParams::default()).await?;
        let is_new = |namespace: &Namespace| namespace.metadata.uid != before;
        wait_for(&namespaces, &inner, is_new, PATIENCE).await?;
        let maps = objects::api(&test.client, "v1", "ConfigMap", &inner);
        for name in ["a", "b"] {
            wait_for(&maps, name, |_: &DynamicObject| true, PATIENCE).await?;
        }
        let revision = object.data["status"]["lastAppliedRevision"]
            .as_str()
            .unwrap_or_default();
        test.ready("app", revision).await?;
        Ok(())
    });
}

#[test]
fn a_definition_that_somebody_deletes_is_made_again_with_its_objects() {
    run("vanished-crd", |test| async move {
        let (ns, widgets) = (&test.namespace, Widgets::from_test(&test));
        let repository = test.repository(&[
            ("deploy/crd.yaml", widgets.definition().to_string()),
            ("deploy/w.yaml", widgets.widget(ns, "w")),
        ])?;
        let object = test
            .deliver(&repository, json!({"retryInterval": "1h", "interval": "1h"}))
            .await?;
        let before = definitions(&test).get(&widgets.name()).await?.metadata.uid;
        definitions(&test)
            .delete(&widgets.name(), &DeleteParams::default())
            .await?;
        let is_new = |definition: &CustomResourceDefinition| definition.metadata.uid != before;
        wait_for(&definitions(&test), &widgets.name(), is_new, PATIENCE).await?;
        let api = test.objects(&format!("{}/v1", widgets.group), "Widget");
        // The kind itself is served a moment after its definition is there.
        let there = async {
            while !matches!(api.get_opt("w").await, Ok(Some(_))) {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        ensure!(
            tokio::time::timeout(PATIENCE, there).await.is_ok(),
            "the widget is not made again"
        );
        let revision = object.data["status"]["lastAppliedRevision"]
            .as_str()
            .unwrap_or_default();
        test.ready("app", revision).await?;
        Ok(())
    });
}

#[test]
fn a_namespace_of_somebody_else_is_waited_for_until_it_is_back() {
    run("vanished-foreign", |test| async move {
        let inner = format!("{}-inner", test.namespace);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}});
        test.apply(&namespace).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(&inner, "a", "1"))])?;
        test.deliver(&repository, json!({"retryInterval": "1h", "interval": "1h"}))
            .await?;
        let namespaces: Api<Namespace> = Api::all(test.client.clone());
        namespaces.delete(&inner, &DeleteParams::default()).await?;
        wait_until_gone(&namespaces, &inner, PATIENCE).await?;
        let failed = |object: &DynamicObject| {
            objects::condition(object, "Ready").is_some_and(|(status, ..)| status == "False")
        };
        wait_for(&test.kustomizations(), "app", failed, PATIENCE).await?;
        test.apply(&namespace).await?;
        let maps = objects::api(&test.client, "v1", "ConfigMap", &inner);
        wait_for(&maps, "a", |_: &DynamicObject| true, PATIENCE).await?;
        wait_for(&test.kustomizations(), "app", objects::is_ready, PATIENCE).await?;
        Ok(())
    });
}
