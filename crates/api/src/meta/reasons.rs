//! The reasons of conditions and events, as clients know them.

// --- every kind ---
/// The requested operation succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// The requested operation failed.
pub const FAILED: &str = "Failed";
/// Work is under way.
pub const PROGRESSING: &str = "Progressing";
/// Work failed, and will be tried again.
pub const PROGRESSING_WITH_RETRY: &str = "ProgressingWithRetry";
/// The object is suspended.
pub const SUSPENDED: &str = "Suspended";
/// An object that must be ready first is not.
pub const DEPENDENCY_NOT_READY: &str = "DependencyNotReady";
/// A CEL expression in the spec is wrong.
pub const INVALID_CEL_EXPRESSION: &str = "InvalidCELExpression";
/// A feature is used whose gate is closed.
pub const FEATURE_GATE_DISABLED: &str = "FeatureGateDisabled";
/// A path in the spec leads nowhere, or out of the source.
pub const INVALID_PATH: &str = "InvalidPath";
/// A URL in the spec is wrong.
pub const INVALID_URL: &str = "InvalidURL";
/// Plain HTTP is used where it is not allowed.
pub const INSECURE_CONNECTIONS_DISALLOWED: &str = "InsecureConnectionsDisallowed";
/// A protocol is used that is not supported.
pub const UNSUPPORTED_CONNECTION_TYPE: &str = "UnsupportedConnectionType";
/// A reference into another namespace is not allowed.
pub const ACCESS_DENIED: &str = "AccessDenied";

// --- Kustomization and HelmRelease ---
/// Objects could not be pruned.
pub const PRUNE_FAILED: &str = "PruneFailed";
/// Objects were not pruned because someone must confirm it first. Not one of Flux's.
pub const PRUNE_REFUSED: &str = "PruneRefused";
/// The artifact could not be fetched.
pub const ARTIFACT_FAILED: &str = "ArtifactFailed";
/// The build failed.
pub const BUILD_FAILED: &str = "BuildFailed";
/// Images do not meet a VerificationPolicy. Not one of Flux's.
pub const IMAGE_VERIFICATION_FAILED: &str = "ImageVerificationFailed";
/// Applied objects are not healthy.
pub const HEALTH_CHECK_FAILED: &str = "HealthCheckFailed";
/// The last revision that was healthy is applied, and the newest is held. Not one of Flux's.
pub const ROLLED_BACK: &str = "RolledBack";
/// Something new waits for the end of a Freeze. Not one of Flux's.
pub const FROZEN: &str = "Frozen";
/// A newer change ended the wait for health.
pub const HEALTH_CHECK_CANCELED: &str = "HealthCheckCanceled";
/// The reconciliation succeeded.
pub const RECONCILIATION_SUCCEEDED: &str = "ReconciliationSucceeded";
/// The reconciliation failed.
pub const RECONCILIATION_FAILED: &str = "ReconciliationFailed";

// --- sources ---
/// The URL of the source is wrong.
pub const URL_INVALID: &str = "URLInvalid";
/// The source refused the credentials, or they could not be read.
pub const AUTHENTICATION_FAILED: &str = "AuthenticationFailed";
/// The signature of the source is wrong.
pub const VERIFICATION_ERROR: &str = "VerificationError";
/// A folder could not be made.
pub const DIRECTORY_CREATION_FAILED: &str = "DirectoryCreationFailed";
/// A file could not be examined.
pub const STAT_OPERATION_FAILED: &str = "StatOperationFailed";
/// A file could not be read.
pub const READ_OPERATION_FAILED: &str = "ReadOperationFailed";
/// A file could not be locked.
pub const ACQUIRE_LOCK_FAILED: &str = "AcquireLockFailed";
/// The archive could not be made.
pub const ARCHIVE_OPERATION_FAILED: &str = "ArchiveOperationFailed";
/// The link to the newest archive could not be set.
pub const SYMLINK_UPDATE_FAILED: &str = "SymlinkUpdateFailed";
/// The source has not changed.
pub const ARTIFACT_UP_TO_DATE: &str = "ArtifactUpToDate";
/// The cache failed.
pub const CACHE_OPERATION_FAILED: &str = "CacheOperationFailed";
/// The object could not be patched.
pub const PATCH_OPERATION_FAILED: &str = "PatchOperationFailed";
/// The configuration of the token service is wrong.
pub const INVALID_STS_CONFIGURATION: &str = "InvalidSTSConfiguration";
/// The configuration of the cloud provider is wrong.
pub const INVALID_PROVIDER_CONFIGURATION: &str = "InvalidProviderConfiguration";
/// Git succeeded.
pub const GIT_OPERATION_SUCCEEDED: &str = "GitOperationSucceeded";
/// Git failed.
pub const GIT_OPERATION_FAILED: &str = "GitOperationFailed";
/// The OCI artifact could not be pulled.
pub const OCI_PULL_FAILED: &str = "OCIArtifactPullFailed";
/// The layer of the OCI artifact could not be selected or unpacked.
pub const OCI_LAYER_OPERATION_FAILED: &str = "OCIArtifactLayerOperationFailed";
/// The bucket was read.
pub const BUCKET_OPERATION_SUCCEEDED: &str = "BucketOperationSucceeded";
/// The bucket could not be read.
pub const BUCKET_OPERATION_FAILED: &str = "BucketOperationFailed";
/// The index of the Helm repository could not be loaded.
pub const INDEXATION_FAILED: &str = "IndexationFailed";
/// The chart was pulled.
pub const CHART_PULL_SUCCEEDED: &str = "ChartPullSucceeded";
/// The chart was packaged.
pub const CHART_PACKAGE_SUCCEEDED: &str = "ChartPackageSucceeded";
