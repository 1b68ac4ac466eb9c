//! Images from a real registry to commits in real Git repositories: image-controller on the real control plane.

mod access;
mod commits;
mod kill;
mod races;
mod registries;
mod world;
