//! A row for each delivery, kept for years (ADR 18).
//!
//! | module | what it is |
//! |---|---|
//! | [`read`] | what an object says of its deliveries, and a source of its commits. Pure |
//! | [`fold`] | which rows that adds or moves. Pure |
//! | [`delivery`] | a row |
//! | [`action`] | a row of what someone did by hand |
//! | [`cdevent`] | deliveries as CDEvents. Pure |
//! | `store` | the rows, in SQLite or PostgreSQL |
//! | [`window`] | from when to when, as people write it. Pure |
//! | [`dora`] | deployment frequency, lead time, change failure rate, time to recover. Pure |
//!
//! Nothing here knows who asks: whoever answers a caller names the scopes that they may see.

pub mod action;
pub mod cdevent;
pub mod delivery;
pub mod dora;
pub mod fold;
pub mod read;
#[cfg(feature = "store")]
pub mod store;
pub mod window;
