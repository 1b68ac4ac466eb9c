//! Service accounts that read artifacts: who they are, what they may, and their tokens (docs/operations/artifact-service.md).

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::objects;

/// The service account as which controllers read artifacts, in their namespace.
pub const READER: &str = "windlass-artifact-reader";
/// Default audience of tokens for the artifact service.
pub const AUDIENCE: &str = "windlass-artifact";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const SOURCES: &str = "source.toolkit.fluxcd.io";

/// Makes the service account, which may do nothing yet.
pub async fn create_account(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                         "metadata": {"name": name, "namespace": namespace}});
    objects::apply(client, &account).await.map(drop)
}

/// Makes the service account and lets it get every source of the cluster.
pub async fn allow_all(client: &Client, namespace: &str, name: &str) -> Result<()> {
    create_account(client, namespace, name).await?;
    for object in cluster_wide(namespace, name) {
        objects::apply(client, &object).await?;
    }
    Ok(())
}

/// Takes back what [`allow_all`] made outside of the namespace.
pub async fn forbid_all(client: &Client, namespace: &str, name: &str) -> Result<()> {
    for object in cluster_wide(namespace, name) {
        let (api, name) = objects::api_of(client, &object)?;
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("failed to delete {name} ({})", api.resource_url()))?;
    }
    Ok(())
}

/// Lets the service account get the sources of one kind (such as `gitrepositories`) in its own namespace.
pub async fn allow_in_namespace(client: &Client, namespace: &str, name: &str, resource: &str) -> Result<()> {
    let metadata = json!({"name": name, "namespace": namespace});
    let role = json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata,
                      "rules": [{"apiGroups": [SOURCES], "resources": [resource], "verbs": ["get"]}]});
    objects::apply(client, &role).await?;
    let binding = json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
                         "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": name},
                         "subjects": [subject(namespace, name)]});
    objects::apply(client, &binding).await.map(drop)
}

/// A token of the service account for an audience, as a projected volume would have it; None is the API server itself.
pub async fn token<'a>(
    client: &Client,
    namespace: &str,
    name: &str,
    audience: impl Into<Option<&'a str>>,
) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: audience.into().map(str::to_owned).into_iter().collect(),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await;
    let answer = answer.with_context(|| format!("failed to get a token of {namespace}/{name}"))?;
    Ok(answer.status.context("the API server gave no token")?.token)
}

/// ClusterRole and ClusterRoleBinding; each namespace has its own, so that they come and go alone.
fn cluster_wide(namespace: &str, name: &str) -> [Value; 2] {
    let role = format!("{namespace}-{name}");
    [
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": role},
               "rules": [{"apiGroups": [SOURCES], "resources": ["*"], "verbs": ["get"]}]}),
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": role},
               "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
               "subjects": [subject(namespace, name)]}),
    ]
}

fn subject(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
}
