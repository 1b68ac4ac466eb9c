//! Objects that only revisions that failed have made, and that no one knows any more: Helm compares with the deployed revision
//! alone, and leaves them where they are for ever.

use helm_release::history::History;
use helm_release::{Record, Status};

use crate::apply;
use crate::resources::{self, Resource};
use crate::{Context, Error};

/// Finds objects of revisions that failed after `since`, but for those of `originals`, which are compared anyway. `known` are
/// records that need not be read; the first is the one that `originals` are of.
///
/// What is found may never have been made, or be someone else's.
pub(crate) async fn find(
    context: &Context<'_>,
    history: &History,
    since: i64,
    known: &[&Record],
    originals: &[Resource],
) -> Result<Vec<Resource>, Error> {
    let Some(current) = known.first().map(|current| &current.release) else {
        return Ok(Vec::new());
    };
    let mut strays: Vec<Resource> = Vec::new();
    for revision in history.iter() {
        let is_one = revision.version > since && revision.version != current.version;
        if !is_one || revision.status != Status::Failed {
            continue;
        }
        let manifest = match known
            .iter()
            .find(|known| known.release.version == revision.version)
        {
            Some(known) => Some(known.release.manifest.clone()),
            None => {
                let record = context.storage.get(&current.name, revision.version).await?;
                record.map(|record| record.release.manifest)
            }
        };
        let Some(manifest) = manifest else { continue };
        let read = resources::read_former(context.cluster, &manifest, &current.namespace).await;
        let read = read.map_err(|error| {
            error.within("unable to build kubernetes objects from the manifest of a release that failed")
        })?;
        let new: Vec<Resource> = apply::left(&read, originals).into_iter().cloned().collect();
        let new: Vec<Resource> = apply::left(&new, &strays).into_iter().cloned().collect();
        strays.extend(new);
    }
    Ok(strays)
}
