//! Who made a piece of content: OpenPGP, SSH, cosign and notation signatures.
//!
//! Pure: bytes and the time go in, a verdict comes out. No network, no Kubernetes, no clock. Everything that is read here
//! may come from an attacker, so sizes are bounded and nothing panics; what is not understood is refused.

pub mod git;
pub mod openpgp;
pub mod ssh;

#[cfg(test)]
mod probe;
