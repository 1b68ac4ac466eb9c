//! Facts of a release that templates see.

/// Which release a chart is rendered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `.Release.Name`.
    pub name: String,
    /// `.Release.Namespace`.
    pub namespace: String,
    /// `.Release.Revision`.
    pub revision: i64,
    /// `.Release.IsUpgrade`; the opposite of `.Release.IsInstall`.
    pub is_upgrade: bool,
}

impl Release {
    /// Makes the first revision of a release.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            revision: 1,
            is_upgrade: false,
        }
    }
}
