//! The status of objects that Alerts are about: one watch for each kind that an Alert names, from the first time on.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use controller_kit::flags::WatchFlags;
use event::InvolvedObject;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::transition::Observed;
use crate::dispatch::Dispatcher;
use crate::kinds;
use crate::objects::{Known, Ready};

/// Watches the kinds that are asked for, each from then on, without end.
pub async fn follow(
    client: Client,
    flags: WatchFlags,
    dispatcher: Arc<Dispatcher>,
    mut wanted: watch::Receiver<HashSet<String>>,
) {
    let mut begun = HashSet::new();
    let mut watches = JoinSet::new();
    // What failed while nobody asked for the kind is not told.
    let mut last = dispatcher.desk().last;
    loop {
        let new: Vec<_> = wanted.borrow_and_update().difference(&begun).cloned().collect();
        for kind in new {
            begun.insert(kind.clone());
            if let Some(resource) = kinds::resource(&kind) {
                watches.spawn(follow_kind(
                    client.clone(),
                    flags.clone(),
                    resource,
                    Arc::clone(&dispatcher),
                    last,
                ));
            }
        }
        last = None;
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

async fn follow_kind(
    client: Client,
    flags: WatchFlags,
    resource: ApiResource,
    dispatcher: Arc<Dispatcher>,
    last: Option<Timestamp>,
) {
    let api: Api<Watched> = match flags.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut stream = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let (mut failing, mut listed, mut is_first_list) = (false, HashSet::new(), true);
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                let id = observe(object, &resource, &dispatcher, |since| {
                    is_first_list && is_old(since, last)
                });
                listed.insert(id);
            }
            Ok(watcher::Event::InitDone) => {
                dispatcher.objects.keep(&resource.kind, &listed);
                listed = HashSet::new();
                is_first_list = false;
            }
            Ok(watcher::Event::Apply(object)) => {
                observe(object, &resource, &dispatcher, |_| false);
            }
            Ok(watcher::Event::Delete(object)) => dispatcher
                .objects
                .remove(&reference(&object, &resource).to_string()),
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(kind = resource.kind, %error, "a watch failed; it is tried again");
                }
                continue;
            }
        }
        failing = false;
    }
}

/// Whether a status was there before we were there last; at the very first start, all are.
fn is_old(since: Option<Timestamp>, last: Option<Timestamp>) -> bool {
    last.is_none_or(|last| since.is_none_or(|since| since <= last))
}

fn observe(
    object: Watched,
    resource: &ApiResource,
    dispatcher: &Dispatcher,
    is_old: impl Fn(Option<Timestamp>) -> bool,
) -> String {
    let reference = reference(&object, resource);
    let condition = object
        .status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    let ready = condition.map_or(Ready::Unknown, Condition::ready);
    let since = condition.and_then(|condition| condition.last_transition_time);
    let id = reference.to_string();
    let known = Known {
        labels: object.labels().clone(),
        ready: ready.clone(),
        parents: object.spec.parents(&reference),
    };
    let observed = Observed {
        object: reference,
        ready,
        revision: object.status.revision(),
        since,
    };
    dispatcher.observe(known, &observed, is_old(since));
    id
}

fn reference(object: &Watched, resource: &ApiResource) -> InvolvedObject {
    InvolvedObject {
        kind: resource.kind.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        api_version: resource.api_version.clone(),
        resource_version: object.resource_version().unwrap_or_default(),
        field_path: String::new(),
    }
}

/// What is read of an object of any of the kinds.
#[derive(Debug, Clone, Deserialize)]
struct Watched {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    source_ref: Option<Reference>,
    chart_ref: Option<Reference>,
    chart: ChartOrName,
    depends_on: Vec<Reference>,
}

/// A HelmRelease has a template here, a HelmChart a name.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ChartOrName {
    Template { spec: ChartSpec },
    Other(serde::de::IgnoredAny),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ChartSpec {
    source_ref: Option<Reference>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Reference {
    kind: String,
    name: String,
    namespace: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<Condition>,
    last_attempted_revision: Option<String>,
    artifact: Option<Artifact>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Artifact {
    revision: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<Timestamp>,
}

impl Default for ChartOrName {
    fn default() -> Self {
        Self::Other(serde::de::IgnoredAny)
    }
}

impl Condition {
    fn ready(&self) -> Ready {
        match self.status.as_str() {
            "True" => Ready::True,
            "False" => Ready::False {
                reason: self.reason.clone(),
                message: self.message.clone(),
            },
            _ => Ready::Unknown,
        }
    }
}

impl Status {
    fn revision(&self) -> Option<String> {
        let artifact = self.artifact.as_ref().map(|artifact| artifact.revision.clone());
        self.last_attempted_revision.clone().or(artifact)
    }
}

impl Spec {
    fn parents(&self, object: &InvolvedObject) -> Vec<String> {
        let id = |kind: &str, reference: &Reference| {
            let namespace = reference.namespace.as_deref().unwrap_or(&object.namespace);
            format!("{kind}/{namespace}/{}", reference.name)
        };
        let mut parents = Vec::new();
        if let ChartOrName::Template {
            spec: ChartSpec {
                source_ref: Some(source),
            },
        } = &self.chart
        {
            let namespace = source.namespace.as_deref().unwrap_or(&object.namespace);
            parents.push(id(&source.kind, source));
            parents.push(format!(
                "HelmChart/{namespace}/{}-{}",
                object.namespace, object.name
            ));
        }
        let sources = self.source_ref.iter().chain(&self.chart_ref);
        parents.extend(sources.map(|source| id(&source.kind, source)));
        parents.extend(
            self.depends_on
                .iter()
                .map(|dependency| id(&object.kind, dependency)),
        );
        parents
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Kinds that are to be watched for Alerts.
pub fn wanted(rules: &[Arc<crate::alert::rule::Rule>]) -> HashSet<String> {
    let mut kinds: HashSet<String> = rules
        .iter()
        .flat_map(|rule| rule.kinds().map(str::to_owned))
        .collect();
    if rules.iter().any(|rule| rule.options.fold) {
        kinds.extend(kinds::SOURCES.map(str::to_owned));
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parents(kind: &str, spec: Value) -> Vec<String> {
        let object: Watched =
            serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "apps"}, "spec": spec}))
                .unwrap();
        let resource = kinds::resource(kind).unwrap();
        object.spec.parents(&reference(&object, &resource))
    }

    #[test]
    fn an_object_depends_on_its_source_and_its_dependencies() {
        let spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": "repo", "namespace": "infra"},
            "dependsOn": [{"name": "base"}, {"name": "crds", "namespace": "infra"}],
        });
        assert_eq!(
            parents("Kustomization", spec),
            [
                "GitRepository/infra/repo",
                "Kustomization/apps/base",
                "Kustomization/infra/crds"
            ]
        );
        let chart = json!({"spec": {"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "repo", "namespace": "infra"}}});
        assert_eq!(
            parents("HelmRelease", json!({"chart": chart})),
            ["HelmRepository/infra/repo", "HelmChart/infra/apps-web"]
        );
        let spec = json!({"chartRef": {"kind": "OCIRepository", "name": "chart"}});
        assert_eq!(parents("HelmRelease", spec), ["OCIRepository/apps/chart"]);
        let spec = json!({"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "repo"}});
        assert_eq!(parents("HelmChart", spec), ["HelmRepository/apps/repo"]);
        assert!(parents("GitRepository", json!({"url": "https://example.com"})).is_empty());
    }

    #[test]
    fn at_the_first_start_and_from_before_the_last_time_nothing_is_new() {
        let at = |second| Timestamp::from_second(second).ok();
        assert!(is_old(at(5), None) && is_old(at(5), at(5)) && is_old(None, at(5)));
        assert!(!is_old(at(6), at(5)));
    }
}
