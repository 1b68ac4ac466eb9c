//! The Kustomization kind: artifact, build, apply, health.

fn main() {}
