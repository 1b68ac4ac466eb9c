//! Whether what is delivered meets the VerificationPolicies of the cluster.
//!
//! Images: objects go in as they are about to be applied, with the namespace of the object that delivers them. Out come warnings, and
//! the digests of images that a policy wants applied by digest; or the images that are refused, each with the policy and the reason.
//! Sources: where a source is goes in before it is fetched, and what was fetched before it is stored; out come warnings or a refusal.
//! What cannot be understood or asked is refused: a mistake in a policy must not let through what it was made to stop
//! ([ADR 33](../../../docs/adr/0033-verification-policies.md)).
//!
//! | module | what it is |
//! |---|---|
//! | [`scope`] | which policies apply to what |
//! | `trust` | what the Secrets of a policy hold |
//! | [`images`] | the images of a delivery |
//! | [`sources`] | sources, before they become artifacts |
//! | `tally` | how many met the policies |

pub mod images;
pub mod scope;
pub mod sources;
mod tally;
mod trust;
