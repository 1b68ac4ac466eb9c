//! Decide: what is to be done with an object. Pure: what was observed goes in, a [`Decision`] comes out.

use api::meta::condition_types::{POLICIES_MET, SOURCE_VERIFIED};
use api::meta::{HasConditions, reasons};
use artifact::store;
use controller_kit::conditions;
use verification_policy::sources::Admission;

use super::observe::Observed;
use crate::kind::{Failure, Kind};

/// Decision about an object.
pub(crate) enum Decision<K: Kind> {
    /// Ask the remote.
    Fetch(Plan<K>),
    /// Nothing can be fetched.
    Fail(Failure, Progress),
}

/// How to fetch.
pub(crate) struct Plan<K: Kind> {
    pub(crate) references: K::References,
    /// When the remote is at this revision, there is nothing to do.
    pub(crate) unless_revision: Option<String>,
    /// The VerificationPolicies that it must meet.
    pub(crate) admission: Admission,
    pub(crate) progress: Progress,
}

/// Where the object stands before the fetch, in the words of its Reconciling condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) message: String,
    /// The status has an artifact that the store has not.
    pub(crate) artifact_disappeared: bool,
    /// There is no artifact, so that the object is not ready while it is fetched.
    pub(crate) has_artifact: bool,
    /// Revisions of the sources that the object builds upon.
    pub(crate) inputs: Vec<(store::ObjectKey, String)>,
    /// Whether VerificationPolicies apply to it.
    pub(crate) has_policies: bool,
}

/// Decides on an object that is neither suspended nor being deleted.
pub(crate) fn decide<K: Kind>(observed: Observed<K>) -> Decision<K> {
    let Observed {
        object,
        artifact_is_stored,
        references,
        inputs,
        admission,
    } = observed;
    let policies = admission.signature();
    let progress = Progress {
        has_policies: policies.is_some(),
        ..progress(&*object, artifact_is_stored, inputs)
    };
    let references = match references {
        Ok(references) => references,
        Err(error) => return Decision::Fail(Failure::from(error), progress),
    };
    let must_build = object.settings_changed()
        || object.inclusion_changed(&references)
        || must_verify(&*object)
        || policies.is_some_and(|policies| !is_met(&*object, &policies));
    let known = object.artifact().filter(|_| artifact_is_stored && !must_build);
    let unless_revision = known.map(|artifact| artifact.revision.clone());
    Decision::Fetch(Plan {
        references,
        unless_revision,
        admission,
        progress,
    })
}

/// Returns whether the stored artifact was held against these policies, for this spec, and met them or got a warning.
fn is_met<K: Kind>(object: &K, policies: &str) -> bool {
    object.condition(POLICIES_MET).is_some_and(|condition| {
        condition.message.ends_with(policies)
            && condition.reason != reasons::VERIFICATION_ERROR
            && condition.observed_generation == object.meta().generation
    })
}

/// Returns whether the spec wants the content verified, and what is stored was not, or not as this spec has it.
fn must_verify<K: Kind>(object: &K) -> bool {
    let is_verified = || {
        object.condition(SOURCE_VERIFIED).is_some_and(|condition| {
            condition.status == conditions::TRUE && condition.observed_generation == object.meta().generation
        })
    };
    object.wants_verification() && !is_verified()
}

fn progress<K: Kind>(
    object: &K,
    artifact_is_stored: bool,
    inputs: Vec<(store::ObjectKey, String)>,
) -> Progress {
    let artifact_disappeared = object.artifact().is_some() && !artifact_is_stored;
    let generation = object.meta().generation.unwrap_or_default();
    let observed = object
        .status()
        .and_then(HasConditions::observed_generation)
        .unwrap_or_default();
    let message = if artifact_disappeared {
        "building artifact: disappeared from storage".to_owned()
    } else if object.artifact().is_none() {
        "building artifact".to_owned()
    } else if generation != observed {
        format!("processing object: new generation {observed} -> {generation}")
    } else {
        "reconciliation in progress".to_owned()
    };
    Progress {
        message,
        artifact_disappeared,
        has_artifact: artifact_is_stored,
        inputs,
        has_policies: false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::source::OCIRepository;
    use serde_json::json;

    use super::*;

    fn object(overlay: serde_json::Value) -> OCIRepository {
        let mut object = json!({
            "metadata": {"name": "app", "namespace": "apps", "generation": 2},
            "spec": {"url": "oci://h.io/app", "interval": "1m"},
            "status": {
                "observedGeneration": 2,
                "artifact": {"path": "p", "url": "u", "revision": "latest@sha256:1", "digest": "sha256:2",
                             "lastUpdateTime": "2026-01-01T00:00:00Z"},
            },
        });
        for (pointer, value) in overlay.as_object().unwrap() {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    /// (revision that needs no fetch, message) or the message of the error.
    fn decision(
        overlay: serde_json::Value,
        artifact_is_stored: bool,
    ) -> Result<(Option<String>, String), String> {
        let object = Arc::new(object(overlay));
        let references = match object.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok(Default::default()),
        };
        match decide(Observed {
            object,
            artifact_is_stored,
            references,
            inputs: Vec::new(),
            admission: Admission::default(),
        }) {
            Decision::Fetch(plan) => Ok((plan.unless_revision, plan.progress.message)),
            Decision::Fail(failure, _) => Err(failure.error.message()),
        }
    }

    #[test]
    fn an_unchanged_remote_ends_the_work_only_when_the_artifact_would_be_the_same() {
        let same = Some("latest@sha256:1".to_owned());
        let cases = [
            (
                "at rest",
                json!({}),
                true,
                same.clone(),
                "reconciliation in progress",
            ),
            (
                "a new spec that does not touch the content",
                json!({"/metadata/generation": 3}),
                true,
                same,
                "processing object: new generation 2 -> 3",
            ),
            (
                "other ignore rules",
                json!({"/spec/ignore": "*.md"}),
                true,
                None,
                "reconciliation in progress",
            ),
            (
                "another layer",
                json!({"/spec/layerSelector": {"mediaType": "x"}}),
                true,
                None,
                "reconciliation in progress",
            ),
            (
                "an emptied store",
                json!({}),
                false,
                None,
                "building artifact: disappeared from storage",
            ),
            (
                "the first time",
                json!({"/status": {}}),
                false,
                None,
                "building artifact",
            ),
        ];
        for (name, overlay, stored, unless_revision, message) in cases {
            assert_eq!(
                decision(overlay, stored),
                Ok((unless_revision, message.to_owned())),
                "{name}"
            );
        }
    }

    #[test]
    fn what_cannot_be_done_is_not_tried() {
        let refused = decision(json!({"/spec/url": "oci://h.io/app:v1"}), true).unwrap_err();
        assert_eq!(
            refused,
            "URL validation failed for 'oci://h.io/app:v1': URL must not contain a tag; remove ':v1'"
        );
    }
}
