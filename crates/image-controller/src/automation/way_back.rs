//! Choices that are held back by themselves: their delivery failed, or someone took them out of the branch again.
//!
//! By annotations of the automation. Where each choice stands is kept in an annotation, too: the tag of each policy that the
//! branch has, and the commit with which it came. A choice is held by the annotation of its policy that `windlass hold` writes, so
//! it is shown, released and replaced by a newer tag like any other hold. What decides is pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::image::{ImagePolicy, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use image_policy::hold::{self, Hold};
use jiff::{Timestamp, Unit};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::run::{Looked, Run};
use super::update::{self, holds_of};
use crate::context::Context;
use crate::delivery::Failed;
use crate::flags::AUTOMATION;

/// Annotation with the Kustomizations, separated by commas, whose failed health checks hold back what the automation pushed.
pub(crate) const HOLD_FAILED: &str = "windlass.dev/hold-failed";
/// Annotation of an automation whose changes may be taken back in Git: `true` holds back what was.
pub(crate) const HOLD_REVERTED: &str = "windlass.dev/hold-reverted";
/// Annotation that this controller writes: the tag of each policy in the branch, as JSON.
const SETTLED: &str = "windlass.dev/settled-tags";

/// Kustomizations of one automation.
const MAX_DELIVERIES: usize = 20;
/// Policies whose place is kept.
const MAX_SETTLED: usize = 500;
/// Characters of a reason: a name and a message may be longer together than a hold takes.
const MAX_REASON: usize = 400;
/// Characters of a commit that are shown.
const SHOWN: usize = 7;

/// Why choices cannot be held back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An annotation of the automation.
    #[error("the annotation {annotation} {problem}")]
    Invalid {
        /// Which one.
        annotation: &'static str,
        /// What is wrong with it.
        problem: String,
    },
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
    /// The API server did not take the annotation of the automation.
    #[error("failed to record which tags the branch has")]
    Record(#[source] Box<kube::Error>),
}

/// The tag of a policy that the branch has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Settled {
    tag: String,
    /// If the branch has that, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Hash of the first commit that has it; None if it was there before anyone looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The tag that the branch had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Its digest.
    #[serde(default, rename = "beforeDigest", skip_serializing_if = "Option::is_none")]
    before_digest: Option<String>,
}

impl Settled {
    /// What is held of it: the tag, or the tag at its digest if only that changed.
    fn hold(&self, reason: &str) -> Hold {
        let (digest, instead) = match (&self.digest, &self.before_digest) {
            (Some(digest), Some(before)) if self.before.as_ref() == Some(&self.tag) => {
                (digest.clone(), before.clone())
            }
            _ => Default::default(),
        };
        Hold {
            tag: self.tag.clone(),
            digest,
            instead,
            reason: reason.chars().take(MAX_REASON).collect(),
            since: String::new(),
        }
    }
}

/// What an automation says about holding back.
#[derive(Debug)]
pub(super) struct WayBack {
    /// Of the automation: policies of other namespaces are not its own to hold back.
    namespace: String,
    deliveries: Vec<String>,
    holds_reverted: bool,
    settled: BTreeMap<String, Settled>,
    /// Nothing was recorded yet, or it cannot be read.
    is_new: bool,
}

/// A choice that is to be held back.
#[derive(Debug)]
pub(super) struct Held {
    policy: Arc<ImagePolicy>,
    hold: Hold,
}

impl WayBack {
    /// Reads the annotations; None if nothing is held back by itself.
    pub(super) fn read(object: &ImageUpdateAutomation) -> Result<Option<Self>, Error> {
        let annotation = |name: &str| object.annotations().get(name).map(String::as_str);
        let deliveries = names(annotation(HOLD_FAILED).unwrap_or_default())?;
        let holds_reverted = match annotation(HOLD_REVERTED) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                return Err(Error::Invalid {
                    annotation: HOLD_REVERTED,
                    problem: "has no value but 'true' and 'false'".to_owned(),
                });
            }
        };
        if deliveries.is_empty() && !holds_reverted {
            return Ok(None);
        }
        // What cannot be read is as good as forgotten: then nothing is held that should not be.
        let settled: Option<_> = annotation(SETTLED).and_then(|text| serde_json::from_str(text).ok());
        Ok(Some(Self {
            namespace: object.namespace().unwrap_or_default(),
            deliveries,
            holds_reverted,
            is_new: settled.is_none(),
            settled: settled.unwrap_or_default(),
        }))
    }

    /// Returns whether the branch must be looked at, even if nothing has changed.
    pub(super) fn must_look(&self) -> bool {
        self.is_new
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
            (!was_step_back).then(|| Held::new(policy, settled.hold(&reason)))
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
            (tally.changed > 0 && tally.kept == 0).then(|| Held::new(policy, settled.hold(&reason)))
        });
        held.collect()
    }

    /// What the annotation says after a run; None if it says so already.
    fn after(&self, policies: &[Arc<ImagePolicy>], run: &Run) -> Option<BTreeMap<String, Settled>> {
        let looked = run.looked.as_ref()?;
        let mut settled = self.settled.clone();
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
        (self.is_new || settled != self.settled).then_some(settled)
    }

    fn is_own(&self, policy: &ImagePolicy) -> bool {
        policy.metadata.namespace.as_deref() == Some(&self.namespace)
    }

    /// The tag that a policy has chosen, if the branch has had it and it may be held back.
    fn chosen(&self, policy: &ImagePolicy) -> Option<&Settled> {
        if !self.is_own(policy) {
            return None;
        }
        let tag = tag_of(policy);
        let settled = self.settled.get(policy.metadata.name.as_deref()?)?;
        let digest = digest_of(policy);
        let is_held = holds_of(policy).get_image(tag, digest).is_some();
        let is_there = settled.tag == tag
            && settled
                .digest
                .as_deref()
                .is_none_or(|known| Some(known) == digest);
        (is_there && !is_held).then_some(settled)
    }

    /// The Kustomizations whose last try failed.
    pub(super) fn failures(&self, context: &Context) -> Vec<(String, Failed)> {
        let failures = self.deliveries.iter().filter_map(|name| {
            let key = ObjectKey::new(&*self.namespace, &**name);
            let delivery = context.deliveries.get(&key.object_ref())?;
            Some((name.clone(), delivery.failed()?))
        });
        failures.collect()
    }

    /// Records which tags the branch has after a run.
    pub(super) async fn record(
        &self,
        object: &ImageUpdateAutomation,
        policies: &[Arc<ImagePolicy>],
        run: &Run,
        client: &Client,
    ) -> Result<(), Error> {
        let Some(settled) = self.after(policies, run) else {
            return Ok(());
        };
        let text = serde_json::to_string(&settled).unwrap_or_default();
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ImageUpdateAutomation> = Api::namespaced(client.clone(), namespace);
        let patch = json!({"metadata": {"annotations": {SETTLED: text}}});
        let patched = api
            .patch_metadata(&object.name_any(), &parameters(), &Patch::Merge(&patch))
            .await;
        patched.map(drop).map_err(|error| Error::Record(Box::new(error)))
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
        let patched = api.patch(&name, &parameters(), &Patch::Merge(&patch)).await;
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

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(AUTOMATION.to_owned()),
        ..PatchParams::default()
    }
}

fn tag_of(policy: &ImagePolicy) -> &str {
    let status = policy.status.as_ref();
    let latest = status.and_then(|status| status.latest_ref.as_ref());
    latest.map(|latest| latest.tag.as_str()).unwrap_or_default()
}

fn digest_of(policy: &ImagePolicy) -> Option<&str> {
    let latest = policy.status.as_ref()?.latest_ref.as_ref()?;
    latest.digest.as_deref().filter(|digest| !digest.is_empty())
}

fn short(commit: &str) -> &str {
    commit.get(..SHOWN).unwrap_or(commit)
}

fn names(text: &str) -> Result<Vec<String>, Error> {
    let invalid = |problem: String| Error::Invalid {
        annotation: HOLD_FAILED,
        problem,
    };
    let names: Vec<_> = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.len() > MAX_DELIVERIES {
        return Err(invalid(format!(
            "names more than {MAX_DELIVERIES} Kustomizations"
        )));
    }
    let is_name = |name: &&str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        name.len() <= 253 && name.chars().all(is_plain)
    };
    if !names.iter().all(is_name) {
        let problem = "must name Kustomizations of the automation's namespace, separated by commas";
        return Err(invalid(problem.to_owned()));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
