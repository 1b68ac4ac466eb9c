//! Releases that `helm` has made in a cluster, as HelmReleases that go on with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{Imported, Note, named, object, set, without_credentials};

/// The newest revision of a release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// As Helm writes it: `deployed`.
    pub status: String,
    /// Name of the chart.
    pub chart: String,
    /// Version of the chart.
    pub version: String,
    /// The values that the user gave.
    pub values: Map<String, Value>,
    /// The HelmRelease that delivers it already.
    pub delivered_by: Option<String>,
}

/// A repository of charts that is known to `helm` on this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repository {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// It asks for credentials or certificates.
    pub is_private: bool,
    /// Names and versions of its charts, as far as its index is there.
    pub charts: BTreeSet<(String, String)>,
}

/// Stands for an address that is not known; nothing is ever found there (RFC 6761).
pub(crate) const UNKNOWN: &str = "https://unknown.invalid";

/// Imports releases; the objects are made in `namespace`, or without one in the namespaces of the releases.
pub fn import(releases: &[Release], repositories: &[Repository], namespace: Option<&str>) -> Imported {
    let mut imported = Imported::default();
    let mut sources = BTreeMap::new();
    for release in releases {
        let mut note = |field: &str, text: String| {
            imported.notes.push(Note {
                application: format!("{}/{}", release.namespace, release.name),
                field: field.to_owned(),
                text,
            });
        };
        if let Some(by) = &release.delivered_by {
            note("", format!("{by} delivers it already: nothing is made of it"));
            continue;
        }
        if release.status != "deployed" {
            let status = &release.status;
            note(
                "",
                format!(
                    "the status of its last revision is {status}: nothing is made of it; roll back or uninstall it first"
                ),
            );
            continue;
        }
        let found = repository(release, repositories);
        if found.is_none() {
            note(
                "chart",
                format!(
                    "no repository that is known here has {} {}: set spec.url of its HelmRepository, or name the repository with --repository",
                    release.chart, release.version
                ),
            );
        }
        for path in secrets(&release.values) {
            note(
                "values",
                format!("{path} looks like a secret: move it to a Secret that spec.valuesFrom names"),
            );
        }
        let namespace = namespace.unwrap_or(&release.namespace);
        let (source, url) = match found {
            Some(found) => {
                let (url, had_credentials) = without_credentials(&found.url);
                if had_credentials || found.is_private {
                    let text = "it asks for credentials: put them into a Secret, and name it in spec.secretRef or spec.certSecretRef";
                    note("repository", format!("{}: {text}", found.name));
                }
                (named(&found.name), url)
            }
            None => (named(&release.chart), UNKNOWN.to_owned()),
        };
        sources.insert((source.clone(), namespace.to_owned()), url);
        let key = match imported.applications.contains_key(&release.name) {
            true => format!("{}-{}", release.name, release.namespace),
            false => release.name.clone(),
        };
        let made = helm_release(release, &key, &source, namespace);
        imported.applications.insert(key, vec![made]);
    }
    let namespaces: BTreeSet<&String> = sources.keys().map(|(_, namespace)| namespace).collect();
    let several = namespaces.len() > 1;
    for ((name, namespace), url) in &sources {
        let file = match several {
            true => format!("{namespace}-{name}"),
            false => name.clone(),
        };
        imported
            .sources
            .insert(file, helm_repository(name, namespace, url));
    }
    imported
}

/// Returns a repository that has the very version, or else the chart.
fn repository<'a>(release: &Release, repositories: &'a [Repository]) -> Option<&'a Repository> {
    let exact = (release.chart.clone(), release.version.clone());
    let has_version = repositories
        .iter()
        .find(|repository| repository.charts.contains(&exact));
    let has_chart = || {
        let mut all = repositories.iter();
        all.find(|repository| repository.charts.iter().any(|(name, _)| *name == release.chart))
    };
    has_version.or_else(has_chart)
}

fn helm_release(release: &Release, name: &str, source: &str, namespace: &str) -> Value {
    let mut spec = json!({
        "interval": "10m",
        "chart": {"spec": {
            "chart": release.chart,
            "version": release.version,
            "sourceRef": {"kind": "HelmRepository", "name": source},
        }},
    });
    if namespace != release.namespace {
        spec["targetNamespace"] = release.namespace.clone().into();
        spec["storageNamespace"] = release.namespace.clone().into();
    }
    // Helm's name would have the target namespace in it.
    if namespace != release.namespace || name != release.name {
        spec["releaseName"] = release.name.clone().into();
    }
    set(&mut spec, "values", Value::Object(release.values.clone()));
    let mut made = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", spec);
    made["metadata"] = json!({"name": name, "namespace": namespace});
    made
}

pub(crate) fn helm_repository(name: &str, namespace: &str, url: &str) -> Value {
    let mut spec = json!({"interval": "1h", "url": url});
    if url.starts_with("oci://") {
        spec["type"] = "oci".into();
    }
    let mut made = object("source.toolkit.fluxcd.io/v1", "HelmRepository", spec);
    made["metadata"] = json!({"name": name, "namespace": namespace});
    made
}

/// Words in the names of values that are secrets.
const SECRET: [&str; 6] = [
    "password",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "passphrase",
];

/// Returns the paths of values that look like secrets, by their names; those that only name a Secret are none.
pub(crate) fn secrets(values: &Map<String, Value>) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    open.extend(
        values
            .iter()
            .map(|(key, value)| (key.clone(), key.as_str(), value)),
    );
    while let Some((path, key, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(
                    fields
                        .iter()
                        .map(|(key, value)| (format!("{path}.{key}"), key.as_str(), value)),
                );
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(at, value)| (format!("{path}[{at}]"), key, value)));
            }
            Value::String(text) if !text.is_empty() => {
                let plain = key.to_lowercase().replace(['-', '_', '.'], "");
                let names_another = ["name", "ref", "key", "existing"].iter().any(|word| {
                    plain.ends_with(word) && !plain.ends_with("apikey") && !plain.ends_with("privatekey")
                });
                if !names_another
                    && !plain.starts_with("existing")
                    && SECRET.iter().any(|word| plain.contains(word))
                {
                    found.push(path);
                }
            }
            _ => {}
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        Release {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            status: "deployed".to_owned(),
            chart: "nginx".to_owned(),
            version: "1.2.3".to_owned(),
            ..Release::default()
        }
    }

    fn repositories() -> Vec<Repository> {
        let repository = |name: &str, version: &str| Repository {
            name: name.to_owned(),
            url: format!("https://{name}.example.com"),
            is_private: false,
            charts: [("nginx".to_owned(), version.to_owned())].into(),
        };
        vec![repository("old", "1.0.0"), repository("new", "1.2.3")]
    }

    #[test]
    fn a_release_goes_on_in_its_namespace_from_the_repository_that_has_its_version() {
        let imported = import(&[release()], &repositories(), None);
        assert_eq!(imported.notes, []);
        assert_eq!(
            imported.applications["web"],
            [
                json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"interval": "10m", "chart": {"spec": {"chart": "nginx", "version": "1.2.3",
                    "sourceRef": {"kind": "HelmRepository", "name": "new"}}}}})
            ]
        );
        assert_eq!(imported.sources["new"]["spec"]["url"], "https://new.example.com");
    }

    #[test]
    fn in_another_namespace_the_records_stay_where_they_are() {
        let same_name = Release {
            namespace: "tools".to_owned(),
            ..release()
        };
        let imported = import(&[release(), same_name], &repositories(), Some("flux-system"));
        let spec = |name: &str| imported.applications[name][0]["spec"].clone();
        for (name, namespace) in [("web", "shop"), ("web-tools", "tools")] {
            assert_eq!(spec(name)["releaseName"], "web");
            assert_eq!(spec(name)["storageNamespace"], namespace);
            assert_eq!(spec(name)["targetNamespace"], namespace);
        }
        assert_eq!(imported.sources.len(), 1);
    }

    #[test]
    fn credentials_of_a_repository_are_left_out_and_noted() {
        let mut repositories = repositories();
        repositories[1].url = "https://ana:tr0ub4dor@new.example.com/x".to_owned();
        repositories[1].name = "New_One".to_owned();
        let imported = import(&[release()], &repositories, None);
        assert_eq!(
            imported.sources["new-one"]["spec"]["url"],
            "https://new.example.com/x"
        );
        assert_eq!(imported.notes[0].field, "repository");
        assert!(!format!("{imported:?}").contains("tr0ub4dor"));
    }

    #[test]
    fn what_needs_a_person_is_noted() {
        let unknown = import(&[release()], &[], None);
        assert!(
            unknown.notes[0]
                .text
                .starts_with("no repository that is known here has nginx 1.2.3")
        );
        assert_eq!(unknown.sources["nginx"]["spec"]["url"], UNKNOWN);
        for other in [
            Release {
                status: "pending-upgrade".to_owned(),
                ..release()
            },
            Release {
                delivered_by: Some("HelmRelease shop/web".to_owned()),
                ..release()
            },
        ] {
            let imported = import(&[other], &repositories(), None);
            assert!(imported.applications.is_empty() && imported.notes.len() == 1);
        }
    }

    #[test]
    fn values_that_look_like_secrets_are_named_by_their_paths() {
        let Value::Object(values) = json!({
            "auth": {"password": "x", "existingSecret": "a", "secretName": "b", "passwordKey": "c", "username": "d"},
            "env": [{"API_KEY": "x"}, {"db": {"privateKey": "y"}}], "token": "", "tokens": 3,
        }) else {
            unreachable!()
        };
        assert_eq!(
            secrets(&values),
            ["auth.password", "env[0].API_KEY", "env[1].db.privateKey"]
        );
    }
}
