//! Observe: what each source of a generator has now.
//!
//! Sources that this controller makes are looked up in its store; one GET tells why one of them is not there.
//! ExternalArtifacts are watched. Nothing is read from another namespace unless the spec was validated before, and unless
//! the owner of the source there allows it ([`access_from`]), for which its annotations are read each time.

use std::collections::BTreeMap;

use api::meta::{Artifact, ORIGIN_REVISION_KEY, SOURCE_GROUP};
use api::source::Source as _;
use api::source_extensions::{ArtifactGeneratorSpec, InputKind, InputReference};
use artifact::Digest;
use controller_kit::{ObjectKey, access_from, check_name};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};

use super::context::Context;

/// The artifact of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(super) digest: String,
    pub(super) revision: String,
    pub(super) url: String,
    pub(super) origin_revision: Option<String>,
    pub(super) content: Content,
}

/// Where the files of an artifact are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// In the store, as this tree.
    Tree(Digest),
    /// In the store, as this archive, which was made elsewhere.
    Archive(Digest),
    /// At its URL.
    Remote,
}

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{plural}.{SOURCE_GROUP} \"{name}\" not found")]
    NotFound { plural: String, name: String },
    #[error("source '{kind}/{namespace}/{name}' is not ready")]
    NotReady {
        kind: InputKind,
        namespace: String,
        name: String,
    },
    #[error(
        "source 'ExternalArtifact/{namespace}/{name}' has the address of another artifact of this controller"
    )]
    Address { namespace: String, name: String },
    #[error("can't access '{kind}/{namespace}/{name}'")]
    Denied {
        kind: String,
        namespace: String,
        name: String,
        #[source]
        source: access_from::Denied,
    },
    #[error("{0}")]
    Refused(String),
    #[error("unable to get source '{namespace}/{name}'")]
    Get {
        namespace: String,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl Error {
    /// Returns whether a change of a source wakes the generator, so that there is nothing to try again.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(self, Self::Get { .. } | Self::Denied { .. } | Self::Refused(_))
    }

    /// Returns whether the owner of a source does not want it.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// The artifacts of all sources by alias; the first that is not there is the error.
pub(super) async fn observe(
    spec: &ArtifactGeneratorSpec,
    namespace: &str,
    context: &Context,
) -> Result<BTreeMap<String, Input>, Error> {
    let mut inputs = BTreeMap::new();
    for source in &spec.sources {
        let from = namespace;
        let namespace = source.namespace.as_deref().unwrap_or(from);
        if namespace != from {
            check_access(source, namespace, from, context).await?;
            let refusal = context
                .policies
                .refuses_elsewhere(from, source.kind.name(), namespace);
            if let Some(refusal) = refusal {
                return Err(Error::Refused(refusal));
            }
        }
        let input = match source.kind {
            InputKind::ExternalArtifact => external(source, namespace, context)?,
            kind => match stored(kind, namespace, &source.name, context) {
                Some(input) => input,
                None => return Err(absence(source, namespace, context).await),
            },
        };
        inputs.insert(source.alias.clone(), input);
    }
    Ok(inputs)
}

/// Asks the source in another namespace whether it may be used from this one. One that is not there is told of later.
async fn check_access(
    source: &InputReference,
    namespace: &str,
    from: &str,
    context: &Context,
) -> Result<(), Error> {
    let (kind, name) = (source.kind, source.name.as_str());
    let found = read(kind.name(), namespace, name, context).await?;
    check_annotation(kind.name(), namespace, name, found.as_ref(), from)?;
    // What the owner of a source says holds for the charts made of it.
    let of = found
        .filter(|_| kind == InputKind::HelmChart)
        .map(|chart| chart.data["spec"]["sourceRef"].clone());
    if let Some((kind, name)) = of
        .as_ref()
        .and_then(|of| of["kind"].as_str().zip(of["name"].as_str()))
    {
        let found = read(kind, namespace, name, context).await?;
        check_annotation(kind, namespace, name, found.as_ref(), from)?;
    }
    Ok(())
}

/// A source as the API server has it.
async fn read(
    kind: &str,
    namespace: &str,
    name: &str,
    context: &Context,
) -> Result<Option<DynamicObject>, Error> {
    let failed = |source| Error::Get {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        source: Box::new(source),
    };
    let (api, plural) = source_api(kind, namespace, context);
    if check_name(name).is_err() {
        let name = name.to_owned();
        return Err(Error::NotFound { plural, name });
    }
    api.get_opt(name).await.map_err(failed)
}

fn check_annotation(
    kind: &str,
    namespace: &str,
    name: &str,
    found: Option<&DynamicObject>,
    from: &str,
) -> Result<(), Error> {
    let annotation = found.and_then(|found| found.annotations().get(access_from::ANNOTATION));
    access_from::check(annotation.map(String::as_str), from, namespace).map_err(|source| Error::Denied {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        source,
    })
}

fn source_api(kind: &str, namespace: &str, context: &Context) -> (Api<DynamicObject>, String) {
    let kind = GroupVersionKind::gvk(SOURCE_GROUP, api::source::VERSION, kind);
    let resource = ApiResource::from_gvk(&kind);
    let api = Api::namespaced_with(context.client.clone(), namespace, &resource);
    (api, resource.plural)
}

/// An artifact that this controller made.
fn stored(kind: InputKind, namespace: &str, name: &str, context: &Context) -> Option<Input> {
    let record = context.store.current(kind.name(), namespace, name)?;
    let content = if context.store.is_verbatim(&record) {
        Content::Archive(record.digest)
    } else {
        Content::Tree(record.tree)
    };
    Some(input(&context.address.artifact(&record), content))
}

/// An artifact of another controller, or of another generator. Only what the store has for this very object is taken from
/// it: whoever writes a status could name any digest.
fn external(source: &InputReference, namespace: &str, context: &Context) -> Result<Input, Error> {
    let (name, own_name) = (source.name.clone(), || namespace.to_owned());
    let key = ObjectKey::new(namespace, &name);
    let object = context
        .artifacts
        .get(&key.object_ref())
        .ok_or_else(|| Error::NotFound {
            plural: "externalartifacts".to_owned(),
            name: name.clone(),
        })?;
    let artifact = object.artifact().ok_or_else(|| Error::NotReady {
        kind: source.kind,
        namespace: own_name(),
        name: name.clone(),
    })?;
    let own = stored(source.kind, namespace, &name, context);
    if let Some(own) = own.filter(|own| own.digest == artifact.digest) {
        return Ok(input(artifact, own.content));
    }
    if artifact.url.starts_with(&context.address.url("")) {
        return Err(Error::Address {
            namespace: own_name(),
            name,
        });
    }
    Ok(input(artifact, Content::Remote))
}

fn input(artifact: &Artifact, content: Content) -> Input {
    Input {
        digest: artifact.digest.clone(),
        revision: artifact.revision.clone(),
        url: artifact.url.clone(),
        origin_revision: artifact.metadata.get(ORIGIN_REVISION_KEY).cloned(),
        content,
    }
}

/// Why the store has nothing of a source.
async fn absence(source: &InputReference, namespace: &str, context: &Context) -> Error {
    let (namespace, name, kind) = (namespace.to_owned(), source.name.clone(), source.kind);
    let (api, plural) = source_api(kind.name(), &namespace, context);
    match api.get_metadata_opt(&name).await {
        Ok(Some(_)) => Error::NotReady {
            kind,
            namespace,
            name,
        },
        Ok(None) => Error::NotFound { plural, name },
        Err(source) => Error::Get {
            namespace,
            name,
            source: Box::new(source),
        },
    }
}

/// Checksum of the state of all sources, as in `status.observedSourcesDigest`.
pub(super) fn digest(inputs: &BTreeMap<String, Input>) -> String {
    let mut parts: Vec<String> = inputs
        .iter()
        .map(|(alias, input)| {
            format!(
                "{alias}=[digest={},revision={},url={}]",
                input.digest, input.revision, input.url
            )
        })
        .collect();
    parts.sort();
    Digest::from_content(parts.join("|").as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_sources_is_that_of_source_watcher() {
        let input = |number: &str| Input {
            digest: format!("sha256:{number}"),
            revision: format!("main@sha1:{number}"),
            url: format!("http://h/{number}.tar.gz"),
            origin_revision: None,
            content: Content::Remote,
        };
        let inputs = BTreeMap::from([("b-x".to_owned(), input("2")), ("b".to_owned(), input("1"))]);
        // From HashObservedSources of source-watcher's API module.
        assert_eq!(digest(&inputs), RECORDED);
    }

    const RECORDED: &str = "sha256:965e2e57dc7834df73ac697d3081c3423938fead18b6376205c1514e91d49370";
}
