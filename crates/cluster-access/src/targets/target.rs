//! A target: a cluster, and the account that acts there.

use std::sync::Arc;

use api::meta::{KubeConfigReference, ValuesKind};
use artifact::Digest;
use controller_kit::impersonation::Account;

use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use kube_apply::Engine;
use kube_health::{Hub, Resolve, ResolveError, Resolved};
use manifest::{GroupVersionKind, ObjectId};

/// A cluster, seen by an account.
pub struct Target {
    /// Reads objects.
    pub client: Client,
    /// Applies and prunes.
    pub engine: Engine,
    /// Waits for health.
    pub hub: Hub,
    /// Which it is.
    pub place: Place,
}

impl Target {
    pub(super) fn new(place: Place, client: Client, engine: Engine) -> Arc<Self> {
        let mapper = Arc::new(Mapper(engine.clone()));
        let label = engine.settings().name_label();
        let hub = match &place.account {
            Some(_) => Hub::by_namespace_with_owner_label(client.clone(), mapper, &label),
            None => Hub::with_owner_label(client.clone(), mapper, &label),
        };
        Arc::new(Self {
            place,
            hub,
            engine: engine.with_client(client.clone()),
            client,
        })
    }

    /// Reads an object; None if it cannot be had now, so that the watch will tell.
    pub async fn live(&self, id: &ObjectId, version: &str) -> Option<serde_json::Value> {
        let gvk = GroupVersionKind {
            group: id.group.clone(),
            version: version.to_owned(),
            kind: id.kind.clone(),
        };
        let resource = self.engine.mapper().resolve(&gvk).await.ok()?;
        let request = kube::core::Request::new(url(&resource.api, id))
            .get(&id.name, &Default::default())
            .ok()?;
        self.client.request(request).await.ok()
    }

    /// Returns whether the account of this target may change an object; None if the cluster does not say.
    pub async fn may_change(&self, id: &ObjectId, version: &str) -> Option<bool> {
        let gvk = GroupVersionKind {
            group: id.group.clone(),
            version: version.to_owned(),
            kind: id.kind.clone(),
        };
        let resource = self.engine.mapper().resolve_any_version(&gvk).await.ok()??;
        let attributes = ResourceAttributes {
            verb: Some("patch".to_owned()),
            group: Some(id.group.clone()),
            resource: Some(resource.api.plural.clone()),
            namespace: Some(id.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: Some(id.name.clone()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await.ok()?;
        Some(answer.status?.allowed)
    }
}

pub(super) fn url(resource: &ApiResource, id: &ObjectId) -> String {
    let namespace = Some(id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    <kube::core::DynamicObject as kube::Resource>::url_path(resource, namespace)
}

/// The engine's discovery, for the waits.
pub(super) struct Mapper(Engine);

impl Resolve for Mapper {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        Box::pin(async move {
            let found = self.0.mapper().resolve(gvk).await?;
            Ok(Resolved {
                resource: found.api.clone(),
                namespaced: found.namespaced,
            })
        })
    }
}

/// The parts of an object that say where its objects are and as which account they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement<'a> {
    /// `metadata.namespace`, in which everything is that the spec names.
    pub namespace: &'a str,
    /// `spec.serviceAccountName`.
    pub service_account: Option<&'a str>,
    /// `spec.kubeConfig`.
    pub kube_config: Option<&'a KubeConfigReference>,
}

impl Placement<'_> {
    /// Returns whether the cluster is described by this ConfigMap or Secret of the namespace.
    pub fn refers_to(&self, kind: ValuesKind, name: &str) -> bool {
        let Some(reference) = self.kube_config else {
            return false;
        };
        match kind {
            ValuesKind::Secret => reference
                .secret_ref
                .as_ref()
                .is_some_and(|secret| secret.name == name),
            ValuesKind::ConfigMap => reference
                .config_map_ref
                .as_ref()
                .is_some_and(|map| map.name == name),
        }
    }
}

/// Key of a target. With another key, the applied objects are elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Digest of what describes the cluster; None is this cluster.
    pub(super) remote: Option<Digest>,
    pub(super) account: Option<Account>,
}

impl Place {
    /// Returns whether it is the cluster that the controller runs in, as far as the spec says.
    pub fn is_home(&self) -> bool {
        self.remote.is_none()
    }

    /// Returns the account that is impersonated, as the API server names it; None if the controller acts as itself.
    pub fn account(&self) -> Option<String> {
        self.account.as_ref().map(ToString::to_string)
    }
}
