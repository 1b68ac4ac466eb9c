//! `Alert`: which events go to which provider.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CrossNamespaceObjectReference;
use crate::meta::{LocalObjectReference, filled, is_false};

/// Specification of the Alert.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1beta3",
    kind = "Alert",
    plural = "alerts",
    namespaced,
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    doc = "A rule that sends the events of some objects to a provider.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct AlertSpec {
    /// The Provider to send to.
    pub provider_ref: LocalObjectReference,

    /// The least severity of events to send: info sends all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "info"))]
    pub event_severity: Option<EventSeverity>,

    /// Objects whose events are sent.
    pub event_sources: Vec<CrossNamespaceObjectReference>,

    /// Go regular expressions. If not empty, only events whose message matches one of them are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_list: Vec<String>,

    /// Metadata added to each event. Existing metadata of the event is not overwritten.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_metadata: BTreeMap<String, String>,

    /// Go regular expressions. Events whose message matches one of them are not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_list: Vec<String>,

    /// Summary sent with each event. Deprecated: use eventMetadata.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub summary: Option<String>,

    /// Suspend sending of events.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Minimum severity of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventSeverity {
    /// It tells that something happened.
    #[default]
    Info,
    /// It tells that something went wrong.
    Error,
}
