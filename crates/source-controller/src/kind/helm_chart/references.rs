//! Where the chart comes from: the source that the spec names, and what is needed to reach it.

use api::source::{
    ArtifactVerification, ChartSourceKind, HelmChart, HelmRepository, OCIProvider, Source as _,
};
use artifact::store::{Record, Store};
use controller_kit::runtime::requested_at;
use kube::ResourceExt as _;

use super::content::{Content, kind_name};
use super::repository::Repository;
use crate::error::{AccessError, CredentialError, Error, HelmChartError};
use crate::fetch::helm_chart::{Access, Login};
use crate::fetch::helm_repository::Secrets;
use crate::kind::{Fetched, Kind as _, Verified};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use oci_verify::Outcome;
use verification_policy::sources::Origin;

/// The source, read.
pub(crate) struct References {
    pub(super) source: Source,
    /// For what the chart itself names.
    pub(super) reader: Reader,
    signatures: oci_verify::Material,
}

impl References {
    /// Where a chart is, for VerificationPolicies. None if it is packaged from another source.
    pub(super) fn origin(&self, chart: &str) -> Option<Origin> {
        match &self.source {
            Source::Tree { .. } => None,
            Source::Repository(repository) => Some(repository.origin().with_name(chart)),
        }
    }

    /// A source whose signatures no one asks for.
    #[cfg(test)]
    pub(super) fn new(source: Source, reader: Reader) -> Self {
        Self {
            source,
            reader,
            signatures: oci_verify::Material::default(),
        }
    }
}

/// The kinds of sources.
pub(crate) enum Source {
    /// A tree of files in our store.
    Tree { store: Store, record: Record },
    /// A repository of charts.
    Repository(Repository),
}

/// Reads the source.
pub(super) async fn read(object: &HelmChart, reader: &Reader) -> Result<References, Error> {
    let reference = &object.spec.source_ref;
    let source = match reference.kind {
        ChartSourceKind::HelmRepository => {
            let repository: HelmRepository = reader
                .object(&reference.name)
                .await
                .map_err(|error| Error::Chart(HelmChartError::GetSource(error)))?;
            from_repository(object, repository, reader).await?
        }
        ChartSourceKind::GitRepository => tree::<api::source::GitRepository>(object, reader).await?,
        ChartSourceKind::Bucket => tree::<api::source::Bucket>(object, reader).await?,
    };
    let signatures = match &object.spec.verification {
        // Said before anything is fetched.
        Some(_) if !matches!(source, Source::Repository(Repository::Registry(_))) => {
            return Err(Error::Chart(HelmChartError::VerifyUnsupported));
        }
        Some(verification) => {
            let specification: ArtifactVerification = verification.clone().into();
            oci_verify::read(&specification, reader)
                .await
                .map_err(|source| unverified(&specification, source))?
        }
        None => oci_verify::Material::default(),
    };
    Ok(References {
        source,
        reader: reader.clone(),
        signatures,
    })
}

/// The artifact of a source. That there is none yet is told from that there is no such source.
async fn tree<K: remote_access::Named>(object: &HelmChart, reader: &Reader) -> Result<Source, Error> {
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
        .map_err(|error| Error::Chart(HelmChartError::GetSource(error)))?;
    Err(Error::Chart(HelmChartError::NoSourceArtifact {
        kind,
        name: reference.name.clone(),
    }))
}

/// A repository, with its Secrets. One with an index must have been read before; it wakes its charts when it was.
async fn from_repository(
    object: &HelmChart,
    found: HelmRepository,
    reader: &Reader,
) -> Result<Source, Error> {
    let kind = kind_name(ChartSourceKind::HelmRepository);
    let namespace = object.namespace().unwrap_or_default();
    let name = found.name_any();
    let has_index = reader.store.current(kind, &namespace, &name).is_some();
    if !has_index && !found.is_static() {
        return Err(Error::Chart(HelmChartError::NoSourceArtifact { kind, name }));
    }
    repository(&found, is_asked_for(object), reader)
        .await
        .map(Source::Repository)
}

/// Returns whether someone made or changed the chart, or asks for it to be looked at: not a change of its source.
fn is_asked_for(object: &HelmChart) -> bool {
    let status = object.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    let handled = status.and_then(|status| status.last_handled_reconcile_at.as_deref());
    observed != object.metadata.generation || requested_at(object) != handled
}

/// How a repository is reached, with its Secrets.
pub(super) async fn repository(
    found: &HelmRepository,
    urgent: bool,
    reader: &Reader,
) -> Result<Repository, Error> {
    let spec = &found.spec;
    let references = found.read_references(reader).await?;
    if !found.is_static() {
        return Ok(Repository::Index {
            object: Box::new(found.clone()),
            references,
            store: reader.store.clone(),
            urgent,
        });
    }
    let provider = spec.provider.unwrap_or_default();
    // As in Flux, a Secret goes before the provider.
    let login = match (provider, &spec.secret_ref) {
        (OCIProvider::Generic, _) | (_, Some(_)) => None,
        (provider, None) => {
            let ways = [
                ("spec.certSecretRef", spec.cert_secret_ref.is_some()),
                ("spec.insecure", spec.insecure),
            ];
            let identity = reader.identity(None, &ways).await?;
            let identity = identity
                .map_err(|error| Error::Access(AccessError::GetCredential(CredentialError::Read(error))))?;
            Some(Login { provider, identity })
        }
    };
    let Secrets {
        authentication,
        certificates,
    } = references.0;
    Ok(Repository::Registry(Access {
        url: spec.url.clone(),
        insecure: spec.insecure,
        timeout: found.timeout(),
        secret: authentication,
        certificates,
        login,
    }))
}

/// Looks for the signature of a chart that was pulled.
pub(super) async fn verify(
    object: &HelmChart,
    references: &References,
    fetched: &mut Fetched<Content>,
    fetcher: &Fetcher,
) -> Result<Verified, Error> {
    let Some(verification) = &object.spec.verification else {
        return Err(Error::Abandoned);
    };
    let specification: ArtifactVerification = verification.clone().into();
    let Some((repository, digest)) = &fetched.content.origin else {
        return Err(Error::Chart(HelmChartError::VerifyUnsupported));
    };
    let outcome = oci_verify::verify(
        repository,
        *digest,
        &specification,
        &references.signatures,
        &fetcher.sigstore,
    )
    .await
    .map_err(|source| unverified(&specification, source))?;
    Ok(Verified {
        message: match outcome {
            Outcome::Verified { .. } => format!("verified signature of version {}", fetched.seen.revision),
            Outcome::Ignored => String::new(),
        },
    })
}

fn unverified(specification: &ArtifactVerification, source: oci_verify::Error) -> Error {
    Error::Chart(HelmChartError::Verify {
        provider: oci_verify::provider(specification),
        source,
    })
}
