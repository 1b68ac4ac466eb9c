//! Labels of metrics.

use prometheus_client::encoding::EncodeLabelSet;

/// Labels of a series about one object.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ObjectLabels {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct NameLabel {
    pub(super) name: String,
}

impl ObjectLabels {
    pub(super) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }
}
