//! Versions and ranges as Masterminds/semver 3.5.0 reads, compares and prints them, with its errors.
//!
//! It is the library behind Flux, Helm and sprig, and its rules differ from npm's and Cargo's: `1.2` is a version,
//! `!=1.2.x` is a range, a comma is an "and", and a pre-release only matches when its "and" group names one. Text goes
//! in; versions, ranges and answers come out. The crate knows no charts, no tags and no template values.
//!
//! ```
//! use go_semver::{Constraints, Version};
//!
//! let range = Constraints::parse(">=1.27.0-0 <2")?;
//! assert!(range.check(&Version::parse("v1.33")?));
//! assert_eq!(Version::parse("latest").unwrap_err().to_string(), "invalid semantic version");
//! # Ok::<(), go_semver::Error>(())
//! ```

mod comparison;
mod constraints;
mod error;
mod scanner;
pub mod tags;
mod version;

pub use constraints::Constraints;
pub use error::Error;
pub use version::{Version, compare_prereleases};
