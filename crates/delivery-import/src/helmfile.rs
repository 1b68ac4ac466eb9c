//! The releases of a helmfile, as HelmReleases.
//!
//! A helmfile with templates is a program; what comes in here is what `helmfile build` printed, or a helmfile without
//! templates. Files that it names are read through a function of the caller.

use std::collections::{BTreeMap, BTreeSet};

use helm_chart::{Helm, set_values};
use serde_json::{Map, Value, json};

use crate::helm::{helm_repository, secrets};
use crate::{Imported, Note, is_set, list, named, object, set, text, without_credentials};

/// Reads a file that a helmfile names.
pub type Read<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Imports the documents of a helmfile; the objects are made in `namespace`.
pub fn import(documents: &[Value], namespace: &str, read: &Read<'_>) -> Imported {
    let mut work = Work {
        namespace,
        read,
        repositories: BTreeMap::new(),
        used: BTreeSet::new(),
        imported: Imported::default(),
    };
    for document in documents {
        for repository in list(document, "/repositories") {
            let name = text(repository, "/name").to_owned();
            work.repositories.insert(name, repository.clone());
        }
    }
    let names = names(documents);
    for document in documents {
        work.document(document);
        for release in list(document, "/releases") {
            work.release(release, &document["helmDefaults"], &names);
        }
    }
    work.sources();
    work.imported
}

/// The name of the object of each release, by the release's name and namespace.
type Names = BTreeMap<(String, String), String>;

fn names(documents: &[Value]) -> Names {
    let mut names = Names::new();
    let mut taken = BTreeSet::new();
    for release in documents.iter().flat_map(|document| list(document, "/releases")) {
        let (name, namespace) = (text(release, "/name"), text(release, "/namespace"));
        let own = match taken.insert(name.to_owned()) {
            true => name.to_owned(),
            false => format!("{name}-{namespace}"),
        };
        names.insert((name.to_owned(), namespace.to_owned()), own);
    }
    names
}

struct Work<'a> {
    namespace: &'a str,
    read: &'a Read<'a>,
    repositories: BTreeMap<String, Value>,
    /// Names and addresses of repositories that releases use.
    used: BTreeSet<(String, String)>,
    imported: Imported,
}

/// Fields of a helmfile that are not carried over, and what to do.
const OF_FILE: [(&str, &str); 4] = [
    ("helmfiles", "import each of these files"),
    (
        "hooks",
        "hooks start programs on a machine: use hooks of the chart",
    ),
    (
        "commonLabels",
        "they select releases for the command, and do nothing in a cluster",
    ),
    (
        "templates",
        "run `helmfile build` first, which resolves what inherits from them",
    ),
];

/// Fields of a release that are not carried over, and what to do.
const OF_RELEASE: [(&str, &str); 8] = [
    (
        "secrets",
        "encrypted values: put them into a Secret that SOPS encrypts, and name it in spec.valuesFrom",
    ),
    (
        "hooks",
        "hooks start programs on a machine: use hooks of the chart",
    ),
    ("transformers", "write spec.postRenderers"),
    ("kubeContext", "name the cluster in spec.kubeConfig"),
    ("tillerNamespace", "Helm 2 is not supported"),
    ("dependencies", "put them into the chart"),
    ("inherit", "run `helmfile build` first, which resolves it"),
    ("postRenderer", "write spec.postRenderers"),
];

impl Work<'_> {
    fn note(&mut self, release: &str, field: &str, text: impl Into<String>) {
        self.imported.notes.push(Note {
            application: release.to_owned(),
            field: field.to_owned(),
            text: text.into(),
        });
    }

    fn document(&mut self, document: &Value) {
        for (field, text) in OF_FILE {
            if is_set(&document[field]) {
                self.note("helmfile", field, text);
            }
        }
    }

    fn release(&mut self, release: &Value, defaults: &Value, names: &Names) {
        let name = text(release, "/name");
        let namespace = text(release, "/namespace");
        if name.is_empty() {
            return self.note(
                "helmfile",
                "releases",
                "a release has no name: nothing is made of it",
            );
        }
        if release["installed"] == false {
            return self.note(name, "installed", "it is not installed: nothing is made of it");
        }
        for (field, text) in OF_RELEASE {
            if is_set(&release[field]) {
                self.note(name, field, text);
            }
        }
        if is_set(&release["condition"]) {
            self.note(name, "condition", "it is not evaluated: the release is made");
        }
        let own = names
            .get(&(name.to_owned(), namespace.to_owned()))
            .map_or(name, String::as_str);
        let mut spec = json!({"interval": "10m", "chart": {"spec": self.chart(name, release)}});
        if !namespace.is_empty() && namespace != self.namespace {
            spec["targetNamespace"] = namespace.into();
            spec["storageNamespace"] = namespace.into();
        }
        if spec["targetNamespace"].is_string() || own != name {
            spec["releaseName"] = name.into();
        }
        let chosen = |field: &str| match &release[field] {
            Value::Null => defaults[field].clone(),
            own => own.clone(),
        };
        if let Some(seconds) = chosen("timeout").as_u64() {
            spec["timeout"] = format!("{seconds}s").into();
        }
        // The default of helmfile.
        if spec["targetNamespace"].is_string() && chosen("createNamespace") != false {
            spec["install"]["createNamespace"] = true.into();
        }
        if chosen("atomic") == true {
            for action in ["install", "upgrade"] {
                spec[action]["remediation"] = json!({"remediateLastFailure": true});
            }
        }
        if chosen("force") == true {
            spec["upgrade"]["force"] = true.into();
        }
        if chosen("disableOpenAPIValidation") == true || chosen("disableValidation") == true {
            for action in ["install", "upgrade"] {
                spec[action]["disableOpenAPIValidation"] = true.into();
            }
        }
        if let Some(versions) = chosen("historyMax").as_u64() {
            spec["maxHistory"] = versions.into();
        }
        let needs = self.needs(name, release, names);
        set(&mut spec, "dependsOn", Value::Array(needs));
        let patches = patches(release);
        if !patches.is_empty() {
            spec["postRenderers"] = json!([{"kustomize": {"patches": patches}}]);
        }
        let values = self.values(name, release);
        for path in secrets(&values) {
            let text = format!("{path} looks like a secret: move it to a Secret that spec.valuesFrom names");
            self.note(name, "values", text);
        }
        set(&mut spec, "values", Value::Object(values));
        let mut made = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", spec);
        made["metadata"] = json!({"name": own, "namespace": self.namespace});
        self.imported.applications.insert(own.to_owned(), vec![made]);
    }

    fn chart(&mut self, name: &str, release: &Value) -> Value {
        let chart = text(release, "/chart");
        let mut spec = json!({});
        let source = |name: &str| json!({"kind": "HelmRepository", "name": name});
        if let Some(rest) = chart.strip_prefix("oci://") {
            let (folder, last) = rest.rsplit_once('/').unwrap_or(("", rest));
            let repository = named(folder);
            self.used.insert((repository.clone(), format!("oci://{folder}")));
            spec["chart"] = last.into();
            spec["sourceRef"] = source(&repository);
        } else if let Some((repository, rest)) = chart
            .split_once('/')
            .filter(|(first, _)| !first.is_empty() && !first.starts_with('.'))
            .filter(|_| !chart.contains("://"))
        {
            let url = self.address(name, repository);
            let repository = named(repository);
            self.used.insert((repository.clone(), url));
            spec["chart"] = rest.into();
            spec["sourceRef"] = source(&repository);
        } else {
            let text = format!(
                "{chart} is a folder or an address: it is taken for a folder of the GitRepository flux-system; name another source in spec.chart.spec.sourceRef"
            );
            self.note(name, "chart", text);
            spec["chart"] = format!("./{}", chart.trim_start_matches("./")).into();
            spec["sourceRef"] = json!({"kind": "GitRepository", "name": "flux-system"});
            return spec;
        }
        set(&mut spec, "version", release["version"].clone());
        spec
    }

    fn address(&mut self, release: &str, name: &str) -> String {
        let Some(repository) = self.repositories.get(name).cloned() else {
            let text = format!("the helmfile has no repository {name}: set spec.url of its HelmRepository");
            self.note(release, "chart", text);
            return crate::helm::UNKNOWN.to_owned();
        };
        for field in ["username", "password", "certFile", "keyFile", "caFile"] {
            if is_set(&repository[field]) {
                let text = format!(
                    "repository {name}: put it into a Secret, and name it in spec.secretRef or spec.certSecretRef"
                );
                self.note(release, field, text);
            }
        }
        let (url, had_credentials) = without_credentials(text(&repository, "/url"));
        if had_credentials {
            let text = format!(
                "repository {name}: the credentials are left out; put them into a Secret, and name it in spec.secretRef"
            );
            self.note(release, "url", text);
        }
        match repository["oci"] == true && !url.starts_with("oci://") {
            true => format!("oci://{}", url.trim_start_matches("https://")),
            false => url,
        }
    }

    fn needs(&mut self, name: &str, release: &Value, names: &Names) -> Vec<Value> {
        let mut needs = Vec::new();
        for need in list(release, "/needs").iter().filter_map(Value::as_str) {
            // [[context/]namespace/]name
            let mut parts = need.rsplit('/');
            let wanted = parts.next().unwrap_or_default();
            let namespace = parts.next().unwrap_or(text(release, "/namespace"));
            match names.get(&(wanted.to_owned(), namespace.to_owned())) {
                Some(own) => needs.push(json!({"name": own})),
                None => self.note(
                    name,
                    "needs",
                    format!("the helmfile has no release {need}: it is left out"),
                ),
            }
        }
        needs
    }

    /// Values in the order of helmfile: `values` one after the other, then `set`.
    fn values(&mut self, name: &str, release: &Value) -> Map<String, Value> {
        let mut values = Map::new();
        for entry in list(release, "/values") {
            match entry {
                Value::Object(inline) => helm_chart::values::merge(&mut values, inline.clone()),
                Value::String(file) if file.ends_with(".gotmpl") => {
                    let text = format!("{file} is a template: run `helmfile build --embed-values` first");
                    self.note(name, "values", text);
                }
                Value::String(file) => {
                    let read = (self.read)(file);
                    let read = read.and_then(|text| helm_chart::values::read(text.as_bytes(), Helm::V4));
                    match read {
                        Ok(read) => helm_chart::values::merge(&mut values, read),
                        Err(problem) => {
                            self.note(name, "values", format!("{file} is left out: {problem}"));
                        }
                    }
                }
                _ => self.note(
                    name,
                    "values",
                    "an entry is neither a file nor a map: it is left out",
                ),
            }
        }
        for field in ["set", "setString"] {
            for entry in list(release, &format!("/{field}")) {
                let (path, value) = (text(entry, "/name"), &entry["value"]);
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let line = format!("{path}={}", value.replace('\\', "\\\\").replace(',', "\\,"));
                let read = match (field, is_set(&entry["file"]) || is_set(&entry["values"])) {
                    (_, true) => Err(()),
                    ("setString", _) => set_values::string(&mut values, &line, Helm::V4).map_err(drop),
                    _ => set_values::parse_into(&mut values, &line, Helm::V4).map_err(drop),
                };
                if read.is_err() {
                    self.note(name, field, format!("{path} cannot be read, and is left out"));
                }
            }
        }
        values
    }

    fn sources(&mut self) {
        for (name, url) in &self.used {
            let made = helm_repository(name, self.namespace, url);
            self.imported.sources.insert(name.clone(), made);
        }
    }
}

/// Patches of a release, in the form of kustomize.
fn patches(release: &Value) -> Vec<Value> {
    let written = |value: &Value| manifest::yaml::write(value).unwrap_or_default();
    let mut patches = Vec::new();
    for patch in list(release, "/strategicMergePatches") {
        patches.push(json!({"patch": written(patch)}));
    }
    for patch in list(release, "/jsonPatches") {
        patches.push(json!({"target": patch["target"], "patch": written(&patch["patch"])}));
    }
    patches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(helmfile: &Value) -> Imported {
        let read = |path: &str| match path {
            "values.yaml" => Ok("replicas: 2\nimage: {tag: '1'}\n".to_owned()),
            _ => Err("there is no such file".to_owned()),
        };
        import(std::slice::from_ref(helmfile), "flux-system", &read)
    }

    #[test]
    fn a_release_has_its_repository_values_and_needs() {
        let imported = imported(&json!({
            "repositories": [{"name": "stable", "url": "https://charts.example.com"}],
            "helmDefaults": {"timeout": 600, "atomic": true},
            "releases": [
                {"name": "db", "namespace": "data", "chart": "stable/postgres", "version": "~1.2", "createNamespace": false},
                {"name": "web", "namespace": "shop", "chart": "oci://registry.example.com/charts/web", "needs": ["data/db"],
                 "values": ["values.yaml", {"image": {"tag": "2"}}], "set": [{"name": "a.b", "value": "c,d"}],
                 "timeout": 60, "atomic": false,
                 "strategicMergePatches": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}]},
            ],
        }));
        assert_eq!(imported.notes, []);
        assert_eq!(
            imported.applications["db"][0]["spec"],
            json!({"interval": "10m", "releaseName": "db", "targetNamespace": "data", "storageNamespace": "data",
                "timeout": "600s", "install": {"remediation": {"remediateLastFailure": true}},
                "upgrade": {"remediation": {"remediateLastFailure": true}},
                "chart": {"spec": {"chart": "postgres", "version": "~1.2",
                    "sourceRef": {"kind": "HelmRepository", "name": "stable"}}}})
        );
        assert_eq!(
            imported.applications["web"][0]["spec"],
            json!({"interval": "10m", "releaseName": "web", "targetNamespace": "shop", "storageNamespace": "shop",
                "timeout": "60s", "install": {"createNamespace": true}, "dependsOn": [{"name": "db"}],
                "chart": {"spec": {"chart": "web",
                    "sourceRef": {"kind": "HelmRepository", "name": "registry-example-com-charts"}}},
                "postRenderers": [{"kustomize": {"patches": [
                    {"patch": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"}]}}],
                "values": {"replicas": 2.0, "image": {"tag": "2"}, "a": {"b": "c,d"}}})
        );
        let urls: Vec<_> = imported
            .sources
            .values()
            .map(|source| text(source, "/spec/url"))
            .collect();
        assert_eq!(
            urls,
            ["oci://registry.example.com/charts", "https://charts.example.com"]
        );
    }

    #[test]
    fn what_does_not_carry_over_is_noted() {
        let imported = imported(&json!({
            "hooks": [{"command": "make"}],
            "releases": [
                {"name": "off", "chart": "a/b", "installed": false},
                {"name": "web", "chart": "./charts/web", "values": ["none.yaml", "x.gotmpl"], "secrets": ["s.yaml"],
                 "needs": ["cache"], "set": [{"name": "a", "file": "f"}]},
                {"name": "other", "chart": "gone/web"},
                {"chart": "a/b"},
            ],
        }));
        let notes: Vec<String> = imported
            .notes
            .iter()
            .map(|note| format!("{}: {}", note.application, note.field))
            .collect();
        assert_eq!(
            notes,
            [
                "helmfile: hooks",
                "off: installed",
                "web: secrets",
                "web: chart",
                "web: needs",
                "web: values",
                "web: values",
                "web: set",
                "other: chart",
                "helmfile: releases",
            ]
        );
    }

    #[test]
    fn two_releases_of_a_name_get_names_of_their_own() {
        let release = |namespace: &str| json!({"name": "web", "namespace": namespace, "chart": "a/b"});
        let imported = imported(&json!({
            "repositories": [{"name": "a", "url": "registry.example.com/a", "oci": true}],
            "releases": [release("one"), release("two")],
        }));
        let names: Vec<&String> = imported.applications.keys().collect();
        assert_eq!(names, ["web", "web-two"]);
        assert_eq!(imported.applications["web-two"][0]["spec"]["releaseName"], "web");
        assert_eq!(
            imported.sources["a"]["spec"]["url"],
            "oci://registry.example.com/a"
        );
    }

    #[test]
    fn credentials_of_a_repository_are_left_out_and_noted() {
        let imported = imported(&json!({
            "repositories": [{"name": "a", "url": "https://ana:tr0ub4dor@example.com/a"}],
            "releases": [{"name": "web", "chart": "a/b"}],
        }));
        assert_eq!(imported.sources["a"]["spec"]["url"], "https://example.com/a");
        assert_eq!(imported.notes[0].field, "url");
        assert!(!format!("{imported:?}").contains("tr0ub4dor"));
    }
}
