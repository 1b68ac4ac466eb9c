//! How an earlier revision of a release is brought back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ServerSideApplyMode;
use crate::meta::{Duration, is_false};

/// How Helm rolls back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// How long one operation of Helm may take. If not set, it is the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Whether not to wait until the objects are ready.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait: bool,

    /// Whether not to wait until Jobs are complete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait_for_jobs: bool,

    /// Whether hooks are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_hooks: bool,

    /// Whether Pods are restarted. Deprecated: Helm does not do it any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recreate: bool,

    /// Whether objects are replaced, not patched. It means nothing if the server applies them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,

    /// Whether objects that a failed rollback created are deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cleanup_on_fail: bool,

    /// Whether objects are applied by the server: enabled, disabled, or as for the revision that is brought back
    /// (auto, the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,
}
