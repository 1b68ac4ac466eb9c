//! The file of a repository that has the manifest of an object.

use api::delivery::ManifestReference;
use delivery_graph::object;
use manifest::ObjectId;
use serde_json::Value as Object;

use crate::archive::Archives;
use crate::artifact_files::ArtifactFiles;
use crate::reader::Reader;
use crate::source::source_of;
use crate::subject::inventory;

/// The manifest of an object, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The Kustomization that applied the object.
    pub kustomization: ObjectId,
    /// The GitRepository from which that is built.
    pub repository: ObjectId,
    /// The revision that was looked at.
    pub revision: String,
    /// Path of the file in the repository.
    pub file: String,
    /// Whether it is outside of the folder of the Kustomization: others may use it, too.
    pub is_outside: bool,
    /// The manifest, as the file names it.
    pub object: ManifestReference,
    /// Its text, with its comments.
    pub text: String,
}

/// Finds the manifest of an object. Its labels are believed only if the Kustomization that they name has applied it.
///
/// # Errors
/// When no Kustomization has applied it, it is not built from a GitRepository, or no file, or several, have the manifest.
pub async fn declared(reader: &Reader, archives: &Archives, of: &Object) -> Result<Declared, String> {
    let id = object::id(of);
    let owner = object::owner(of).filter(|owner| owner.kind == "Kustomization");
    let kustomization = owner
        .ok_or_else(|| format!("{id} was not applied by a Kustomization: no file is known to have it"))?;
    let built = reader.get(&kustomization).await?;
    let built = built.ok_or_else(|| format!("{kustomization} does not exist"))?;
    if !inventory(&built).iter().any(|(known, _)| *known == id) {
        return Err(format!(
            "the labels of {id} name {kustomization}, which has not applied it"
        ));
    }
    let (repository, folder) = place_of(&built)?;
    let files = ArtifactFiles::fetch(reader, archives, &repository).await?;
    let name = id.name.as_bytes();
    let has_name = |content: &[u8]| content.windows(name.len().max(1)).any(|window| window == name);
    let mut found = manifests(files.yaml_below(&folder, &has_name), &id);
    let is_outside = found.is_empty();
    if is_outside {
        found = manifests(files.yaml_below("", &has_name), &id);
    }
    match <[_; 1]>::try_from(found) {
        Ok([(file, object, text)]) => Ok(Declared {
            kustomization,
            repository,
            revision: files.revision().to_owned(),
            file,
            is_outside,
            object,
            text,
        }),
        Err(found) if found.is_empty() => Err(format!(
            "no file of {repository} has the manifest of {id} as it is: it is generated, or made by patches or variables"
        )),
        Err(found) => {
            let files: Vec<String> = found.into_iter().map(|(file, ..)| file).collect();
            Err(format!(
                "several files have a manifest of {id}: {}",
                files.join(", ")
            ))
        }
    }
}

/// The GitRepository and the folder from which a Kustomization is built.
///
/// # Errors
/// When it is built from something else.
pub fn place_of(built: &Object) -> Result<(ObjectId, String), String> {
    let source = source_of(built).filter(|source| source.kind == "GitRepository");
    let source = source.ok_or_else(|| format!("{} is not built from a GitRepository", object::id(built)))?;
    let path = flux_spec::build::path::clamp(object::text(built, "/spec/path"));
    Ok((source, path))
}

/// The manifests of an object in files. One that leaves the namespace out is one for any; one that is another object in the cluster
/// is told by what is applied.
fn manifests(files: Vec<(String, Vec<u8>)>, id: &ObjectId) -> Vec<(String, ManifestReference, String)> {
    let mut found = Vec::new();
    for (file, content) in files {
        let Ok(text) = std::str::from_utf8(&content) else {
            continue;
        };
        let all = manifest_edit::manifests(&file, text).unwrap_or_default();
        let of_object = all.into_iter().filter(|(reference, _)| {
            let group = reference
                .api_version
                .rsplit_once('/')
                .map_or("", |(group, _)| group);
            let namespace = reference.namespace.as_deref().unwrap_or_default();
            (group, &*reference.kind, &*reference.name) == (&*id.group, &*id.kind, &*id.name)
                && (namespace.is_empty() || namespace == id.namespace)
        });
        found.extend(of_object.map(|(reference, text)| (file.clone(), reference, text.to_owned())));
    }
    // What names the namespace goes before what leaves it out.
    if found
        .iter()
        .any(|(_, reference, _)| reference.namespace.is_some())
    {
        found.retain(|(_, reference, _)| reference.namespace.is_some());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ObjectId {
        ObjectId {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        }
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(file, text)| ((*file).to_owned(), text.as_bytes().to_vec()));
        manifests(files.collect(), &id())
            .into_iter()
            .map(|(file, ..)| file)
            .collect()
    }

    #[test]
    fn a_manifest_is_found_by_what_it_says() {
        let bare = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
        let own = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n";
        let other = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: bank}\n";
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
        let of_others = "apiVersion: other/v1\nkind: Deployment\nmetadata: {name: web}\n";
        assert_eq!(
            found(&[("a", bare), ("b", service), ("c", other), ("d", of_others)]),
            ["a"]
        );
        assert_eq!(found(&[("a", bare), ("b", own)]), ["b"]);
        assert_eq!(found(&[("a", bare), ("b", bare)]), ["a", "b"]);
        assert_eq!(found(&[("a", "a: [\n")]), [""; 0]);
    }
}
