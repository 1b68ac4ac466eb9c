//! How a change goes into Git: on which branch, by which pull request. Pure: no clock, no I/O.
//!
//! In: a ChangePolicy, the change that is wanted, and what a branch and its pull requests are like. Out: what to do, and
//! why nothing is done. Git and the forge are the only memory: a commit and a pull request carry [`mark`]s that say which
//! change they are for, so a controller that forgets everything decides the same again.

pub mod mark;
pub mod plan;
