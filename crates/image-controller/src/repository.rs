//! One reconcile of an ImageRepository: is a scan due, scan, keep the tags, status, wake the policies.
//!
//! A scan counts as a whole or not at all: a list that breaks off changes nothing.

mod decide;
mod image;
pub(crate) mod registry;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::image::ImageRepository;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::jitter::random;
use controller_kit::queue::Outcome;
use go_regexp::Regexp;
use jiff::Timestamp;
use kube::ResourceExt as _;
use oci_client::name::Name;
use oci_client::registry::Listing;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::context::Context;
use crate::metrics::Scan;
use crate::tags::{Mark, TagList, Tags};
use controller_kit::pace;
use controller_kit::record::Unrecorded;

use decide::Due;
pub(crate) use image::parse as parse_image;
pub(crate) use status::IMAGE_URL_INVALID;

/// Longer patterns are not read, in bytes.
const MAX_PATTERN: usize = 4096;

/// Why there is no list of tags.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The name of the image.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// A pattern of the exclusion list.
    #[error("failed to compile regex {0}: {1}")]
    Exclusion(String, String),
    /// Credentials, or the way to the registry.
    #[error(transparent)]
    Access(#[from] registry::Error),
    /// The registry.
    #[error("scan failed")]
    Scan(#[source] oci_client::registry::Error),
    /// The registry, asked for a tag that it reported.
    #[error("scan failed: tag '{tag}'")]
    Look {
        /// The tag.
        tag: String,
        /// Why it cannot be looked for.
        #[source]
        source: oci_client::PullError,
    },
    /// A blocking step was torn down.
    #[error("failed to finish the scan")]
    Abandoned,
}

/// Result of a scan.
pub(crate) struct Scanned {
    pub(crate) name: Name,
    /// Sorted, without those that are excluded.
    pub(crate) tags: Vec<String>,
    pub(crate) revision: String,
    how: Scan,
    /// Of the list that the tags are from.
    mark: Option<Mark>,
    /// The time until all tags are due, if only those were looked for that the registry reported.
    pub(crate) rest: Option<Duration>,
}

/// Brings the tags of an image up to date.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let forget = |_: Option<&ImageRepository>| context.tags.forget(&key);
    let writer = &context.repositories;
    writer
        .reconcile(&key, forget, |object| update(object, &key, &context))
        .await
}

async fn update(
    object: Arc<ImageRepository>,
    key: &ObjectKey,
    context: &Context,
) -> Result<Outcome, Unrecorded> {
    let writer = &context.repositories;
    let (now, began) = (Timestamp::now(), Instant::now());
    let uid = object.uid().unwrap_or_default();
    let canonical = parse_image(&object.spec.image);
    let scanned = match canonical {
        Ok(name) => {
            let canonical = canonical_name(&name);
            let known = context.tags.get(key, &uid, &canonical);
            match (decide::due(&object, &canonical, known.is_some(), now), known) {
                (Due::In(rest), _) => {
                    tracing::debug!(
                        "no change in repository configuration since last scan, next scan in {rest:?}"
                    );
                    let status = status::unchanged(&object, now);
                    writer.write(object, &status).await?;
                    return Ok(after(rest));
                }
                (Due::Tags(tags, rest), Some(known)) => {
                    look(&object, name, tags, (&known, rest), context).await
                }
                (_, known) => scan(&object, name, known.as_deref(), context).await,
            }
        }
        Err(error) => Err(Error::Image(error)),
    };
    let result = match &scanned {
        Ok(scanned) => Some(scanned.how),
        Err(Error::Scan(_) | Error::Look { .. }) => Some(Scan::Failed),
        Err(_) => None, // no registry was asked
    };
    if let Some(result) = result {
        context.meters.scanned(result, began.elapsed());
    }
    match scanned {
        Ok(scanned) => conclude(object, key, uid, scanned, context).await,
        Err(Error::Access(paused @ registry::Error::Paused { rest, .. })) => {
            let status = status::paused(&object, &paused, now);
            writer.write(object, &status).await?;
            Ok(Outcome::After(later(rest)))
        }
        Err(error) => fail(object, &error, context).await,
    }
}

async fn conclude(
    object: Arc<ImageRepository>,
    key: &ObjectKey,
    uid: String,
    scanned: Scanned,
    context: &Context,
) -> Result<Outcome, Unrecorded> {
    let (now, writer) = (Timestamp::now(), &context.repositories);
    let interval = object.spec.interval.to_std();
    let status = status::scanned(&object, &scanned, now);
    let message = status::message(&scanned);
    let last = object
        .status
        .as_ref()
        .and_then(|status| status.last_scan_result.as_ref());
    let is_new = last.and_then(|last| last.revision.as_deref()) != Some(&scanned.revision);
    let image = canonical_name(&scanned.name);
    let had_tags = context.tags.get(key, &uid, &image).is_some();
    let tags: TagList = scanned.tags.iter().map(String::as_str).collect();
    let (store, own, mark) = (context.tags.clone(), key.clone(), scanned.mark);
    let kept = tokio::task::spawn_blocking(move || store.put(&own, &uid, &image, tags, mark)).await;
    if let Err(error) = kept.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
        tracing::error!(%error, "failed to write the tags to the storage path: they are scanned again after a restart");
    }
    let object = writer.write(object, &status).await?;
    if is_new {
        writer.publish(&object, Severity::Info, api::meta::reasons::SUCCEEDED, &message);
    } else {
        let text = format!("tags did not change, next scan in {}", object.spec.interval);
        writer.publish(&object, Severity::Trace, api::meta::reasons::SUCCEEDED, &text);
    }
    // A tag that was reported may have moved, and a policy may want its digest.
    if is_new || !had_tags || scanned.rest.is_some() {
        context.wake_policies(key);
    }
    Ok(match scanned.rest {
        Some(rest) => after(rest),
        None => pace::after(interval, context.jitter_percentage),
    })
}

fn after(rest: Duration) -> Outcome {
    match rest {
        Duration::MAX => Outcome::Done,
        rest => Outcome::After(rest),
    }
}

async fn fail(object: Arc<ImageRepository>, error: &Error, context: &Context) -> Result<Outcome, Unrecorded> {
    let failed = status::failed(&object, error, Timestamp::now());
    let outcome = context.repositories.fail(object, failed).await?;
    Ok(match registry::pause(error) {
        Some(pause) if outcome == Outcome::Backoff => Outcome::After(later(pause)),
        _ => outcome,
    })
}

/// A little later than asked, so that not all objects of a registry come back in the same moment.
fn later(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + 0.1 * random())
}

/// Lists all tags of the image, and leaves out what is excluded.
async fn scan(
    object: &ImageRepository,
    name: Name,
    known: Option<&Tags>,
    context: &Context,
) -> Result<Scanned, Error> {
    let patterns = exclusions(object)?;
    let repository = registry::repository(object, name, context).await?;
    let exclusions = object.exclusion_list();
    let mark = known.and_then(|known| known.mark(&exclusions));
    let listing = repository.tags_unless(mark).await.map_err(|error| {
        registry::heed(&error, object, &repository, context);
        Error::Scan(error)
    })?;
    let (how, tags, text) = match (listing, known, mark) {
        (Listing::Tags { tags, mark }, ..) => (Scan::Listed, tags, mark),
        (Listing::Unchanged, known, mark) => {
            let known = known.into_iter().flat_map(|known| known.tags.iter());
            let tags = known.map(str::to_owned).collect();
            (Scan::NotModified, tags, mark.map(str::to_owned))
        }
    };
    // A registry may have many thousands of tags, and each is held against all patterns.
    let sorting = tokio::task::spawn_blocking(move || {
        let tags = sorted(tags, &patterns);
        (checksum(&tags), tags)
    });
    let (revision, tags) = sorting.await.map_err(|_| Error::Abandoned)?;
    Ok(Scanned {
        revision,
        name: repository.name,
        tags,
        how,
        mark: text.map(|text| Mark { text, exclusions }),
        rest: None,
    })
}

/// Looks for single tags that the registry reported, and adds those that are there to what is known.
async fn look(
    object: &ImageRepository,
    name: Name,
    reported: Vec<String>,
    (known, rest): (&Tags, Duration),
    context: &Context,
) -> Result<Scanned, Error> {
    let reported = sorted(reported, &exclusions(object)?);
    let repository = registry::repository(object, name, context).await?;
    let mut tags: Vec<String> = known.tags.iter().map(str::to_owned).collect();
    for tag in reported {
        match oci_client::digest_of_tag(&repository, &tag).await {
            Ok(_) => tags.push(tag),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                registry::heed(&error, object, &repository, context);
                return Err(Error::Look { tag, source: error });
            }
        }
    }
    tags.sort_unstable();
    tags.dedup();
    Ok(Scanned {
        revision: checksum(&tags),
        name: repository.name,
        tags,
        how: Scan::Looked,
        // Tags were added, which the marked list may not have.
        mark: None,
        rest: Some(rest),
    })
}

/// The tags in order, each once, without those that are excluded.
fn sorted(mut tags: Vec<String>, exclusions: &[Regexp]) -> Vec<String> {
    // A text that is not a tag by the specification is nothing that a reference could name.
    tags.retain(|tag| oci_client::is_tag(tag));
    tags.retain(|tag| !exclusions.iter().any(|pattern| pattern.is_match(tag.as_bytes())));
    tags.sort_unstable();
    tags.dedup();
    tags
}

fn exclusions(object: &ImageRepository) -> Result<Vec<Regexp>, Error> {
    let patterns = object.exclusion_list().into_iter();
    patterns
        .map(|pattern| {
            if pattern.len() > MAX_PATTERN {
                return Err(Error::Exclusion(String::new(), "it is too long".to_owned()));
            }
            let compiled = Regexp::compile(pattern.as_bytes());
            compiled.map_err(|error| Error::Exclusion(pattern, error.to_string()))
        })
        .collect()
}

/// Changes when a tag comes or goes, and does not depend on the order in which the registry lists them.
fn checksum(tags: &[String]) -> String {
    let mut hasher = Sha256::new();
    for tag in tags {
        hasher.update(tag);
        hasher.update("\n");
    }
    let digest = hasher.finalize();
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name with its registry, as Flux shows it.
pub(crate) fn canonical_name(name: &Name) -> String {
    format!("{}/{}", name.registry, name.repository)
}
