//! Everything that the API server holds of some cases.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Case;
use crate::normal;

/// What is left of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// Objects by `Kind.group namespace/name`.
    pub objects: BTreeMap<String, Value>,
    /// Events of the step by the object that they are about, in order.
    pub events: BTreeMap<String, Vec<String>>,
}

/// Kinds that other programs make of what was delivered, or for themselves.
const MADE_BY_OTHERS: [&str; 8] = [
    "ControllerRevision",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "Lease",
    "Node",
    "Pod",
    "ReplicaSet",
];

/// Whose events are compared.
const REPORTERS: [&str; 3] = ["source-controller", "kustomize-controller", "helm-controller"];

/// A served kind.
#[derive(Debug, Clone)]
pub struct Kind {
    /// How it is asked for.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
}

impl Kind {
    /// Its objects in the namespace, or in none.
    pub fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    /// `Kind.group`, or `Kind` for the core group.
    pub fn name(&self) -> String {
        let ApiResource { kind, group, .. } = &self.resource;
        if group.is_empty() {
            kind.clone()
        } else {
            format!("{kind}.{group}")
        }
    }

    fn is_of_flux(&self) -> bool {
        self.resource.group.ends_with(".toolkit.fluxcd.io")
    }
}

/// The kinds that the API server lists, but for those that other programs make.
pub async fn kinds(client: &Client) -> Result<Vec<Kind>> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut kinds = Vec::new();
    for (resource, capabilities) in discovery.groups().flat_map(ApiGroup::recommended_resources) {
        if capabilities.supports_operation(verbs::LIST) && !MADE_BY_OTHERS.contains(&resource.kind.as_str()) {
            kinds.push(Kind {
                resource,
                is_namespaced: capabilities.scope == Scope::Namespaced,
            });
        }
    }
    Ok(kinds)
}

/// How often each event has been seen, by its identifier.
pub type Seen = BTreeMap<String, u64>;

/// What is left of each case, by its id. `seen` holds the events that earlier steps had.
pub async fn take(client: &Client, cases: &[Case], seen: &mut Seen) -> Result<BTreeMap<String, Left>> {
    let mut left: BTreeMap<String, Left> = cases
        .iter()
        .map(|case| (case.id.clone(), Left::default()))
        .collect();
    let kinds = kinds(client).await?;
    let lists = futures::stream::iter(&kinds)
        .map(|kind| async move { list(client, kind).await.map(|found| (kind, found)) });
    let found: Vec<(&Kind, Vec<DynamicObject>)> = lists.buffered(8).try_collect().await?;
    for (kind, objects) in found {
        for object in objects {
            // When what is being deleted is gone is a matter of Kubernetes.
            let stays = object.metadata.deletion_timestamp.is_none();
            let owner = owner(&object, kind, cases).filter(|_| stays);
            let Some(of) = owner.and_then(|id| left.get_mut(id)) else {
                continue;
            };
            let namespace = object.namespace().unwrap_or_default();
            let name = format!("{} {namespace}/{}", kind.name(), object.name_any());
            let value = serde_json::to_value(&object)?;
            let kind_name = kind.resource.kind.as_str();
            of.objects
                .insert(name, normal::object(value, kind_name, kind.is_of_flux()));
        }
    }
    events(client, &mut left, seen).await?;
    Ok(left)
}

async fn list(client: &Client, kind: &Kind) -> Result<Vec<DynamicObject>> {
    let listed = kind.api(client, None).list(&ListParams::default()).await;
    match listed {
        // Its definition has just been deleted.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        listed => Ok(listed
            .with_context(|| format!("failed to list {}", kind.name()))?
            .items),
    }
}

/// The case to which an object belongs: that of its namespace, or that of its owner's labels.
fn owner<'a>(object: &DynamicObject, kind: &Kind, cases: &'a [Case]) -> Option<&'a str> {
    let of_namespace = |namespace: &str| {
        let id = namespace.strip_suffix(APP).unwrap_or(namespace);
        cases
            .iter()
            .find(|case| case.id == id)
            .map(|case| case.id.as_str())
    };
    if let Some(namespace) = object.namespace() {
        // The API server and kube-controller-manager make these in every namespace.
        let is_given = object.name_any() == "default" && kind.resource.kind == "ServiceAccount"
            || object.name_any() == "kube-root-ca.crt";
        return if is_given { None } else { of_namespace(&namespace) };
    }
    if kind.resource.kind == "Namespace" {
        return of_namespace(&object.name_any());
    }
    let claim = format!("{}/{}", kind.resource.kind, object.name_any());
    let by_claim = cases.iter().find(|case| case.claims.contains(&claim));
    let labels = [
        "kustomize.toolkit.fluxcd.io/namespace",
        "helm.toolkit.fluxcd.io/namespace",
    ];
    let by_label = labels
        .iter()
        .find_map(|label| of_namespace(object.labels().get(*label)?));
    by_label.or(by_claim.map(|case| case.id.as_str()))
}

/// The end of the name of the namespace that a Kustomization delivers to.
pub const APP: &str = "-app";

async fn events(client: &Client, left: &mut BTreeMap<String, Left>, seen: &mut Seen) -> Result<()> {
    let events: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("", "v1", "Event")),
    );
    let mut found = events
        .list(&ListParams::default())
        .await
        .context("failed to list events")?
        .items;
    // The time in the name is finer than that in the fields.
    found.sort_by_key(|event| {
        let time = event.data["firstTimestamp"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (time, event.name_any())
    });
    for event in found {
        let text = |pointer: &str| {
            event
                .data
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let reporter = match text("/reportingComponent") {
            "" => text("/source/component"),
            reporter => reporter,
        };
        let Some(of) = left.get_mut(text("/involvedObject/namespace")) else {
            continue;
        };
        if !REPORTERS.contains(&reporter) {
            continue;
        }
        // The same text again raises the count of the event.
        let count = event.data["count"].as_u64().unwrap_or(1);
        let before = seen
            .insert(event.uid().unwrap_or_default(), count)
            .unwrap_or_default();
        let about = format!(
            "{} {}",
            text("/involvedObject/kind"),
            text("/involvedObject/name")
        );
        let line = format!("{} {}: {}", text("/type"), text("/reason"), text("/message"));
        let again = (before..count).map(|_| normal::text(&line));
        of.events.entry(about).or_default().extend(again);
    }
    Ok(())
}
