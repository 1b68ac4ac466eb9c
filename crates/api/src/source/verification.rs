//! How the signatures of OCI artifacts and charts are verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::LocalObjectReference;

/// The tool that an artifact was signed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignatureProvider {
    /// Sigstore's cosign.
    #[default]
    Cosign,
    /// Notary Project's notation.
    Notation,
}

/// Which signature an OCI artifact must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactVerification {
    /// Tool with which the artifact was signed.
    #[schemars(extend("default" = "cosign"))]
    pub provider: SignatureProvider,

    /// Secret with the trusted public keys. If unset, keyless signatures are verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Trusted identities for keyless cosign signatures. One match suffices.
    #[serde(rename = "matchOIDCIdentity", default, skip_serializing_if = "Vec::is_empty")]
    pub match_oidc_identity: Vec<OIDCIdentityMatch>,

    /// Secret with the trusted root (key trusted_root.json) of a custom Sigstore instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root_secret_ref: Option<LocalObjectReference>,
}

/// Which signature a chart must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartVerification {
    /// Tool with which the chart was signed.
    #[schemars(extend("default" = "cosign"))]
    pub provider: SignatureProvider,

    /// Secret with the trusted public keys. If unset, keyless signatures are verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Trusted identities for keyless cosign signatures. One match suffices.
    #[serde(rename = "matchOIDCIdentity", default, skip_serializing_if = "Vec::is_empty")]
    pub match_oidc_identity: Vec<OIDCIdentityMatch>,
}

impl From<ChartVerification> for ArtifactVerification {
    fn from(chart: ChartVerification) -> Self {
        Self {
            provider: chart.provider,
            secret_ref: chart.secret_ref,
            match_oidc_identity: chart.match_oidc_identity,
            trusted_root_secret_ref: None,
        }
    }
}

/// A trusted identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCIdentityMatch {
    /// Go regular expression that matches the issuer in the certificate.
    pub issuer: String,

    /// Go regular expression that matches the subject in the certificate.
    pub subject: String,
}
