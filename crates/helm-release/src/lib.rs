//! Helm's release records, as Helm 3 and Helm 4 keep them in Secrets.
//!
//! In: the data and labels of Secrets, or what was rendered ([`made`]). Out: a [`Release`] and what Helm and Flux make of it:
//! the Secret that it is stored in ([`record`]), which of a history counts and which may go ([`history`]), what Flux keeps
//! of a release and knows it again by ([`snapshot`], [`observation`], [`values`]). Pure: nothing here knows a client.
//!
//! Records of real Helm must be read by us and ours by it, for years: a chart that was read is carried as it was written,
//! whatever fields it has, and only what an action changes is ours to write.

mod chart;
pub mod description;
mod digest;
pub mod history;
pub mod made;
pub mod name;
pub mod observation;
pub mod record;
pub mod release;
pub mod snapshot;
mod time;
pub mod values;

pub use chart::Chart;
pub use record::{Labels, Record};
pub use release::{ApplyMethod, Hook, HookPhase, HookRun, Info, Release, Status};
pub use snapshot::Snapshot;
pub use time::Time;
