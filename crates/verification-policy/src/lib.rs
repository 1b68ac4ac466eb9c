//! Whether what is delivered meets the VerificationPolicies of the cluster.
//!
//! In: objects as they are about to be applied, and the namespace of the object that delivers them. Out: warnings, and the digests
//! of images that a policy wants applied by digest; or the images that are refused, each with the policy and the reason. What cannot
//! be understood or asked is refused: a mistake in a policy must not let through what it was made to stop
//! ([ADR 33](../../../docs/adr/0033-verification-policies.md)).
//!
//! | module | what it is |
//! |---|---|
//! | [`scope`] | which policies apply to what |
//! | `trust` | what the Secrets of a policy hold |
//! | [`images`] | the images of a delivery |
//! | `tally` | how many met the policies |

pub mod images;
pub mod scope;
mod tally;
mod trust;
