//! `OCIRepository`: a layer of an OCI artifact.

use std::io::{Read as _, Seek as _};
use std::path::PathBuf;

use api::delivery::PolicySourceKind;
use api::meta::Artifact;
use api::source::{
    ArtifactVerification, OCILayerOperation, OCILayerSelector, OCIProvider, OCIRepository,
    OCIRepositoryStatus, Source as _,
};
use artifact::archive::{self, EntryContent, Limits, ReadError};
use artifact::digest::Digest;
use artifact::ignore::{self, IGNORE_FILE, Matcher};
use artifact::store::{self, Ingest};
use cloud_identity::Identity;
use oci_client::credentials::{self, Credentials};
use oci_client::layer::Layer;
use oci_client::name::Name;
use oci_client::registry::Repository;
use oci_client::{self, Reference};
use transport::auth::{self, SecretData};
use transport::http;
use verification_policy::sources::{Origin, Trust};
use workload_identity::Exchange;

use super::{Failure, Fetch, Fetched, Kind, Seen, Verified};
use crate::error::{AccessError, CredentialError, Error, LayerError, OciError, TransportError};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use oci_verify::{self as verification, Material, Outcome};
use remote_access::identity::registry_credentials;

/// More of one `.sourceignore` file is not read.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// Secrets of an OCIRepository.
#[derive(Default)]
pub(crate) struct References {
    pull_secrets: Vec<SecretData>,
    certificates: Option<SecretData>,
    pub(super) proxy: Option<http::Proxy>,
    verification: Material,
    pub(super) identity: Identity,
}

/// A layer, and what of it becomes the artifact.
pub(crate) struct Content {
    layer: Layer,
    manifest: Digest,
    operation: OCILayerOperation,
    ignore: Option<String>,
    /// Where a layer is kept that is read twice.
    directory: PathBuf,
}

impl Kind for OCIRepository {
    const NAME: &'static str = "OCIRepository";
    const HAS_LATEST_URL: bool = true;
    const POLICY_KIND: PolicySourceKind = PolicySourceKind::OCIRepository;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        name(self).err()
    }

    fn wants_verification(&self) -> bool {
        self.spec.verification.is_some()
    }

    async fn read_references(&self, reader: &Reader) -> Result<References, Error> {
        let spec = &self.spec;
        let failed = |error| Error::Access(AccessError::GetCredential(CredentialError::Read(error)));
        let mut pull_secrets = Vec::new();
        if let Some(reference) = &spec.secret_ref {
            pull_secrets.push(reader.secret(&reference.name).await.map_err(failed)?);
        }
        let account = spec.service_account_name.as_deref();
        let mut identity = Identity::Controller;
        if self.provider() != OCIProvider::Generic {
            // As in Flux, a Secret goes before the provider.
            if pull_secrets.is_empty() {
                let ways = [
                    ("spec.proxySecretRef", spec.proxy_secret_ref.is_some()),
                    ("spec.certSecretRef", spec.cert_secret_ref.is_some()),
                    ("spec.insecure", spec.insecure),
                ];
                identity = reader.identity(account, &ways).await?.map_err(failed)?;
            }
        } else if let Some(account) = account {
            pull_secrets.extend(reader.pull_secrets(account).await.map_err(failed)?);
        }
        let proxy = match &spec.proxy_secret_ref {
            Some(reference) => Some(
                reader
                    .proxy(&reference.name)
                    .await
                    .map_err(|error| Error::Access(AccessError::ConfigureProxy(error)))?,
            ),
            None => None,
        };
        let certificates = match &spec.cert_secret_ref {
            Some(reference) => Some(
                reader
                    .secret(&reference.name)
                    .await
                    .map_err(|error| transport(self, error.into()))?,
            ),
            None => None,
        };
        let verification = match &spec.verification {
            Some(wanted) => verification::read(wanted, reader)
                .await
                .map_err(|source| unverified(wanted, source))?,
            None => Material::default(),
        };
        Ok(References {
            pull_secrets,
            certificates,
            proxy,
            verification,
            identity,
        })
    }

    fn settings_changed(&self) -> bool {
        let nothing = OCIRepositoryStatus::default();
        let status = self.status.as_ref().unwrap_or(&nothing);
        self.spec.ignore != status.observed_ignore
            || self.spec.layer_selector != status.observed_layer_selector
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let request = request(self, references, fetcher).await?;
        let resolved = oci_client::resolve(&request)
            .await
            .map_err(|error| Error::Oci(OciError::Pull(error)))?;
        if unless_revision.as_ref() == Some(&resolved.revision) {
            return Ok(Fetch::Unchanged {
                revision: resolved.revision,
            });
        }
        let message = format!(
            "new revision '{}' for '{}'",
            resolved.revision, resolved.reference
        );
        let seen = Seen {
            revision: resolved.revision,
            message,
        };
        let pulled = oci_client::pull(&request, resolved.digest).await;
        let oci_client::Content { metadata, layer } = match pulled {
            Ok(content) => content,
            Err(error) => {
                return Err(Failure {
                    error: Error::Oci(OciError::Pull(error)),
                    seen: Some(seen),
                });
            }
        };
        let content = Content {
            layer,
            manifest: resolved.digest,
            operation: self
                .spec
                .layer_selector
                .as_ref()
                .map(OCILayerSelector::operation)
                .unwrap_or_default(),
            ignore: self.spec.ignore.clone(),
            directory: fetcher.directory.clone(),
        };
        Ok(Fetch::New(Fetched {
            filename: format!("{}.tar.gz", resolved.digest),
            seen,
            metadata,
            headline: None,
            content,
        }))
    }

    /// The manifest is verified by its digest, before a byte of its layer is stored.
    async fn verify(
        &self,
        references: &References,
        fetched: &mut Fetched<Content>,
        fetcher: &Fetcher,
    ) -> Result<Verified, Error> {
        let wanted = self.spec.verification.clone().unwrap_or_default();
        let request = request(self, references, fetcher).await?;
        let (repository, digest) = (&request.repository, fetched.content.manifest);
        let verified = verification::verify(
            repository,
            digest,
            &wanted,
            &references.verification,
            &fetcher.sigstore,
        )
        .await;
        match verified.map_err(|source| unverified(&wanted, source))? {
            Outcome::Verified { .. } => Ok(Verified {
                message: format!("verified signature of revision {}", fetched.seen.revision),
            }),
            Outcome::Ignored => Ok(Verified {
                message: String::new(),
            }),
        }
    }

    fn origin(&self, references: &References) -> Option<Origin> {
        let origin = Origin::of_url(&self.spec.url, self.spec.insecure);
        Some(origin.asked_by(references.proxy.is_some(), references.certificates.is_some()))
    }

    async fn meets(
        &self,
        trust: &Trust,
        references: &References,
        fetched: &mut Fetched<Content>,
        fetcher: &Fetcher,
    ) -> Result<(), String> {
        let request = request(self, references, fetcher).await;
        let request = request.map_err(|error| error.message())?;
        let digest = fetched.content.manifest;
        trust.verify(&request.repository, digest, &fetcher.sigstore).await
    }

    fn fill(content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        match content.operation {
            OCILayerOperation::Extract => extract(content, ingest),
            OCILayerOperation::Copy => copy(content, ingest),
        }
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored artifact for digest '{revision}'")
    }

    fn announcement(&self, artifact: &Artifact, _headline: Option<&str>) -> String {
        let message = format!(
            "stored artifact with revision '{}' from '{}'",
            artifact.revision, self.spec.url
        );
        let origin = |what: &str| artifact.metadata.get(&format!("org.opencontainers.image.{what}"));
        match (origin("source"), origin("revision")) {
            (Some(source), Some(revision)) if !source.is_empty() && !revision.is_empty() => {
                format!("{message}, origin source '{source}', origin revision '{revision}'")
            }
            _ => message,
        }
    }

    fn set_artifact(
        status: &mut OCIRepositoryStatus,
        artifact: Option<Artifact>,
        latest_url: Option<String>,
    ) {
        status.artifact = artifact;
        status.url = latest_url;
    }

    fn note_settings(&self, status: &mut OCIRepositoryStatus) {
        status.observed_ignore = self.spec.ignore.clone();
        status.observed_layer_selector = self.spec.layer_selector.clone();
    }
}

fn name(object: &OCIRepository) -> Result<Name, Error> {
    let url = &object.spec.url;
    Name::parse(url).map_err(|source| {
        Error::Oci(OciError::ValidateUrl {
            url: url.clone(),
            source,
        })
    })
}

fn transport(object: &OCIRepository, source: TransportError) -> Error {
    Error::Access(AccessError::GenerateTransport {
        url: object.spec.url.clone(),
        source,
    })
}

fn unverified(wanted: &ArtifactVerification, source: verification::Error) -> Error {
    Error::Oci(OciError::Verify {
        provider: verification::provider(wanted),
        source: Box::new(source),
    })
}

async fn request(
    object: &OCIRepository,
    references: &References,
    fetcher: &Fetcher,
) -> Result<oci_client::Request, Error> {
    let spec = &object.spec;
    let name = name(object)?;
    let credentials = match references.pull_secrets.as_slice() {
        [] => login(object, &name, references, fetcher).await?,
        secrets => credentials::find(secrets, &name)
            .map_err(|error| Error::Access(AccessError::GetCredential(CredentialError::Data(error))))?,
    };
    let tls = references.certificates.as_ref().map(auth::tls).transpose();
    let tls = tls.map_err(|error| transport(object, error.into()))?;
    // As in Flux: who gives certificates wants them checked.
    let skip_verification = spec.insecure && tls.is_none();
    let settings = http::Settings {
        proxy: references.proxy.clone(),
        skip_verification,
        ..tls.unwrap_or_default()
    };
    let client = fetcher.clients.get(&settings.towards(name.host()));
    let client = client.map_err(|error| transport(object, error.into()))?;
    let reference = spec.reference.clone().unwrap_or_default();
    Ok(oci_client::Request {
        url: spec.url.clone(),
        repository: Repository {
            name,
            insecure: spec.insecure,
            credentials,
            client,
            memory: fetcher.registries.clone(),
            deadline: fetcher.deadline(object.timeout()),
        },
        reference: Reference::from_fields(
            reference.digest.as_deref(),
            reference.semver.as_deref(),
            reference.semver_filter.as_deref(),
            reference.tag.as_deref(),
        ),
        layer_media_type: spec
            .layer_selector
            .as_ref()
            .and_then(|selector| selector.media_type.clone()),
    })
}

/// Returns the provider's credentials for its registry; none if there is no provider.
async fn login(
    object: &OCIRepository,
    name: &Name,
    references: &References,
    fetcher: &Fetcher,
) -> Result<Option<Credentials>, Error> {
    let exchange = Exchange {
        clients: fetcher.clients.clone(),
        settings: http::Settings {
            proxy: references.proxy.clone(),
            ..Default::default()
        },
        deadline: Some(fetcher.deadline(object.timeout())),
    };
    let (provider, identities) = (object.provider(), &fetcher.identities);
    registry_credentials(provider, name.host(), &references.identity, identities, &exchange)
        .await
        .map_err(|source| Error::Access(AccessError::ProviderCredential { provider, source }))
}

/// The layer is an archive; what is in it becomes the artifact, without what is ignored.
fn extract(mut content: Content, ingest: &mut Ingest) -> Result<(), Error> {
    let mut ignore_files = Vec::new();
    unpack(&mut content.layer, ingest, &mut ignore_files)?;
    // Only now is it known that all this was what the manifest promised.
    content
        .layer
        .finish()
        .map_err(|error| Error::Oci(OciError::ExtractLayer(error.into())))?;
    ignore::warn_of_malformed("spec.ignore", content.ignore.as_deref().unwrap_or_default());
    let mut matcher = Matcher::new(content.ignore.as_deref());
    for (folder, text) in ignore_files {
        ignore::warn_of_malformed(&format!("the {IGNORE_FILE} of '{folder}'"), &text);
        matcher.add_file(&folder, &text).map_err(Error::LoadIgnore)?;
    }
    ingest.retain(|path, is_directory| !matcher.is_ignored(path, is_directory));
    Ok(())
}

/// Adds the entries of an archive, and collects its `.sourceignore` files (folder, text).
fn unpack(
    archive: impl std::io::Read,
    ingest: &mut Ingest,
    ignore_files: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let mut refused: Option<store::Error> = None;
    let result = archive::read(archive, &Limits::default(), |entry| {
        let added = match entry.content {
            EntryContent::Directory => ingest.add_directory(entry.path),
            EntryContent::File {
                executable, reader, ..
            } => {
                let (folder, name) = entry.path.rsplit_once('/').unwrap_or(("", entry.path));
                if name == IGNORE_FILE {
                    let mut text = Vec::new();
                    reader.take(MAX_IGNORE_BYTES).read_to_end(&mut text)?;
                    ignore_files.push((folder.to_owned(), String::from_utf8_lossy(&text).into_owned()));
                    ingest.add_file(entry.path, executable, text.chain(reader))
                } else {
                    ingest.add_file(entry.path, executable, reader)
                }
            }
        };
        added.map_err(|error| {
            let text = error.to_string();
            refused = Some(error);
            text.into()
        })
    });
    match (result, refused) {
        (Ok(_), _) => Ok(()),
        // The reader of an entry failed: that is the archive's fault, not the store's.
        (Err(error), Some(store::Error::ReadSource { .. } | store::Error::AddFile(_)) | None) => {
            Err(Error::Oci(OciError::ExtractLayer(error.into())))
        }
        (Err(_), Some(error)) => Err(Error::Store(error)),
    }
}

/// The layer is taken as it is. When it is an archive, which copied charts are, its files can be had one by one too.
fn copy(mut content: Content, ingest: &mut Ingest) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Oci(OciError::CopyLayer(LayerError::Spool(error)));
    let mut file = tempfile::tempfile_in(&content.directory).map_err(Error::MakeDirectory)?;
    std::io::copy(&mut content.layer, &mut file).map_err(failed)?;
    content
        .layer
        .finish()
        .map_err(|error| Error::Oci(OciError::CopyLayer(error.into())))?;
    file.rewind().map_err(failed)?;
    if let Err(error) = unpack(&mut file, ingest, &mut Vec::new()) {
        match error {
            Error::Oci(OciError::ExtractLayer(LayerError::Archive(ReadError::Sink { .. })))
            | Error::Store(_) => {
                return Err(error);
            }
            // Not an archive, or one that we would not unpack: no one asked for that here.
            _ => ingest.retain(|_, _| false),
        }
    }
    file.rewind().map_err(failed)?;
    Ok(ingest.set_archive(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn repository(spec: serde_json::Value) -> OCIRepository {
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec})).unwrap()
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let cases = [
            (json!({"url": "oci://h/r"}), None),
            (json!({"url": "oci://h.io/app", "provider": "aws"}), None),
            (
                json!({"url": "oci://h.io/r:v1"}),
                Some("URL validation failed for 'oci://h.io/r:v1': URL must not contain a tag; remove ':v1'"),
            ),
        ];
        for (mut spec, message) in cases {
            spec["interval"] = "1m".into();
            assert_eq!(
                repository(spec).refusal().map(|error| error.message()).as_deref(),
                message
            );
        }
    }

    #[test]
    fn the_origin_is_told_when_it_is_known() {
        let object = repository(json!({"url": "oci://h.io/r", "interval": "1m"}));
        let artifact = |metadata: serde_json::Value| -> Artifact {
            serde_json::from_value(json!({
                "path": "p", "url": "u", "revision": "latest@sha256:1", "digest": "sha256:2",
                "lastUpdateTime": "2026-01-01T00:00:00Z", "metadata": metadata,
            }))
            .unwrap()
        };
        let message = "stored artifact with revision 'latest@sha256:1' from 'oci://h.io/r'";
        assert_eq!(object.announcement(&artifact(json!({})), None), message);
        let known = json!({
            "org.opencontainers.image.source": "https://h/r", "org.opencontainers.image.revision": "main@sha1:3",
        });
        assert_eq!(
            object.announcement(&artifact(known), None),
            format!("{message}, origin source 'https://h/r', origin revision 'main@sha1:3'")
        );
    }
}
