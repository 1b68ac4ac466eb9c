//! As whom a preview asks, and who fetches for it what the cluster does not have yet.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::meta::{KubeConfigReference, condition_types};
use cluster_access::targets::Placement;
use delivery_diff::{Accounts, Fetcher};
use delivery_graph::object::{self, text};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::remote::Remotes;

/// Label of the sources that are made for a Preview: its UID.
const LABEL: &str = "windlass.dev/preview";
/// Longest time in which source-controller fetches one.
const PATIENCE: Duration = Duration::from_secs(60);
/// One that is still there after this time was left behind.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(15);

/// The accounts and kubeconfigs of Kustomizations and HelmReleases in the namespace of the Preview: its owner could use them, too.
pub(super) struct OwnAccounts {
    pub(super) remotes: Arc<Remotes>,
    pub(super) namespace: String,
    /// Whether the branch is in a fork: then nothing but the account of the Preview is used.
    pub(super) is_fork: bool,
}

impl Accounts for OwnAccounts {
    fn client<'a>(&'a self, live: &'a Value) -> BoxFuture<'a, Result<Option<Client>, String>> {
        Box::pin(async move {
            let kube_config = live.pointer("/spec/kubeConfig").cloned();
            let kube_config: Option<KubeConfigReference> = match kube_config {
                Some(value) => Some(serde_json::from_value(value).map_err(|error| error.to_string())?),
                None => None,
            };
            let account = Some(text(live, "/spec/serviceAccountName")).filter(|name| !name.is_empty());
            if self.is_fork || object::namespace(live) != self.namespace {
                return match kube_config {
                    Some(_) if self.is_fork => {
                        Err("its objects are in another cluster, which is not asked for a fork".to_owned())
                    }
                    Some(_) => Err(format!(
                        "its objects are in another cluster, and its kubeconfig is not in the namespace '{}' of the Preview",
                        self.namespace
                    )),
                    None => Ok(None),
                };
            }
            if kube_config.is_none() && account.is_none() {
                return Ok(None);
            }
            let placement = Placement {
                namespace: &self.namespace,
                service_account: account,
                kube_config: kube_config.as_ref(),
            };
            let target = self.remotes.target(placement).await;
            let target = target.map_err(|error| error_chain::chain(&error))?;
            Ok(Some(target.client.clone()))
        })
    }
}

/// Has source-controller fetch: a source is made as the account of the Preview, waited for, and deleted in the end.
pub(super) struct TemporarySources {
    client: Client,
    /// UID of the Preview.
    owner: String,
    made: Mutex<BTreeSet<(String, String, String)>>,
}

impl TemporarySources {
    pub(super) fn new(client: Client, owner: String) -> Self {
        Self {
            client,
            owner,
            made: Mutex::default(),
        }
    }

    /// Deletes what was made.
    pub(super) async fn clear(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for (kind, namespace, name) in made {
            if let Some(api) = self.api(&kind, &namespace)
                && let Err(error) = api.delete(&name, &Default::default()).await
            {
                tracing::warn!(kind, namespace, name, %error, "failed to delete the source that was made for a preview");
            }
        }
    }

    fn api(&self, kind: &str, namespace: &str) -> Option<Api<DynamicObject>> {
        let resource = delivery_graph::kind::exact(kind)?.resource();
        Some(Api::namespaced_with(self.client.clone(), namespace, &resource))
    }

    async fn have_fetched(&self, source: &Value) -> Result<Value, String> {
        let (kind, namespace) = (text(source, "/kind"), object::namespace(source));
        controller_kit::check_name(namespace)?;
        let api = self
            .api(kind, namespace)
            .ok_or_else(|| format!("{kind} is no source"))?;
        let id = object::id(source);
        let failed = |what: &str, error: &dyn std::error::Error| {
            format!(
                "{id} is not in the cluster as it would be, and it was not fetched: failed to {what}: {}",
                error_chain::chain(error)
            )
        };
        self.check(source, &api).await?;
        self.forget(&api, kind, namespace).await;
        let digest = Sha256::digest(format!("{}{}", self.owner, source["spec"]).as_bytes());
        let name = format!("windlass-preview-{}", &hex::encode(digest)[..16]);
        let made = json!({
            "apiVersion": source["apiVersion"], "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: self.owner}},
            "spec": source["spec"],
        });
        let made: DynamicObject = serde_json::from_value(made).map_err(|error| failed("make it", &error))?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert((
            kind.to_owned(),
            namespace.to_owned(),
            name.clone(),
        ));
        match api.create(&PostParams::default(), &made).await {
            Ok(_) => {}
            // It was needed a moment ago.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(failed("create one for it", &error)),
        }
        let ready = |object: &DynamicObject| {
            object::condition(&object.data, condition_types::READY).map(|ready| ready.status.to_owned())
        };
        let settled = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| {
                let seen = object
                    .data
                    .pointer("/status/observedGeneration")
                    .and_then(Value::as_i64);
                seen == object.metadata.generation && ready(object).is_some_and(|status| status != "Unknown")
            })
        };
        let waited = tokio::time::timeout(PATIENCE, await_condition(api, &name, settled)).await;
        let late = || {
            format!(
                "{id} is not in the cluster as it would be, and was not fetched within {} s",
                PATIENCE.as_secs()
            )
        };
        let found = waited.map_err(|_| late())?;
        let found = found
            .map_err(|error| failed("wait for it", &error))?
            .ok_or_else(late)?;
        let ready = object::condition(&found.data, condition_types::READY);
        if ready.as_ref().is_none_or(|ready| ready.status != "True") {
            let message = ready.map_or("", |ready| ready.message);
            return Err(format!("{id} cannot be fetched as it would be: {message}"));
        }
        let mut found = serde_json::to_value(found).map_err(|error| failed("read it", &error))?;
        found["apiVersion"] = source["apiVersion"].clone();
        found["kind"] = kind.into();
        Ok(found)
    }

    /// Refuses what could send requests or credentials to where only the pull request says. A HelmChart refers to a source that is there;
    /// an OCIRepository may have another version, and all else as in the cluster.
    async fn check(&self, source: &Value, api: &Api<DynamicObject>) -> Result<(), String> {
        let id = object::id(source);
        match id.kind.as_str() {
            "HelmChart" => return Ok(()),
            "OCIRepository" => {}
            _ => return Err(format!("{id} is not fetched for a preview")),
        }
        let live = api.get_opt(&id.name).await;
        let live = live.map_err(|error| format!("failed to get {id}: {}", error_chain::chain(&error)))?;
        let live = live.map(|live| rest_of(&live.data["spec"]));
        match live == Some(rest_of(&source["spec"])) {
            true => Ok(()),
            false => Err(format!(
                "{id} would be new, or have another URL or other credentials: it is fetched after the merge only"
            )),
        }
    }

    /// Deletes what was left behind when the process was killed.
    async fn forget(&self, api: &Api<DynamicObject>, kind: &str, namespace: &str) {
        let own = ListParams::default().labels(&format!("{LABEL}={}", self.owner));
        let Ok(found) = api.list(&own).await else { return };
        let now = Timestamp::now();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for object in found.items {
            let since = object
                .metadata
                .creation_timestamp
                .map(|time| now.duration_since(time.0));
            if let (Some(name), Some(true)) = (object.metadata.name, since.map(|since| since > FORGOTTEN)) {
                made.insert((kind.to_owned(), namespace.to_owned(), name));
            }
        }
    }
}

/// The fields of an OCIRepository that say from where and as whom it is fetched: all but those that choose the version and the content.
fn rest_of(spec: &Value) -> Value {
    let mut rest = spec.clone();
    if let Some(fields) = rest.as_object_mut() {
        for choice in ["ref", "layerSelector", "ignore", "interval", "timeout", "suspend"] {
            fields.remove(choice);
        }
    }
    rest
}

impl Fetcher for TemporarySources {
    fn fetch<'a>(&'a self, source: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(self.have_fetched(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_no_other_place() {
        let spec = |url: &str, secret: &str, tag: &str| json!({"url": url, "secretRef": {"name": secret}, "ref": {"tag": tag}, "interval": "1m"});
        let live = rest_of(&spec("oci://a/b", "keys", "1"));
        assert_eq!(live, rest_of(&spec("oci://a/b", "keys", "2")));
        assert_ne!(live, rest_of(&spec("oci://evil/b", "keys", "1")));
        assert_ne!(live, rest_of(&spec("oci://a/b", "others", "1")));
    }
}
