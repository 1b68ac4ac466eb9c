//! How a run can fail: one variant per step, each with the reason that the Ready condition gets.

use std::sync::Arc;

use api::meta::reasons;
use cluster_access::targets;
use sops::flux::sources::SourceError;

use crate::{decryption, good};

/// A run that failed. The message is made of the whole chain, once, by [`Error::message`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The artifact could not be had.
    #[error("failed to fetch artifact of revision {revision}")]
    FetchArtifact {
        /// Which revision.
        revision: String,
        /// Why.
        #[source]
        source: artifact::client::Error,
    },
    /// `spec.path` is not in the artifact.
    #[error("kustomization path not found: {path} is not in revision {revision}")]
    PathNotFound {
        /// The path.
        path: String,
        /// The revision that lacks it.
        revision: String,
    },
    /// A ConfigMap or Secret with variables could not be read.
    #[error("substitute from '{kind}/{name}' error")]
    ReadVariables {
        /// ConfigMap or Secret.
        kind: String,
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// There are no keys for what is encrypted.
    #[error(transparent)]
    Keys(#[from] decryption::Error),
    /// The manifests could not be built. Several may share the result.
    #[error(transparent)]
    Build(Arc<BuildError>),
    /// Images do not meet a policy. The text names them.
    #[error("{0}")]
    Images(String),
    /// Objects could not be validated or applied; tells of each.
    #[error("failed to apply")]
    Apply(#[source] kube_apply::ApplyError),
    /// The same, where the API server quoted what was decrypted.
    #[error("failed to apply: {0}")]
    ApplyMasked(String),
    /// Objects that left the source could not be deleted.
    #[error("failed to prune {count} objects:\n{details}")]
    Prune {
        /// How many.
        count: usize,
        /// Each with its error.
        details: String,
        /// The same, one by one.
        errors: Vec<kube_apply::ObjectError>,
    },
    /// Objects that left the source are not deleted before someone confirms it.
    #[error("{0}")]
    PruneRefused(String),
    /// The time that the spec allows ran out.
    #[error("timed out after {0} while applying")]
    TimedOut(api::meta::Duration),
    /// Applied objects are not healthy.
    #[error("health check failed after {after}: {report}")]
    Health {
        /// How long it was waited.
        after: api::meta::Duration,
        /// Which objects, and why.
        report: Box<kube_health::Report>,
    },
    /// What is kept of the last revision that was healthy cannot be read or written.
    #[error(transparent)]
    Rollback(#[from] good::Error),
    /// There is nowhere to apply to.
    #[error("failed to build kube client")]
    Target(#[from] targets::Error),
    /// The object could not be written.
    #[error("failed to update the Kustomization")]
    Record(#[source] controller_kit::status::Error),
    /// The finalizer could not be added or removed.
    #[error("failed to update the Kustomization")]
    Finalizer(#[source] controller_kit::finalizer::Error),
}

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder, the spec or the variables are at fault.
    #[error(transparent)]
    Content(#[from] flux_spec::build::Error),
    /// A file that the kustomizations name cannot be decrypted.
    #[error("error decrypting sources: {0}{1}")]
    DecryptSources(SourceError, &'static str),
    /// An object cannot be decrypted.
    #[error("decryption failed for '{object}': {problem}")]
    DecryptObject {
        /// The object, as kustomize names it.
        object: String,
        /// Why; which keys were tried.
        problem: String,
    },
    /// The build failed, and its words may hold what was decrypted.
    #[error(
        "kustomize build failed: the reason is withheld because it may quote what was decrypted from {}; decrypt them \
         and build the folder locally to see it", .0.join(", ")
    )]
    Withheld(Vec<String>),
    /// Variables cannot be substituted in a decrypted object.
    #[error(
        "post build failed for '{0}': the reason is withheld because it may quote what was decrypted; the annotation \
         kustomize.toolkit.fluxcd.io/substitute: disabled keeps variables out of the object"
    )]
    WithheldPostBuild(String),
    /// The task that builds ended without an answer.
    #[error("failed to finish the build")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl Error {
    /// Returns whether the source does not have, or no longer has, the artifact that its status names.
    pub fn is_artifact_missing(&self) -> bool {
        let Self::FetchArtifact { source, .. } = self else {
            return false;
        };
        source.is_gone()
    }

    /// Returns the reason of the Ready condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::FetchArtifact { .. } | Self::PathNotFound { .. } => reasons::ARTIFACT_FAILED,
            Self::Build(_) | Self::Keys(_) | Self::ReadVariables { .. } => reasons::BUILD_FAILED,
            Self::Images(_) => reasons::IMAGE_VERIFICATION_FAILED,
            Self::Prune { .. } => reasons::PRUNE_FAILED,
            Self::PruneRefused(_) => reasons::PRUNE_REFUSED,
            Self::Health { .. } => reasons::HEALTH_CHECK_FAILED,
            Self::Target(_)
            | Self::Rollback(_)
            | Self::Apply(_)
            | Self::ApplyMasked(_)
            | Self::TimedOut(_)
            | Self::Record(_)
            | Self::Finalizer(_) => reasons::RECONCILIATION_FAILED,
        }
    }

    /// Returns the whole chain, for conditions, events and logs.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            message.push_str(": ");
            message.push_str(&error.to_string());
            source = error.source();
        }
        message
    }
}
