//! The kustomization.yaml that a build starts from: the folder's own, or one generated for a folder of plain YAML, with
//! what the Kustomization's spec adds to it.
//!
//! Pure over a file system: the answer is a file to lay over the artifact's tree. Which file it is and how the fields
//! are merged follows Flux (fluxcd/pkg/kustomize `Generator`): the spec replaces namespace, prefix, suffix and
//! buildMetadata, appends patches and components, and merges images by name.

use api::kustomize::KustomizationSpec;
use api::meta::{Image, Patch};
use kustomize_build::{FileKind, FileSystem, FsError};
use serde_json::{Map, Value, json};

/// The names that kustomize looks for, in its order.
pub const KUSTOMIZATION_FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A folder of plain YAML nested deeper than this is refused: the walk must end on a hostile tree.
const MAX_DEPTH: usize = 64;

/// A file to lay over the tree before the build.
#[derive(Debug, PartialEq)]
pub struct Generated {
    /// Path of the kustomization file.
    pub path: String,
    /// Its text; JSON, which is YAML.
    pub contents: Vec<u8>,
    /// The YAML files that were found where the folder has no kustomization file of its own.
    pub manifests: Vec<String>,
}

/// A reason why no kustomization can be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tree could not be read.
    #[error("failed to read {path}")]
    Read {
        /// Which file or folder.
        path: String,
        /// Why.
        #[source]
        source: FsError,
    },
    /// The folder's own file is not a kustomization.
    #[error("failed to parse {path}")]
    Parse {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: manifest::yaml::Error,
    },
    /// The folder's own file is YAML but no mapping, or a field has another shape than kustomize's.
    #[error("{path}: {what}")]
    Malformed {
        /// Which file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// `spec.components` names something outside the folder's surroundings.
    #[error("spec.components: path {0:?} must be local and relative")]
    ComponentPath(String),
    /// Folders nested without end.
    #[error("{0}: folders are nested deeper than {MAX_DEPTH}")]
    TooDeep(String),
}

/// Finds or generates the kustomization of `folder` and merges the spec into it.
pub fn generate(fs: &dyn FileSystem, folder: &str, spec: &KustomizationSpec) -> Result<Generated, Error> {
    let Found {
        path,
        mut kustomization,
        manifests,
    } = find_or_generate(fs, folder)?;
    let fields = &mut Fields {
        path: &path,
        map: &mut kustomization,
    };
    fields.replace("namespace", spec.target_namespace.as_deref());
    fields.replace("namePrefix", spec.name_prefix.as_deref());
    fields.replace("nameSuffix", spec.name_suffix.as_deref());
    for patch in &spec.patches {
        fields.append("patches", patch_value(patch))?;
    }
    for component in components(fs, folder, spec)? {
        fields.append("components", Value::from(component))?;
    }
    for image in &spec.images {
        merge_image(fields, image)?;
    }
    if !spec.build_metadata.is_empty() {
        fields
            .map
            .insert("buildMetadata".to_owned(), json!(spec.build_metadata));
    }
    let contents = Value::Object(kustomization).to_string().into_bytes();
    Ok(Generated {
        path,
        contents,
        manifests,
    })
}

struct Found {
    path: String,
    kustomization: Map<String, Value>,
    manifests: Vec<String>,
}

fn find_or_generate(fs: &dyn FileSystem, folder: &str) -> Result<Found, Error> {
    if let Some(path) = kustomization_file(fs, folder)? {
        let mut kustomization = parse(fs, &path)?;
        if kustomization
            .get("resources")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            // Without this kustomize refuses a file that holds nothing yet. Flux sets it for any file without resources.
            kustomization.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
        }
        return Ok(Found {
            path,
            kustomization,
            manifests: Vec::new(),
        });
    }
    let mut resources = Vec::new();
    let mut manifests = Vec::new();
    scan(fs, folder, "", 0, &mut resources, &mut manifests)?;
    let mut kustomization = Map::new();
    kustomization.insert("apiVersion".to_owned(), json!("kustomize.config.k8s.io/v1beta1"));
    kustomization.insert("kind".to_owned(), json!("Kustomization"));
    if resources.is_empty() {
        // kustomize refuses a kustomization without content; a namespace for nothing builds nothing.
        kustomization.insert("namespace".to_owned(), json!("_placeholder"));
    } else {
        kustomization.insert("resources".to_owned(), json!(resources));
    }
    Ok(Found {
        path: join(folder, KUSTOMIZATION_FILES[0]),
        kustomization,
        manifests,
    })
}

/// Returns the path of the folder's own kustomization file.
pub fn kustomization_file(fs: &dyn FileSystem, folder: &str) -> Result<Option<String>, Error> {
    for name in KUSTOMIZATION_FILES {
        let path = join(folder, name);
        let kind = fs.kind(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        if kind == Some(FileKind::File) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn parse(fs: &dyn FileSystem, path: &str) -> Result<Map<String, Value>, Error> {
    let bytes = fs.read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let documents = manifest::yaml::read_documents(&text, path).map_err(|source| Error::Parse {
        path: path.to_owned(),
        source,
    })?;
    match documents
        .into_iter()
        .next()
        .map_or(Value::Null, |document| document.value)
    {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err(Error::Malformed {
            path: path.to_owned(),
            what: "a kustomization must be a mapping".to_owned(),
        }),
    }
}

/// Walks the folder in the order of names. A folder with a kustomization of its own is one resource and not entered.
fn scan(
    fs: &dyn FileSystem,
    folder: &str,
    below: &str,
    depth: usize,
    resources: &mut Vec<String>,
    manifests: &mut Vec<String>,
) -> Result<(), Error> {
    let here = join(folder, below);
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep(here));
    }
    let mut entries = fs.list(&here).map_err(|source| Error::Read {
        path: here.clone(),
        source,
    })?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let relative = join(below, &entry.name);
        let path = join(folder, &relative);
        match entry.kind {
            FileKind::Directory if kustomization_file(fs, &path)?.is_some() => {
                resources.push(format!("./{relative}"));
            }
            FileKind::Directory => scan(fs, folder, &relative, depth + 1, resources, manifests)?,
            FileKind::File if is_manifest(&entry.name) => {
                resources.push(format!("./{relative}"));
                manifests.push(path);
            }
            FileKind::File => {}
        }
    }
    Ok(())
}

fn is_manifest(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

fn components(fs: &dyn FileSystem, folder: &str, spec: &KustomizationSpec) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for component in &spec.components {
        if component.is_empty() || component.starts_with('/') || component.contains("://") {
            return Err(Error::ComponentPath(component.clone()));
        }
        if spec.ignore_missing_components {
            let path = join(folder, component);
            let missing = match normalise(&path) {
                Some(path) => fs
                    .kind(&path)
                    .map_err(|source| Error::Read { path, source })?
                    .is_none(),
                None => return Err(Error::ComponentPath(component.clone())),
            };
            if missing {
                continue;
            }
        }
        kept.push(component.clone());
    }
    Ok(kept)
}

fn patch_value(patch: &Patch) -> Value {
    let mut value = Map::new();
    value.insert("patch".to_owned(), Value::from(patch.patch.clone()));
    if let Some(target) = &patch.target {
        value.insert("target".to_owned(), json!(target));
    }
    Value::Object(value)
}

fn merge_image(fields: &mut Fields<'_>, image: &Image) -> Result<(), Error> {
    let path = fields.path;
    let images = fields.list("images")?;
    let known = images
        .iter_mut()
        .find(|i| i.get("name").and_then(Value::as_str) == Some(image.name.as_str()));
    let entry = match known {
        Some(entry) => entry,
        None => {
            images.push(json!({"name": image.name}));
            images.last_mut().expect("pushed above")
        }
    };
    let Value::Object(entry) = entry else {
        return Err(Error::Malformed {
            path: path.to_owned(),
            what: "images must hold mappings".to_owned(),
        });
    };
    if image.new_tag.is_some() || image.digest.is_some() {
        // Tag and digest choose the version together: a digest left beside a new tag would win at pull time.
        entry.remove("newTag");
        entry.remove("digest");
    }
    let fields = [
        ("newName", &image.new_name),
        ("newTag", &image.new_tag),
        ("digest", &image.digest),
    ];
    for (field, value) in fields {
        if let Some(value) = value {
            entry.insert(field.to_owned(), json!(value));
        }
    }
    Ok(())
}

struct Fields<'a> {
    path: &'a str,
    map: &'a mut Map<String, Value>,
}

impl Fields<'_> {
    fn replace(&mut self, field: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.map.insert(field.to_owned(), Value::from(value));
        }
    }

    fn append(&mut self, field: &str, value: Value) -> Result<(), Error> {
        self.list(field)?.push(value);
        Ok(())
    }

    fn list(&mut self, field: &str) -> Result<&mut Vec<Value>, Error> {
        let path = self.path;
        let slot = self.map.entry(field.to_owned()).or_insert_with(|| json!([]));
        if slot.is_null() {
            *slot = json!([]);
        }
        match slot {
            Value::Array(list) => Ok(list),
            _ => Err(Error::Malformed {
                path: path.to_owned(),
                what: format!("{field} must be a list"),
            }),
        }
    }
}

/// Joins two slash-separated paths, either of which may be empty.
pub fn join(folder: &str, name: &str) -> String {
    match (folder.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Resolves `.` and `..`; None if the path leaves the root.
pub fn normalise(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use kustomize_build::MemoryFs;

    use super::*;

    fn generated(files: &[(&str, &str)], folder: &str, spec: Value) -> (String, Value) {
        let spec = spec_of(spec);
        let generated = generate(&tree(files), folder, &spec).unwrap();
        (
            generated.path,
            serde_json::from_slice(&generated.contents).unwrap(),
        )
    }

    fn spec_of(mut spec: Value) -> KustomizationSpec {
        let defaults =
            json!({"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}});
        for (key, value) in defaults.as_object().unwrap() {
            spec.as_object_mut()
                .unwrap()
                .entry(key.clone())
                .or_insert(value.clone());
        }
        serde_json::from_value(spec).unwrap()
    }

    fn tree(files: &[(&str, &str)]) -> MemoryFs {
        let mut tree = MemoryFs::default();
        files
            .iter()
            .for_each(|(path, text)| tree.insert(*path, text.as_bytes()));
        tree
    }

    #[test]
    fn a_folder_of_plain_yaml_becomes_a_list_of_resources() {
        let (path, kustomization) = generated(
            &[
                ("apps/b.yaml", "b"),
                ("apps/a.yml", "a"),
                ("apps/notes.md", "n"),
                ("apps/deep/c.yaml", "c"),
                ("apps/own/kustomization.yml", "resources: []"),
                ("apps/own/d.yaml", "d"),
                ("other.yaml", "o"),
            ],
            "apps",
            json!({}),
        );
        assert_eq!(path, "apps/kustomization.yaml");
        assert_eq!(
            kustomization["resources"],
            json!(["./a.yml", "./b.yaml", "./deep/c.yaml", "./own"])
        );
    }

    #[test]
    fn an_empty_folder_builds_nothing() {
        let (_, kustomization) = generated(&[("readme.md", "")], "", json!({}));
        assert_eq!(kustomization["namespace"], json!("_placeholder"));
    }

    #[test]
    fn the_spec_is_merged_into_the_folders_own_file() {
        let own = "namespace: own\nresources: [a.yaml]\nimages: [{name: app, newTag: '1', digest: 'sha256:1'}, {name: db}]\n\
                   patches: [{path: p.yaml}]\n";
        let (path, kustomization) = generated(
            &[("Kustomization", own), ("a.yaml", "")],
            "",
            json!({
                "targetNamespace": "target", "namePrefix": "x-",
                "images": [{"name": "app", "newTag": "2"}, {"name": "new", "newName": "other"}],
                "patches": [{"patch": "- op: remove", "target": {"kind": "Deployment"}}],
                "components": ["../c"],
            }),
        );
        assert_eq!(path, "Kustomization");
        assert_eq!(
            kustomization,
            json!({
                "namespace": "target", "namePrefix": "x-", "resources": ["a.yaml"],
                "images": [{"name": "app", "newTag": "2"}, {"name": "db"}, {"name": "new", "newName": "other"}],
                "patches": [{"path": "p.yaml"}, {"patch": "- op: remove", "target": {"kind": "Deployment"}}],
                "components": ["../c"],
            })
        );
    }

    #[test]
    fn missing_components_are_left_out_only_when_asked() {
        let files = &[
            ("k/kustomization.yaml", "resources: [a.yaml]"),
            ("here/kustomization.yaml", ""),
        ];
        let spec = json!({"components": ["../here", "../gone"], "ignoreMissingComponents": true});
        assert_eq!(generated(files, "k", spec).1["components"], json!(["../here"]));
        let spec = json!({"components": ["../gone"]});
        assert_eq!(generated(files, "k", spec).1["components"], json!(["../gone"]));
    }

    #[test]
    fn components_stay_local() {
        for component in ["/etc", "https://host/path", ""] {
            let spec = spec_of(json!({"components": [component]}));
            assert!(
                matches!(generate(&tree(&[]), "", &spec), Err(Error::ComponentPath(_))),
                "{component:?}"
            );
        }
    }

    #[test]
    fn a_file_of_another_shape_is_named() {
        for text in ["- a", "images: 1", "images: [1]"] {
            let spec = spec_of(json!({"images": [{"name": "a", "newTag": "1"}]}));
            let error = generate(&tree(&[("kustomization.yaml", text)]), "", &spec);
            // A list entry that is no mapping has no name and is left to the build, which refuses it with its line.
            if text != "images: [1]" {
                assert!(
                    error.unwrap_err().to_string().starts_with("kustomization.yaml: "),
                    "{text:?}"
                );
            }
        }
    }
}
