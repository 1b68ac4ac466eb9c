//! What controllers leave in a cluster, recorded step by step, and compared with what others leave.
//!
//! Recorded cases of kustomize and Helm ([`case`]) become Kustomizations and HelmReleases that go through a life of several steps
//! ([`life`]): created, changed, changed by hand, suspended, resumed, deleted. After each step, everything that the API server holds
//! of a case is taken down ([`snapshot`]), without what differs from run to run ([`normal`]). Two recordings are compared value by
//! value ([`compare`]); each difference is one that docs/compatibility explains ([`known`]), or an open one ([`report`]).
//!
//! What the `flux` command says of controllers is compared in the same way ([`words`]).

pub mod case;
pub mod changes;
pub mod compare;
pub mod known;
pub mod life;
mod normal;
pub mod report;
mod servers;
mod settle;
mod snapshot;
pub mod words;

pub use case::Case;
pub use life::{Recording, play};
pub use servers::Servers;
