//! Images of what is delivered, held against the policies that apply to them.
//!
//! | module | what it is |
//! |---|---|
//! | `named` | the images that objects name |
//! | `inspect` | one image at its registry |
//! | `verifier` | one image and one policy |
//! | `judge` | all images of a delivery |

mod inspect;
mod judge;
mod named;
mod verifier;

pub use judge::{Error, Judge, Judged};
pub use named::{named, rename};
pub use verifier::Verifier;
