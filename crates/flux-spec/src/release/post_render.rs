//! Changes to rendered objects before they are released: the post-renderers of the spec in their order, each
//! a run of kustomize; then the common metadata; then the labels that mark the owner.
//!
//! Labels and annotations are set by kustomize's own transformers, so that what comes out is written as Flux's is.

use std::collections::BTreeMap;

use api::helm::{HelmRelease, KustomizePostRenderer};
use api::meta::HELM_GROUP;
use helm_render::PostRender;
use kube::ResourceExt as _;
use kustomize_build::{Budget, DefaultOrder, LoadRestrictions, MemoryFs, Options, Version};
use serde_json::{Value, json};

/// The file that holds what was rendered.
const INPUT: &str = "helm-output.yaml";

/// The post-renderers of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct PostRenderers {
    /// Kustomizations, each of which builds what the one before gave.
    stages: Vec<Stage>,
}

/// One run of kustomize.
#[derive(Debug, Clone, PartialEq)]
struct Stage {
    kustomization: Value,
    /// The kustomization file with the transformers, beside the input.
    transformers: Option<String>,
}

impl PostRenderers {
    /// Reads them off an object's spec.
    pub fn from_object(object: &HelmRelease) -> Self {
        let kustomize = object.spec.post_renderers.iter();
        let mut stages: Vec<_> = kustomize
            .filter_map(|renderer| renderer.kustomize.as_ref())
            .map(Stage::of_kustomize)
            .collect();
        stages.push(Stage::of_metadata(object));
        Self { stages }
    }
}

impl PostRender for PostRenderers {
    fn run(&self, documents: &str) -> Result<String, String> {
        let mut text = documents.to_owned();
        for stage in &self.stages {
            text = stage.run(&text)?;
        }
        Ok(text)
    }
}

impl Stage {
    fn of_kustomize(renderer: &KustomizePostRenderer) -> Self {
        let patches: Vec<_> = renderer
            .patches
            .iter()
            .map(|patch| match &patch.target {
                Some(target) => json!({"patch": patch.patch, "target": target}),
                None => json!({"patch": patch.patch}),
            })
            .collect();
        let kustomization = json!({"resources": [INPUT], "patches": patches, "images": renderer.images});
        Self {
            kustomization,
            transformers: None,
        }
    }

    /// The labels of the origin come last: they hold whatever the metadata says.
    fn of_metadata(object: &HelmRelease) -> Self {
        let common = object.spec.common_metadata.clone().unwrap_or_default();
        let mut transformers = Vec::new();
        if !common.labels.is_empty() {
            transformers.push(labels("common", &common.labels));
        }
        if !common.annotations.is_empty() {
            let at = json!([{"path": "metadata/annotations", "create": true}]);
            transformers.push(json!({
                "apiVersion": "builtin", "kind": "AnnotationsTransformer", "metadata": {"name": "common"},
                "annotations": common.annotations, "fieldSpecs": at,
            }));
        }
        transformers.push(labels("origin", &origin_labels(object)));
        let documents: Vec<_> = transformers.iter().map(Value::to_string).collect();
        Self {
            kustomization: json!({"resources": [INPUT], "transformers": ["transformers.yaml"]}),
            transformers: Some(documents.join("\n---\n")),
        }
    }

    fn run(&self, documents: &str) -> Result<String, String> {
        let mut files = MemoryFs::default();
        files.insert(INPUT, documents);
        files.insert("kustomization.yaml", self.kustomization.to_string());
        if let Some(transformers) = &self.transformers {
            files.insert("transformers.yaml", transformers.clone());
        }
        let options = Options {
            load_restrictions: LoadRestrictions::None,
            default_order: DefaultOrder::Fifo,
            version: Version("(devel)".to_owned()),
            budget: Some(BUDGET),
            ..Options::default()
        };
        let built =
            kustomize_build::build(&files, "", &options).map_err(|error| error_chain::chain(&error))?;
        Ok(built.to_yaml())
    }
}

/// Memory limit of post-renderers. The manifests that they change are limited before.
const BUDGET: Budget = Budget {
    bytes: 96 << 20,
    large: None,
};

fn labels(name: &str, labels: &BTreeMap<String, String>) -> Value {
    json!({
        "apiVersion": "builtin", "kind": "LabelTransformer", "metadata": {"name": name},
        "labels": labels, "fieldSpecs": [{"path": "metadata/labels", "create": true}],
    })
}

/// The labels by which objects are known to be of a HelmRelease.
pub fn origin_labels(object: &HelmRelease) -> BTreeMap<String, String> {
    [
        (format!("{HELM_GROUP}/name"), object.name_any()),
        (
            format!("{HELM_GROUP}/namespace"),
            object.metadata.namespace.clone().unwrap_or_default(),
        ),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    team: chart
    helm.toolkit.fluxcd.io/name: other
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: example.com/web:1.0.0
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
";

    fn rendered(spec: Value) -> Result<Vec<Value>, String> {
        let mut full = json!({"interval": "1m"});
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object: HelmRelease = serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "apps"}, "spec": full,
        }))
        .unwrap();
        let text = PostRenderers::from_object(&object).run(DEPLOYMENT)?;
        let objects = manifest::read_objects(&text, "rendered").map_err(|error| format!("{error:?}"))?;
        Ok(objects.into_iter().map(manifest::Object::into_value).collect())
    }

    #[test]
    fn every_object_says_whose_it_is_and_pods_do_not() {
        let objects = rendered(json!({"commonMetadata": {
            "labels": {"team": "a", "helm.toolkit.fluxcd.io/name": "mine"}, "annotations": {"note": "b"},
        }}))
        .unwrap();
        let origin = json!({
            "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "apps", "team": "a",
        });
        for object in &objects {
            assert_eq!(object["metadata"]["labels"], origin);
            assert_eq!(object["metadata"]["annotations"], json!({"note": "b"}));
        }
        let pods = &objects[0]["spec"]["template"]["metadata"];
        assert_eq!(*pods, json!({"labels": {"app": "web"}}));
        assert_eq!(
            objects[0]["spec"]["selector"],
            json!({"matchLabels": {"app": "web"}})
        );
    }

    #[test]
    fn post_renderers_run_in_their_order() {
        let patch = |replicas: u32| {
            let patch = json!([{"op": "add", "path": "/spec/replicas", "value": replicas}]).to_string();
            json!({"kustomize": {"patches": [{"patch": patch, "target": {"kind": "Deployment"}}]}})
        };
        let images = json!({"kustomize": {"images": [
            {"name": "example.com/web", "newName": "example.com/new", "newTag": "2.0.0"},
        ]}});
        let objects = rendered(json!({"postRenderers": [patch(2), images, patch(3)]})).unwrap();
        assert_eq!(objects[0]["spec"]["replicas"], 3);
        assert_eq!(
            objects[0]["spec"]["template"]["spec"]["containers"][0]["image"],
            "example.com/new:2.0.0"
        );
        let error = rendered(json!({"postRenderers": [
            {"kustomize": {"patches": [{"patch": "[", "target": {"kind": "Deployment"}}]}},
        ]}));
        assert!(error.is_err());
    }
}
