//! Branches that hold changes: what identifies a change. Pure.

pub(super) mod head;
pub(crate) mod heads;

use change_policy::mark::Change;
use git_client::pack::Pack;

use super::error::Error;
use super::update::{self, Updated};

/// What identifies the change, and the files that it is made over; None if nothing changes.
pub(super) fn wanted(pack: &Pack, updated: &Updated) -> Result<Option<(Change, Change)>, Error> {
    if updated.contents.is_empty() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (file, changes) in &updated.files {
        for change in changes {
            let object = &change.object;
            let place = [file, &object.kind, &object.namespace, &object.name];
            parts.extend(place.map(String::as_str));
            parts.extend([change.setter.as_str(), &change.new]);
        }
    }
    let mut below = Vec::new();
    for path in updated.contents.keys() {
        let entry = pack.entry(path).map_err(update::Error::from)?;
        below.push(path.clone());
        below.push(entry.map(|(_, id)| id.to_string()).unwrap_or_default());
    }
    let base = Change::new(below.iter().map(String::as_str));
    Ok(Some((Change::new(parts), base)))
}
