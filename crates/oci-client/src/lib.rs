//! OCI artifacts: one HEAD of a manifest to learn the revision, then the manifest and one layer.
//!
//! In: a [`Request`] (repository, reference, layer). Out: first the revision ([`resolve`]), then, if that is a new one,
//! [`Content`] ([`pull`]): the manifest's annotations and the layer as a stream, of which digest and size are checked
//! when it is read to its end. Not here: unpacking and storing, signatures, cloud providers' logins.

pub mod challenge;
pub mod credentials;
mod image;
pub mod image_name;
pub mod layer;
pub mod manifest;
pub mod name;
pub mod push;
pub mod registry;

use go_semver::tags;
use std::collections::BTreeMap;

pub use artifact::digest::Digest;
use go_regexp::Regexp;
pub use image::{ImageError, labels, platforms};
pub use registry::media_type;
use reqwest::StatusCode;
use transport::nearest::Nearest;

use self::layer::Layer;
use self::manifest::Manifest;
use self::registry::Repository;

/// Helm charts write `_` in tags where their versions have `+`, which tags may not hold.
pub const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Tag of an object without `spec.ref`.
const DEFAULT_TAG: &str = "latest";

/// Why an artifact could not be fetched; one variant for each step, so that each has its reason in the status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tag could not be found out.
    #[error("failed to determine the artifact tag for '{url}'")]
    DetermineTag {
        /// The object's URL.
        url: String,
        /// Why not.
        #[source]
        source: TagError,
    },
    /// The digest of the manifest could not be found out.
    #[error("failed to determine artifact digest")]
    DetermineDigest(#[source] PullError),
    /// The manifest could not be fetched.
    #[error("failed to pull artifact from '{url}'")]
    Pull {
        /// The object's URL.
        url: String,
        /// Why not.
        #[source]
        source: PullError,
    },
    /// The manifest does not hold the layer.
    #[error(transparent)]
    SelectLayer(#[from] manifest::Error),
    /// The layer could not be fetched.
    #[error("failed to fetch layer '{digest}'")]
    FetchLayer {
        /// Its digest.
        digest: String,
        /// Why not.
        #[source]
        source: PullError,
    },
}

/// Why no tag was chosen.
#[derive(Debug, thiserror::Error)]
pub enum TagError {
    /// The registry could not be asked.
    #[error("failed to list the tags")]
    List(#[source] registry::Error),
    /// The range cannot be read.
    #[error("semver '{range}' parse error")]
    ParseRange {
        /// The range as given.
        range: String,
        /// Why not.
        #[source]
        source: go_semver::Error,
    },
    /// `spec.ref.semverFilter` is no regular expression.
    #[error("failed to parse the filter '{filter}'")]
    ParseFilter {
        /// The filter as given.
        filter: String,
        /// Why not.
        #[source]
        source: go_regexp::Error,
    },
    /// No tag is written like this.
    #[error("'{tag}' is not a tag")]
    InvalidTag {
        /// The tag as given.
        tag: String,
    },
    /// No tag is in the range.
    #[error("no match found for semver: {range} ({nearest})")]
    NoMatch {
        /// The range as given.
        range: String,
        /// Tags that the repository has instead.
        nearest: String,
    },
}

/// Why something was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The registry refused, or was not reached.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The repository is there, and the tag is not.
    #[error("tag '{tag}' not found{nearest}")]
    FindTag {
        /// The tag as given.
        tag: String,
        /// Tags that the repository has instead.
        nearest: Nearest,
        /// Error of the registry.
        #[source]
        source: Box<registry::Error>,
    },
    /// A digest that cannot be checked.
    #[error(transparent)]
    Digest(#[from] artifact::digest::ParseError),
    /// The content is not what was asked for.
    #[error("failed to verify the content: '{actual}' came instead of '{expected}'")]
    Verify {
        /// The expected digest.
        expected: Digest,
        /// The received digest.
        actual: Digest,
    },
    /// An index that points to another index.
    #[error("failed to follow an index within an index")]
    NestedIndex,
}

impl PullError {
    /// Returns whether the registry has no such thing.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_not_found(),
            Self::FindTag { .. } => true,
            _ => false,
        }
    }
}

/// Which artifact of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A manifest by its digest.
    Digest(String),
    /// The highest tag in a version range, of those that a regular expression lets through.
    SemVer {
        /// The range.
        range: String,
        /// The regular expression.
        filter: Option<String>,
    },
    /// A tag.
    Tag(String),
}

impl Reference {
    /// Of the fields of `spec.ref` the first of digest, semver, tag counts; without any it is `latest`.
    pub fn from_fields(
        digest: Option<&str>,
        semver: Option<&str>,
        filter: Option<&str>,
        tag: Option<&str>,
    ) -> Self {
        let given = |field: Option<&str>| field.filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(digest) = given(digest) {
            return Self::Digest(digest);
        }
        if let Some(range) = given(semver) {
            return Self::SemVer {
                range,
                filter: given(filter),
            };
        }
        Self::Tag(given(tag).unwrap_or_else(|| DEFAULT_TAG.to_owned()))
    }
}

/// One fetch.
pub struct Request {
    /// As in the spec, for messages.
    pub url: String,
    /// Where it is.
    pub repository: Repository,
    /// Which artifact of it.
    pub reference: Reference,
    /// Media type of the wanted layer; the first one without.
    pub layer_media_type: Option<String>,
}

/// The artifact's place in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// `<tag>@sha256:…`, or `sha256:…` for a pinned digest.
    pub revision: String,
    /// The manifest's digest.
    pub digest: Digest,
    /// Registry, repository and tag or digest, for messages.
    pub reference: String,
}

/// A manifest and the beginning of its layer.
pub struct Content {
    /// The manifest's annotations.
    pub metadata: BTreeMap<String, String>,
    /// To be read on a blocking thread.
    pub layer: Layer,
}

/// Fetches a manifest and starts to read its layer.
pub async fn pull(request: &Request, manifest: Digest) -> Result<Content, Error> {
    let repository = &request.repository;
    let manifest = pull_manifest(repository, manifest, &request.url).await?;
    let descriptor = manifest.layer(request.layer_media_type.as_deref())?;
    let failed = |source: PullError| Error::FetchLayer {
        digest: descriptor.digest.clone(),
        source,
    };
    let digest: Digest = descriptor
        .digest
        .parse()
        .map_err(|error| failed(PullError::Digest(error)))?;
    let response = repository
        .blob(&descriptor.digest)
        .await
        .map_err(|error| failed(error.into()))?;
    let layer = Layer::new(response, digest, descriptor.size, repository.deadline);
    Ok(Content {
        metadata: manifest.annotations(),
        layer,
    })
}

/// Finds out the revision: one HEAD for a tag, none for a digest, the list of tags before that for a range.
pub async fn resolve(request: &Request) -> Result<Resolved, Error> {
    let repository = &request.repository;
    let tag = match &request.reference {
        Reference::Digest(text) => {
            let digest = text
                .parse()
                .map_err(|error| Error::DetermineDigest(PullError::Digest(error)))?;
            let reference = repository.name.pinned(text);
            return Ok(Resolved {
                revision: text.clone(),
                digest,
                reference,
            });
        }
        Reference::Tag(tag) => Ok(tag.clone()),
        Reference::SemVer { range, filter } => choose_tag(request, range, filter.as_deref()).await,
    };
    let undetermined = |source| Error::DetermineTag {
        url: request.url.clone(),
        source,
    };
    let tag = tag.map_err(undetermined)?;
    if !is_tag(&tag) {
        return Err(undetermined(TagError::InvalidTag { tag }));
    }
    let digest = digest_of_tag(repository, &tag)
        .await
        .map_err(Error::DetermineDigest)?;
    let reference = repository.name.tagged(&tag);
    Ok(Resolved {
        revision: format!("{tag}@{digest}"),
        digest,
        reference,
    })
}

async fn choose_tag(request: &Request, range: &str, filter: Option<&str>) -> Result<String, TagError> {
    let constraints = tags::parse_range(range).map_err(|source| TagError::ParseRange {
        range: range.to_owned(),
        source,
    })?;
    let filter = filter
        .map(|filter| {
            Regexp::compile(filter.as_bytes()).map_err(|source| TagError::ParseFilter {
                filter: filter.to_owned(),
                source,
            })
        })
        .transpose()?;
    let mut tags = request.repository.tags().await.map_err(TagError::List)?;
    if let Some(filter) = filter {
        tags.retain(|tag| filter.is_match(tag.as_bytes()));
    }
    let charts = request.layer_media_type.as_deref() == Some(HELM_CHART);
    if charts {
        tags.iter_mut().for_each(|tag| *tag = tag.replace('_', "+"));
    }
    let highest = tags::highest(&constraints, tags.iter().map(String::as_str));
    let highest = highest.ok_or_else(|| TagError::NoMatch {
        range: range.to_owned(),
        nearest: tags::instead(range, tags.iter().map(String::as_str)),
    })?;
    Ok(if charts {
        highest.replace('+', "_")
    } else {
        highest.to_owned()
    })
}

/// Returns whether a text is a tag by the grammar of the distribution specification: nothing that could change the address
/// of a request.
pub fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = |c: char| word(c) || matches!(c, '.' | '-');
    text.len() <= 128 && text.starts_with(word) && text.chars().all(rest)
}

/// One HEAD; registries that answer it without a digest, or not at all, are asked for the manifest itself.
pub async fn digest_of_tag(repository: &Repository, tag: &str) -> Result<Digest, PullError> {
    match repository.head_manifest(tag).await {
        Ok(registry::Head { digest: Some(digest) }) => return Ok(digest.parse()?),
        Ok(registry::Head { digest: None }) => {}
        // The refusal of a GET says more than that of a HEAD, which has no body.
        Err(error) if error.is_unauthorized() => return Err(error.into()),
        // Who has had enough is not asked again at once.
        Err(error) if error.status() == Some(StatusCode::TOO_MANY_REQUESTS) => return Err(error.into()),
        Err(error) if error.status().is_some() => {}
        Err(error) => return Err(error.into()),
    }
    match repository.manifest(tag).await {
        Ok((bytes, _)) => Ok(Digest::from_content(&bytes)),
        Err(source) if source.is_not_found() => Err(no_such_tag(repository, tag, source).await),
        Err(error) => Err(error.into()),
    }
}

/// Asks once what tags there are, for the message. Of a repository that is not there itself, that is all to be said.
async fn no_such_tag(repository: &Repository, tag: &str, source: registry::Error) -> PullError {
    match repository.first_tags().await {
        Ok(tags) => PullError::FindTag {
            tag: tag.to_owned(),
            nearest: Nearest::to(tag, tags.iter().map(String::as_str)),
            source: Box::new(source),
        },
        Err(_) => source.into(),
    }
}

async fn pull_manifest(repository: &Repository, digest: Digest, url: &str) -> Result<Manifest, Error> {
    let failed = |source: PullError| Error::Pull {
        url: url.to_owned(),
        source,
    };
    let manifest = Manifest::parse(&verified_manifest(repository, digest).await.map_err(failed)?)?;
    let Some(descriptor) = manifest.manifest_for_platform()? else {
        return Ok(manifest);
    };
    let digest = descriptor
        .digest
        .parse()
        .map_err(|error| failed(PullError::Digest(error)))?;
    let manifest = Manifest::parse(&verified_manifest(repository, digest).await.map_err(failed)?)?;
    match manifest.manifest_for_platform()? {
        None => Ok(manifest),
        Some(_) => Err(failed(PullError::NestedIndex)),
    }
}

/// The bytes of a manifest, which are what the digest says.
pub async fn verified_manifest(repository: &Repository, expected: Digest) -> Result<bytes::Bytes, PullError> {
    let (bytes, _) = repository.manifest(&expected.to_string()).await?;
    let actual = Digest::from_content(&bytes);
    if actual == expected {
        Ok(bytes)
    } else {
        Err(PullError::Verify { expected, actual })
    }
}

#[cfg(test)]
mod tests;
