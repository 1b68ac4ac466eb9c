//! An event before it is sent.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;

/// How bad it is, in Flux's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For the Event only, never for notifications; an Event of type Normal.
    Trace,
    /// An Event of type Normal.
    Info,
    /// An Event of type Warning.
    Error,
}

impl Severity {
    /// As notifications have it; None if there is none.
    pub(super) fn notified_as(self) -> Option<event::Severity> {
        match self {
            Self::Trace => None,
            Self::Info => Some(event::Severity::Info),
            Self::Error => Some(event::Severity::Error),
        }
    }

    pub(super) fn event_type(self) -> &'static str {
        match self {
            Self::Trace | Self::Info => "Normal",
            Self::Error => "Warning",
        }
    }
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Occurrence {
    pub(super) object: ObjectReference,
    pub(super) event_type: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) annotations: BTreeMap<String, String>,
}
