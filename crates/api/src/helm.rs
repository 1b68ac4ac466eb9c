//! Group `helm.toolkit.fluxcd.io`: what is rendered from a chart and released.
//!
//! One file per concern of a release: the release itself, the chart it comes from, each action of Helm, what is
//! done after a failure, drift, and the status.

mod chart;
mod drift;
mod install;
mod post_renderer;
mod release;
mod rollback;
mod snapshot;
mod status;
mod strategy;
mod test;
mod uninstall;
mod upgrade;

pub use chart::{
    ChartArtifactKind, ChartArtifactReference, ChartSourceReference, ChartTemplate, ChartTemplateMetadata,
    ChartTemplateSpec, ChartTemplateVerification,
};
pub use drift::{DriftDetection, DriftDetectionMode};
pub use install::{Install, InstallRemediation};
pub use post_renderer::{KustomizePostRenderer, PostRenderStrategy, PostRenderer};
pub use release::{HelmRelease, HelmReleaseSpec};
pub use rollback::Rollback;
pub use snapshot::{Snapshot, TestHookStatus};
pub use status::{HelmReleaseStatus, ReleaseAction};
pub use strategy::{
    ActionStrategyName, CrdsPolicy, InstallStrategy, ServerSideApplyMode, UpgradeStrategy, WaitStrategy,
    WaitStrategyName,
};
pub use test::{Test, TestFilter};
pub use uninstall::{DeletionPropagation, Uninstall};
pub use upgrade::{ChartNameChangeStrategy, RemediationStrategy, Upgrade, UpgradeRemediation};

/// Version of every kind in this group.
pub const VERSION: &str = "v2";
