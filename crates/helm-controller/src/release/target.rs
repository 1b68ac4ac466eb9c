//! Where a release is: its name and namespaces, and whether the spec has moved it elsewhere.

use api::helm::{ChartNameChangeStrategy, HelmRelease, HelmReleaseStatus};
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};

use super::history;

/// Longest name of a release that Helm takes.
const MAX_NAME: usize = 53;
/// Digits of the checksum that end a shortened name.
const CHECKSUM_DIGITS: usize = 12;

/// What is not where the release is any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The records are to be kept in another namespace.
    StorageNamespace,
    /// The release is to be in another namespace.
    ReleaseNamespace,
    /// The release is to have another name.
    ReleaseName,
    /// Another chart is to be released.
    ChartName,
}

impl Moved {
    /// Flux's words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StorageNamespace => "storage namespace",
            Self::ReleaseNamespace => "release namespace",
            Self::ReleaseName => "release name",
            Self::ChartName => "chart name",
        }
    }
}

/// Whether the spec wants the release elsewhere than where the status says that it is.
pub fn moved(object: &HelmRelease, status: &HelmReleaseStatus, chart_name: &str) -> Option<Moved> {
    let stored_in = status.storage_namespace.as_deref()?;
    let current = history::latest(&status.history)?;
    if storage_namespace(object) != stored_in {
        Some(Moved::StorageNamespace)
    } else if release_namespace(object) != current.namespace {
        Some(Moved::ReleaseNamespace)
    } else if release_name(object) != current.name {
        Some(Moved::ReleaseName)
    } else if chart_name != current.chart_name {
        Some(Moved::ChartName)
    } else {
        None
    }
}

/// Whether the present release must go before the one that the spec wants is made.
pub fn must_reinstall(object: &HelmRelease, status: &HelmReleaseStatus, chart_name: &str) -> Option<Moved> {
    let upgrade = object.spec.upgrade.as_ref();
    let strategy = upgrade.and_then(|upgrade| upgrade.chart_name_change_strategy);
    let moved = moved(object, status, chart_name)?;
    let stays =
        moved == Moved::ChartName && strategy.unwrap_or_default() == ChartNameChangeStrategy::InPlaceUpdate;
    (!stays).then_some(moved)
}

/// The name of the release, shortened to what Helm takes.
pub fn release_name(object: &HelmRelease) -> String {
    shortened(&full_release_name(object))
}

/// The name of the release as the spec has it, of any length.
pub(super) fn full_release_name(object: &HelmRelease) -> String {
    if let Some(name) = &object.spec.release_name {
        return name.clone();
    }
    let name = object.name_any();
    match &object.spec.target_namespace {
        Some(target) => format!("{target}-{name}"),
        None => name,
    }
}

/// Where the objects of the release are.
pub fn release_namespace(object: &HelmRelease) -> String {
    own_unless(object, object.spec.target_namespace.as_ref())
}

/// Where Helm's records are.
pub fn storage_namespace(object: &HelmRelease) -> String {
    own_unless(object, object.spec.storage_namespace.as_ref())
}

fn own_unless(object: &HelmRelease, namespace: Option<&String>) -> String {
    namespace
        .cloned()
        .or_else(|| object.namespace())
        .unwrap_or_default()
}

/// A name that is too long ends with digits of its checksum instead, as in Flux.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let checksum = hex::encode(Sha256::digest(name));
    let kept = name.floor_char_boundary(MAX_NAME - CHECKSUM_DIGITS - 1);
    format!("{}-{}", &name[..kept], &checksum[..CHECKSUM_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{object, record, status_of};
    use super::*;

    #[test]
    fn names_are_made_as_flux_makes_them() {
        let mut release = object(&serde_json::json!({}));
        assert_eq!(release_name(&release), "web");
        assert_eq!(release_namespace(&release), "apps");
        release.spec.target_namespace = Some("prod".to_owned());
        assert_eq!(release_name(&release), "prod-web");
        assert_eq!(release_namespace(&release), "prod");
        assert_eq!(storage_namespace(&release), "apps");
        release.spec.storage_namespace = Some("records".to_owned());
        assert_eq!(storage_namespace(&release), "records");
        release.spec.release_name =
            Some("some-front-appended-namespace-release-with-a-longer-name-than-fits".to_owned());
        let name = release_name(&release);
        assert_eq!(name.len(), 53);
        assert!(
            name.starts_with("some-front-appended-namespace-release-wi-"),
            "{name}"
        );
    }

    #[test]
    fn a_release_is_moved_by_each_part_of_its_target() {
        let at_home = object(&serde_json::json!({}));
        let mut status = status_of(&[&record(1, "deployed")]);
        status.storage_namespace = Some("apps".to_owned());
        assert_eq!(moved(&at_home, &status, "app"), None);
        assert_eq!(moved(&at_home, &status, "other"), Some(Moved::ChartName));
        for (spec, expected) in [
            (
                serde_json::json!({"storageNamespace": "records"}),
                Moved::StorageNamespace,
            ),
            (
                serde_json::json!({"targetNamespace": "prod", "releaseName": "web"}),
                Moved::ReleaseNamespace,
            ),
            (serde_json::json!({"releaseName": "shop"}), Moved::ReleaseName),
        ] {
            assert_eq!(must_reinstall(&object(&spec), &status, "app"), Some(expected));
        }
        let in_place = object(&serde_json::json!({"upgrade": {"chartNameChangeStrategy": "InPlaceUpdate"}}));
        assert_eq!(must_reinstall(&in_place, &status, "other"), None);
        assert_eq!(must_reinstall(&at_home, &status, "other"), Some(Moved::ChartName));
        status.history.clear();
        assert_eq!(moved(&at_home, &status, "other"), None);
    }
}
