//! Releases that helm has made in a cluster.
//!
//! A record of Helm does not say which repository its chart came from. The repositories that `helm` knows on this machine
//! do, by the indexes that `helm repo update` has left there: nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use api::helm::HelmRelease;
use clap::Args;
use delivery_import::Imported;
use delivery_import::helm::{self, Release, Repository};
use helm_action::Storage;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use crate::cluster::{self, Cluster, ClusterFlags, Failure};

/// Command line of `import helm`.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Namespace of the releases; all by default
    #[arg(long, value_name = "NAME")]
    release_namespace: Option<String>,

    /// Where a chart is from: its name and the address of its repository; by default, the repositories that helm knows are searched
    #[arg(long = "repository", value_name = "CHART=URL")]
    repositories: Vec<String>,

    /// Folder to write to, a file for each release and each source; if one of the files is there already, nothing is written
    #[arg(long, value_name = "FOLDER")]
    pub(super) output_folder: Option<PathBuf>,

    /// Namespace of the new objects; by default, that of each release
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Reads, and converts. `report_line` is for repositories that cannot be read.
pub(super) fn import(flags: &Flags, report_line: &impl Fn(&str)) -> Result<Imported, Failure> {
    let mut repositories = Vec::new();
    for given in &flags.repositories {
        repositories.push(named(given)?);
    }
    repositories.extend(known(report_line)?);
    let cluster = ClusterFlags::of_context(flags.kubeconfig.clone(), flags.context.clone());
    let releases = cluster::run(&cluster, async |cluster: Cluster| {
        releases(&cluster, flags.release_namespace.as_deref()).await
    })?;
    Ok(helm::import(&releases, &repositories, flags.namespace.as_deref()))
}

/// Reads the newest revision of each release, and which HelmRelease delivers it.
async fn releases(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Release>, Failure> {
    let client = cluster.client();
    let secrets: Api<Secret> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let of_helm = ListParams::default().labels("owner=helm");
    let records = secrets
        .list_metadata(&of_helm)
        .await
        .map_err(|error| Failure::request("list the releases", error))?;
    let mut found = BTreeSet::new();
    for record in records.items {
        let labels = record.metadata.labels.unwrap_or_default();
        if let (Some(namespace), Some(name)) = (record.metadata.namespace, labels.get("name")) {
            found.insert((namespace, name.clone()));
        }
    }
    let delivered = delivered(cluster).await?;
    let mut releases = Vec::new();
    for (namespace, name) in found {
        let storage = Storage::new(client.clone(), &namespace);
        let last = storage.last(&name).await.map_err(|error| Failure::Request {
            what: format!("read the release {namespace}/{name}"),
            why: error_chain::chain(&error),
        })?;
        let Some(last) = last else { continue };
        let chart = last.release.chart.as_ref();
        releases.push(Release {
            status: last.release.info.status.to_string(),
            chart: chart.map_or_else(String::new, |chart| chart.name().to_owned()),
            version: chart.map_or_else(String::new, |chart| chart.version().to_owned()),
            values: last.release.config.clone(),
            delivered_by: delivered.get(&(namespace.clone(), name.clone())).cloned(),
            name,
            namespace,
        });
    }
    Ok(releases)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// Returns which HelmReleases deliver which releases, by the namespaces and names of those.
async fn delivered(cluster: &Cluster) -> Result<BTreeMap<(String, String), String>, Failure> {
    let all: Api<HelmRelease> = Api::all(cluster.client());
    let all = match all.list(&ListParams::default()).await {
        Ok(all) => all.items,
        // A cluster without Flux's definitions has no HelmReleases.
        Err(kube::Error::Api(status)) if status.is_not_found() => Vec::new(),
        Err(error) => return Err(Failure::request("list the HelmReleases", error)),
    };
    let mut delivered = BTreeMap::new();
    for object in all {
        let shown = format!(
            "HelmRelease {}/{}",
            object.namespace().unwrap_or_default(),
            object.name_any()
        );
        for snapshot in object.status.unwrap_or_default().history {
            delivered.insert((snapshot.namespace, snapshot.name), shown.clone());
        }
    }
    Ok(delivered)
}

/// A repository that was typed: `nginx=https://charts.example.com`.
fn named(given: &str) -> Result<Repository, Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "--repository {given:?}: write CHART=URL, for example nginx=https://charts.example.com"
        ))
    };
    let (chart, url) = given.split_once('=').ok_or_else(wrong)?;
    let parsed = url::Url::parse(url).map_err(|_| wrong())?;
    let name = format!("{}{}", parsed.host_str().unwrap_or_default(), parsed.path());
    Ok(Repository {
        name: delivery_import::named(&name),
        is_private: false,
        url: url.trim_end_matches('/').to_owned(),
        charts: [(chart.to_owned(), String::new())].into(),
    })
}

/// The repositories of `helm repo list`, with the indexes that lie on this machine.
fn known(report_line: &impl Fn(&str)) -> Result<Vec<Repository>, Failure> {
    let list = first_of([
        ("HELM_REPOSITORY_CONFIG", ""),
        ("HELM_CONFIG_HOME", "repositories.yaml"),
        ("XDG_CONFIG_HOME", "helm/repositories.yaml"),
        ("HOME", ".config/helm/repositories.yaml"),
    ]);
    let cache = first_of([
        ("HELM_REPOSITORY_CACHE", ""),
        ("HELM_CACHE_HOME", "repository"),
        ("XDG_CACHE_HOME", "helm/repository"),
        ("HOME", ".cache/helm/repository"),
    ]);
    let Ok(text) = fs::read_to_string(&list) else {
        return Ok(Vec::new());
    };
    let shown = list.display().to_string();
    let read = manifest::yaml::read_documents(&text, &shown);
    let documents = read.map_err(|error| Failure::Usage(error.to_string()))?;
    let entries = documents
        .first()
        .map(|document| document.value["repositories"].clone());
    let mut repositories = Vec::new();
    for entry in entries.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let name = self::text(entry, "name");
        let index = cache.join(format!("{name}-index.yaml"));
        let charts = charts(&index).unwrap_or_else(|why| {
            report_line(&format!(
                "the repository {name} is not searched: {}: {why}; run `helm repo update`",
                index.display()
            ));
            BTreeSet::new()
        });
        let is_set = |field: &str| !self::text(entry, field).is_empty();
        repositories.push(Repository {
            is_private: ["username", "certFile", "caFile"].into_iter().any(is_set),
            url: self::text(entry, "url").trim_end_matches('/').to_owned(),
            name,
            charts,
        });
    }
    Ok(repositories)
}

/// The path below the first variable that is set, as Helm looks for its files.
fn first_of(places: [(&str, &str); 4]) -> PathBuf {
    let found = places.iter().find_map(|(variable, below)| {
        let value = env::var_os(variable).filter(|value| !value.is_empty())?;
        let folder = PathBuf::from(value);
        Some(if below.is_empty() {
            folder
        } else {
            folder.join(below)
        })
    });
    found.unwrap_or_default()
}

/// The names and versions of an index.
fn charts(index: &Path) -> Result<BTreeSet<(String, String)>, String> {
    let mut served = BufReader::new(File::open(index).map_err(|error| error.to_string())?);
    let mut stored = Vec::new();
    helm_index::normalize(&mut served, Cursor::new(Vec::new()), &mut stored)
        .map_err(|error| error_chain::chain(&error))?;
    let index: Value = serde_json::from_slice(&stored).map_err(|error| error.to_string())?;
    let mut charts = BTreeSet::new();
    for (name, versions) in index["entries"].as_object().into_iter().flatten() {
        for version in versions.as_array().into_iter().flatten() {
            charts.insert((name.clone(), text(version, "version")));
        }
    }
    Ok(charts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in;

    #[tokio::test]
    async fn a_cluster_without_the_kind_delivers_nothing_and_one_that_fails_is_no_such_cluster() {
        let not_found = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": ""}"#;
        let (address, _) = stand_in::serve(move |_| (404, String::new(), not_found.to_owned()));
        assert!(delivered(&Cluster::at(&address)).await.unwrap().is_empty());
        let forbidden = not_found.replace("NotFound", "Forbidden").replace("404", "403");
        let (address, _) = stand_in::serve(move |_| (403, String::new(), forbidden.clone()));
        assert!(delivered(&Cluster::at(&address)).await.is_err());
        let listed = r#"{"items": [{"metadata": {"name": "web", "namespace": "apps"}, "spec": {"interval": "1m"},
            "status": {"history": [{"name": "shop", "namespace": "web", "digest": "", "version": 1, "status": "deployed",
                "chartName": "a", "chartVersion": "1", "configDigest": "", "firstDeployed": "2026-01-01T00:00:00Z",
                "lastDeployed": "2026-01-01T00:00:00Z"}]}}],
            "metadata": {}, "kind": "HelmReleaseList", "apiVersion": "helm.toolkit.fluxcd.io/v2"}"#;
        let (address, _) = stand_in::serve(move |_| (200, String::new(), listed.to_owned()));
        let of = ("web".to_owned(), "shop".to_owned());
        let delivered = delivered(&Cluster::at(&address)).await.unwrap();
        assert_eq!(
            delivered.get(&of).map(String::as_str),
            Some("HelmRelease apps/web")
        );
    }

    #[test]
    fn a_repository_that_is_typed_gets_a_name_of_its_address() {
        let found = named("nginx=https://charts.example.com/Stable/").unwrap();
        assert_eq!(
            (found.name.as_str(), found.url.as_str()),
            ("charts-example-com-stable", "https://charts.example.com/Stable")
        );
        assert!(named("nginx").is_err() && named("nginx=nowhere").is_err());
    }
}
