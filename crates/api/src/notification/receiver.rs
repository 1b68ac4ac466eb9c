//! `Receiver`: a webhook that asks for reconciliations.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EventSourceKind;
use crate::meta::{
    Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// Specification of the Receiver.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1",
    kind = "Receiver",
    plural = "receivers",
    namespaced,
    status = "ReceiverStatus",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    doc = "A webhook that triggers the reconciliation of objects.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type != 'generic-oidc' || (has(self.oidcProviders) && size(self.oidcProviders) > 0)",
        "message": "generic-oidc receivers must define at least one oidcProvider",
    },
    {
        "rule": "self.type == 'generic-oidc' || !has(self.oidcProviders) || size(self.oidcProviders) == 0",
        "message": "oidcProviders can only be set when type is generic-oidc",
    },
    {
        "rule": "self.type != 'generic-oidc' || !has(self.secretRef)",
        "message": "secretRef cannot be set when type is generic-oidc",
    },
    {
        "rule": "self.type == 'generic-oidc' || has(self.secretRef)",
        "message": "secretRef is required when type is not generic-oidc",
    },
]))]
pub struct ReceiverSpec {
    /// Type of the caller, which determines how calls are verified and parsed.
    #[serde(rename = "type")]
    pub type_: ReceiverType,

    /// Interval at which the Receiver is reconciled with its Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), extend("default" = "10m"))]
    pub interval: Option<Duration>,

    /// Events to handle, as named by the caller, e.g. push or Push Hook. Defaults to all events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,

    /// The objects to reconcile.
    pub resources: Vec<ReceiverResource>,

    /// CEL expression over the object (`res`) and the request (`req`). Objects for which it is false are skipped.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub resource_filter: Option<String>,

    /// Secret whose `token` authenticates calls. Required unless the type is generic-oidc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Trusted OIDC providers, for the type generic-oidc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["issuerURL"]))]
    pub oidc_providers: Vec<OIDCProvider>,

    /// Suspend handling of incoming calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Service that calls a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverType {
    /// Anyone who knows the path.
    #[default]
    Generic,
    /// Anyone who signs with the token.
    #[serde(rename = "generic-hmac")]
    GenericHmac,
    /// Anyone with a token of a trusted issuer.
    #[serde(rename = "generic-oidc")]
    GenericOidc,
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Bitbucket.
    Bitbucket,
    /// Harbor.
    Harbor,
    /// Docker Hub.
    Dockerhub,
    /// Quay.
    Quay,
    /// Google Container Registry.
    Gcr,
    /// Nexus.
    Nexus,
    /// Azure Container Registry.
    Acr,
    /// Anyone who sends CDEvents.
    Cdevents,
}

impl ReceiverType {
    /// Whether a call is accepted from whoever knows the path: it is not signed, and has no token.
    #[must_use]
    pub fn trusts_the_path(self) -> bool {
        match self {
            Self::Generic | Self::Dockerhub | Self::Quay | Self::Acr | Self::Cdevents => true,
            Self::GenericHmac
            | Self::GenericOidc
            | Self::Github
            | Self::Gitlab
            | Self::Bitbucket
            | Self::Harbor
            | Self::Nexus
            | Self::Gcr => false,
        }
    }
}

/// Reference to the objects to reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverResource {
    /// API version of the object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the object.
    pub kind: EventSourceKind,

    /// Name of the object, or `*` for all.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the Receiver.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,

    /// Labels that the objects must have. Requires the name `*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// Like resourceFilter, for these objects only. Both must be true.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// A trusted OIDC provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OIDCProvider {
    /// URL of the issuer, as in the `iss` claim.
    #[serde(rename = "issuerURL")]
    #[schemars(regex(pattern = r"^https?://"))]
    pub issuer_url: String,

    /// Required audience of the tokens. Defaults to notification-controller.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,

    /// Named CEL expressions over the claims of a token, for use in later variables and in validations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<OIDCVariable>,

    /// CEL expressions over claims and variables that must all be true. A valid token alone does not authorize the
    /// call.
    #[schemars(length(min = 1))]
    pub validations: Vec<OIDCValidation>,
}

/// A named CEL expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCVariable {
    /// Name of the variable, available as `vars.<name>`.
    pub name: String,

    /// The expression.
    pub expression: String,
}

/// A CEL expression that must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCValidation {
    /// The expression.
    pub expression: String,

    /// Error message returned to the caller if the expression is false.
    pub message: String,
}

/// Observed state of the Receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this webhook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Path of the webhook. It cannot be guessed without the token.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ReceiverStatus);
status_object!(Receiver);
