//! Group `delivery.windlass.dev`: kinds that Flux does not have.

mod change_policy;
mod change_request;
mod environment_policy;
mod freeze;
mod pipeline;
mod preview;
mod verification_policy;

pub use change_policy::{
    ChangeKind, ChangePolicy, ChangePolicySpec, Day, ForgeProvider, ForgeSpec, Grouping, MergeMethod,
    MergeSpec, PullRequestSpec, Window,
};
pub use change_request::{
    ChangeRequest, ChangeRequestSpec, ChangeRequestStatus, FileChange, KustomizationReference,
    ManifestReference, PullRequestState, PullRequestStatus, Revert,
};
pub use environment_policy::{
    EnvironmentPolicy, EnvironmentPolicySpec, EnvironmentPolicyStatus, EnvironmentTest,
    EnvironmentTestResult, EnvironmentTestState, EnvironmentWebhook, RequestEnvironment,
    RequestEnvironmentState,
};
pub use freeze::{DriftCorrection, FREEZE_EXCEPTION, Freeze, FreezeApp, FreezeKind, FreezeSpec};
pub use pipeline::{
    AppKind, AppReference, Approvals, Author, Carried, Environment, EnvironmentStatus, Gate, GateAttestation,
    GateCommitStatus, GateHttp, GateJob, GateMethod, GateObject, GatePrometheus, OnFailure, Pipeline,
    PipelineSpec, PipelineStatus, PromotionOutcome, PromotionRecord, Release, Rollback, Rollout, Target,
    TargetChange, TargetStatus, Trigger,
};
pub use preview::{
    Preview, PreviewChecks, PreviewCluster, PreviewSpec, PreviewState, PreviewStatus, PreviewedRequest,
    PullRequestFilter,
};
pub use verification_policy::{
    PolicyAction, PolicyImages, PolicySourceKind, PolicySources, RequiredAttestation, VerificationPolicy,
    VerificationPolicySpec,
};

/// This group.
pub const GROUP: &str = "delivery.windlass.dev";

/// Version of every kind in this group.
pub const VERSION: &str = "v1alpha1";

/// Annotation of an ImageUpdateAutomation: name of a ChangePolicy in its namespace.
pub const CHANGE_POLICY: &str = "delivery.windlass.dev/change-policy";
