//! Events about a release: Flux's reasons, texts and annotations.

use std::collections::BTreeMap;

use api::helm::Snapshot;
use api::meta::HELM_GROUP;
use controller_kit::events::Severity;

use super::desired::Desired;
use super::performed::Performed;

/// Something to publish about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How bad it is.
    pub severity: Severity,
    /// One word for programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Facts for those who pass events on: revision, token and so on.
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    /// About a revision that was made.
    pub(super) fn of_snapshot(
        severity: Severity,
        reason: &'static str,
        message: String,
        snapshot: &Snapshot,
    ) -> Self {
        let annotations = annotations(
            &snapshot.chart_version,
            &snapshot.config_digest,
            snapshot.app_version.as_deref(),
            snapshot.oci_digest.as_deref(),
        );
        Self {
            severity,
            reason,
            message,
            annotations,
        }
    }

    /// About a revision that could not be made.
    pub(super) fn of_desired(
        severity: Severity,
        reason: &'static str,
        message: String,
        desired: &Desired,
    ) -> Self {
        let annotations = annotations(
            &desired.chart_version,
            &desired.values_digest,
            Some(&desired.app_version),
            desired.oci_digest.as_deref(),
        );
        Self {
            severity,
            reason,
            message,
            annotations,
        }
    }
}

/// The message of an event, and what Helm said last.
pub(super) fn with_log(message: &str, performed: &Performed) -> String {
    if performed.log.is_empty() {
        return message.to_owned();
    }
    format!("{message}\n\nLast Helm logs:\n\n{}", performed.log)
}

/// Annotations of an event. Empty facts are left out.
pub(super) fn annotations(
    revision: &str,
    token: &str,
    app_version: Option<&str>,
    oci_digest: Option<&str>,
) -> BTreeMap<String, String> {
    let said = [
        ("revision", Some(revision)),
        ("token", Some(token)),
        ("app-version", app_version),
        ("oci-digest", oci_digest),
    ];
    let said = said.into_iter().filter_map(|(key, value)| Some((key, value?)));
    said.filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (format!("{HELM_GROUP}/{key}"), value.to_owned()))
        .collect()
}
