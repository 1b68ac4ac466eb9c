//! Choices that are held back by themselves: their delivery failed, or someone took them out of the branch again.
//!
//! By annotations of the automation. Where each choice stands is kept in an annotation, too: the tag of each policy that the
//! branch has, and the commit with which it came. A choice is held by the annotation of its policy that `windlass hold` writes, so
//! it is shown, released and replaced by a newer tag like any other hold. What decides is pure.

use std::sync::Arc;

use api::image::{ImagePolicy, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use image_policy::hold::{self, Hold};
use jiff::{Timestamp, Unit};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::run::Looked;
use super::settled::{Settled, SettledTags, digest_of, tag_of};
use super::update::{self, holds_of};
use crate::context::Context;
use crate::delivery::{self, Failed, Invalid, short};
use crate::flags::AUTOMATION;

/// Annotation with the Kustomizations, separated by commas, whose failed health checks hold back what the automation pushed.
pub(crate) const HOLD_FAILED: &str = "windlass.dev/hold-failed";
/// Annotation of an automation whose changes may be taken back in Git: `true` holds back what was.
pub(crate) const HOLD_REVERTED: &str = "windlass.dev/hold-reverted";

/// Characters of a reason: a name and a message may be longer together than a hold takes.
const MAX_REASON: usize = 400;

/// Why choices cannot be held back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An annotation of the automation.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The API server did not take the hold of a policy.
    #[error("failed to hold back tag '{tag}' of ImagePolicy '{policy}'")]
    Hold {
        /// The tag.
        tag: String,
        /// Name of the policy.
        policy: String,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
}

/// What an automation says about holding back.
#[derive(Debug)]
pub(super) struct WayBack {
    settled: SettledTags,
    deliveries: Vec<String>,
    holds_reverted: bool,
}

/// A choice that is to be held back.
#[derive(Debug)]
pub(super) struct Held {
    policy: Arc<ImagePolicy>,
    hold: Hold,
}

impl WayBack {
    /// Reads the annotations; None if nothing is held back by itself.
    pub(super) fn read(object: &ImageUpdateAutomation, settled: &SettledTags) -> Result<Option<Self>, Error> {
        let annotation = |name: &str| object.annotations().get(name).map(String::as_str);
        let deliveries = delivery::names(object, HOLD_FAILED)?;
        let holds_reverted = match annotation(HOLD_REVERTED) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                let problem = "has no value but 'true' and 'false'";
                return Err(Invalid::new(HOLD_REVERTED, problem).into());
            }
        };
        if deliveries.is_empty() && !holds_reverted {
            return Ok(None);
        }
        Ok(Some(Self {
            settled: settled.clone(),
            deliveries,
            holds_reverted,
        }))
    }

    /// The choices whose commit was tried by one of the Kustomizations and failed.
    pub(super) fn failed(&self, policies: &[Arc<ImagePolicy>], failures: &[(String, Failed)]) -> Vec<Held> {
        let held = policies.iter().filter_map(|policy| {
            let settled = self.chosen(policy)?;
            let commit = settled.commit.as_deref()?;
            let (delivery, failed) = failures.iter().find(|(_, failed)| failed.commit == commit)?;
            // A step back that fails, too, says that the tag is not to blame. Nothing goes back any further.
            let was_step_back = settled.before.as_deref().is_some_and(|before| {
                let digest = settled.before_digest.as_deref();
                holds_of(policy).get_image(before, digest).is_some()
            });
            let line = failed.message.lines().next().unwrap_or_default();
            let reason = format!(
                "Kustomization {delivery} failed at commit {}: {line}",
                short(commit)
            );
            (!was_step_back).then(|| Held::new(policy, hold_of(settled, &reason)))
        });
        held.collect()
    }

    /// The choices that were in the branch and are in none of their places any more.
    pub(super) fn reverted(&self, policies: &[Arc<ImagePolicy>], looked: &Looked) -> Vec<Held> {
        if !self.holds_reverted {
            return Vec::new();
        }
        let held = policies.iter().filter_map(|policy| {
            let settled = self.chosen(policy)?;
            let tally = looked.tallies.get(&update::key(policy))?;
            let reason = format!(
                "it was taken back in Git, by commit {} at the latest",
                short(&looked.base)
            );
            (tally.changed > 0 && tally.kept == 0).then(|| Held::new(policy, hold_of(settled, &reason)))
        });
        held.collect()
    }

    /// The tag that a policy has chosen, if the branch has had it and it may be held back.
    fn chosen(&self, policy: &ImagePolicy) -> Option<&Settled> {
        let is_held = holds_of(policy)
            .get_image(tag_of(policy), digest_of(policy))
            .is_some();
        self.settled.get(policy).filter(|_| !is_held)
    }

    /// The Kustomizations whose last try failed.
    pub(super) fn failures(&self, context: &Context) -> Vec<(String, Failed)> {
        let failures = self.deliveries.iter().filter_map(|name| {
            let key = ObjectKey::new(self.settled.namespace(), name);
            let delivery = context.deliveries.get(&key.object_ref())?;
            Some((name.clone(), delivery.failed()?))
        });
        failures.collect()
    }
}

/// Holds choices back. Returns a line for each.
pub(super) async fn hold(held: Vec<Held>, context: &Context) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for held in held {
        lines.push(held.hold(context, Timestamp::now()).await?);
    }
    Ok(lines)
}

impl Held {
    fn new(policy: &Arc<ImagePolicy>, hold: Hold) -> Self {
        Self {
            policy: policy.clone(),
            hold,
        }
    }

    /// Holds the tag back, and says so in a line.
    async fn hold(mut self, context: &Context, now: Timestamp) -> Result<String, Error> {
        let mut holds = holds_of(&self.policy);
        let name = self.policy.name_any();
        let tag = match self.hold.digest.as_str() {
            "" => self.hold.tag.clone(),
            digest => format!("{}@{digest}", self.hold.tag),
        };
        self.hold.since = now.round(Unit::Second).unwrap_or(now).to_string();
        if let Err(error) = holds.add(self.hold.clone()) {
            return Ok(format!("tag {tag} of ImagePolicy {name} is not held: {error}"));
        }
        let meta = &self.policy.metadata;
        // Someone may hold or release another one in this moment: then the next run tries again.
        let patch = json!({"metadata": {
            "resourceVersion": meta.resource_version,
            "annotations": {hold::ANNOTATION: holds.annotation()},
        }});
        let api: Api<ImagePolicy> = Api::namespaced(
            context.client.clone(),
            meta.namespace.as_deref().unwrap_or_default(),
        );
        let patched = api
            .patch(&name, &PatchParams::apply(AUTOMATION), &Patch::Merge(&patch))
            .await;
        let patched = patched.map_err(|source| Error::Hold {
            tag: tag.clone(),
            policy: name.clone(),
            source: Box::new(source),
        })?;
        context.policies.cache.remember(patched);
        Ok(format!(
            "held back tag {tag} of ImagePolicy {name}: {}",
            self.hold.reason
        ))
    }
}

/// What is held of a tag: all of it, or the tag at its digest if only that changed.
fn hold_of(settled: &Settled, reason: &str) -> Hold {
    let (digest, instead) = match (&settled.digest, &settled.before_digest) {
        (Some(digest), Some(before)) if settled.before.as_ref() == Some(&settled.tag) => {
            (digest.clone(), before.clone())
        }
        _ => Default::default(),
    };
    Hold {
        tag: settled.tag.clone(),
        digest,
        instead,
        reason: reason.chars().take(MAX_REASON).collect(),
        since: String::new(),
    }
}

#[cfg(test)]
mod tests;
