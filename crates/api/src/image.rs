//! Group `image.toolkit.fluxcd.io`: which tags an image has, which of them is wanted, and where that is written.
//!
//! image-controller writes the status of these kinds: a repository lists tags, a policy chooses one of them, and an automation
//! writes the choice into a Git repository.

mod automation;
mod policy;
mod pushed;
mod repository;

pub use automation::{
    CommitSpec, CommitUser, GitCheckoutSpec, GitSpec, ImageUpdateAutomation, ImageUpdateAutomationSpec,
    ImageUpdateAutomationStatus, LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, PushSpec,
    SigningKey, SigningKeyType, SourceKind, SourceReference, UpdateSpec, UpdateStrategy,
};
pub use policy::{
    AlphabeticalPolicy, ImagePolicy, ImagePolicyChoice, ImagePolicySpec, ImagePolicyStatus, ImageRef,
    ImageRepositoryReference, NumericalPolicy, ReflectionPolicy, SemVerPolicy, TagFilter, TagOrder,
};
pub use pushed::{PUSHED_TAGS_ANNOTATION, PushedTags};
pub use repository::{ImageRepository, ImageRepositorySpec, ImageRepositoryStatus, ScanResult};

/// Version of every kind in this group.
pub const VERSION: &str = "v1";
