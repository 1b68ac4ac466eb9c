//! `HelmRepository`: the index of a Helm repository. Of type `oci` it is only an address that charts refer to: such an
//! object has no status, no finalizer and no artifact.

pub(crate) mod version;

use std::fs::File;

use api::delivery::PolicySourceKind;
use api::meta::Artifact;
use api::source::{HelmRepository, HelmRepositoryStatus, HelmRepositoryType, Source as _};
use artifact::digest::Digest;
use artifact::store::{Ingest, ObjectKey};
use kube::ResourceExt as _;

use super::{Failure, Fetch, Fetched, Kind, Seen};
use crate::error::Error;
use crate::fetch::helm_repository::{self as repository, Answer, Index, Repository, Secrets, Validators};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use remote_access::error::ReadError;
use verification_policy::sources::{Origin, Trust};

/// Namespace of the keys that name repositories whose index was fetched for a chart.
const REFRESHED: &str = "helmrepository refreshed for a chart";

/// Secrets of a HelmRepository.
#[derive(Clone, Default)]
pub(crate) struct References(pub(crate) Secrets);

/// An index, ready to be stored.
pub(crate) struct Content {
    file: File,
}

impl Kind for HelmRepository {
    const NAME: &'static str = "HelmRepository";
    const HAS_LATEST_URL: bool = true;
    const LATEST_NAME: &'static str = "index.yaml";
    const HAS_INPUTS: bool = true;
    const POLICY_KIND: PolicySourceKind = PolicySourceKind::HelmRepository;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        repository::parse(&self.spec.url).err().map(Error::HelmRepository)
    }

    fn is_static(&self) -> bool {
        self.spec.type_ == Some(HelmRepositoryType::Oci)
    }

    /// Its index.
    fn forget(key: &controller_kit::ObjectKey, fetcher: &Fetcher) {
        fetcher.helm.cache.forget(&key.namespace, &key.name);
    }

    /// Itself, when its index was fetched for a chart: then the status is to follow.
    fn inputs(&self) -> Vec<ObjectKey> {
        vec![refreshed_key(
            &self.namespace().unwrap_or_default(),
            &self.name_any(),
        )]
    }

    async fn read_references(&self, reader: &Reader) -> Result<References, Error> {
        read_secrets(self, reader)
            .await
            .map(References)
            .map_err(Error::HelmRepository)
    }

    fn settings_changed(&self) -> bool {
        false
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let repository = repository_of(self, references, fetcher)?;
        let key = key_of(self);
        let known = unless_revision
            .as_deref()
            .and_then(|revision| revision.parse::<Digest>().ok());
        let known = known.map(|revision| fetcher.helm.recall(&key, &self.spec.url, &revision));
        let answer = repository
            .fetch_index(known.as_ref())
            .await
            .map_err(Error::HelmRepository)?;
        Ok(match answer {
            Answer::New(index) => Fetch::New(fetched(self, index, fetcher)),
            Answer::Unchanged(validators) => {
                remember(self, validators, fetcher);
                Fetch::Unchanged {
                    revision: unless_revision.unwrap_or_default(),
                }
            }
        })
    }

    fn origin(&self, _references: &References) -> Option<Origin> {
        Some(origin(self))
    }

    /// An index is not signed. Its charts are what is delivered, and each of them is verified.
    async fn meets(
        &self,
        _trust: &Trust,
        _references: &References,
        _fetched: &mut Fetched<Content>,
        _fetcher: &Fetcher,
    ) -> Result<(), String> {
        Ok(())
    }

    fn fill(content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        // The files of the artifact are left out: an index is one file, which is its archive already.
        Ok(ingest.set_archive(content.file)?)
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored artifact: revision '{revision}'")
    }

    fn announcement(&self, artifact: &Artifact, _headline: Option<&str>) -> String {
        let size = artifact.size.map_or_else(
            || "unknown size".to_owned(),
            |size| format!("size {}", human_size(size)),
        );
        format!("stored fetched index of {size} from '{}'", shown_url(self))
    }

    fn set_artifact(
        status: &mut HelmRepositoryStatus,
        artifact: Option<Artifact>,
        latest_url: Option<String>,
    ) {
        status.artifact = artifact;
        status.url = latest_url;
    }

    fn note_settings(&self, _status: &mut HelmRepositoryStatus) {}
}

/// Where the repository is, for VerificationPolicies.
pub(crate) fn origin(object: &HelmRepository) -> Origin {
    let is_registry = object.spec.type_ == Some(HelmRepositoryType::Oci);
    Origin::of_url(&object.spec.url, is_registry && object.spec.insecure)
}

/// Reads the Secrets that the spec names.
pub(crate) async fn read_secrets(
    object: &HelmRepository,
    reader: &Reader,
) -> Result<Secrets, repository::Error> {
    let mut secrets = Secrets::default();
    if let Some(reference) = &object.spec.cert_secret_ref {
        let secret = reader.secret(&reference.name).await;
        secrets.certificates = Some(secret.map_err(unreadable("TLS authentication"))?);
    }
    if let Some(reference) = &object.spec.secret_ref {
        let secret = reader.secret(&reference.name).await;
        secrets.authentication = Some(secret.map_err(unreadable("authentication"))?);
    }
    Ok(secrets)
}

fn unreadable(what: &'static str) -> impl FnOnce(ReadError) -> repository::Error {
    move |error| match error {
        ReadError::Secret {
            namespace,
            name,
            problem,
        }
        | ReadError::ServiceAccount {
            namespace,
            name,
            problem,
        }
        | ReadError::Object {
            namespace,
            name,
            problem,
        } => repository::Error::Secret {
            what,
            namespace,
            name,
            problem,
        },
    }
}

/// The repository that an object describes.
fn repository_of(
    object: &HelmRepository,
    References(secrets): &References,
    fetcher: &Fetcher,
) -> Result<Repository, Error> {
    let spec = &object.spec;
    let deadline = fetcher.deadline(object.timeout());
    Repository::new(&spec.url, secrets, spec.pass_credentials, deadline, fetcher)
        .map_err(Error::HelmRepository)
}

/// An index as it goes to the store. What its server said of it is remembered.
fn fetched(object: &HelmRepository, index: Index, fetcher: &Fetcher) -> Fetched<Content> {
    let Index {
        revision,
        file,
        summary,
        validators,
    } = index;
    if let Some(first) = summary.dropped.first() {
        tracing::warn!(
            entries = summary.dropped_count,
            chart = first.chart,
            version = first.version,
            line = first.line,
            reason = first.reason,
            "the index has entries that are passed over; this is the first"
        );
    }
    remember(object, Some(validators), fetcher);
    Fetched {
        seen: Seen {
            revision: revision.to_string(),
            message: format!("new index revision '{revision}'"),
        },
        filename: format!("index-{}.yaml", revision.hex()),
        metadata: std::collections::BTreeMap::new(),
        headline: None,
        content: Content { file },
    }
}

/// Stores the server's validators of an index that is known, or soon will be.
fn remember(object: &HelmRepository, validators: Option<Validators>, fetcher: &Fetcher) {
    fetcher.helm.note_check(key_of(object));
    if let Some(validators) = validators {
        let url = object.spec.url.clone();
        fetcher.helm.remember(key_of(object), url, validators);
    }
}

fn key_of(object: &HelmRepository) -> ObjectKey {
    let namespace = object.namespace().unwrap_or_default();
    ObjectKey::new(HelmRepository::NAME, &namespace, &object.name_any())
}

fn refreshed_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(REFRESHED, namespace, name)
}

/// The address, without user and password.
fn shown_url(object: &HelmRepository) -> String {
    let url = &object.spec.url;
    match url::Url::parse(url) {
        Ok(parsed) if parsed.username().is_empty() && parsed.password().is_none() => url.clone(),
        Ok(parsed) => transport::http::public(&parsed),
        Err(_) => String::new(),
    }
}

/// A size with four digits and a decimal unit, as go-units writes it.
fn human_size(bytes: i64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 100.0 {
        1
    } else if size >= 10.0 {
        2
    } else {
        3
    };
    let text = format!("{size:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_go_units_does() {
        let cases = [
            (0, "0B"),
            (999, "999B"),
            (1000, "1kB"),
            (1234, "1.234kB"),
            (12_345, "12.35kB"),
            (123_456, "123.5kB"),
            (60_000_000, "60MB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(human_size(bytes), text);
        }
    }
}
