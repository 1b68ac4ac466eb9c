//! The objects that are made of a Pipeline of Weave GitOps. They are its own: one that was there before is left alone.

use std::collections::BTreeMap;
use std::fmt::Debug;

use api::delivery::{self, ChangePolicy};
use api::source::GitRepository;
use api::weave::Pipeline;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use promotion::weave::Children;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::flags::NAME;
use crate::weave::status;

/// Labels of what applied the pipeline: what is made of it was not applied.
const OF_OTHERS: [&str; 3] = ["toolkit.fluxcd.io/", "app.kubernetes.io/", "helm.sh/"];

/// Why an object could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It is not ours.
    #[error("there is {kind}/{name} already, which was not made of this pipeline: rename one of them")]
    Occupied {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The API server.
    #[error("failed to {verb} {kind}/{name}")]
    Api {
        /// What was wanted.
        verb: &'static str,
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl Error {
    /// Reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Occupied { .. } => status::NAME_TAKEN,
            Self::Api { .. } => status::NOT_MADE,
        }
    }
}

/// Returns whether an object was made of a pipeline.
pub(crate) fn is_of(metadata: &ObjectMeta, pipeline: &Pipeline) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == pipeline.metadata.uid.as_ref())
}

/// Makes all objects, and deletes those that are not wanted any more. Returns the Pipeline.
pub(crate) async fn apply(
    pipeline: &Pipeline,
    wanted: &Children,
    known: Option<&delivery::Pipeline>,
    context: &Context,
) -> Result<delivery::Pipeline, Error> {
    let maker = Maker { pipeline, context };
    if let Some(known) = known.filter(|known| !is_of(&known.metadata, pipeline)) {
        return Err(occupied(known));
    }
    // What the Pipeline names comes first.
    let policies = wanted.policies.iter();
    maker
        .all(
            policies
                .map(|(name, spec)| ChangePolicy::new(name, spec.clone()))
                .collect(),
        )
        .await?;
    let repositories = wanted.repositories.iter();
    maker
        .all(
            repositories
                .map(|(name, spec)| GitRepository::new(name, spec.clone()))
                .collect(),
        )
        .await?;
    let own = delivery::Pipeline::new(&pipeline.name_any(), wanted.pipeline.clone());
    maker.one(own).await
}

fn occupied<K: Resource<DynamicType = ()>>(object: &K) -> Error {
    Error::Occupied {
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
    }
}

struct Maker<'a> {
    pipeline: &'a Pipeline,
    context: &'a Context,
}

impl Maker<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = self.pipeline.namespace().unwrap_or_default();
        Api::namespaced(self.context.client.clone(), &namespace)
    }

    /// Makes all objects of a kind, and deletes the others that were made of the pipeline.
    async fn all<K>(&self, wanted: Vec<K>) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let api = self.api::<K>();
        let failed = |verb, name: &str, source| Error::Api {
            verb,
            kind: K::kind(&()).into_owned(),
            name: name.to_owned(),
            source: Box::new(source),
        };
        let there = api.list_metadata(&ListParams::default()).await;
        let there = there.map_err(|source| failed("list", "*", source))?.items;
        let there: BTreeMap<String, ObjectMeta> = there
            .into_iter()
            .map(|object| (object.name_any(), object.metadata))
            .collect();
        for object in &wanted {
            let other = there.get(&object.name_any());
            if other.is_some_and(|other| !is_of(other, self.pipeline)) {
                return Err(occupied(object));
            }
        }
        let names: Vec<String> = wanted.iter().map(K::name_any).collect();
        for object in wanted {
            self.one(object).await?;
        }
        let left = there
            .iter()
            .filter(|(name, metadata)| is_of(metadata, self.pipeline) && !names.contains(name));
        for (name, metadata) in left {
            // The very one that was looked at.
            let parameters = DeleteParams::default().preconditions(Preconditions {
                uid: metadata.uid.clone(),
                resource_version: None,
            });
            match api.delete(name, &parameters).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(source) => return Err(failed("delete", name, source)),
            }
        }
        Ok(())
    }

    async fn one<K>(&self, mut object: K) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let name = object.name_any();
        *object.meta_mut() = ObjectMeta {
            name: Some(name.clone()),
            namespace: self.pipeline.namespace(),
            labels: Some(self.labels()).filter(|labels| !labels.is_empty()),
            owner_references: Some(vec![self.owner()]),
            ..ObjectMeta::default()
        };
        let parameters = PatchParams::apply(NAME).force();
        let made = self
            .api::<K>()
            .patch(&name, &parameters, &Patch::Apply(&object))
            .await;
        made.map_err(|source| Error::Api {
            verb: "apply",
            kind: K::kind(&()).into_owned(),
            name,
            source: Box::new(source),
        })
    }

    /// Labels by which controllers are sharded, and people find things.
    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.pipeline.labels().clone().into_iter();
        let own = labels.filter(|(name, _)| !OF_OTHERS.iter().any(|others| name.contains(others)));
        own.collect()
    }

    fn owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: Pipeline::api_version(&()).into_owned(),
            kind: Pipeline::kind(&()).into_owned(),
            name: self.pipeline.name_any(),
            uid: self.pipeline.uid().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}
