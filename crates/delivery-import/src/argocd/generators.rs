//! The sets of parameters that generators of ApplicationSets make: of lists, of clusters (their Secrets), of the folders and files of
//! repositories (checkouts), and of matrices and merges of these.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::pattern::is_like;
use serde_json::{Map, Value, json};

use super::checkouts::Checkouts;
use super::parameters::{Parameters, flattened, normalized};
use super::templates::Filling;
use crate::{list, text};

/// More are not made of one set.
pub(super) const MOST: usize = 1000;
/// Label of the Secrets that describe clusters.
const SECRET_TYPE: &str = "/metadata/labels/argocd.argoproj.io~1secret-type";
/// How Argo CD calls the cluster that it runs in, and how it reaches it.
const IN_CLUSTER: (&str, &str) = ("in-cluster", "https://kubernetes.default.svc");

/// What generators ask.
pub(super) struct World<'a> {
    /// Among these are the Secrets of clusters.
    pub(super) objects: &'a [Value],
    pub(super) checkouts: &'a dyn Checkouts,
    /// How parameters are named, and filled in.
    pub(super) filling: &'a Filling,
}

impl World<'_> {
    /// The sets of parameters that a generator makes, within those that are known already.
    pub(super) fn expanded(&self, generator: &Value, known: &Parameters) -> Result<Vec<Parameters>, String> {
        let Some((kind, content)) = generator
            .as_object()
            .and_then(|fields| fields.iter().find(|(key, _)| *key != "selector"))
        else {
            return Ok(Vec::new());
        };
        // What a matrix has made so far may be named by what comes next.
        let mut content = content.clone();
        if !known.is_empty() && kind != "matrix" && kind != "merge" {
            // Values may name what the generator itself makes, too.
            let values = content["values"].take();
            self.filling.fill(&mut content, known)?;
            content["values"] = values;
        }
        let mut found = match kind.as_str() {
            "list" => self.listed(&content)?,
            "clusters" => self.clusters(&content, known)?,
            "git" => self.of_repository(&content, known)?,
            "matrix" => self.matrix(&content, known)?,
            "merge" => self.merge(&content, known)?,
            "pullRequest" => {
                return Err(
                    "the generator pullRequest is not imported: write a ResourceSetInputProvider and a ResourceSet"
                        .to_owned(),
                );
            }
            other => {
                return Err(format!(
                    "the generator {other} is not imported: write a ResourceSet, whose inputs are listed or read by a \
                     ResourceSetInputProvider"
                ));
            }
        };
        let selector = &generator["selector"];
        if !selector.is_null() {
            let mut kept = Vec::new();
            for one in found {
                let flat = flattened(&one);
                if selects(selector, &|key| flat.get(key).cloned())? {
                    kept.push(one);
                }
            }
            found = kept;
        }
        if found.len() > MOST {
            return Err(format!(
                "a generator {kind} that makes more than {MOST} sets is not imported"
            ));
        }
        Ok(found)
    }

    fn listed(&self, content: &Value) -> Result<Vec<Parameters>, String> {
        let mut elements = list(content, "/elements").to_vec();
        if let Some(yaml) = content["elementsYaml"].as_str() {
            let read = read_yaml(yaml).map_err(|problem| format!("elementsYaml of a list: {problem}"))?;
            elements.extend(read.as_array().cloned().unwrap_or_default());
        }
        let elements = elements.iter().filter_map(Value::as_object);
        Ok(elements.map(|element| self.filling.named(element)).collect())
    }

    fn clusters(&self, content: &Value, known: &Parameters) -> Result<Vec<Parameters>, String> {
        if content["flatList"] == true {
            return Err("a generator clusters with flatList is not imported: write a ResourceSet".to_owned());
        }
        let selector = &content["selector"];
        let is_cluster =
            |object: &&Value| text(object, "/kind") == "Secret" && text(object, SECRET_TYPE) == "cluster";
        let mut found = Vec::new();
        let mut is_home_known = false;
        for secret in self.objects.iter().filter(is_cluster) {
            let entry = |name: &str| entry_of(secret, name);
            let labels = &secret["metadata"]["labels"];
            let server = entry("server");
            is_home_known |= server == IN_CLUSTER.1;
            if selects(selector, &|key| labels[key].as_str().map(str::to_owned))? {
                let metadata = json!({"labels": labels, "annotations": secret["metadata"]["annotations"]});
                let made = self.cluster((&entry("name"), &server), &entry("project"), metadata);
                found.push(self.with_values(made, content, known)?);
            }
        }
        if !is_home_known && !crate::is_set(selector) {
            let made = self.cluster(IN_CLUSTER, "", json!({}));
            found.push(self.with_values(made, content, known)?);
        }
        if found.is_empty() {
            return Err(
                "the generator clusters finds no cluster: give the Secrets that describe them, too (kubectl get secrets \
                 --namespace argocd --selector argocd.argoproj.io/secret-type=cluster --output yaml)"
                    .to_owned(),
            );
        }
        Ok(found)
    }

    fn cluster(&self, (name, server): (&str, &str), project: &str, metadata: Value) -> Parameters {
        let mut made = Parameters::new();
        for (key, value) in [
            ("name", name),
            ("nameNormalized", &normalized(name)),
            ("server", server),
            ("project", project),
        ] {
            made.insert(key.to_owned(), value.into());
        }
        made.insert("metadata".to_owned(), metadata);
        self.filling.named(&made)
    }

    fn of_repository(&self, content: &Value, known: &Parameters) -> Result<Vec<Parameters>, String> {
        let url = text(content, "/repoURL");
        let checkout = self.checkouts.files(url)?.ok_or_else(|| {
            let url = crate::without_credentials(url).0;
            format!("the generator git needs what is in {url}: clone it, and give --checkout {url}=FOLDER")
        })?;
        let prefix = text(content, "/pathParamPrefix");
        let mut found = Vec::new();
        let (directories, files) = (list(content, "/directories"), list(content, "/files"));
        if !directories.is_empty() {
            for folder in chosen(folders(&checkout), directories, is_folder_like)? {
                let parameters = self.filling.of_path(&folder, None, prefix);
                found.push(self.with_values(parameters, content, known)?);
            }
        }
        for file in chosen(checkout.clone(), files, is_file_like)? {
            let content_of_file = self.checkouts.read(url, &file)?;
            let read = read_yaml(&content_of_file).map_err(|problem| format!("{file}: {problem}"))?;
            let elements = match read {
                Value::Array(elements) => elements,
                one => vec![one],
            };
            for element in elements.iter().filter_map(Value::as_object) {
                let (folder, name) = file.rsplit_once('/').unwrap_or(("", &file));
                let mut parameters = self.filling.named(element);
                parameters.extend(self.filling.of_path(folder, Some(name), prefix));
                found.push(self.with_values(parameters, content, known)?);
            }
        }
        Ok(found)
    }

    /// Adds the values of the generator itself.
    fn with_values(
        &self,
        mut parameters: Parameters,
        content: &Value,
        known: &Parameters,
    ) -> Result<Parameters, String> {
        if crate::is_set(&content["values"]) {
            let mut values = content["values"].clone();
            let within = known.clone().into_iter().chain(parameters.clone()).collect();
            self.filling.fill(&mut values, &within)?;
            let values = Map::from_iter([("values".to_owned(), values)]);
            parameters.extend(self.filling.named(&values));
        }
        Ok(parameters)
    }

    fn matrix(&self, content: &Value, known: &Parameters) -> Result<Vec<Parameters>, String> {
        let mut all = vec![Parameters::new()];
        for generator in list(content, "/generators") {
            let mut more = Vec::new();
            for one in &all {
                let mut within = known.clone();
                within.extend(one.clone());
                for found in self.expanded(generator, &within)? {
                    more.push(one.clone().into_iter().chain(found).collect());
                }
                if more.len() > MOST {
                    return Err(format!(
                        "a matrix that makes more than {MOST} Applications is not imported"
                    ));
                }
            }
            all = more;
        }
        Ok(all)
    }

    /// The sets of the first generator, each with what the others have for the same keys.
    fn merge(&self, content: &Value, known: &Parameters) -> Result<Vec<Parameters>, String> {
        let keys: Vec<&str> = list(content, "/mergeKeys")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let key_of = |set: &Parameters| -> Vec<Option<String>> {
            let flat = flattened(set);
            keys.iter().map(|key| flat.get(*key).cloned()).collect()
        };
        let mut generators = list(content, "/generators").iter();
        let mut all = match generators.next() {
            Some(first) => self.expanded(first, known)?,
            None => Vec::new(),
        };
        for generator in generators {
            let over = self.expanded(generator, known)?;
            let over: BTreeMap<_, _> = over.into_iter().map(|set| (key_of(&set), set)).collect();
            for one in &mut all {
                if let Some(more) = over.get(&key_of(one)) {
                    deeply_merged(one, more);
                }
            }
        }
        Ok(all)
    }
}

fn deeply_merged(one: &mut Parameters, more: &Parameters) {
    for (key, value) in more {
        match (one.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(value)) => deeply_merged(known, value),
            _ => {
                one.insert(key.clone(), value.clone());
            }
        }
    }
}

/// An entry of a Secret, as it is written or as it is stored.
fn entry_of(secret: &Value, name: &str) -> String {
    if let Some(plain) = secret["stringData"][name].as_str() {
        return plain.to_owned();
    }
    let stored = secret["data"][name].as_str().unwrap_or_default();
    let bytes = STANDARD.decode(stored).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// All folders that files are in, and those above.
fn folders(files: &[String]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for file in files {
        let mut path = file.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            if !found.insert(folder.to_owned()) {
                break;
            }
            path = folder;
        }
    }
    found.into_iter().collect()
}

/// Those that a pattern is about, and none that excludes them.
fn chosen(
    mut paths: Vec<String>,
    patterns: &[Value],
    is_like: impl Fn(&str, &str) -> bool,
) -> Result<Vec<String>, String> {
    let strange = |pattern: &&str| pattern.contains(['?', '[', '\\', '{']);
    let mut all = patterns.iter().map(|pattern| text(pattern, "/path"));
    if let Some(pattern) = all.find(strange) {
        return Err(format!(
            "the pattern {pattern} of a generator git is not understood: only * is"
        ));
    }
    let matches = |path: &str, excludes: bool| {
        let mut these = patterns.iter().filter(|one| (one["exclude"] == true) == excludes);
        these.any(|one| {
            is_like(
                text(one, "/path").trim_start_matches("./").trim_end_matches('/'),
                path,
            )
        })
    };
    paths.retain(|path| matches(path, false) && !matches(path, true));
    Ok(paths)
}

/// As Go's `path.Match`: a star stays within its folder. Hidden folders are not looked at.
fn is_folder_like(pattern: &str, path: &str) -> bool {
    let (patterns, names): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    patterns.len() == names.len()
        && !names.iter().any(|name| name.starts_with('.'))
        && patterns
            .iter()
            .zip(&names)
            .all(|(pattern, name)| is_like(pattern, name))
}

/// As `git ls-files`: a star leads into folders, and a folder stands for all in it.
fn is_file_like(pattern: &str, path: &str) -> bool {
    is_like(pattern, path)
        || path
            .strip_prefix(pattern)
            .is_some_and(|rest| rest.starts_with('/'))
}

fn read_yaml(text: &str) -> Result<Value, String> {
    let documents = manifest::yaml::read_documents(text, "").map_err(|error| error.to_string())?;
    Ok(documents
        .into_iter()
        .next()
        .map(|document| document.value)
        .unwrap_or_default())
}

/// Returns whether a label selector is about what a lookup shows.
fn selects(selector: &Value, lookup: &dyn Fn(&str) -> Option<String>) -> Result<bool, String> {
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all = wanted.map(|(key, value)| lookup(key).as_deref() == value.as_str());
    if !all.all(|matches| matches) {
        return Ok(false);
    }
    for expression in list(selector, "/matchExpressions") {
        let found = lookup(text(expression, "/key"));
        let is_listed = || {
            let values = list(expression, "/values");
            found
                .as_ref()
                .is_some_and(|found| values.iter().any(|value| value == found))
        };
        let matches = match text(expression, "/operator") {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            other => return Err(format!("a selector with the operator {other} is not imported")),
        };
        if !matches {
            return Ok(false);
        }
    }
    Ok(true)
}
