//! Times, durations and reference layouts as Go's time package has them, with its errors.
//!
//! Layouts and texts are bytes, as Go's strings are. Years may be any that 64 bits of seconds reach. The zones of the
//! world are part of the program; only [`Location::local`] looks at the environment, and only [`Time::now`] at the clock.
//! The crate knows no templates.
//!
//! ```
//! use go_time::{Duration, Location, Time};
//!
//! let zone = Location::load("Europe/Berlin").expect("it is in the database");
//! let time = Time::parse_in(b"2006-01-02", b"2024-07-09", &zone)?;
//! assert_eq!(time.format(b"Mon, 02 Jan 2006 15:04 MST"), b"Tue, 09 Jul 2024 00:00 CEST");
//! assert_eq!(Duration::parse(b"90m").unwrap().to_string(), "1h30m0s");
//! # Ok::<(), go_time::ParseError>(())
//! ```

mod civil;
mod duration;
mod format;
mod layout;
mod location;
mod parse;
mod quote;
mod time;

pub use civil::{month_name, weekday_name};
pub use duration::{Duration, ParseDurationError};
pub use location::Location;
pub use parse::ParseError;
pub use time::Time;
