//! Waiting until controllers have done what there is to do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use testkit::objects;

/// Versions and kinds of what is waited for.
const WAITED_FOR: [(&str, &str); 2] = [
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
];
/// How long nothing may change until it counts as settled: controllers write the status in several steps.
const QUIET: Duration = Duration::from_secs(2);
/// Failures after which another attempt brings nothing new.
pub const TRIED: u64 = 3;
const LOOK: Duration = Duration::from_millis(250);

/// What must be so besides a final condition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The request that must have been handled.
    pub request: Option<&'a str>,
    /// The tag that must have been tried by Kustomizations.
    pub revision: Option<&'a str>,
}

/// Waits until all Kustomizations and HelmReleases have a final condition, and nothing about them has changed for a while.
/// Says which have not by the end of `patience`.
pub async fn settle(client: &Client, wanted: Wanted<'_>, patience: Duration) -> Result<()> {
    let start = Instant::now();
    let (mut last, mut since) = (BTreeMap::new(), Instant::now());
    loop {
        let mut versions = BTreeMap::new();
        let mut waiting = Vec::new();
        for (version, kind) in WAITED_FOR {
            let (group, version) = version.split_once('/').unwrap_or_default();
            let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
            let api: Api<DynamicObject> =
                Api::all_with(client.clone(), &kube::api::ApiResource::from_gvk(&kind));
            for object in api.list(&ListParams::default()).await?.items {
                let name = format!(
                    "{} {}/{}",
                    kind.kind,
                    object.namespace().unwrap_or_default(),
                    object.name_any()
                );
                if !is_final(&object, wanted) {
                    waiting.push(format!("{name}: {}", object.data["status"]));
                }
                let failures = object.data["status"]["failures"].as_u64().unwrap_or_default();
                versions.insert(name, object.resource_version().filter(|_| failures < TRIED));
            }
        }
        if versions != last {
            (last, since) = (versions, Instant::now());
        } else if waiting.is_empty() && since.elapsed() >= QUIET {
            return Ok(());
        }
        if start.elapsed() > patience {
            bail!("not settled after {patience:?}:\n{}", waiting.join("\n"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_final(object: &DynamicObject, wanted: Wanted<'_>) -> bool {
    if object.data["spec"]["suspend"] == true {
        return true;
    }
    if object.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let conditions = object.data["status"]["conditions"].as_array();
    let condition = |name: &str| {
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == name)
    };
    let Some(ready) = condition("Ready") else {
        return false;
    };
    let is_seen = ready["observedGeneration"].as_i64() == object.metadata.generation;
    let is_kustomization = object.data["spec"].get("path").is_some();
    let is_over = condition("Reconciling").is_none_or(|reconciling| {
        // A HelmRelease that is tried again at once has this reason, too.
        let text = |field: &str| reconciling[field].as_str().unwrap_or_default();
        text("reason") == "ProgressingWithRetry"
            && (is_kustomization || text("message").starts_with("retrying after"))
    });
    // Where an action fails before it makes a record, it is tried without end.
    let failures = object.data["status"]["failures"].as_u64().unwrap_or_default();
    let is_over = is_over || ready["status"] == "False" && failures >= TRIED;
    let is_handled = wanted
        .request
        .is_none_or(|request| objects::text(object, "/status/lastHandledReconcileAt") == request);
    let tried = object.data["status"]["lastAttemptedRevision"]
        .as_str()
        .unwrap_or_default();
    let is_tried = !is_kustomization || wanted.revision.is_none_or(|revision| tried.contains(revision));
    is_seen && is_over && is_handled && is_tried && ready["status"] != "Unknown"
}
