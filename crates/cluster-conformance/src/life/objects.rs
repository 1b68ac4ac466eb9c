//! The objects that make up a life.

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::Step;
use crate::case::{Case, Chart, Content, Overlay};
use crate::servers::Servers;
use crate::snapshot::{APP, Kind};

/// The namespace of what all cases share.
pub const SOURCES: &str = "sources";
/// The label that a change adds to all objects.
pub const LABEL: &str = "conformance";

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The GitRepository of all overlays, at a tag.
pub fn overlays(servers: &Servers, name: &str, tag: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": name, "namespace": SOURCES},
        "spec": {"url": servers.overlays(), "ref": {"tag": tag}, "interval": "1h"},
    })
}

/// The HelmRepository of a chart.
pub fn charts(servers: &Servers, case: &Case) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "charts", "namespace": case.id},
        "spec": {"url": servers.charts(case), "interval": "1h"},
    })
}

/// The Kustomization or HelmRelease of a case, as it is at a step.
pub fn delivered(case: &Case, source: &str, step: Step) -> Value {
    match &case.content {
        Content::Overlay(overlay) => kustomization(case, overlay, source, step),
        Content::Chart(chart) => helm_release(case, chart, step),
    }
}

/// Returns whether an object of a snapshot was delivered, and is one that people change without taking others with it.
pub fn is_changed_by_hand(name: &str, object: &Value) -> bool {
    let kind = name.split([' ', '.']).next().unwrap_or_default();
    let holds_others = ["Namespace", "CustomResourceDefinition"].contains(&kind);
    let is_of_flux = name.contains(".toolkit.fluxcd.io ");
    let is_record = object["type"] == "helm.sh/release.v1";
    object["metadata"]["labels"].get(LABEL).is_some() && !holds_others && !is_of_flux && !is_record
}

/// The API of an object of a snapshot, and its name.
pub fn find(client: &Client, kinds: &[Kind], name: &str) -> Result<(Api<DynamicObject>, String)> {
    let (kind, place) = name.split_once(' ').context("an object has no kind")?;
    let (namespace, name) = place.split_once('/').context("an object has no name")?;
    let kind = kinds
        .iter()
        .find(|known| known.name() == kind)
        .with_context(|| format!("{kind} is not served"))?;
    Ok((kind.api(client, Some(namespace)), name.to_owned()))
}

fn number(case: &Case) -> usize {
    let digits = case.id.rsplit('-').next().and_then(|digits| digits.parse().ok());
    digits.unwrap_or_default()
}

fn kustomization(case: &Case, overlay: &Overlay, source: &str, step: Step) -> Value {
    let mut spec = json!({
        "sourceRef": {"kind": "GitRepository", "name": source, "namespace": SOURCES},
        "path": format!("./{}/{}", case.id, overlay.path),
        "targetNamespace": format!("{}{APP}", case.id),
        "prune": true, "interval": "1h", "retryInterval": "1h", "timeout": "1m",
        "suspend": step == Step::Suspended,
    });
    // Some wait for their objects. Not all become ready: there are no volumes here.
    if number(case).is_multiple_of(8) {
        spec["wait"] = json!(true);
        spec["timeout"] = json!("10s");
    }
    if step > Step::Created {
        spec["commonMetadata"] = json!({"labels": {LABEL: "changed"}});
        let mut patches = Vec::new();
        if let Some((kind, name)) = &overlay.deleted {
            patches.push(json!({"target": {"kind": kind, "name": name}, "patch":
                "$patch: delete\napiVersion: v1\nkind: Any\nmetadata: {name: any}\n"}));
        }
        if step == Step::Failed {
            let patch = "apiVersion: v1\nkind: Any\nmetadata: {name: any, labels: {bad: not a label}}\n";
            patches.push(json!({"target": {"kind": ".*"}, "patch": patch}));
        }
        spec["patches"] = json!(patches);
    }
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": if step < Step::Renamed { "app" } else { "renamed" }, "namespace": case.id}, "spec": spec,
    })
}

fn helm_release(case: &Case, chart: &Chart, step: Step) -> Value {
    let mut spec = json!({
        "chart": {"spec": {
            "chart": chart.name, "version": chart.version, "sourceRef": {"kind": "HelmRepository", "name": "charts"},
        }},
        "interval": "1h", "timeout": "1m",
        "install": {"disableWait": true, "disableHooks": true},
        "upgrade": {"disableWait": true, "disableHooks": true},
        "rollback": {"disableWait": true, "disableHooks": true},
        "uninstall": {"disableHooks": true},
        "suspend": step == Step::Suspended,
        "values": chart.values,
        "driftDetection": {"mode": if number(case).is_multiple_of(2) { "enabled" } else { "warn" }},
    });
    match number(case) % 5 {
        0 => {}
        1 => spec["upgrade"]["remediation"] = json!({"remediateLastFailure": true}),
        2 => spec["upgrade"]["remediation"] = json!({"retries": 1}),
        3 => spec["upgrade"]["remediation"] = json!({"remediateLastFailure": true, "strategy": "uninstall"}),
        _ => spec["upgrade"]["strategy"] = json!({"name": "RetryOnFailure", "retryInterval": "1h"}),
    }
    if step > Step::Created {
        spec["commonMetadata"] = json!({"labels": {LABEL: "changed"}});
        spec["values"]["fullnameOverride"] = json!(format!("renamed-{}", number(case)));
        // What is rolled back to must be none of what is wanted next: Flux takes the last post-renderers for applied all the same.
        if step >= Step::Mended {
            spec["values"]["conformance"] = json!("mended");
        }
        if step == Step::Failed {
            let patch = "apiVersion: v1\nkind: Any\nmetadata: {name: any, labels: {bad: not a label}}\n";
            // Flux takes other post-renderers alone for released after it has rolled back.
            spec["values"]["conformance"] = json!("failed");
            spec["postRenderers"] =
                json!([{"kustomize": {"patches": [{"target": {"kind": ".*"}, "patch": patch}]}}]);
        }
    }
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "app", "namespace": case.id}, "spec": spec,
    })
}
