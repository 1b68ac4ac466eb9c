//! Which tag of each policy the branch has, with which commit it came, and what was said of its delivery.
//!
//! It is kept in an annotation of the automation, which this controller writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::image::{ImagePolicy, ImageUpdateAutomation};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::run::Run;
use super::update;
use crate::flags::AUTOMATION;

/// Annotation that this controller writes: the tag of each policy in the branch, as JSON.
pub(super) const ANNOTATION: &str = "windlass.dev/settled-tags";
/// Policies whose tag is kept.
const MAX_SETTLED: usize = 500;

/// The tag of a policy that the branch has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settled {
    pub(super) tag: String,
    /// If the branch has that, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// Hash of the first commit that has it; None if it was there before anyone looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// The tag that the branch had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// Its digest.
    #[serde(default, rename = "beforeDigest", skip_serializing_if = "Option::is_none")]
    pub(super) before_digest: Option<String>,
    /// What was said of its delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<Told>,
}

/// What was said of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    Delivered,
    Failed,
}

/// The tags of all policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettledTags {
    /// Of the automation: what becomes of policies of other namespaces is not its matter.
    namespace: String,
    /// By name of the policy.
    tags: BTreeMap<String, Settled>,
    /// Nothing was recorded yet, or it cannot be read.
    is_new: bool,
}

/// The API server did not take the annotation of the automation.
#[derive(Debug, thiserror::Error)]
#[error("failed to record which tags the branch has")]
pub(crate) struct NotRecorded(#[source] Box<kube::Error>);

impl SettledTags {
    /// Reads the annotation. What cannot be read is as good as forgotten: then nothing is done that should not be.
    pub(super) fn read(object: &ImageUpdateAutomation) -> Self {
        let annotation = object.annotations().get(ANNOTATION);
        let tags: Option<_> = annotation.and_then(|text| serde_json::from_str(text).ok());
        Self {
            namespace: object.namespace().unwrap_or_default(),
            is_new: tags.is_none(),
            tags: tags.unwrap_or_default(),
        }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns whether the branch must be looked at, even if nothing has changed.
    pub(super) fn must_look(&self) -> bool {
        self.is_new
    }

    /// The tag that a policy has chosen, if the branch has had it.
    pub(super) fn get(&self, policy: &ImagePolicy) -> Option<&Settled> {
        if !self.is_own(policy) {
            return None;
        }
        let settled = self.tags.get(policy.metadata.name.as_deref()?)?;
        let digest = digest_of(policy);
        let mut known = settled.digest.as_deref().into_iter();
        let is_there = settled.tag == tag_of(policy) && known.all(|known| Some(known) == digest);
        is_there.then_some(settled)
    }

    /// What they are after a run.
    pub(super) fn after(&self, policies: &[Arc<ImagePolicy>], run: &Run) -> Self {
        let Some(looked) = &run.looked else {
            return self.clone();
        };
        let mut settled = self.tags.clone();
        for policy in policies
            .iter()
            .filter(|policy| self.is_own(policy))
            .take(MAX_SETTLED)
        {
            let Some(tally) = looked.tallies.get(&update::key(policy)) else {
                continue;
            };
            let tag = tag_of(policy);
            let name = policy.name_any();
            let known = settled.get(&name);
            let digest = digest_of(policy).filter(|_| tally.has_digest).map(str::to_owned);
            let before = known.map(|known| known.tag.clone());
            let before_digest = known.and_then(|known| known.digest.clone());
            let commit = match (&run.pushed, tally.changed) {
                (Some(pushed), changed) if changed > 0 => Some(pushed.commit.to_string()),
                // It came by someone else's hand, such as a merge. Who sees it first cannot know since when it is there.
                (_, 0) if known.is_some() => Some(looked.base.clone()),
                (_, 0) => None,
                _ => continue,
            };
            // A branch that has no digest, or had none, has the tag only.
            let is_moved = digest.is_some() && before_digest.is_some() && digest != before_digest;
            if before.as_deref() != Some(tag) || is_moved {
                let tag = tag.to_owned();
                let now = Settled {
                    tag,
                    digest,
                    commit,
                    before,
                    before_digest,
                    told: None,
                };
                settled.insert(name, now);
            } else if let Some(known) = settled.get_mut(&name) {
                known.digest = digest;
            }
        }
        let is_there = |name: &str| {
            let mut own = policies.iter().filter(|policy| self.is_own(policy));
            own.any(|policy| policy.name_any() == name)
        };
        settled.retain(|name, _| is_there(name));
        Self {
            namespace: self.namespace.clone(),
            tags: settled,
            is_new: false,
        }
    }

    /// Marks what was said of the delivery of a policy's tag.
    pub(super) fn mark(&mut self, policy: &str, told: Told) {
        if let Some(settled) = self.tags.get_mut(policy) {
            settled.told = Some(told);
        }
    }

    fn is_own(&self, policy: &ImagePolicy) -> bool {
        policy.metadata.namespace.as_deref() == Some(&self.namespace)
    }

    /// Writes the annotation.
    pub(super) async fn record(
        &self,
        object: &ImageUpdateAutomation,
        client: &Client,
    ) -> Result<(), NotRecorded> {
        let text = serde_json::to_string(&self.tags).unwrap_or_default();
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ImageUpdateAutomation> = Api::namespaced(client.clone(), namespace);
        let patch = json!({"metadata": {"annotations": {ANNOTATION: text}}});
        let patched = api
            .patch_metadata(
                &object.name_any(),
                &PatchParams::apply(AUTOMATION),
                &Patch::Merge(&patch),
            )
            .await;
        patched.map(drop).map_err(|error| NotRecorded(Box::new(error)))
    }
}

pub(super) fn tag_of(policy: &ImagePolicy) -> &str {
    let status = policy.status.as_ref();
    let latest = status.and_then(|status| status.latest_ref.as_ref());
    latest.map(|latest| latest.tag.as_str()).unwrap_or_default()
}

pub(super) fn digest_of(policy: &ImagePolicy) -> Option<&str> {
    let latest = policy.status.as_ref()?.latest_ref.as_ref()?;
    latest.digest.as_deref().filter(|digest| !digest.is_empty())
}
