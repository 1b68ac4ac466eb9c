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
    /// The tool that the artifact was signed with.
    #[schemars(extend("default" = "cosign"))]
    pub provider: SignatureProvider,

    /// Names the Secret with the trusted public keys. Without it, signatures made without keys are verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Who may have signed, when cosign was used without keys. One match is enough.
    #[serde(rename = "matchOIDCIdentity", default, skip_serializing_if = "Vec::is_empty")]
    pub match_oidc_identity: Vec<OIDCIdentityMatch>,

    /// Names the Secret whose key trusted_root.json describes a Sigstore installation of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root_secret_ref: Option<LocalObjectReference>,
}

/// Which signature a chart must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartVerification {
    /// The tool that the chart was signed with.
    #[schemars(extend("default" = "cosign"))]
    pub provider: SignatureProvider,

    /// Names the Secret with the trusted public keys. Without it, signatures made without keys are verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Who may have signed, when cosign was used without keys. One match is enough.
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

/// One who may have signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCIdentityMatch {
    /// A regular expression, in Go's syntax, for the issuer in the certificate.
    pub issuer: String,

    /// A regular expression, in Go's syntax, for the subject in the certificate.
    pub subject: String,
}
