//! One reconcile of an ImagePolicy: may it refer to its repository, choose a tag, read its digest, status, wake the
//! automations.

mod access;
mod status;

use std::sync::Arc;

use api::image::{ImagePolicy, ImageRef, ImageRepository, ReflectionPolicy};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use image_policy::hold::{self, Holds};
use image_policy::{Chosen, Policy, Verdict};
use jiff::Timestamp;
use kube::ResourceExt as _;
use oci_client::name::Name;

use crate::context::Context;
use crate::pace;
use crate::record::Unrecorded;
use crate::repository::{canonical_name, parse_image, registry};

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
}

/// Annotation of a policy that must not go back to a tag which its order places before the chosen one.
pub(crate) const DOWNGRADES: &str = "windlass.dev/downgrades";
/// Its only value.
const FORBIDDEN: &str = "forbidden";

/// A chosen image, and how.
pub(crate) struct Choice {
    pub(crate) image: ImageRef,
    pub(crate) chosen: Chosen,
    /// The image is the one of before, as the chosen tag would be a downgrade.
    pub(crate) is_held: bool,
    /// Tags that people hold back.
    pub(crate) holds: Holds,
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
        Err(error) => fail(object, &error, context).await,
    }
}

async fn choose(object: &ImagePolicy, context: &Context) -> Result<Choice, Error> {
    let policy = Policy::try_from(&object.spec).map_err(|error| Error::Invalid(error.to_string()))?;
    let may_go_back = may_go_back(object)?;
    let held = object.annotations().get(hold::ANNOTATION).map(String::as_str);
    let holds = Holds::parse(held).map_err(|error| Error::Invalid(error.to_string()))?;
    let key = repository_of(object);
    access::check_reference(object, &key, context.no_cross_namespace_refs)?;
    let repository = context.repositories.cache.get(&key.object_ref());
    let repository = repository.ok_or_else(|| Error::NoRepository(key.name.clone()))?;
    access::check(object, &repository, &context.client).await?;
    let uid = repository.uid().unwrap_or_default();
    let no_tags = || Error::NoTags(format!("{}s", context.requeue_dependency.as_secs()));
    let name = parse_image(&repository.spec.image).map_err(|error| Error::Image(error.to_string()))?;
    let tags = context.tags.get(&key, &uid, &canonical_name(&name));
    let tags = tags.ok_or_else(no_tags)?;
    // A registry may have many thousands of tags, and each is held against the pattern.
    let choosing = tokio::task::spawn_blocking(move || {
        let free = tags.tags.iter().filter(|tag| holds.get(tag).is_none());
        (policy.choose(free), policy, holds)
    });
    let (chosen, policy, holds) = choosing.await.map_err(|_| Error::Abandoned)?;
    let chosen = chosen?;
    if !may_go_back
        && let Some(current) = current(object, &repository)
        && policy.verdict(&chosen.tag, &current.tag) == Verdict::Behind
        // Who holds a tag wants another one.
        && holds.get(&current.tag).is_none()
    {
        return Ok(Choice {
            image: current.clone(),
            chosen,
            is_held: true,
            holds,
        });
    }
    let digest = digest(object, &repository, name, &chosen.tag, context).await?;
    let image = ImageRef {
        name: repository.spec.image.clone(),
        tag: chosen.tag.clone(),
        digest,
    };
    Ok(Choice {
        image,
        chosen,
        is_held: false,
        holds,
    })
}

fn may_go_back(object: &ImagePolicy) -> Result<bool, Error> {
    match object.annotations().get(DOWNGRADES).map(String::as_str) {
        None => Ok(true),
        Some(FORBIDDEN) => Ok(false),
        Some(_) => Err(Error::Invalid(format!(
            "the annotation {DOWNGRADES} has no value but '{FORBIDDEN}'"
        ))),
    }
}

/// The image that was chosen by the same spec. Who changes the spec may want to go back.
fn current<'o>(object: &'o ImagePolicy, repository: &ImageRepository) -> Option<&'o ImageRef> {
    let status = object.status.as_ref()?;
    let is_same_spec = status.observed_generation == object.metadata.generation;
    let current = status.latest_ref.as_ref()?;
    (is_same_spec && current.name == repository.spec.image).then_some(current)
}

/// The digest of the tag, if the policy wants it.
async fn digest(
    object: &ImagePolicy,
    repository: &ImageRepository,
    name: Name,
    tag: &str,
    context: &Context,
) -> Result<Option<String>, Error> {
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.latest_ref.as_ref());
    match object.reflection() {
        ReflectionPolicy::Never => return Ok(None),
        ReflectionPolicy::IfNotPresent => {
            let same = known.filter(|known| known.tag == tag && known.name == repository.spec.image);
            if let Some(digest) = same.and_then(|known| known.digest.clone()) {
                return Ok(Some(digest));
            }
        }
        ReflectionPolicy::Always => {}
    }
    let remote = registry::repository(repository, name, context).await?;
    let digest = oci_client::digest_of_tag(&remote, tag).await;
    let digest = digest.map_err(|source| Error::Digest {
        tag: tag.to_owned(),
        source,
    })?;
    Ok(Some(digest.to_string()))
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
    let (status, message) = status::chosen(&object, &choice, Timestamp::now());
    let is_new = known.as_ref() != Some(&choice.image);
    let object = writer.write(object, &status).await?;
    if is_new {
        writer.publish(&object, Severity::Info, api::meta::reasons::SUCCEEDED, &message);
        context.wake_automations(object.metadata.namespace.as_deref().unwrap_or_default());
    }
    Ok(match object.reflection() {
        ReflectionPolicy::Always => pace::after(object.interval().to_std(), context.jitter_percentage),
        _ => Outcome::Done,
    })
}

async fn fail(object: Arc<ImagePolicy>, error: &Error, context: &Context) -> Result<Outcome, Unrecorded> {
    let failed = status::failed(&object, error, Timestamp::now());
    let outcome = context.policies.fail(object, failed).await?;
    Ok(match error {
        Error::NoTags(_) | Error::NoRepository(_) => Outcome::After(context.requeue_dependency),
        _ => outcome,
    })
}
