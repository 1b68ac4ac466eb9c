//! `Receiver`: a webhook that asks for reconciliations.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EventSourceKind;
use crate::meta::{
    Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// Who may call, and what is reconciled then.
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
    doc = "A webhook that asks for the reconciliation of some objects when a service calls it.",
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
    /// Who calls. It decides how a call is verified and read.
    #[serde(rename = "type")]
    pub type_: ReceiverType,

    /// How often the Secret is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), extend("default" = "10m"))]
    pub interval: Option<Duration>,

    /// The events that count, in the words of the caller, such as push or Push Hook. If not set, all count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,

    /// The objects to reconcile.
    pub resources: Vec<ReceiverResource>,

    /// A CEL expression over the object (`res`) and the call (`req`). Objects for which it is false are passed
    /// over.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub resource_filter: Option<String>,

    /// Names the Secret whose `token` a call is verified with. Demanded unless the type is generic-oidc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Whose tokens are trusted, for the type generic-oidc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["issuerURL"]))]
    pub oidc_providers: Vec<OIDCProvider>,

    /// Whether calls are ignored for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Who can call a webhook.
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

/// Names objects to reconcile.
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

    /// Namespace of the object. If not set, it is the one of the Receiver.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,

    /// Labels that the objects must have, all of them. The name must be `*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// A CEL expression as resourceFilter, for these objects only. Both must be true.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// Whose tokens are trusted, and which of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OIDCProvider {
    /// URL of the issuer, as the tokens have it in `iss`.
    #[serde(rename = "issuerURL")]
    #[schemars(regex(pattern = r"^https?://"))]
    pub issuer_url: String,

    /// Whom the tokens must be for. If not set, it is notification-controller.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,

    /// Named CEL expressions over the claims of a token, to be used in later ones and in the validations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<OIDCVariable>,

    /// CEL expressions over the claims and the variables. All must be true: that a token is genuine does not
    /// mean that its owner may call.
    #[schemars(length(min = 1))]
    pub validations: Vec<OIDCValidation>,
}

/// A named CEL expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCVariable {
    /// The name; later expressions read it as `vars.<name>`.
    pub name: String,

    /// The expression.
    pub expression: String,
}

/// A CEL expression that must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCValidation {
    /// The expression.
    pub expression: String,

    /// What the caller is told if it is false.
    pub message: String,
}

/// What became of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// The generation of the spec that was reconciled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is known about this webhook, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The path to call. It cannot be guessed without the token.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ReceiverStatus);
status_object!(Receiver);
