//! Sources, held against the policies that apply to them, before anything of them is stored.
//!
//! | module | what it is |
//! |---|---|
//! | `origin` | where a source is, in one spelling |
//! | `admission` | the policies that apply to one source, and what it meets of them |
//! | `judge` | the policies of the cluster |

mod admission;
mod judge;
mod origin;

pub use admission::{Admission, Met, Refusal};
pub use judge::Judge;
pub use origin::Origin;

pub use crate::trust::Trust;
