//! `windlass create tenant`.

use clap::Args;
use serde_json::{Value, json};

use super::{Common, Made};
use crate::cluster::Failure;

/// Label of everything that is a tenant's, as in Flux.
const LABEL: &str = "toolkit.fluxcd.io/tenant";

/// Command line.
#[derive(Debug, Args)]
pub(super) struct Flags {
    #[command(flatten)]
    common: Common,

    /// Namespace of the tenant; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    with_namespace: Vec<String>,

    /// ClusterRole that the tenant has in these namespaces
    #[arg(long, value_name = "NAME", default_value = "cluster-admin")]
    cluster_role: String,

    /// Service account of the tenant; defaults to the name of the tenant
    #[arg(long, value_name = "NAME")]
    with_service_account: Option<String>,
}

impl Flags {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let tenant = &self.common.name;
        let account = self.with_service_account.as_ref().unwrap_or(tenant);
        let mut labels = json!({LABEL: tenant});
        for (key, value) in &self.common.labels {
            labels[key] = value.as_str().into();
        }
        let mut objects = Vec::new();
        for namespace in &self.with_namespace {
            let metadata =
                |name: &str| -> Value { json!({"name": name, "namespace": namespace, "labels": labels}) };
            let user = format!("gotk:{namespace}:reconciler");
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}));
            objects
                .push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(account)}));
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": metadata(&format!("{tenant}-reconciler")),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.cluster_role},
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user},
                    {"kind": "ServiceAccount", "name": account, "namespace": namespace},
                ],
            }));
        }
        Ok((&self.common, objects))
    }
}
