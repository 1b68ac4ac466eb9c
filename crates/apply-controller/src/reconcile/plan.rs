//! Plan of a run: what triggers it, and what it runs on.

use artifact::client::{ArtifactRef, SourceObject};

use crate::good::Head;
use crate::memory::Inputs;

/// A run, fully determined.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Why it runs.
    pub trigger: Trigger,
    /// Inputs of the run.
    pub inputs: Inputs,
    /// What is applied.
    pub content: Content,
    /// Source object whose artifact is used.
    pub source: SourceObject,
    /// Where the artifact can be downloaded.
    pub url: String,
    /// The revision at the origin of the source's artifact (an OCI artifact's Git commit), if the source says so.
    pub origin_revision: Option<String>,
    /// Set while a Freeze is in force.
    pub guard: Option<Guard>,
    /// The request (`reconcile.fluxcd.io/requestedAt`) that it answers, if there is one.
    pub request: Option<String>,
}

/// What a run applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// What is built from the artifact of its inputs.
    Source,
    /// What is kept of a revision that was healthy, since that of the inputs is held.
    Good(Kept),
    /// What is kept of the last revision that was delivered, while a Freeze keeps that of the inputs waiting.
    Delivered(Kept),
}

/// A revision of which the objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The revision.
    pub revision: String,
    /// The revision at the origin of its artifact.
    pub origin_revision: Option<String>,
    /// Digest of the objects.
    pub checksum: String,
}

impl From<&Head> for Kept {
    fn from(head: &Head) -> Self {
        Self {
            revision: head.revision.clone(),
            origin_revision: head.origin_revision.clone(),
            checksum: head.checksum.clone(),
        }
    }
}

/// What a run may do while a Freeze is in force: nothing that changes what is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Digest of the objects that were delivered last.
    pub delivered: String,
    /// Whether they are applied again, against drift.
    pub corrects_drift: bool,
}

impl Plan {
    /// Returns the revision that is applied.
    pub fn revision(&self) -> &str {
        match &self.content {
            Content::Source => &self.inputs.revision,
            Content::Good(kept) | Content::Delivered(kept) => &kept.revision,
        }
    }

    /// Returns the revision that the status calls attempted: what waits is not.
    pub fn attempted(&self) -> &str {
        match &self.content {
            Content::Source | Content::Good(_) => &self.inputs.revision,
            Content::Delivered(kept) => &kept.revision,
        }
    }

    /// Returns whether it runs while a Freeze is in force.
    pub fn is_frozen(&self) -> bool {
        self.guard.is_some() || matches!(self.content, Content::Delivered(_))
    }

    /// Returns the revision at the origin of what is applied.
    pub fn origin(&self) -> Option<&String> {
        match &self.content {
            Content::Source => self.origin_revision.as_ref(),
            Content::Good(kept) | Content::Delivered(kept) => kept.origin_revision.as_ref(),
        }
    }

    /// Returns the artifact that it builds from.
    pub fn artifact(&self) -> ArtifactRef {
        ArtifactRef {
            object: self.source.clone(),
            url: self.url.clone(),
            digest: self.inputs.digest.clone(),
            revision: self.inputs.revision.clone(),
        }
    }
}

/// Why a run happens, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// First time that this process sees the object.
    Startup,
    /// The spec changed.
    Spec,
    /// The source has another artifact.
    Revision,
    /// The revision is held, or is not any more: the cluster has something else than it should.
    Rollback,
    /// The Freeze has ended for which something waited.
    Thaw,
    /// A person asked for it (`reconcile.fluxcd.io/requestedAt`): nothing that is remembered is trusted.
    Requested,
    /// A ConfigMap or Secret that variables are taken from was touched.
    Variables,
    /// A person confirmed a prune that was refused.
    Confirmed,
    /// Objects that left the source waited for another Kustomization to take them over.
    HandOver,
    /// Someone changed or deleted a managed object.
    Drift,
    /// The last run failed, and its retry is due.
    Retry,
    /// The interval passed.
    Interval,
}
