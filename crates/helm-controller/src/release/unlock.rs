//! Records that a crash left behind: an action was under way when they were written, and no one will end it.

use helm_release::{Release, Status};

/// How the description of an unlocked record begins, in Flux's words.
const UNLOCKED: &str = "Release unlocked from stale '";

/// The record of an action that was broken off, as failed, so that others may follow.
pub(super) fn unlocked(pending: &Release) -> Release {
    let mut release = pending.clone();
    release.info.description = format!("{UNLOCKED}{}' state", pending.info.status);
    release.info.status = Status::Failed;
    release
}

/// Describes the action that was interrupted, if this record was unlocked.
pub(super) fn broken_off(release: &Release) -> Option<Status> {
    let rest = release.info.description.strip_prefix(UNLOCKED)?;
    let status = Status::from_text(rest.split('\'').next()?);
    (release.info.status == Status::Failed && status.is_pending()).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;

    #[test]
    fn an_unlocked_record_says_what_was_broken_off() {
        let release = unlocked(&record(2, "pending-upgrade"));
        assert_eq!(
            release.info.description,
            "Release unlocked from stale 'pending-upgrade' state"
        );
        assert_eq!(release.info.status, Status::Failed);
        assert_eq!(broken_off(&release), Some(Status::PendingUpgrade));
        assert_eq!(broken_off(&record(2, "failed")), None);
    }
}
