//! Groups `pipelines.weave.works` and `gitops.weave.works`: pipelines as Weave GitOps has them. pipeline-controller makes a
//! [`crate::delivery::Pipeline`] of each.

mod gitops_cluster;
mod pipeline;

pub use gitops_cluster::{GitopsCluster, GitopsClusterSpec, GitopsClusterStatus};
pub use pipeline::{
    ApplicationReference, ClusterApplicationReference, ClusterReference, ClusterReferenceKind, Environment,
    EnvironmentStatus, GitProvider, Notification, Pipeline, PipelineSpec, PipelineStatus, Promotion,
    PullRequestStrategy, Strategy, Target, TargetStatus, WaitingApproval,
};
