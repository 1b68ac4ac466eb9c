//! How an earlier revision of a release is brought back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ServerSideApplyMode;
use crate::meta::{Duration, is_false};

/// How Helm rolls back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// Timeout of each Helm operation. Defaults to the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Do not wait until the objects are ready.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait: bool,

    /// Do not wait until Jobs are complete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait_for_jobs: bool,

    /// Do not run hooks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_hooks: bool,

    /// Restart Pods. Deprecated: no longer supported by Helm.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recreate: bool,

    /// Replace objects instead of patching them. Ignored with server-side apply.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,

    /// Delete objects that were created by a failed rollback.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cleanup_on_fail: bool,

    /// Whether objects are applied by the server: enabled, disabled, or as for the revision that is brought back
    /// (auto, the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,
}
