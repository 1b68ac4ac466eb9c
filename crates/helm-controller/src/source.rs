//! The source of a release's chart: which object it is, whether it is ready, and what its revision makes of the chart's
//! version. Pure.

use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::{HasConditions, StatusObject, condition_types};
use api::source::{HelmChart, OCIRepository, Source as SourceKind};
use artifact::client::SourceObject;
use controller_kit::{ObjectKey, access_from, conditions};
use go_semver::Version;
use kube::ResourceExt as _;

use crate::chart_template;

/// Digits of the digest that become part of a version.
const DIGITS: usize = 12;

/// As much of an artifact as a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceArtifact {
    /// The kind of the source.
    pub kind: ChartArtifactKind,
    /// The source.
    pub object: SourceObject,
    /// Where the archive is.
    pub url: String,
    /// The archive's digest.
    pub digest: String,
    /// The source's revision.
    pub revision: String,
}

/// State of a source.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// There is no such object.
    Missing,
    /// Its owner does not let us refer to it.
    Denied(access_from::Denied),
    /// It has nothing for us yet; why not.
    NotReady(String),
    /// Its current artifact.
    Artifact(SourceArtifact),
}

/// Kind, namespace and name of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The kind.
    pub kind: ChartArtifactKind,
    /// Where it is.
    pub key: ObjectKey,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}/{}/{}", self.kind, self.key.namespace, self.key.name)
    }
}

/// The source that an object names; with a chart template, the HelmChart that is made for it.
pub fn reference(object: &HelmRelease) -> Option<Reference> {
    if let Some(chart) = &object.spec.chart_ref {
        let own = object.metadata.namespace.clone().unwrap_or_default();
        let namespace = chart.namespace.clone().filter(|namespace| !namespace.is_empty());
        return Some(Reference {
            kind: chart.kind,
            key: ObjectKey::new(namespace.unwrap_or(own), chart.name.clone()),
        });
    }
    chart_template::key(object).map(|key| Reference {
        kind: ChartArtifactKind::HelmChart,
        key,
    })
}

/// A source with conditions, as Flux asks whether it is ready: its newest generation was reconciled, it is not stalled, and
/// has an artifact.
pub fn of_conditions<K>(object: &K, kind: ChartArtifactKind, from: &str) -> Source
where
    K: SourceKind + StatusObject,
{
    if let Some(denied) = denied(object, from) {
        return denied;
    }
    let observed = object.status().and_then(HasConditions::observed_generation);
    let message = |type_: &str| {
        object
            .condition(type_)
            .map_or(String::new(), |condition| condition.message.clone())
    };
    let stalled = object
        .condition(condition_types::STALLED)
        .is_some_and(|condition| condition.status == conditions::TRUE);
    let why = if observed.unwrap_or_default() != object.meta().generation.unwrap_or_default() {
        let failed = object
            .condition(condition_types::READY)
            .is_some_and(|condition| condition.status == conditions::FALSE);
        match failed {
            true => message(condition_types::READY),
            false => "latest generation of object has not been reconciled".to_owned(),
        }
    } else if stalled {
        message(condition_types::STALLED)
    } else {
        return with_artifact(object, kind);
    };
    Source::NotReady(not_ready(object, kind, &why))
}

/// An ExternalArtifact, of which no one knows who reconciles it: it is ready when it has an artifact.
pub fn of_artifact<K: SourceKind>(object: &K, kind: ChartArtifactKind, from: &str) -> Source {
    denied(object, from).unwrap_or_else(|| with_artifact(object, kind))
}

fn denied<K: SourceKind>(object: &K, from: &str) -> Option<Source> {
    let annotation = object.annotations().get(access_from::ANNOTATION);
    let namespace = object.namespace().unwrap_or_default();
    access_from::check(annotation.map(String::as_str), from, &namespace)
        .err()
        .map(Source::Denied)
}

fn with_artifact<K: SourceKind>(object: &K, kind: ChartArtifactKind) -> Source {
    match object.artifact() {
        Some(artifact) => Source::Artifact(SourceArtifact {
            kind,
            object: SourceObject::new(
                &format!("{kind:?}"),
                &object.namespace().unwrap_or_default(),
                &object.name_any(),
            ),
            url: artifact.url.clone(),
            digest: artifact.digest.clone(),
            revision: artifact.revision.clone(),
        }),
        None => Source::NotReady(not_ready(object, kind, "does not have an artifact")),
    }
}

fn not_ready<K: SourceKind>(object: &K, kind: ChartArtifactKind, why: &str) -> String {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    format!("{kind:?} '{namespace}/{name}' is not ready: {why}")
}

/// Digest in a source's revision, which tracks its chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The chart's version with the first digits of the digest, so that a tag that moves is seen.
    pub version: String,
    /// The digest.
    pub digest: String,
}

/// A version that does not fit its source, in Flux's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The chart's version is none.
    #[error("invalid chart version {0}")]
    Chart(String),
    /// The tag names another version than the chart has.
    #[error("artifact revision {tag} does not match chart version {version}")]
    Mismatch {
        /// The tag.
        tag: String,
        /// The version in Chart.yaml.
        version: String,
    },
    /// The revision holds no digest.
    #[error("invalid artifact revision {0}")]
    Revision(String),
}

/// Puts the digest of the source's revision into a chart's version; None where the revision has none.
pub fn track_digest(version: &str, artifact: &SourceArtifact) -> Result<Option<Tracked>, VersionError> {
    let has_digest = match artifact.kind {
        ChartArtifactKind::OCIRepository => true,
        ChartArtifactKind::ExternalArtifact => artifact.revision.contains(':'),
        ChartArtifactKind::HelmChart => false,
    };
    if !has_digest {
        return Ok(None);
    }
    let invalid = || VersionError::Chart(version.to_owned());
    let parsed = Version::parse(version).map_err(|_| invalid())?;
    let revision = &artifact.revision;
    let digest = match tag(revision) {
        Some(tagged) => {
            let (tag, digest) = revision.split_once('@').unwrap_or((revision, ""));
            if digest.is_empty() || digest.contains('@') || tagged.compare(&parsed).is_ne() {
                return Err(VersionError::Mismatch {
                    tag: tag.to_owned(),
                    version: version.to_owned(),
                });
            }
            digest
        }
        None => revision,
    };
    let tracked = parsed.set_metadata(digits(digest)?).map_err(|_| invalid())?;
    Ok(Some(Tracked {
        version: tracked.to_string(),
        digest: digest.to_owned(),
    }))
}

/// The version that a revision's tag names, if it names one. Tags hold `_` where versions have `+`.
fn tag(revision: &str) -> Option<Version> {
    match revision.split_once('@') {
        Some((tag, _)) => Version::parse(&tag.replace('_', "+")).ok(),
        None => Version::parse(revision).ok(),
    }
}

fn digits(digest: &str) -> Result<&str, VersionError> {
    let invalid = || VersionError::Revision(digest.to_owned());
    let (_, hex) = digest.split_once(':').ok_or_else(invalid)?;
    if hex.contains(':') {
        return Err(invalid());
    }
    hex.get(..DIGITS).ok_or_else(invalid)
}

/// Looks at a HelmChart.
pub fn of_chart(object: &HelmChart, from: &str) -> Source {
    of_conditions(object, ChartArtifactKind::HelmChart, from)
}

/// Looks at an OCIRepository.
pub fn of_oci(object: &OCIRepository, from: &str) -> Source {
    of_conditions(object, ChartArtifactKind::OCIRepository, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: ChartArtifactKind, revision: &str) -> SourceArtifact {
        SourceArtifact {
            kind,
            object: SourceObject::new("OCIRepository", "apps", "web"),
            url: String::new(),
            digest: String::new(),
            revision: revision.to_owned(),
        }
    }

    #[test]
    fn the_digest_of_an_oci_artifact_becomes_part_of_the_version() {
        let digest = "sha256:0123456789abcdef";
        let oci =
            |revision: &str| track_digest("1.2.3", &artifact(ChartArtifactKind::OCIRepository, revision));
        let tracked = Tracked {
            version: "1.2.3+0123456789ab".to_owned(),
            digest: digest.to_owned(),
        };
        assert_eq!(oci(&format!("1.2.3@{digest}")), Ok(Some(tracked.clone())));
        assert_eq!(oci(&format!("v1.2.3@{digest}")), Ok(Some(tracked.clone())));
        assert_eq!(oci(&format!("1.2.3_build@{digest}")), Ok(Some(tracked.clone())));
        assert_eq!(oci(digest), Ok(Some(tracked)));
        // A tag that is no version: the whole revision is taken for a digest, as in Flux.
        let latest = oci(&format!("latest@{digest}")).unwrap().unwrap();
        assert_eq!(latest.digest, format!("latest@{digest}"));
        for (revision, words) in [
            (
                "1.2.4@sha256:0123456789abcdef",
                "artifact revision 1.2.4 does not match chart version 1.2.3",
            ),
            (
                "1.2.3",
                "artifact revision 1.2.3 does not match chart version 1.2.3",
            ),
            (
                "latest@0123456789abcdef",
                "invalid artifact revision latest@0123456789abcdef",
            ),
            ("sha256:0123", "invalid artifact revision sha256:0123"),
        ] {
            assert_eq!(oci(revision).unwrap_err().to_string(), words);
        }
    }

    #[test]
    fn other_sources_leave_the_version_as_it_is() {
        for (kind, revision) in [
            (ChartArtifactKind::HelmChart, "1.2.3"),
            (ChartArtifactKind::ExternalArtifact, "v1"),
        ] {
            assert_eq!(track_digest("1.2.3", &artifact(kind, revision)), Ok(None));
        }
        let external = artifact(
            ChartArtifactKind::ExternalArtifact,
            "latest@sha256:0123456789abcdef",
        );
        assert!(track_digest("1.2.3", &external).unwrap().is_some());
        assert_eq!(
            track_digest("one", &external).unwrap_err().to_string(),
            "invalid chart version one"
        );
    }
}
