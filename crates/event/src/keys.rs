//! Keys of metadata that mean something to notification-controller.

/// The prefix, without its slash, of what users set on objects for their events.
pub const GROUP: &str = "event.toolkit.fluxcd.io";

/// The revision of the source's artifact.
pub const REVISION: &str = "revision";
/// The revision in the place where the artifact was made from, such as the commit behind an OCI artifact.
pub const ORIGIN_REVISION: &str = "originRevision";
/// The digest of what was applied. It is not for alerts.
pub const CHECKSUM: &str = "checksum";
/// The digest of an artifact. It is not for alerts.
pub const DIGEST: &str = "digest";
/// Sets apart events that are otherwise equal. It is not for alerts.
pub const TOKEN: &str = "token";
/// The commit that a status is for.
pub const COMMIT: &str = "commit";
/// The pull request, or merge request, that comments are for.
pub const CHANGE_REQUEST: &str = "change_request";
/// Says that an event is for commit statuses only.
pub const COMMIT_STATUS: &str = "commit_status";
/// The value of [`COMMIT_STATUS`].
pub const COMMIT_STATUS_UPDATE: &str = "update";
/// Summary for those who are alerted.
pub const SUMMARY: &str = "summary";
