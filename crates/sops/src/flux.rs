//! Flux's rules: which keys a Kustomization has, and what of its build is decrypted.
//!
//! Before a build [`sources`] finds the files that the kustomization's generators and patches name, and decrypts those
//! that look encrypted; after it [`object`] decrypts what came out. [`secret`] reads the keys from the Secret of
//! `spec.decryption.secretRef`, or of the flag `--sops-age-secret`. The caller reads Secrets, and lays the decrypted
//! files over its tree.

pub mod object;
pub mod secret;
pub mod sources;
