//! Verifies signatures: OpenPGP, SSH, cosign and notation; makes those of OpenPGP, and attestations as cosign has them. Those of SSH are made where ssh keys are
//! read, in `git-ssh`.
//!
//! Pure: content, signature, what is trusted and the time go in, a verdict comes out. No network, no Kubernetes, no file, and
//! no clock but for the time of certificates made by Sigstore. Everything that is read here may come from an attacker, so
//! sizes are bounded and nothing panics; what is not understood is refused.

pub mod cosign;
pub mod git;
pub mod notation;
pub mod openpgp;
pub mod ssh;

#[cfg(test)]
mod probe;
