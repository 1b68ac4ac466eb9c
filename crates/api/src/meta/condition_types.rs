//! The types of conditions, as clients know them.

/// The object is reconciled and what it stands for works.
pub const READY: &str = "Ready";
/// Nothing will change until someone changes the spec. Present only while true.
pub const STALLED: &str = "Stalled";
/// The controller is at work on the newest change. Present only while true.
pub const RECONCILING: &str = "Reconciling";
/// The result of the last health check.
pub const HEALTHY: &str = "Healthy";
/// A revision is not applied, as it was not healthy. Not one of Flux's.
pub const HELD: &str = "Held";
/// Something new is not delivered, as a Freeze is in force. Not one of Flux's.
pub const FROZEN: &str = "Frozen";

/// The artifact of the source is in the store.
pub const ARTIFACT_IN_STORAGE: &str = "ArtifactInStorage";
/// The artifact in the store is not the newest one. Present only while true.
pub const ARTIFACT_OUTDATED: &str = "ArtifactOutdated";
/// The signature of the source was checked.
pub const SOURCE_VERIFIED: &str = "SourceVerified";
/// The artifact meets the VerificationPolicies that apply to it.
pub const POLICIES_MET: &str = "PoliciesMet";
/// The source could not be fetched. Present only while true.
pub const FETCH_FAILED: &str = "FetchFailed";
/// The chart could not be built. Present only while true.
pub const BUILD_FAILED: &str = "BuildFailed";
/// The store failed. Present only while true.
pub const STORAGE_OPERATION_FAILED: &str = "StorageOperationFailed";
/// A repository that is to be included is not there. Present only while true.
pub const INCLUDE_UNAVAILABLE: &str = "IncludeUnavailable";
/// A reference into another namespace is not allowed.
pub const ACCESS_DENIED: &str = "AccessDenied";

/// The release is as the spec says.
pub const RELEASED: &str = "Released";
/// The tests of the release passed.
pub const TEST_SUCCESS: &str = "TestSuccess";
/// A failed release was undone.
pub const REMEDIATED: &str = "Remediated";
