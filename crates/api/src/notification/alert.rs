//! `Alert`: which events go to which provider.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CrossNamespaceObjectReference;
use crate::meta::{LocalObjectReference, filled, is_false};

/// Which events are sent, and where.
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

    /// The objects whose events are sent.
    pub event_sources: Vec<CrossNamespaceObjectReference>,

    /// Regular expressions, in Go's syntax. If there are any, only events whose message matches one are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_list: Vec<String>,

    /// More that is said with each event. What the event says itself is not replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_metadata: BTreeMap<String, String>,

    /// Regular expressions, in Go's syntax. Events whose message matches one are not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_list: Vec<String>,

    /// A sentence that is sent along. Deprecated in favour of eventMetadata.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub summary: Option<String>,

    /// Whether nothing is sent for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// How bad an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventSeverity {
    /// It tells that something happened.
    #[default]
    Info,
    /// It tells that something went wrong.
    Error,
}
