//! One condition of an object's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a condition that holds.
pub const TRUE: &str = "True";
/// The status of a condition that does not hold.
pub const FALSE: &str = "False";
/// The status of a condition of which nothing is known yet.
pub const UNKNOWN: &str = "Unknown";

/// Condition of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, in CamelCase, optionally prefixed with a domain.
    #[serde(rename = "type")]
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    pub type_: String,

    /// True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,

    /// Generation of the object that the condition refers to. If it is less than metadata.generation, the condition is
    /// out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// Time of the last change of the status.
    pub last_transition_time: Time,

    /// Machine-readable reason for the status, in CamelCase.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    pub reason: String,

    /// Human-readable details. May be empty.
    #[schemars(length(max = 32768))]
    pub message: String,
}

impl Condition {
    /// Returns whether the condition holds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == TRUE
    }

    /// Returns whether the condition is known not to hold.
    #[must_use]
    pub fn is_false(&self) -> bool {
        self.status == FALSE
    }
}
