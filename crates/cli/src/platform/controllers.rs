//! Which controllers there are: ours, and Flux's own, wherever they are and whatever they are called.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use manifest::ObjectId;

use super::RELEASE;
use crate::cluster::Failure;

/// Label that Flux, its command and ours look for.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "flux");
const NAME: &str = "app.kubernetes.io/name";
pub(crate) const COMPONENT: &str = "app.kubernetes.io/component";
const VERSION: &str = "app.kubernetes.io/version";
/// Annotation of a Deployment that has several components in one process.
const SEVERAL: &str = "windlass.dev/components";

/// The components that exclude each other, ours and Flux's.
pub(crate) const COMPONENTS: [&str; 5] = [
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
    IMAGES,
];
/// The component of ours that reconciles the kinds of images.
pub(crate) const IMAGES: &str = "image-reflector-controller";
/// The component of ours that reconciles Pipelines.
pub(crate) const PIPELINES: &str = "pipeline-controller";
/// The component of ours that reconciles ResourceSets.
pub(crate) const RESOURCE_SETS: &str = "resource-set-controller";
/// Components of Flux whose work one of ours does beside its own, and which.
const ABSORBED: [(&str, &str); 2] = [
    ("source-watcher", COMPONENTS[0]),
    ("image-automation-controller", IMAGES),
];

/// A controller in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) id: ObjectId,
    pub(crate) component: String,
    pub(crate) is_ours: bool,
    pub(crate) version: String,
    pub(crate) image: String,
    pub(crate) wanted: i32,
    pub(crate) ready: i32,
    /// It was deleted, and waits for its Pods to end.
    pub(crate) is_going: bool,
    /// The newest spec is what runs.
    pub(crate) is_current: bool,
    /// Others are in the same process.
    pub(crate) is_shared: bool,
    /// The Helm release that says that it is its own, as NAMESPACE/NAME.
    pub(crate) release: Option<String>,
}

impl Controller {
    pub(crate) fn is_ready(&self) -> bool {
        self.is_current && self.ready >= self.wanted && self.wanted > 0
    }

    /// Returns whether it does the same as one of these components of ours.
    pub(crate) fn rivals(&self, components: &[String]) -> bool {
        components
            .iter()
            .any(|ours| *ours == self.component || ABSORBED.contains(&(self.component.as_str(), ours)))
    }

    /// Returns whether it reconciles kinds of images.
    pub(crate) fn is_of_images(&self) -> bool {
        self.rivals(&[IMAGES.to_owned()])
    }

    /// Those that a Deployment runs.
    fn of_deployment(deployment: &Deployment) -> Vec<Self> {
        let one = Self::from_deployment(deployment);
        let several = deployment.annotations().get(SEVERAL).map(String::as_str);
        let components = several_of(several).map(|component| Self {
            component,
            is_shared: true,
            ..one.clone()
        });
        let components: Vec<_> = components.collect();
        if components.is_empty() {
            vec![one]
        } else {
            components
        }
    }

    fn from_deployment(deployment: &Deployment) -> Self {
        let labels = deployment.labels();
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let name = deployment.name_any();
        let spec = deployment.spec.as_ref();
        let template = spec.and_then(|spec| spec.template.spec.as_ref());
        let image = template.and_then(|pod| pod.containers.first()?.image.clone());
        let status = deployment.status.clone().unwrap_or_default();
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let annotation = |key: &str| deployment.annotations().get(key).cloned();
        let release = annotation("meta.helm.sh/release-name");
        let release_namespace = annotation("meta.helm.sh/release-namespace").unwrap_or_default();
        Self {
            component: match label(COMPONENT) {
                component if component.is_empty() => name.clone(),
                component => component,
            },
            is_ours: label(NAME) == RELEASE,
            is_shared: false,
            version: label(VERSION),
            image: image.unwrap_or_default(),
            wanted,
            is_going: deployment.metadata.deletion_timestamp.is_some(),
            ready: status.ready_replicas.unwrap_or(0),
            is_current: status.observed_generation == deployment.metadata.generation
                && status.updated_replicas.unwrap_or(0) >= wanted,
            release: release.map(|release| format!("{release_namespace}/{release}")),
            id: ObjectId {
                group: "apps".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: deployment.namespace().unwrap_or_default(),
                name,
            },
        }
    }
}

/// Finds the controllers in all namespaces, in the order of their components.
pub(crate) async fn find(client: &Client) -> Result<Vec<Controller>, Failure> {
    let deployments: Api<Deployment> = Api::all(client.clone());
    let selected = ListParams::default().labels(&format!("{}={}", PART_OF.0, PART_OF.1));
    let found = deployments.list(&selected).await;
    let found = found.map_err(|error| Failure::request("list deployments", error))?;
    Ok(sorted(found.iter().flat_map(Controller::of_deployment).collect()))
}

/// The components of a Deployment of the chart.
pub(crate) fn components_of(deployment: &manifest::Object) -> Vec<String> {
    let several: Vec<String> = several_of(deployment.annotation(SEVERAL)).collect();
    match several.is_empty() {
        true => deployment
            .label(COMPONENT)
            .map(str::to_owned)
            .into_iter()
            .collect(),
        false => several,
    }
}

fn several_of(annotation: Option<&str>) -> impl Iterator<Item = String> {
    let names = annotation.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn sorted(mut controllers: Vec<Controller>) -> Vec<Controller> {
    let rank = |component: &str| COMPONENTS.iter().position(|known| *known == component);
    controllers.sort_by_key(|controller| {
        let rank = rank(&controller.component).unwrap_or(COMPONENTS.len());
        (rank, controller.id.namespace.clone(), controller.id.name.clone())
    });
    controllers
}

/// Those of Flux that do what these components of ours do, and are not scaled down.
pub(crate) fn rivals<'a>(controllers: &'a [Controller], components: &[String]) -> Vec<&'a Controller> {
    let rivals = controllers
        .iter()
        .filter(|controller| !controller.is_ours && controller.wanted > 0);
    rivals
        .filter(|controller| controller.rivals(components))
        .collect()
}

/// Those that are at work, or still ending, beside these.
pub(crate) fn beside(controllers: Vec<Controller>, own: &[ObjectId]) -> Vec<Controller> {
    let is_other = |one: &Controller| (one.wanted > 0 || one.is_going) && !own.contains(&one.id);
    controllers.into_iter().filter(is_other).collect()
}

/// The components that are at work in a namespace.
pub(crate) fn at_work(controllers: &[Controller], namespace: &str) -> Vec<String> {
    let there = controllers
        .iter()
        .filter(|one| one.wanted > 0 && !one.is_going && one.id.namespace == namespace);
    there.map(|one| one.component.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_is_at_work_beside_a_release_is_found_wherever_it_is() {
        let mut elsewhere = controller("source-controller", json!({NAME: "windlass"}), 1);
        elsewhere.id.namespace = "other".to_owned();
        let ending = Controller {
            is_going: true,
            ..controller("helm-controller", json!({}), 1)
        };
        let own = controller("source-controller", json!({NAME: "windlass"}), 1);
        let flux = controller("kustomize-controller", json!({}), 1);
        let stopped = controller("notification-controller", json!({}), 0);
        let all = vec![
            own.clone(),
            elsewhere.clone(),
            ending.clone(),
            flux.clone(),
            stopped,
        ];
        assert_eq!(
            at_work(&all, "flux-system"),
            ["source-controller", "kustomize-controller"]
        );
        assert_eq!(beside(all, &[own.id]), [elsewhere, ending, flux]);
    }

    #[test]
    fn several_in_one_process_count_one_by_one() {
        let annotations = json!({SEVERAL: "source-controller, helm-controller"});
        let metadata = json!({"name": "windlass-controllers", "namespace": "flux-system", "annotations": annotations,
            "labels": {COMPONENT: "windlass-controllers", NAME: "windlass"}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
        let found = Controller::of_deployment(&serde_json::from_value(deployment.clone()).unwrap());
        let found: Vec<_> = found.iter().map(|one| (&*one.component, &*one.id.name)).collect();
        let name = "windlass-controllers";
        assert_eq!(found, [("source-controller", name), ("helm-controller", name)]);
        let object = manifest::Object::new(deployment.as_object().unwrap().clone(), None);
        assert_eq!(components_of(&object), ["source-controller", "helm-controller"]);
    }

    pub(super) fn controller(name: &str, labels: serde_json::Value, replicas: i32) -> Controller {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "flux-system", "labels": labels, "generation": 2},
            "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": [
                {"name": "manager", "image": "fluxcd/x:v1"}]}}},
            "status": {"readyReplicas": replicas, "updatedReplicas": replicas, "observedGeneration": 2}});
        Controller::from_deployment(&serde_json::from_value(deployment).unwrap())
    }

    #[test]
    fn controllers_that_do_the_same_are_rivals_whatever_they_are_called() {
        let all = sorted(vec![
            controller("image-automation-controller", json!({}), 1),
            controller("image-reflector-controller", json!({}), 1),
            controller("source-watcher", json!({}), 1),
            controller("shard", json!({COMPONENT: "source-controller"}), 1),
            controller("helm-controller", json!({NAME: "windlass"}), 1),
            controller("kustomize-controller", json!({}), 0),
            controller("notification-controller", json!({}), 1),
        ]);
        let components = |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
        let names = |components: &[String]| -> Vec<String> {
            rivals(&all, components)
                .iter()
                .map(|rival| rival.id.name.clone())
                .collect()
        };
        assert_eq!(
            names(&components(&COMPONENTS)),
            [
                "shard",
                "notification-controller",
                "image-reflector-controller",
                "image-automation-controller",
                "source-watcher"
            ]
        );
        assert_eq!(
            names(&components(&["source-controller"])),
            ["shard", "source-watcher"]
        );
        assert_eq!(names(&components(&["helm-controller"])), [""; 0]);
        assert_eq!(names(&components(&COMPONENTS[..2])), ["shard", "source-watcher"]);
    }

    #[test]
    fn ready_is_what_runs_the_newest_spec() {
        let ready = controller("a", json!({}), 1);
        assert!(ready.is_ready());
        let old = Controller {
            is_current: false,
            ..ready.clone()
        };
        assert!(!old.is_ready());
        assert!(!controller("a", json!({}), 0).is_ready());
    }
}
