//! Detects that the spec moved a release elsewhere: to another name, namespace or chart.

use api::helm::{ChartNameChangeStrategy, HelmRelease, HelmReleaseStatus};
pub(super) use flux_spec::release::names::full_release_name;
pub use flux_spec::release::names::{release_name, release_namespace, storage_namespace};

use super::history;

/// Part of the release's target that has changed.
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

/// Returns whether the spec wants the release elsewhere than where the status says that it is.
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

/// Returns whether the present release must go before the one that the spec wants is made.
pub fn must_reinstall(object: &HelmRelease, status: &HelmReleaseStatus, chart_name: &str) -> Option<Moved> {
    let upgrade = object.spec.upgrade.as_ref();
    let strategy = upgrade.and_then(|upgrade| upgrade.chart_name_change_strategy);
    let moved = moved(object, status, chart_name)?;
    let stays =
        moved == Moved::ChartName && strategy.unwrap_or_default() == ChartNameChangeStrategy::InPlaceUpdate;
    (!stays).then_some(moved)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{object, record, status_of};
    use super::*;

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
