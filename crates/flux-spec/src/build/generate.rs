//! The kustomization.yaml that a build starts from: the folder's own, or one generated for a folder of plain YAML, with
//! what the Kustomization's spec adds to it.
//!
//! Pure over a file system: the answer is a file to lay over the artifact's tree. Which file it is and how the fields
//! are merged follows Flux (fluxcd/pkg/kustomize `GenerateManifest`): the spec replaces namespace, prefix, suffix and
//! buildMetadata, appends patches and components, and merges images by name.

use api::kustomize::KustomizationSpec;
use api::meta::{Image, Patch};
use kustomize_build::FileSystem;
use serde_json::{Map, Value, json};

use crate::build::error::Error;
use crate::build::folder::{self, KUSTOMIZATION_FILES};
use crate::build::kustomization;
use crate::build::path::{join, normalise};

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
        let build_metadata = json!(spec.build_metadata);
        fields.map.insert("buildMetadata".to_owned(), build_metadata);
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
    if let Some(path) = folder::kustomization_file(fs, folder)? {
        let mut kustomization = kustomization::read(fs, &path)?;
        let resources = kustomization.get("resources").and_then(Value::as_array);
        if resources.is_none_or(Vec::is_empty) {
            // Without this kustomize refuses a file that holds nothing yet. Flux sets it for any file without resources.
            kustomization.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
        }
        return Ok(Found {
            path,
            kustomization,
            manifests: Vec::new(),
        });
    }
    let plain = folder::scan(fs, folder)?;
    let mut kustomization = Map::new();
    kustomization.insert("apiVersion".to_owned(), json!("kustomize.config.k8s.io/v1beta1"));
    kustomization.insert("kind".to_owned(), json!("Kustomization"));
    if plain.resources.is_empty() {
        // kustomize refuses a kustomization without content; a namespace for nothing builds nothing.
        kustomization.insert("namespace".to_owned(), json!("_placeholder"));
    } else {
        kustomization.insert("resources".to_owned(), json!(plain.resources));
    }
    Ok(Found {
        path: join(folder, KUSTOMIZATION_FILES[0]),
        kustomization,
        manifests: plain.manifests,
    })
}

/// Returns the components to add. One that lies outside of the artifact is not there: passed over when asked, and left
/// to the build to refuse otherwise.
fn components(fs: &dyn FileSystem, folder: &str, spec: &KustomizationSpec) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for component in &spec.components {
        if !is_local(component) {
            return Err(Error::ComponentPath(component.clone()));
        }
        if !spec.ignore_missing_components || exists(fs, &join(folder, component))? {
            kept.push(component.clone());
        }
    }
    Ok(kept)
}

/// Returns whether a path is neither absolute nor what kustomize would fetch (its own list of prefixes, without `file://`).
fn is_local(path: &str) -> bool {
    const REMOTE: [&str; 8] = [
        "git::",
        "gh:",
        "ssh://",
        "https://",
        "http://",
        "git@",
        "github.com:",
        "github.com/",
    ];
    let lower = path.to_lowercase();
    let is_remote = |prefix: &&str| lower.len() > prefix.len() && lower.starts_with(*prefix);
    !REMOTE.iter().any(is_remote)
        && !path.starts_with('/')
        && !lower.strip_prefix("file://").unwrap_or(&lower).starts_with('/')
}

fn exists(fs: &dyn FileSystem, path: &str) -> Result<bool, Error> {
    let Some(path) = normalise(path) else {
        return Ok(false);
    };
    match fs.kind(&path) {
        Ok(kind) => Ok(kind.is_some()),
        Err(source) => Err(Error::Read { path, source }),
    }
}

fn patch_value(patch: &Patch) -> Value {
    let mut value = Map::new();
    value.insert("patch".to_owned(), Value::from(patch.patch.clone()));
    if let Some(target) = &patch.target {
        value.insert("target".to_owned(), json!(target));
    }
    Value::Object(value)
}

/// Sets what the spec says about an image over what the file says about the first one of that name.
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
        let slot = self.map.entry(field.to_owned()).or_insert_with(|| json!([]));
        match slot {
            Value::Array(list) => Ok(list),
            _ => Err(Error::Malformed {
                path: self.path.to_owned(),
                what: format!("{field} must be a list"),
            }),
        }
    }
}

// What comes of it in a build is in tests/cases/flux.
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
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                "namespace": "target", "namePrefix": "x-", "resources": ["a.yaml"],
                "images": [{"name": "app", "newTag": "2"}, {"name": "db"}, {"name": "new", "newName": "other"}],
                "patches": [{"path": "p.yaml"}, {"patch": "- op: remove", "target": {"kind": "Deployment"}}],
                "components": ["../c"],
            })
        );
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
