//! Recorded cases of kustomize and Helm, as things to deliver.

mod charts;
mod overlays;
mod own;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use serde_json::Value;

pub use charts::Chart;
pub use overlays::Overlay;
pub use own::own;

/// Something to deliver.
#[derive(Debug, Clone)]
pub struct Case {
    /// The name of the recorded case.
    pub name: String,
    /// Its namespace, and its folder on the servers.
    pub id: String,
    /// What it is.
    pub content: Content,
    /// The objects outside of namespaces that it makes: two cases that claim the same are not delivered at once.
    pub claims: BTreeSet<String>,
}

/// What a case is.
#[derive(Debug, Clone)]
pub enum Content {
    /// A folder that a Kustomization builds.
    Overlay(Overlay),
    /// A chart that a HelmRelease installs.
    Chart(Chart),
}

/// Kinds outside of namespaces that recorded cases have.
const CLUSTER_KINDS: [&str; 14] = [
    "APIService",
    "CSIDriver",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "FlowSchema",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
];

/// Kinds that keep a cluster without their servers from working, or that make controllers ask other hosts.
const UNFIT_KINDS: [&str; 6] = [
    "APIService",
    "FlowSchema",
    "MutatingWebhookConfiguration",
    "ResourceQuota",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// At most `limit` recorded overlays of `set`, spread over all of them.
pub fn overlays(set: &Path, limit: usize) -> Result<Vec<Case>> {
    let found = folders(&set.join("kustomize/cases"))?
        .iter()
        .filter_map(|folder| overlays::read(folder).transpose())
        .collect::<Result<Vec<_>>>()?;
    Ok(numbered(spread(found, limit), "overlay"))
}

/// At most `limit` recorded charts of `set`, each once, spread over all of them.
pub fn charts(set: &Path, limit: usize) -> Result<Vec<Case>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for folder in folders(&set.join("helm/cases"))? {
        if let Some((archive, case)) = charts::read(&folder)?
            && seen.insert(archive)
        {
            found.push(case);
        }
    }
    Ok(numbered(spread(found, limit), "chart"))
}

fn numbered(mut cases: Vec<Case>, word: &str) -> Vec<Case> {
    for (number, case) in cases.iter_mut().enumerate() {
        case.id = format!("{word}-{number:03}");
    }
    cases
}

/// Puts cases into waves, in each of which no two claim the same object.
pub fn waves(cases: Vec<Case>, largest: usize) -> Vec<Vec<Case>> {
    let mut waves: Vec<(BTreeSet<String>, Vec<Case>)> = Vec::new();
    for case in cases {
        let fits = |(claimed, wave): &&mut (BTreeSet<String>, Vec<Case>)| {
            wave.len() < largest && claimed.is_disjoint(&case.claims)
        };
        match waves.iter_mut().find(fits) {
            Some((claimed, wave)) => {
                claimed.extend(case.claims.iter().cloned());
                wave.push(case);
            }
            None => waves.push((case.claims.clone(), vec![case])),
        }
    }
    waves.into_iter().map(|(_, wave)| wave).collect()
}

/// Every n-th, so that the first projects in the alphabet are not all that is looked at.
fn spread(cases: Vec<Case>, limit: usize) -> Vec<Case> {
    let count = cases.len();
    if limit >= count {
        return cases;
    }
    let is_taken = |index: usize| (index * limit) / count != ((index + 1) * limit) / count;
    let indexed = cases.into_iter().enumerate();
    indexed
        .filter_map(|(index, case)| is_taken(index).then_some(case))
        .collect()
}

/// What the objects of a recorded answer claim outside of namespaces; none if a cluster could not live with them.
fn claims(objects: &[Value]) -> Option<BTreeSet<String>> {
    let mut claims = BTreeSet::new();
    for object in objects {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let is_unfit = UNFIT_KINDS.contains(&kind)
            || version.contains(".fluxcd.io/")
            || name.ends_with(".fluxcd.io")
            || name.ends_with(".windlass.dev");
        if is_unfit {
            return None;
        }
        if CLUSTER_KINDS.contains(&kind) && kind != "Namespace" {
            claims.insert(format!("{kind}/{name}"));
        }
    }
    Some(claims)
}

/// The documents of a recorded answer.
fn answer(path: &Path) -> Result<Vec<Value>> {
    let file = fs::File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text)?;
    let documents = text
        .split("\n---")
        .filter_map(|document| serde_saphyr::from_str::<Value>(document).ok());
    Ok(documents.filter(Value::is_object).collect())
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    let mut folders = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

fn name_of(folder: &Path) -> Result<String> {
    let name = folder.file_name().context("a case without a name")?;
    Ok(name.to_string_lossy().into_owned())
}
