//! What the merge of a pull request would make of a repository, which objects are built from that, and the comment about it.
//!
//! In: the packs of three commits (the branch, the pull request, and where they parted), and the findings of a comparison with
//! clusters. Out: the files after the merge as the content of such a comparison, and the text of a comment.
//!
//! | module | what it is |
//! |---|---|
//! | `accept` | which pull requests are compared |
//! | `tree` | the files of a commit, by the names of their contents |
//! | `lines` | two texts that were changed from the same one, merged line by line |
//! | `merge` | three trees made into one |
//! | `snapshot` | the files before it, or after it |
//! | `checks` | what it would make wrong in them, seen without a cluster |
//! | `files` | what of it becomes the artifact of a source |
//! | `reach` | whether a Kustomization or HelmRelease is built from files that change |
//! | `comment` | the text of the comment |
//! | `revert` | what takes a change of the branch back |

mod accept;
mod checks;
mod comment;
mod files;
mod lines;
mod merge;
mod reach;
mod revert;
mod snapshot;
mod tree;

pub use accept::accepts;
pub use checks::Checks;
pub use comment::{ClusterFindings, Told};
pub use files::Files;
pub use merge::Merged;
pub use revert::{Error as RevertError, Scope, revert};
pub use tree::{Error, Tree};
