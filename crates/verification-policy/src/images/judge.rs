//! All images of a delivery, held against the policies that apply to it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::delivery::{PolicyAction, VerificationPolicy};
use artifact::digest::Digest;
use controller_kit::Context;
use controller_kit::flags::WatchFlags;
use controller_kit::rules::{Changes, Rules};
use futures::{FutureExt as _, StreamExt as _};
use manifest::{Object, ObjectId};
use oci_client::image_name::ImageName;
use oci_verify::SigstoreRoot;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::named;
use super::verifier::Verifier;
use crate::scope::{self, Way};
use crate::tally::{Outcome, Tally};

/// Images of one delivery that are held against policies.
const MAX_IMAGES: usize = 500;
/// Images that are looked at at the same time for what is delivered from one namespace: registries of tenants may send attestations of
/// many megabytes.
const AT_ONCE: usize = 4;
/// How long one image may take once it is its turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long all images of a delivery may take.
const LONGEST: Duration = Duration::from_secs(300);
/// Images that a message names.
const MAX_NAMED: usize = 5;
/// Characters of the name of an image in a message.
const MAX_NAME: usize = 200;
/// Characters of a reason in a message.
const MAX_REASON: usize = 500;

/// Holds images against the policies of the cluster.
pub struct Judge {
    policies: Rules<VerificationPolicy>,
    /// The namespace of this process, whose policies reach into others.
    namespace: String,
    verifier: Verifier,
    /// Of each namespace from which something is delivered.
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    tally: Tally,
}

/// Images that may be delivered.
#[derive(Debug, Default)]
pub struct Judged {
    /// What would be refused, were it not for the policy's action Warn; one line each, for some of many.
    pub warnings: Vec<String>,
    /// Digests of images that are to be applied by them.
    pins: BTreeMap<String, Digest>,
}

impl Judged {
    /// Returns whether a policy wants an image named by its digest.
    pub fn pins(&self) -> bool {
        !self.pins.is_empty()
    }

    /// Names the images of an object by their digests, where a policy wants that. Returns whether that changed it.
    pub fn pin(&self, object: &mut Object) -> bool {
        let new = |text: &str| Some(format!("{text}@{}", self.pins.get(text)?));
        self.pins() && named::rename(object.value_mut(), &new)
    }
}

/// Images that are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    refused: Vec<String>,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.refused.join("\n"))
    }
}

/// An image, who names it first, and which policies apply to it.
struct Case {
    image: Result<ImageName, String>,
    named_by: ObjectId,
    policies: BTreeMap<String, Arc<VerificationPolicy>>,
}

/// What came of a case.
#[derive(Default)]
struct Verdict {
    refused: Option<String>,
    warnings: Vec<String>,
    digest: Option<Digest>,
}

impl Judge {
    /// Watches the policies. The stream must be polled by [`follow`](Self::follow).
    ///
    /// `kind` is that of the objects which deliver, for metrics.
    pub fn new(
        kit: &Context,
        kind: &'static str,
        flags: &WatchFlags,
        sigstore: SigstoreRoot,
    ) -> (Self, Changes<VerificationPolicy>) {
        let (policies, changes) = Rules::new(&kit.client, flags);
        let judge = Self {
            policies,
            namespace: kit.namespace.clone(),
            verifier: Verifier::new(kit.client.clone(), sigstore),
            turns: Mutex::default(),
            tally: Tally::of_images(kind, &kit.metrics),
        };
        (judge, changes)
    }

    /// Waits until the policies are known. Where the kind is not installed there are none.
    pub async fn wait_until_ready(&self) {
        self.policies.wait_until_ready("no image is verified").await;
    }

    /// Calls `changed` for each change of a policy, with whether it concerns what is delivered from a namespace, into others.
    pub async fn follow(
        &self,
        changes: Changes<VerificationPolicy>,
        changed: impl Fn(&dyn Fn(&str, &[&str]) -> bool),
    ) {
        let follow = self.policies.follow(changes, |both| {
            changed(&|from, to| {
                let covers = |to: &&str| {
                    let mut both = both.iter();
                    both.any(|policy| scope::covers(policy, Way { from, to }, &self.namespace))
                };
                covers(&from) || to.iter().any(covers)
            });
        });
        follow.await;
    }

    /// Returns whether a policy may apply to what is delivered from a namespace.
    pub fn may_apply(&self, from: &str) -> bool {
        !self.near(from).is_empty()
    }

    /// The policies that may apply to what is delivered from a namespace.
    fn near(&self, from: &str) -> Vec<Arc<VerificationPolicy>> {
        let mut all = self.policies.all();
        all.retain(|policy| {
            let namespace = scope::namespace(policy);
            let is_near = namespace == self.namespace || namespace == from;
            policy.spec.images.is_some() && !policy.spec.suspend && is_near
        });
        all
    }

    /// Returns a digest of the policies that may apply to what is delivered from a namespace.
    pub fn digest(&self, from: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        let near = self.near(from);
        let mut near: Vec<_> = near
            .iter()
            .map(|policy| (&policy.metadata.uid, policy.metadata.generation))
            .collect();
        near.sort();
        near.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns why a source of another namespace may not be used in this one, if so.
    pub fn refuses_elsewhere(&self, from: &str, kind: &str, namespace: &str) -> Option<String> {
        scope::refusal_of_elsewhere(&self.policies.all(), from, (kind, namespace), &self.namespace)
    }

    /// Returns why a build of a namespace may fetch nothing from elsewhere, if so: what comes in beside a source is not verified.
    pub fn refuses_remote(&self, from: &str) -> Option<String> {
        scope::refusal_of_remote(&self.policies.all(), from, &self.namespace)
    }

    /// Holds the images of objects against the policies that apply to them. `home` is where objects go that name no namespace.
    ///
    /// # Errors
    /// With the images that are refused.
    pub async fn judge<'a>(
        &self,
        from: &str,
        home: &str,
        objects: impl IntoIterator<Item = &'a Object>,
    ) -> Result<Judged, Error> {
        let cases = self.cases(from, home, objects);
        if cases.is_empty() {
            return Ok(Judged::default());
        }
        if cases.len() > MAX_IMAGES {
            let said = format!("more than {MAX_IMAGES} images are to be verified at once");
            let mut policies = cases.values().flat_map(|case| case.policies.values());
            let is_enforced = |policy: &Arc<VerificationPolicy>| action(policy) == PolicyAction::Enforce;
            return match policies.any(is_enforced) {
                true => Err(Error { refused: vec![said] }),
                false => Ok(Judged {
                    warnings: vec![said],
                    ..Judged::default()
                }),
            };
        }
        let mut looks = Vec::new();
        for (text, case) in &cases {
            looks.push(self.verdict(from, text, case).boxed());
        }
        let verdicts = futures::stream::iter(looks).buffer_unordered(AT_ONCE);
        // In the order of their names, whichever registry was faster.
        let verdicts = tokio::time::timeout(LONGEST, verdicts.collect::<BTreeMap<_, _>>()).await;
        let verdicts = verdicts.map_err(|_| Error {
            refused: vec![format!("{} images were not verified in {LONGEST:?}", cases.len())],
        })?;
        let (mut refused, mut judged) = (Vec::new(), Judged::default());
        for (text, verdict) in verdicts {
            refused.extend(verdict.refused);
            judged.warnings.extend(verdict.warnings);
            judged
                .pins
                .extend(verdict.digest.map(|digest| (text.to_owned(), digest)));
        }
        shorten(&mut refused);
        shorten(&mut judged.warnings);
        match refused.is_empty() {
            true => Ok(judged),
            false => Err(Error { refused }),
        }
    }

    /// The images to which a policy applies, by their names in the objects.
    fn cases<'a>(
        &self,
        from: &str,
        home: &str,
        objects: impl IntoIterator<Item = &'a Object>,
    ) -> BTreeMap<String, Case> {
        let mut cases = BTreeMap::new();
        let near = self.near(from);
        if near.is_empty() {
            return cases;
        }
        for object in objects {
            let to = Some(object.namespace())
                .filter(|to| !to.is_empty())
                .unwrap_or(home);
            let way = Way { from, to };
            let covers = |policy: &&Arc<VerificationPolicy>| scope::covers(policy, way, &self.namespace);
            let covering: Vec<_> = near.iter().filter(covers).collect();
            if covering.is_empty() {
                continue;
            }
            for text in named::named(object.value()) {
                let image = ImageName::parse(text).map_err(|error| error.to_string());
                let repository = image.as_ref().ok().map(ImageName::repository);
                // What is no name may be that of anything.
                let is_about = |policy: &VerificationPolicy| {
                    let repository = repository.as_ref();
                    repository.is_none_or(|repository| scope::is_about(policy, repository))
                };
                let about = covering.iter().filter(|policy| is_about(policy));
                let about: Vec<_> = about
                    .map(|policy| (scope::id(policy), Arc::clone(policy)))
                    .collect();
                if about.is_empty() {
                    continue;
                }
                let case = match cases.entry(text.to_owned()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(vacant) => vacant.insert(Case {
                        image,
                        named_by: object.id(),
                        policies: BTreeMap::new(),
                    }),
                };
                case.policies.extend(about);
            }
        }
        cases
    }

    async fn verdict<'a>(&self, from: &str, text: &'a str, case: &Case) -> (&'a str, Verdict) {
        let turn = self.turn(from).acquire_owned().await;
        let mut verdict = Verdict::default();
        let end = Instant::now() + PATIENCE;
        for (id, policy) in &case.policies {
            let judged = match &case.image {
                Ok(image) => {
                    let digest = &mut verdict.digest;
                    self.verifier.meets(from, image, policy, digest, end).await
                }
                Err(problem) => Err(problem.clone()),
            };
            let Err(problem) = judged else {
                self.tally.count(Outcome::Met);
                continue;
            };
            let name: String = text.chars().take(MAX_NAME).collect();
            let what = format!("image '{name}' of {}", case.named_by);
            let problem: String = problem.chars().take(MAX_REASON).collect();
            let why = policy.spec.reason.as_ref();
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            match action(policy) {
                PolicyAction::Enforce => {
                    self.tally.count(Outcome::Refused);
                    verdict.refused = Some(format!(
                        "{what} is refused by VerificationPolicy {id}: {problem}{why}"
                    ));
                    break;
                }
                PolicyAction::Warn => {
                    self.tally.count(Outcome::Warned);
                    verdict.warnings.push(format!(
                        "{what} does not meet VerificationPolicy {id}: {problem}{why}"
                    ));
                }
            }
        }
        let is_pinned = |policy: &Arc<VerificationPolicy>| scope::pins(policy);
        let is_named = matches!(&case.image, Ok(image) if image.digest.is_some());
        if is_named || !case.policies.values().any(is_pinned) {
            verdict.digest = None;
        }
        drop(turn);
        (text, verdict)
    }

    /// The turns of a namespace.
    fn turn(&self, from: &str) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(from.to_owned());
        Arc::clone(turn.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))))
    }
}

/// Keeps the first lines, and says how many there were.
fn shorten(lines: &mut Vec<String>) {
    let more = lines.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        lines.truncate(MAX_NAMED);
        lines.push(format!("and {more} more images"));
    }
}

fn action(policy: &VerificationPolicy) -> PolicyAction {
    policy.spec.action.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_many_lines_are_kept() {
        let lines = |count: usize| {
            let mut lines: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            shorten(&mut lines);
            lines
        };
        assert_eq!(lines(MAX_NAMED).len(), MAX_NAMED);
        assert_eq!(lines(MAX_NAMED + 2).last().unwrap(), "and 2 more images");
    }
}
