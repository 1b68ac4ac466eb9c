//! What new contents of files would change: in the files, and in the cluster.

use api::delivery::{FileChange, ManifestReference};
use kustomize_build::FileSystem as _;
use manifest::ObjectId;

use crate::archive::Archives;
use crate::artifact_files::ArtifactFiles;
use crate::declared::place_of;
use crate::follow;
use crate::reader::Reader;
use crate::report::Section;
use crate::subject::Subject;
use crate::world::World;

/// What a proposal would change.
#[derive(Debug)]
pub struct Proposed {
    /// The GitRepository.
    pub repository: ObjectId,
    /// The revision that was looked at.
    pub revision: String,
    /// Files with their old and new text. Of a file that has a manifest which is replaced, that of the manifest.
    pub files: Vec<(String, String, String)>,
    /// What it would change in the cluster: of the Kustomization, and of those that it applies.
    pub sections: Vec<Section>,
}

/// Builds a Kustomization with other contents of files, and asks what would come of it.
///
/// # Errors
/// When the contents are not accepted, or the files cannot be had.
pub async fn proposed(
    reader: Reader,
    archives: Archives,
    kustomization: &ObjectId,
    changes: &[FileChange],
) -> Result<Proposed, String> {
    let built = reader.get(kustomization).await?;
    let built = built.ok_or_else(|| format!("{kustomization} does not exist"))?;
    let (repository, folder) = place_of(&built)?;
    let mut files = ArtifactFiles::fetch(&reader, &archives, &repository).await?;
    let read = |path: &str| match files.read(path) {
        Ok(content) => String::from_utf8(content)
            .map(Some)
            .map_err(|_| format!("{path} is not text")),
        Err(_) => Ok(None),
    };
    let contents = manifest_edit::edit(&folder, changes, read).map_err(|error| error.to_string())?;
    let mut shown = Vec::new();
    for (path, new) in &contents {
        let old = read(path)?.unwrap_or_default();
        let change = changes.iter().find(|change| change.path == *path);
        shown.push(match change.and_then(|change| change.object.as_ref()) {
            Some(object) => (path.clone(), part(path, &old, object), part(path, new, object)),
            None => (path.clone(), old, new.clone()),
        });
    }
    let revision = files.revision().to_owned();
    files.change(contents);
    let mut world = World::new(reader, Box::new(files));
    world.archives = archives;
    let sections = follow::all(&mut world, vec![Subject::root(built)], true, |_| {}).await;
    Ok(Proposed {
        repository,
        revision,
        files: shown,
        sections,
    })
}

/// The text of a manifest in a file.
fn part(path: &str, text: &str, object: &ManifestReference) -> String {
    let found = manifest_edit::find(path, text, object).ok().flatten();
    found.unwrap_or_default().to_owned()
}
