//! What an image says of itself: the labels of its configuration. They are the words of whoever built it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::image::{ImagePolicy, ImageRepository};
use forge::web::is_hash;
use oci_client::registry::Repository;

use crate::context::Context;
use crate::policy;
use crate::repository::{canonical_name, parse_image, registry};

/// Label with the repository that an image was built from.
pub(super) const SOURCE: &str = "org.opencontainers.image.source";
/// Label with the commit that it was built from.
pub(super) const REVISION: &str = "org.opencontainers.image.revision";
/// Label with the time.
pub(super) const CREATED: &str = "org.opencontainers.image.created";

/// Why nothing is known of an image.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error("{0}")]
    Name(String),
    #[error(transparent)]
    Registry(#[from] registry::Error),
    #[error(transparent)]
    Pull(#[from] oci_client::PullError),
    #[error(transparent)]
    Image(#[from] oci_client::ImageError),
}

/// The images that a policy chooses from.
pub(super) struct Images<'c> {
    pub(super) repository: Arc<ImageRepository>,
    /// Their name in full.
    pub(super) canonical: String,
    remote: Repository,
    context: &'c Context,
}

impl<'c> Images<'c> {
    /// With the credentials of the ImageRepository, as at each look of the policy: what may not be read then is not read now.
    pub(super) async fn open(policy: &ImagePolicy, context: &'c Context) -> Result<Self, Error> {
        let repository = policy::allowed_repository(policy, context).await?;
        let name = parse_image(&repository.spec.image).map_err(|error| Error::Name(error.to_string()))?;
        let canonical = canonical_name(&name);
        let remote = registry::repository(&repository, name, context).await?;
        Ok(Self {
            repository,
            canonical,
            remote,
            context,
        })
    }

    /// Reads the labels of one of them: by its digest, or else by its tag.
    pub(super) async fn labels(
        &self,
        digest: Option<&str>,
        tag: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let labels = async {
            let digest = match digest.and_then(|digest| digest.parse().ok()) {
                Some(digest) => digest,
                None => oci_client::digest_of_tag(&self.remote, tag).await?,
            };
            Ok(oci_client::labels(&self.remote, digest).await?)
        };
        // A pause that the registry asks for holds for the scans, too.
        let heed = |error: &Error| registry::heed(error, &self.repository, &self.remote, self.context);
        labels.await.inspect_err(heed)
    }
}

/// The hash of the commit that the chosen image was built from, if its labels have one.
pub(super) async fn revision(policy: &ImagePolicy, context: &Context) -> Result<Option<String>, Error> {
    let latest = policy
        .status
        .as_ref()
        .and_then(|status| status.latest_ref.as_ref());
    let Some(image) = latest else {
        return Ok(None);
    };
    let images = Images::open(policy, context).await?;
    let labels = images.labels(image.digest.as_deref(), &image.tag).await;
    match labels {
        Ok(labels) => Ok(commit_in(labels)),
        // It is no image, or has no configuration that can be read: that will not change.
        Err(Error::Image(error)) if error.is_about_content() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A whole hash, and nothing else that someone may have written there.
fn commit_in(mut labels: BTreeMap<String, String>) -> Option<String> {
    let revision = labels.remove(REVISION)?;
    (matches!(revision.len(), 40 | 64) && is_hash(&revision)).then_some(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_hash_is_a_commit() {
        let commit = |revision: &str| commit_in([(REVISION.to_owned(), revision.to_owned())].into());
        let (sha1, sha256) = ("a".repeat(40), "b".repeat(64));
        assert_eq!(commit(&sha1), Some(sha1.clone()));
        assert_eq!(commit(&sha256), Some(sha256));
        for other in [
            "",
            "main",
            "abcdef0",
            "../../other/repo/statuses/1",
            &format!("{}/", "a".repeat(39)),
        ] {
            assert_eq!(commit(other), None, "{other}");
        }
        assert_eq!(commit_in(BTreeMap::new()), None);
    }
}
