//! Whether the images of what is delivered meet the VerificationPolicies of the cluster.
//!
//! In: objects as they are about to be applied, and the namespace of the object that delivers them. Out: warnings, and the digests
//! of images that a policy wants applied by digest; or the images that are refused, each with the policy and the reason. What cannot
//! be understood or asked is refused: a mistake in a policy must not let through what it was made to stop
//! ([ADR 33](../../../docs/adr/0033-verification-policies.md)).
//!
//! | module | what it is |
//! |---|---|
//! | [`images`] | the images that objects name |
//! | [`scope`] | which policies apply to which of them |
//! | `trust` | what the Secrets of a policy hold |
//! | `inspect` | one image at its registry |
//! | `verifier` | one image and one policy |
//! | `judge`, `tally` | all images of a delivery; how many met the policies |

pub mod images;
mod inspect;
mod judge;
pub mod scope;
mod tally;
mod trust;
mod verifier;

pub use judge::{Error, Judge, Judged};
pub use verifier::Verifier;
