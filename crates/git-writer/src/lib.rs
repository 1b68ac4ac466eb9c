//! Changes of files on branches of a GitRepository, without a checkout on the disk.
//!
//! | module | what it is |
//! |---|---|
//! | [`branch`] | a fetch of what is edited, and a push that moves a reference from a commit that is known |
//! | [`commit`] | a commit over another one's files |
//! | [`owner`] | whose a commit is |
//! | [`request`] | a pull request: labels, reviews, the merge without a person |
//! | [`signing`] | the key that signs it |
//! | [`turns`] | one writer for each branch |
//! | [`races`] | what is done when someone else was faster |
//! | [`files`] | which files are YAML, and paths that stay in the repository |
//!
//! A push moves a branch only from the commit that was edited: nothing of others is ever replaced. Who was slower fetches
//! and edits again.

pub mod branch;
pub mod commit;
pub mod files;
pub mod owner;
pub mod races;
pub mod request;
pub mod signing;
pub mod turns;
