//! Actions on a release, in Flux's words.

use api::helm::Snapshot;
use helm_release::Release;

use super::drift::Drift;

/// Something that is done to a release.
#[derive(Clone, Debug)]
pub enum Action {
    /// Makes the first revision.
    Install,
    /// Makes a later one.
    Upgrade,
    /// Brings an earlier revision back, this one.
    RollBack(Box<Snapshot>),
    /// Removes what an action that failed has left.
    UninstallRemediation,
    /// Ends an uninstall that was not ended.
    FinishUninstall,
    /// Removes the release, because its object is deleted or it is to be elsewhere.
    Uninstall,
    /// Runs the tests of the newest revision.
    Test,
    /// Writes this record in place of one that a crash left pending.
    Unlock(Box<Release>),
    /// Applies the manifest to these objects again.
    CorrectDrift(Vec<Drift>),
}

/// Actions of one kind are done once per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Makes a revision.
    Release,
    /// Undoes one. The run ends with it.
    Remediate,
    /// Ends what was begun before.
    Finish,
    /// Tests.
    Test,
    /// Unlocks.
    Unlock,
    /// Corrects drift.
    DriftCorrection,
}

impl Action {
    /// Its name, in Flux's words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::RollBack(_) => "rollback",
            Self::UninstallRemediation | Self::FinishUninstall | Self::Uninstall => "uninstall",
            Self::Test => "test",
            Self::Unlock(_) => "unlock",
            Self::CorrectDrift(_) => "correct cluster drift",
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Install | Self::Upgrade | Self::Uninstall => Kind::Release,
            Self::RollBack(_) | Self::UninstallRemediation => Kind::Remediate,
            Self::FinishUninstall => Kind::Finish,
            Self::Test => Kind::Test,
            Self::Unlock(_) => Kind::Unlock,
            Self::CorrectDrift(_) => Kind::DriftCorrection,
        }
    }
}
