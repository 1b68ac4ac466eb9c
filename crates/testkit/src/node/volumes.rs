//! Volumes of Pods, as folders.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, KeyToPath, Pod, ProjectedVolumeSource, Secret, ServiceAccount, ServiceAccountTokenProjection,
    Volume,
};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

use super::plan::pod_field;

/// Fills the folder of a volume.
pub(super) async fn fill(client: &Client, pod: &Pod, volume: &Volume, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let filled = if volume.empty_dir.is_some() {
        Ok(())
    } else if let Some(source) = &volume.projected {
        project(client, pod, source, folder).await
    } else if let Some(source) = &volume.config_map {
        write_config_map(client, pod, &source.name, source.items.as_deref(), folder).await
    } else if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        write_secret(client, pod, name, source.items.as_deref(), folder).await
    } else {
        bail!("the volume {} is of a kind that is not supported", volume.name)
    };
    filled.with_context(|| format!("failed to fill the volume {}", volume.name))
}

async fn project(client: &Client, pod: &Pod, source: &ProjectedVolumeSource, folder: &Path) -> Result<()> {
    for source in source.sources.iter().flatten() {
        if let Some(token) = &source.service_account_token {
            write(
                &folder.join(&token.path),
                issue_token(client, pod, token).await?.as_bytes(),
            )?;
        }
        if let Some(map) = &source.config_map {
            write_config_map(client, pod, &map.name, map.items.as_deref(), folder).await?;
        }
        if let Some(secret) = &source.secret {
            write_secret(client, pod, &secret.name, secret.items.as_deref(), folder).await?;
        }
        for item in source
            .downward_api
            .iter()
            .flat_map(|source| source.items.iter().flatten())
        {
            let field = item
                .field_ref
                .as_ref()
                .context("only fields of the Pod are supported")?;
            write(
                &folder.join(&item.path),
                pod_field(pod, &field.field_path)?.as_bytes(),
            )?;
        }
    }
    Ok(())
}

/// As kubelet does: for the Pod's account, and good for as long as the Pod lives.
async fn issue_token(client: &Client, pod: &Pod, token: &ServiceAccountTokenProjection) -> Result<String> {
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: token.audience.iter().cloned().collect(),
            expiration_seconds: token.expiration_seconds,
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
        },
        ..TokenRequest::default()
    };
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref());
    let account = account.context("the Pod has no service account")?;
    let issued = accounts(client, pod)
        .create_token_request(account, &PostParams::default(), &request)
        .await;
    let issued = issued.with_context(|| format!("failed to get a token of {account}"))?;
    Ok(issued.status.context("no token was issued")?.token)
}

fn accounts(client: &Client, pod: &Pod) -> Api<ServiceAccount> {
    Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default())
}

async fn write_config_map(
    client: &Client,
    pod: &Pod,
    name: &str,
    items: Option<&[KeyToPath]>,
    folder: &Path,
) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let map = maps
        .get(name)
        .await
        .with_context(|| format!("failed to get the ConfigMap {name}"))?;
    for (key, text) in map.data.unwrap_or_default() {
        write_key(&key, text.as_bytes(), items, folder)?;
    }
    for (key, bytes) in map.binary_data.unwrap_or_default() {
        write_key(&key, &bytes.0, items, folder)?;
    }
    Ok(())
}

async fn write_secret(
    client: &Client,
    pod: &Pod,
    name: &str,
    items: Option<&[KeyToPath]>,
    folder: &Path,
) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let secret = secrets
        .get(name)
        .await
        .with_context(|| format!("failed to get the Secret {name}"))?;
    for (key, bytes) in secret.data.unwrap_or_default() {
        write_key(&key, &bytes.0, items, folder)?;
    }
    Ok(())
}

/// All keys under their own names, or those of the items under the names that these give.
fn write_key(key: &str, content: &[u8], items: Option<&[KeyToPath]>, folder: &Path) -> Result<()> {
    let path = match items {
        None => Some(key),
        Some(items) => items
            .iter()
            .find(|item| item.key == key)
            .map(|item| item.path.as_str()),
    };
    path.map_or(Ok(()), |path| write(&folder.join(path), content))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let parent = path.parent().context("a file has no folder")?;
    fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))
}
