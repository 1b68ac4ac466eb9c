//! Rules for ignored fields, as written.

use manifest::ObjectSelector;

/// One rule, as users write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The fields: JSON pointers (RFC 6901).
    pub paths: Vec<String>,
    /// The objects; None is all of them.
    pub target: Option<ObjectSelector>,
}

/// Why rules cannot be used. Only another text helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A part of a selector cannot be read.
    #[error("failed to create ignore rule selector: invalid {part}: {problem}")]
    Selector {
        /// Which part, in Flux's words.
        part: &'static str,
        /// The problem.
        problem: String,
    },
    /// A path is no JSON pointer.
    #[error("invalid ignore rule path '{0}': JSON pointer must be empty or start with a \"/\"")]
    Pointer(String),
    /// A path names the object itself.
    #[error(
        "invalid ignore rule path '': it names whole objects; to have one left alone, annotate it with \
         kustomize.toolkit.fluxcd.io/reconcile: disabled"
    )]
    Root,
}
