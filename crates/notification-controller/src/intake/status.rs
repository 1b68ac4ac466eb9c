//! The status of objects that Alerts are about: one watch for each kind that an Alert names and the
//! cluster serves, from the first time on.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use controller_kit::flags::WatchFlags;
use event::InvolvedObject;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::transition::Observed;
use crate::dispatch::Dispatcher;
use crate::kinds;
use crate::objects::{Known, Ready};
use crate::served::Served;

/// Watches the kinds that are asked for and served, each from then on, without end. What they tell beyond events is news only
/// if Events are watched: without that, it is not known of what events tell.
pub async fn follow(
    client: Client,
    flags: WatchFlags,
    watch_events: bool,
    dispatcher: Arc<Dispatcher>,
    mut wanted: watch::Receiver<HashSet<String>>,
    mut served: Served,
) {
    let mut watches: HashMap<String, AbortOnDropHandle<()>> = HashMap::new();
    let mut asked_for = HashSet::new();
    let mut news = match dispatcher.desk().last {
        _ if !watch_events => News::None,
        Some(last) => News::Since(last),
        None => News::FromNowOn,
    };
    served.settle().await;
    loop {
        asked_for.extend(wanted.borrow_and_update().iter().cloned());
        for resource in asked_for.iter().filter_map(|kind| kinds::resource(kind)) {
            let is_served = served.serves(&resource.plural, &resource.group);
            if !is_served && watches.remove(&resource.kind).is_some() {
                // Its objects went with its definition.
                dispatcher.objects.keep(&resource.kind, &HashSet::new());
                dispatcher.forget(|object| is_in_scope(object, &resource.kind, flags.namespace()));
            }
            if is_served && !watches.contains_key(&resource.kind) {
                let (client, flags, dispatcher) = (client.clone(), flags.clone(), Arc::clone(&dispatcher));
                let kind = resource.kind.clone();
                let watch = tokio::spawn(follow_kind(client, flags, resource, dispatcher, news));
                watches.insert(kind, AbortOnDropHandle::new(watch));
            }
        }
        if watch_events {
            // What failed while no one asked for the kind is not told.
            news = News::FromNowOn;
        }
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            () = served.changed() => {}
        }
    }
}

/// Pauses after trouble: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

async fn follow_kind(
    client: Client,
    flags: WatchFlags,
    resource: ApiResource,
    dispatcher: Arc<Dispatcher>,
    news: News,
) {
    let scope = flags.namespace().map(str::to_owned);
    let api: Api<Watched> = match flags.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    // A list that fails begins well, so that the watcher's own back-off would begin anew each time.
    let mut stream = watcher(api, watcher::Config::default()).boxed();
    let (mut pause, mut listed, mut is_first_list) = (PAUSES.0, HashSet::new(), true);
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                let id = observe(object, &resource, &dispatcher, |since| {
                    news.holds(since, is_first_list)
                });
                listed.insert(id);
            }
            Ok(watcher::Event::InitDone) => {
                pause = PAUSES.0;
                dispatcher.objects.keep(&resource.kind, &listed);
                dispatcher.forget(|object| {
                    is_in_scope(object, &resource.kind, scope.as_deref()) && !listed.contains(object)
                });
                listed = HashSet::new();
                is_first_list = false;
            }
            Ok(watcher::Event::Apply(object)) => {
                pause = PAUSES.0;
                observe(object, &resource, &dispatcher, |since| news.holds(since, false));
            }
            Ok(watcher::Event::Delete(object)) => {
                let gone = reference(&object, &resource).to_string();
                dispatcher.objects.remove(&gone);
                dispatcher.forget(|object| object == gone);
            }
            Err(error) => {
                if pause == PAUSES.0 {
                    tracing::warn!(kind = resource.kind, %error, "a watch failed; it is tried again");
                }
                tokio::time::sleep(pause).await;
                pause = PAUSES.1.min(pause * 2);
            }
        }
    }
}

/// Which failures that a status shows are told if no event tells of them.
#[derive(Debug, Clone, Copy)]
enum News {
    /// None: events are only posted.
    None,
    /// Those that come while it is watched: at the very first start, the past is left alone.
    FromNowOn,
    /// Those that came since we were there last, too.
    Since(Timestamp),
}

impl News {
    fn holds(self, since: Option<Timestamp>, is_first_list: bool) -> bool {
        match self {
            Self::None => false,
            Self::FromNowOn => !is_first_list,
            Self::Since(last) => !is_first_list || since.is_some_and(|since| since > last),
        }
    }
}

/// Returns whether an object, as `Kind/namespace/name`, is among those that are listed if they are there.
fn is_in_scope(object: &str, kind: &str, namespace: Option<&str>) -> bool {
    let mut parts = object.split('/');
    parts.next() == Some(kind) && namespace.is_none_or(|namespace| parts.next() == Some(namespace))
}

fn observe(
    object: Watched,
    resource: &ApiResource,
    dispatcher: &Dispatcher,
    is_news: impl Fn(Option<Timestamp>) -> bool,
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
    let revision = object.status.revision();
    let known = Known {
        labels: object.labels().clone(),
        ready: ready.clone(),
        revision: revision.clone(),
        parents: object.spec.parents(&reference),
    };
    let observed = Observed {
        object: reference,
        ready,
        revision,
        since,
    };
    dispatcher.observe(known, &observed, is_news(since));
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

/// Watched fields of an object of any of the kinds.
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
    fn what_was_so_before_is_no_news_and_nothing_is_where_events_are_only_posted() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let since = News::Since(at(5));
        assert!(!since.holds(Some(at(5)), true) && !since.holds(None, true));
        assert!(since.holds(Some(at(6)), true) && since.holds(Some(at(5)), false));
        assert!(!News::FromNowOn.holds(Some(at(6)), true) && News::FromNowOn.holds(None, false));
        assert!(!News::None.holds(Some(at(6)), true) && !News::None.holds(Some(at(6)), false));
    }

    #[test]
    fn only_what_would_be_listed_is_gone_if_it_is_not() {
        let object = "Kustomization/apps/web";
        assert!(
            is_in_scope(object, "Kustomization", None) && is_in_scope(object, "Kustomization", Some("apps"))
        );
        assert!(
            !is_in_scope(object, "HelmRelease", None) && !is_in_scope(object, "Kustomization", Some("other"))
        );
    }
}
