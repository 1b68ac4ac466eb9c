//! Tests of what is sent and how: beside what Flux sends, to local servers that demand what the services
//! demand, and to servers that are broken or hostile.

mod answers;
mod connections;
pub(crate) mod fake;
mod flux;
mod limits;
mod secrets;
mod states;
mod vendors;
