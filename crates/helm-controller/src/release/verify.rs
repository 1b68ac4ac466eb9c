//! Compares a stored revision with the one that the controller left and the one that is desired.

use api::helm::Snapshot;
use helm_release::{Release, Status, observation};

use super::desired::Desired;
use super::history::SNAPSHOT_VERSION;

/// Why a stored revision cannot be told to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// The digest in the status is none.
    Digest,
    /// Someone else wrote it.
    NotObserved,
}

impl Stranger {
    /// Flux's words for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Digest => "release digest verification error",
            Self::NotObserved => "release not observed to be made for object",
        }
    }
}

/// Compares a stored revision with its snapshot. One of an older controller, with digests of another kind, is believed.
pub(super) fn is_ours(snapshot: &Snapshot, release: &Release) -> Result<(), Stranger> {
    if snapshot.api_version.as_deref() != Some(SNAPSHOT_VERSION) {
        return Ok(());
    }
    let digits = snapshot.digest.strip_prefix("sha256:").ok_or(Stranger::Digest)?;
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Stranger::Digest);
    }
    let digest = observation::digest(release, snapshot.oci_digest.as_deref());
    (digest == snapshot.digest)
        .then_some(())
        .ok_or(Stranger::NotObserved)
}

/// Returns whether the storage has a revision as it was left, to be rolled back to. Helm calls it superseded shortly before it ends
/// a rollback: a process that was killed in between has not written down that it did.
pub(super) fn is_intact(snapshot: &Snapshot, release: &Release) -> bool {
    if is_ours(snapshot, release).is_ok() {
        return true;
    }
    let deployed = Status::Deployed;
    if release.info.status != Status::Superseded || snapshot.status != deployed.to_string() {
        return false;
    }
    let mut before = release.clone();
    before.info.status = deployed;
    is_ours(snapshot, &before).is_ok()
}

/// Why a stored revision is not what is desired, if it is not.
pub(super) fn differs(snapshot: &Snapshot, release: &Release, desired: &Desired) -> Option<&'static str> {
    let chart = release.chart.as_ref();
    let name = chart.map(helm_release::Chart::name).unwrap_or_default();
    let version = chart.map(helm_release::Chart::version).unwrap_or_default();
    if name != desired.chart_name || version != desired.chart_version {
        Some("release chart changed")
    } else if snapshot.config_digest != desired.values_digest {
        Some("release config values changed")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::history::snapshot;
    use super::super::testing::{desired, record};
    use super::*;

    #[test]
    fn a_revision_is_ours_while_its_content_has_the_digest() {
        let release = record(1, "deployed");
        let left = snapshot(&release, None, None);
        assert_eq!(is_ours(&left, &release), Ok(()));
        let mut other = release.clone();
        other.manifest.push_str("# changed");
        assert_eq!(is_ours(&left, &other), Err(Stranger::NotObserved));
        for digest in ["", "sha256:", "sha256:12", "md5:0", &"sha256:".repeat(10)] {
            let broken = Snapshot {
                digest: digest.to_owned(),
                ..left.clone()
            };
            assert_eq!(is_ours(&broken, &release), Err(Stranger::Digest), "{digest}");
        }
        let of_old_controller = Snapshot {
            api_version: None,
            digest: String::new(),
            ..left
        };
        assert_eq!(is_ours(&of_old_controller, &other), Ok(()));
    }

    #[test]
    fn a_revision_that_a_rollback_superseded_is_intact() {
        let deployed = record(1, "deployed");
        let left = snapshot(&deployed, None, None);
        let mut superseded = deployed.clone();
        superseded.info.status = Status::Superseded;
        assert!(is_intact(&left, &deployed) && is_intact(&left, &superseded));
        let mut failed = deployed;
        failed.info.status = Status::Failed;
        assert!(!is_intact(&left, &failed));
        superseded.manifest.push_str("# changed");
        assert!(!is_intact(&left, &superseded));
    }

    #[test]
    fn a_revision_differs_by_chart_then_by_values() {
        let release = record(1, "deployed");
        let wanted = desired(&json!({}));
        let made = Snapshot {
            config_digest: wanted.values_digest.clone(),
            ..snapshot(&release, None, None)
        };
        assert_eq!(differs(&made, &release, &wanted), None);
        let other_values = desired(&json!({"a": 1}));
        assert_eq!(
            differs(&made, &release, &other_values),
            Some("release config values changed")
        );
        for change in [
            |desired: &mut Desired| desired.chart_name = "other".to_owned(),
            |desired: &mut Desired| desired.chart_version = "2.0.0".to_owned(),
        ] {
            let mut other = desired(&json!({"a": 1}));
            change(&mut other);
            assert_eq!(differs(&made, &release, &other), Some("release chart changed"));
        }
    }
}
