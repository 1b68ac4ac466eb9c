//! Recorded leftovers of Flux, as a file, and as objects in a cluster again.

use std::path::Path;

use anyhow::{Context as _, Result};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::objects;

use super::scene::{Scene, Seen};

/// The namespace of the recording. Records and their digests hold it.
pub const NAMESPACE: &str = "released-by-flux";
/// The chart of the recording.
pub const CHART: &[u8] = include_bytes!("../../cases/takeover-helm/web-1.0.0.tgz");
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/takeover-helm/by-flux.json");

/// Reads the recording: HelmReleases, and what they made.
pub fn read() -> Result<(Vec<Value>, Vec<Value>)> {
    let text = std::fs::read_to_string(FILE).with_context(|| format!("failed to read {FILE}"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Writes the recording.
pub fn write(seen: &Seen) -> Result<()> {
    let releases: Vec<_> = seen.releases.values().collect();
    let mut objects: Vec<Value> = seen.objects.values().cloned().collect();
    for object in &mut objects {
        // Whoever has the objects next says what it is.
        object.as_object_mut().map(|object| object.remove("status"));
    }
    let text = serde_json::to_string_pretty(&(releases, objects))?;
    std::fs::write(Path::new(FILE), text + "\n").with_context(|| format!("failed to write {FILE}"))
}

impl Scene<'_> {
    /// Makes what was recorded, first what was made, then the HelmReleases with what their status said.
    pub async fn replay(&self, (releases, objects): &(Vec<Value>, Vec<Value>)) -> Result<()> {
        for object in objects {
            self.make(object).await?;
        }
        for release in releases {
            self.make(release).await?;
        }
        Ok(())
    }

    async fn make(&self, recorded: &Value) -> Result<()> {
        let mut object = recorded.clone();
        let metadata = object["metadata"].as_object_mut().context("no metadata")?;
        let managers = metadata.remove("managedFields").unwrap_or_default();
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(field);
        }
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let (api, name) = objects::api_of(&self.test.client, recorded)?;
        // The status names the generation that it is of, and each change makes one.
        let interval = recorded["spec"]["interval"].clone();
        let generation = recorded["metadata"]["generation"].as_i64().unwrap_or(1);
        let is_release = recorded["kind"] == "HelmRelease";
        if is_release && generation > 1 {
            object["spec"]["interval"] = json!(format!("{generation}m"));
        }
        api.create(
            &PostParams::default(),
            &serde_json::from_value::<DynamicObject>(object)?,
        )
        .await
        .with_context(|| format!("failed to make {name}"))?;
        if is_release {
            for left in (0..generation - 1).rev() {
                let next = if left == 0 {
                    interval.clone()
                } else {
                    json!(format!("{}m", left + 1))
                };
                let patch = Patch::Merge(json!({"spec": {"interval": next}}));
                api.patch(&name, &PatchParams::default(), &patch).await?;
            }
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": managers}]);
        let patch = Patch::<()>::Json(serde_json::from_value(patch)?);
        api.patch(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}
