//! Three trees made into one: what a merge of the pull request would leave in the branch.

use std::collections::BTreeMap;
use std::sync::Arc;

use git_client::ObjectId;
use git_client::pack::Pack;

use crate::lines;
use crate::tree::{Error, Tree};

/// Larger files are not merged line by line. In bytes.
const MAX_MERGED: u64 = 4 << 20;

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the commit of the branch.
    Base(ObjectId),
    /// In the commit of the pull request.
    Head(ObjectId),
    /// It was merged from both.
    Merged(Arc<[u8]>),
}

impl Place {
    /// Returns whether the contents are the same, wherever they are.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Base(one) | Self::Head(one), Self::Base(other) | Self::Head(other)) => one == other,
            _ => self == other,
        }
    }
}

/// The files of a branch, as they are and as they would be after a merge.
pub struct Merged {
    /// Of the branch and of the pull request.
    pub(crate) packs: [Pack; 2],
    pub(crate) before: BTreeMap<String, Place>,
    pub(crate) after: BTreeMap<String, Place>,
    /// Files that both sides changed in the same place. Those of the pull request are taken, or what is left.
    pub conflicts: Vec<String>,
}

impl Merged {
    /// Merges a pull request into a branch. `parted` is the commit at which they parted; None if that is the commit of the branch.
    /// Blocks.
    ///
    /// # Errors
    /// When a content that both sides changed cannot be read.
    pub fn new(base: Tree, parted: Option<&Tree>, head: Tree) -> Result<Self, Error> {
        let old = parted.unwrap_or(&base);
        let mut after = BTreeMap::new();
        let mut conflicts = Vec::new();
        let paths = base
            .files
            .keys()
            .chain(head.files.keys().filter(|path| !base.files.contains_key(*path)));
        for path in paths {
            let (was, ours, theirs) = (old.files.get(path), base.files.get(path), head.files.get(path));
            let place = match (ours, theirs) {
                _ if ours == theirs || was == theirs => ours.map(|id| Place::Base(*id)),
                _ if was == ours => theirs.map(|id| Place::Head(*id)),
                (Some(ours), Some(theirs)) => {
                    let merged = match was {
                        Some(was) => {
                            merge_lines(&[(&old.pack, *was), (&base.pack, *ours), (&head.pack, *theirs)])?
                        }
                        None => None,
                    };
                    if merged.is_none() {
                        conflicts.push(path.clone());
                    }
                    Some(merged.unwrap_or(Place::Head(*theirs)))
                }
                (one, other) => {
                    // One side deleted what the other one changed.
                    conflicts.push(path.clone());
                    let theirs = other.map(|id| Place::Head(*id));
                    theirs.or_else(|| one.map(|id| Place::Base(*id)))
                }
            };
            if let Some(place) = place {
                after.insert(path.clone(), place);
            }
        }
        let before = base.files.into_iter().map(|(path, id)| (path, Place::Base(id)));
        Ok(Self {
            before: before.collect(),
            packs: [base.pack, head.pack],
            after,
            conflicts,
        })
    }

    /// Reads a file of at most so many bytes.
    pub(crate) fn read(&self, place: &Place, limit: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        match place {
            Place::Base(id) => self.packs[0].read_blob(*id, limit, &mut content)?,
            Place::Head(id) => self.packs[1].read_blob(*id, limit, &mut content)?,
            Place::Merged(merged) => content.extend_from_slice(merged),
        }
        Ok(content)
    }
}

/// Merges line by line; None where that is not possible.
fn merge_lines(sides: &[(&Pack, ObjectId); 3]) -> Result<Option<Place>, Error> {
    let mut texts = Vec::with_capacity(sides.len());
    for (pack, id) in sides {
        let mut content = Vec::new();
        pack.read_blob(*id, MAX_MERGED, &mut content)?;
        let Ok(text) = String::from_utf8(content) else {
            return Ok(None);
        };
        texts.push(text);
    }
    let merged = lines::merge(&texts[0], &texts[1], &texts[2]);
    Ok(merged.map(|text| Place::Merged(text.into_bytes().into())))
}
