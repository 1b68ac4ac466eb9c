//! Where the chart comes from: the source that the spec names, and what is needed to reach it.

use api::source::{
    ArtifactVerification, ChartSourceKind, HelmChart, HelmRepository, HelmRepositoryType, OCIProvider,
    Source as _,
};
use artifact::store::{Record, Store};
use kube::ResourceExt as _;

use super::{Content, kind_name};
use crate::error::Error;
use crate::fetch::helm_chart::Access;
use crate::kind::{Fetched, Verified};
use crate::reconcile::observe::{Lookup, Named, Reader};
use crate::verify::{self, oci::Outcome};

/// The source, read.
pub(crate) struct References {
    pub(super) source: Source,
    /// For what the chart itself names.
    pub(super) lookup: Lookup,
    signatures: verify::oci::Material,
}

impl References {
    /// A source whose signatures nobody asks for.
    #[cfg(test)]
    pub(super) fn new(source: Source, lookup: Lookup) -> Self {
        Self {
            source,
            lookup,
            signatures: verify::oci::Material::default(),
        }
    }
}

/// The kinds of sources.
pub(crate) enum Source {
    /// A tree of files in our store.
    Tree { store: Store, record: Record },
    /// A repository of charts.
    Repository(Access),
}

/// Reads the source.
pub(super) async fn read(object: &HelmChart, reader: &Reader<'_>) -> Result<References, Error> {
    let reference = &object.spec.source_ref;
    let source = match reference.kind {
        ChartSourceKind::HelmRepository => {
            let repository: HelmRepository =
                reader.object(&reference.name).await.map_err(Error::GetSource)?;
            Source::Repository(access(&repository, reader).await?)
        }
        ChartSourceKind::GitRepository => tree::<api::source::GitRepository>(object, reader).await?,
        ChartSourceKind::Bucket => tree::<api::source::Bucket>(object, reader).await?,
    };
    let signatures = match &object.spec.verification {
        Some(verification) => {
            let specification: ArtifactVerification = verification.clone().into();
            verify::oci::read(&specification, reader)
                .await
                .map_err(|source| unverified(&specification, source))?
        }
        None => verify::oci::Material::default(),
    };
    Ok(References {
        source,
        lookup: reader.later(),
        signatures,
    })
}

/// The artifact of a source. That there is none yet is told from that there is no such source.
async fn tree<K: Named>(object: &HelmChart, reader: &Reader<'_>) -> Result<Source, Error> {
    let reference = &object.spec.source_ref;
    let kind = kind_name(reference.kind);
    let namespace = object.namespace().unwrap_or_default();
    if let Some(record) = reader.store.current(kind, &namespace, &reference.name) {
        let store = reader.store.clone();
        return Ok(Source::Tree { store, record });
    }
    reader
        .object::<K>(&reference.name)
        .await
        .map_err(Error::GetSource)?;
    Err(Error::NoSourceArtifact {
        kind,
        name: reference.name.clone(),
    })
}

/// How a repository is reached, with its Secrets.
pub(super) async fn access(repository: &HelmRepository, reader: &Reader<'_>) -> Result<Access, Error> {
    let spec = &repository.spec;
    let is_oci = spec.type_ == Some(HelmRepositoryType::Oci);
    if is_oci && spec.provider.unwrap_or_default() != OCIProvider::Generic {
        return Err(Error::Unsupported {
            field: "spec.provider of a HelmRepository other than generic".to_owned(),
        });
    }
    if !is_oci {
        return Err(Error::Unsupported {
            field: "a HelmChart of a HelmRepository of type default".to_owned(),
        });
    }
    let secret = match &spec.secret_ref {
        Some(reference) => Some(reader.secret(&reference.name).await?),
        None => None,
    };
    let certificates = match &spec.cert_secret_ref {
        Some(reference) => Some(reader.secret(&reference.name).await?),
        None => None,
    };
    Ok(Access {
        url: spec.url.clone(),
        insecure: spec.insecure,
        timeout: repository.timeout(),
        secret,
        certificates,
    })
}

/// Looks for the signature of a chart that was pulled.
pub(super) async fn verify(
    object: &HelmChart,
    references: &References,
    fetched: &mut Fetched<Content>,
) -> Result<Verified, Error> {
    let Some(verification) = &object.spec.verification else {
        return Err(Error::Abandoned);
    };
    let specification: ArtifactVerification = verification.clone().into();
    let Some((repository, digest)) = &fetched.content.origin else {
        return Err(Error::Unsupported {
            field: "spec.verify of a chart that is in no container registry".to_owned(),
        });
    };
    let outcome = verify::oci::verify(repository, *digest, &specification, &references.signatures)
        .await
        .map_err(|source| unverified(&specification, source))?;
    Ok(Verified {
        message: match outcome {
            Outcome::Verified => format!("verified signature of version {}", fetched.seen.revision),
            Outcome::Ignored => String::new(),
        },
    })
}

fn unverified(specification: &ArtifactVerification, source: verify::oci::Error) -> Error {
    Error::VerifyChart {
        provider: verify::oci::provider(specification),
        source,
    }
}
