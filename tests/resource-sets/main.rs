//! ResourceSets and their providers on the real control plane: pull requests of a real Gitea become environments, and go with them.

#![expect(clippy::print_stderr, reason = "a test's output is shown when it fails")]

mod attacks;
mod environments;
mod freezes;
mod images;
mod policies;
mod sets;
mod team;
mod world;
