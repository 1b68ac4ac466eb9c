//! The index of a Helm repository, read as a stream.
//!
//! [`normalize`] reads an `index.yaml` of any size, YAML or JSON, checks it as Helm's loader does, and writes it as Flux
//! stores it: JSON, charts by name, versions newest first, without the entries that Helm passes over. One entry is in
//! memory at a time. [`find`] takes the versions of one chart out of what was written, [`pick`] chooses among them as
//! Flux does, and [`resolve_url`] says where a version is downloaded. The crate knows no HTTP and no objects.
//!
//! How the YAML is cut: `split` finds, line by line, where one entry ends and the next begins, which is plain to see in
//! every index that a tool wrote; each piece is read by the real YAML reader. What is not that plain (flow style, anchors
//! used across entries) is read whole, up to [`MAX_WHOLE`].
//!
//! ```
//! use std::io::Cursor;
//!
//! let index = "apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.2.0\n    urls: [app-1.2.0.tgz]\n";
//! let mut json = Vec::new();
//! let summary = helm_index::normalize(&mut Cursor::new(index), Cursor::new(Vec::new()), &mut json)?;
//! assert_eq!((summary.charts, summary.versions), (1, 1));
//!
//! let versions = helm_index::find(json.as_slice(), "app")?.expect("it is in the index");
//! let chosen = helm_index::pick(&versions, "app", ">=1.0.0").unwrap();
//! assert_eq!(
//!     helm_index::resolve_url("https://charts.example.com/stable", &chosen.urls[0]).unwrap(),
//!     "https://charts.example.com/stable/app-1.2.0.tgz",
//! );
//! # Ok::<(), helm_index::Error>(())
//! ```

mod coerce;
mod decode;
mod error;
mod fields;
mod find;
mod go_json;
mod index;
mod json_input;
mod limits;
mod normalize;
mod outcome;
mod pick;
mod resolve;
mod split;
mod validate;
mod yaml_input;

pub use crate::outcome::{Dropped, Summary};
pub use error::Error;
pub use find::{ChartVersion, find};
pub use normalize::normalize;
pub use pick::{PickError, pick};
pub use resolve::{ResolveError, resolve_url};

pub use crate::limits::{MAX_ENTRY, MAX_WHOLE};
