//! A live picture of what is delivered in clusters (ADR 17).
//!
//! | module | what it is |
//! |---|---|
//! | [`row`] | what lists show of an object: some 300 bytes |
//! | [`picture`] | all rows, the objects behind them, and the numbers of the last changes |
//! | [`watch`] | the watches of a cluster that fill it |
//! | [`running`] | which images run where |
//! | [`query`] | filters, pages and counts of rows |
//! | [`charts`] | which charts are released where |
//! | [`csv`] | rows as CSV |
//!
//! Nothing here knows who asks: whoever answers a caller cuts rows to what they may see, before a query counts them.

pub mod charts;
pub mod csv;
pub mod picture;
pub mod query;
pub mod row;
pub mod running;
pub mod watch;

mod version;
