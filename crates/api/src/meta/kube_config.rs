//! How to reach a cluster other than the one the controller runs in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LocalObjectReference, filled::filled};

/// Names a Secret, and optionally one of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyReference {
    /// The name of the Secret.
    pub name: String,

    /// Key in the Secret. Defaults to a key that depends on the purpose.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Says how to reach a remote cluster: with a kubeconfig in a Secret, or with a cloud identity described in a
/// ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.configMapRef) || has(self.secretRef)",
        "message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified",
    },
    {
        "rule": "!has(self.configMapRef) || !has(self.secretRef)",
        "message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified",
    },
]))]
pub struct KubeConfigReference {
    /// Reference to a ConfigMap with these keys. `provider` is one of aws, azure, gcp and generic. `cluster` is the
    /// cluster's name at the cloud provider. `address` is the URL of the API server, and `ca.crt` its certificate
    /// authority in PEM; both come from the cloud provider if they are left out. `audiences` has one audience of the
    /// service account token per line. `serviceAccountName` names the service account in this namespace to authenticate
    /// as; without it the controller's own is used. Excludes secretRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalObjectReference>,

    /// Reference to a Secret that holds a self-contained kubeconfig, under `value` if no key is given. Login commands
    /// in it are not run. Excludes configMapRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeyReference>,
}
