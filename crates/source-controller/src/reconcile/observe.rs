//! Observe: reads everything that an object refers to.
//!
//! In: the object as last seen. Out: [`Observed`]: what the store has of it, and the Secrets that its spec names. Only
//! objects that are to be fetched have their references read, with one GET each.

use std::sync::Arc;

use artifact::store::{self, Store};
use kube::ResourceExt as _;

use super::Context;
use super::reader::Reader;
use crate::error::Error;
use crate::kind::Kind;
use crate::reconcile::secrets_read::Reading;
use verification_policy::sources::Admission;

/// State of an object before a decision.
pub(crate) struct Observed<K: Kind> {
    pub(crate) object: Arc<K>,
    /// True if the artifact in the object's status is in the store.
    pub(crate) artifact_is_stored: bool,
    /// Objects that the spec refers to; an error when they cannot be read.
    pub(crate) references: Result<K::References, Error>,
    /// Revisions of the sources that it builds upon, as far as they have artifacts.
    pub(crate) inputs: Vec<(store::ObjectKey, String)>,
    /// The VerificationPolicies that apply to it.
    pub(crate) admission: Admission,
}

/// Reads the references of an object that is to be fetched.
pub(crate) async fn observe<K: Kind>(object: Arc<K>, context: &Context<K>, reading: Reading) -> Observed<K> {
    let Context { client, store, .. } = context;
    let namespace = object.namespace().unwrap_or_default();
    // Before the references: what is read then is at least as new as what the status will say.
    let inputs = input_revisions(&*object, store);
    let references = match object.refusal() {
        Some(refusal) => Err(refusal),
        None => {
            let identities = context.fetcher.identities.clone();
            let (client, store) = (client.clone(), store.clone());
            let reader = Reader::new(client, store, identities, &namespace, reading);
            object.read_references(&reader).await
        }
    };
    let artifact_is_stored = artifact_is_stored(&*object, store);
    let admission = context.policies.admission(K::POLICY_KIND, &namespace);
    let origin = references
        .as_ref()
        .ok()
        .and_then(|references| object.origin(references));
    let admission = match origin {
        Some(origin) if !object.brings_others() => admission.about(&origin),
        _ => admission,
    };
    Observed {
        admission,
        object,
        artifact_is_stored,
        references,
        inputs,
    }
}

fn input_revisions<K: Kind>(object: &K, store: &Store) -> Vec<(store::ObjectKey, String)> {
    let inputs = object.inputs().into_iter();
    let known = inputs.filter_map(|input| {
        let record = store.current(&input.kind, &input.namespace, &input.name)?;
        Some((input, record.revision))
    });
    known.collect()
}

/// The same path with the same content. What the store has was verified when it was opened.
fn artifact_is_stored<K: Kind>(object: &K, store: &Store) -> bool {
    object.artifact().is_some_and(|artifact| {
        let record = store.by_path(&artifact.path);
        record.is_some_and(|record| {
            record.path == artifact.path && record.digest.to_string() == artifact.digest
        })
    })
}
