//! Which objects a rule of a spec is for.

/// Selects objects. All that is not empty must match; the first five are regular expressions for the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSelector {
    /// API group.
    pub group: String,
    /// API version without the group.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Label selector for annotations.
    pub annotation_selector: String,
    /// Label selector for labels.
    pub label_selector: String,
}
