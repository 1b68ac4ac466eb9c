//! Helm's release records, as Helm 3 and Helm 4 keep them in Secrets.
//!
//! In: the data and labels of Secrets, or what an action did. Out: a [`Release`] and what Helm and Flux make of it: the
//! Secret that it is stored in ([`record`]), which of a history counts and which may go ([`history`]), and the digests by
//! which Flux knows a release and its values again ([`observation`], [`values`]). Pure: nothing here knows a client.
//!
//! Records of real Helm must be read by us and ours by it, for years: a chart is carried as it was written, whatever
//! fields it has, and only what an action changes is ours to write.

mod go_json;
pub mod history;
pub mod observation;
pub mod record;
pub mod release;
mod time;
pub mod values;

pub use record::{Labels, Record};
pub use release::{ApplyMethod, Chart, Hook, HookPhase, HookRun, Info, Release, Status};
pub use time::Time;
