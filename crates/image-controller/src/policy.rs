//! One reconcile of an ImagePolicy: may it refer to its repository, choose a tag that meets its demands, read its digest,
//! status, wake the automations.

mod access;
mod eligible;
mod rules;
mod status;

use std::sync::Arc;

use api::image::{ImagePolicy, ImageRef, ImageRepository, ReflectionPolicy};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use image_policy::{Tally, demand, hold};
use jiff::Timestamp;
use kube::ResourceExt as _;

use self::eligible::{Candidates, PassedOver};
use self::rules::Rules;
use crate::context::Context;
use crate::repository::{canonical_name, parse_image, registry};
use controller_kit::pace;
use controller_kit::record::Unrecorded;

/// Why no image is chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// None of the three ways to order tags is given, or what is given cannot be read.
    #[error("invalid policy: {0}")]
    Invalid(String),
    /// The repository may not be referred to.
    #[error(transparent)]
    Access(#[from] access::Denied),
    /// The repository is not there.
    #[error(
        "referenced ImageRepository does not exist: imagerepositories.image.toolkit.fluxcd.io \"{0}\" not found"
    )]
    NoRepository(String),
    /// The repository was not scanned yet.
    #[error("retrying in {0} error: the tags of the ImageRepository are not known yet")]
    NoTags(String),
    /// No tag is chosen.
    #[error("{0}")]
    Choose(#[from] image_policy::Error),
    /// A blocking step was torn down.
    #[error("failed to finish the choice")]
    Abandoned,
    /// Credentials for the digest.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The name of the image.
    #[error("{0}")]
    Image(String),
    /// The digest.
    #[error("failed to fetch digest of the tag '{tag}'")]
    Digest {
        /// The tag.
        tag: String,
        /// Why not.
        #[source]
        source: oci_client::PullError,
    },
    /// The Secrets of the demanded signature.
    #[error("failed to read what verifies signatures")]
    Material(#[source] oci_verify::Error),
    /// The signature could not be looked at.
    #[error("failed to verify the signature of the tag '{tag}'")]
    Verify {
        /// The tag.
        tag: String,
        /// Why not.
        #[source]
        source: Box<oci_verify::Error>,
    },
    /// The platforms could not be read.
    #[error("failed to read the platforms of the tag '{tag}'")]
    Platforms {
        /// The tag.
        tag: String,
        /// Why not.
        #[source]
        source: oci_client::ImageError,
    },
    /// No tag meets the demands.
    #[error("no tag is eligible yet:\n{0}")]
    NoneEligible(PassedOver),
}

/// Annotations of a policy that are part of its rules.
pub(crate) const ANNOTATIONS: [&str; 6] = [
    rules::DOWNGRADES,
    hold::ANNOTATION,
    demand::MINIMUM_AGE,
    demand::VERIFY,
    demand::VERIFY_ATTESTATIONS,
    demand::PLATFORMS,
];

/// A chosen image, and how.
pub(crate) struct Choice {
    image: ImageRef,
    tally: Tally,
    /// The tag that would be chosen, if it is a downgrade and the image is the one of before.
    downgrade: Option<String>,
    /// Tags before the chosen one that do not meet the demands.
    passed_over: PassedOver,
    rules: Arc<Rules>,
}

/// The repository that a policy refers to.
pub(crate) fn repository_of(policy: &ImagePolicy) -> ObjectKey {
    let reference = &policy.spec.image_repository_ref;
    let own = policy.metadata.namespace.as_deref().unwrap_or_default();
    let namespace = reference.namespace.as_deref().unwrap_or(own);
    ObjectKey::new(namespace, &*reference.name)
}

/// Brings the chosen image up to date.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let writer = &context.policies;
    writer
        .reconcile(&key, |_| (), |object| update(object, &context))
        .await
}

async fn update(object: Arc<ImagePolicy>, context: &Context) -> Result<Outcome, Unrecorded> {
    match choose(&object, context).await {
        Ok(choice) => conclude(object, choice, context).await,
        // After a restart without a volume: what was chosen before counts until the tags are known again.
        Err(Error::NoTags(_)) if status::has_chosen(&object) => {
            Ok(Outcome::After(context.requeue_dependency))
        }
        Err(Error::Registry(registry::Error::Paused { rest, .. })) if status::has_chosen(&object) => {
            Ok(Outcome::After(rest))
        }
        Err(error) => fail(object, &error, context).await,
    }
}

async fn choose(object: &ImagePolicy, context: &Context) -> Result<Choice, Error> {
    let rules = Arc::new(Rules::read(object)?);
    let candidates = candidates(object, context).await?;
    // A registry may have many thousands of tags, and each is held against the pattern.
    let (own, known) = (rules.clone(), candidates.known.clone());
    let newest = tokio::task::spawn_blocking(move || own.newest(&known.tags)).await;
    let newest = newest.map_err(|_| Error::Abandoned)??;
    let repository = &candidates.repository;
    if let Some(kept) = rules.keeps(object, repository, &newest.first) {
        return Ok(Choice {
            image: kept.clone(),
            downgrade: Some(newest.first),
            passed_over: PassedOver::default(),
            tally: newest.tally,
            rules,
        });
    }
    let picked = match rules.must_inspect() {
        true => candidates.eligible(&rules, &newest).await?,
        false => candidates.first(&newest.first).await?,
    };
    let kept = rules.keeps(object, repository, &picked.tag);
    let (image, downgrade) = match kept {
        Some(kept) => (kept.clone(), Some(picked.tag)),
        None => {
            let image = ImageRef {
                name: repository.spec.image.clone(),
                tag: picked.tag,
                digest: picked.digest,
            };
            (image, None)
        }
    };
    Ok(Choice {
        image,
        downgrade,
        passed_over: picked.passed_over,
        tally: newest.tally,
        rules,
    })
}

/// Finds the repository that a policy refers to, if it may.
pub(crate) async fn allowed_repository(
    object: &ImagePolicy,
    context: &Context,
) -> Result<Arc<ImageRepository>, Error> {
    let key = repository_of(object);
    access::check_reference(object, &key, context.no_cross_namespace_refs)?;
    let repository = context.repositories.cache.get(&key.object_ref());
    let repository = repository.ok_or_else(|| Error::NoRepository(key.name.clone()))?;
    access::check(object, &repository, &context.client).await?;
    Ok(repository)
}

/// Finds what a policy chooses from, if it may refer to it.
async fn candidates<'a>(object: &'a ImagePolicy, context: &'a Context) -> Result<Candidates<'a>, Error> {
    let key = repository_of(object);
    let repository = allowed_repository(object, context).await?;
    let uid = repository.uid().unwrap_or_default();
    let name = parse_image(&repository.spec.image).map_err(|error| Error::Image(error.to_string()))?;
    let known = context.tags.get(&key, &uid, &canonical_name(&name));
    let known = known.ok_or_else(|| Error::NoTags(format!("{}s", context.requeue_dependency.as_secs())))?;
    Ok(Candidates {
        object,
        key,
        repository,
        name,
        known,
        context,
    })
}

async fn conclude(
    object: Arc<ImagePolicy>,
    choice: Choice,
    context: &Context,
) -> Result<Outcome, Unrecorded> {
    let writer = &context.policies;
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.latest_ref.clone());
    let now = Timestamp::now();
    let (status, message) = status::chosen(&object, &choice, now);
    let is_new = known.as_ref() != Some(&choice.image);
    let object = writer.write(object, &status).await?;
    if is_new {
        writer.publish(&object, Severity::Info, api::meta::reasons::SUCCEEDED, &message);
        context.wake_automations(object.metadata.namespace.as_deref().unwrap_or_default());
    }
    let outcome = match object.reflection() {
        ReflectionPolicy::Always => pace::after(object.interval().to_std(), context.jitter_percentage),
        _ => Outcome::Done,
    };
    Ok(pace::by(
        outcome,
        due(&object, &choice.passed_over, context, now),
        now,
    ))
}

async fn fail(object: Arc<ImagePolicy>, error: &Error, context: &Context) -> Result<Outcome, Unrecorded> {
    let now = Timestamp::now();
    let failed = status::failed(&object, error, now);
    let outcome = context.policies.fail(object.clone(), failed).await?;
    Ok(match error {
        Error::NoTags(_) | Error::NoRepository(_) => Outcome::After(context.requeue_dependency),
        Error::Registry(registry::Error::Paused { rest, .. }) => Outcome::After(*rest),
        Error::NoneEligible(passed_over) => {
            pace::by(Outcome::Done, due(&object, passed_over, context, now), now)
        }
        _ => outcome,
    })
}

/// When tags that were passed over are looked at again.
fn due(
    object: &ImagePolicy,
    passed_over: &PassedOver,
    context: &Context,
    now: Timestamp,
) -> Option<Timestamp> {
    let repository = context
        .repositories
        .cache
        .get(&repository_of(object).object_ref())?;
    passed_over.due(repository.spec.interval.to_std(), now)
}
