//! A chart as data: what a folder or an archive holds, loaded once and rendered many times.
//!
//! Files in, a [`Chart`] out; `helm-render` then makes of it, for given values, a
//! chart of the same type whose disabled dependencies are gone and whose aliases are charts of their own. Everything
//! large stands behind an [`Arc`], so that this second chart shares all contents with the first. Nothing here renders.

mod archive;
mod chart;
mod check;
mod decode;
mod error;
mod folder;
mod ignore;
mod load;
mod metadata;
pub mod path_match;
mod paths;
pub mod schema;
pub mod set_values;
mod sniff;
mod text;
mod validate;
pub mod values;
mod warning;

pub use archive::{MAX_CHART_SIZE, MAX_FILE_SIZE};
pub use check::check;
pub use decode::json_kind;
pub use error::{Error, ErrorKind};
pub use ignore::Rules as IgnoreRules;
pub use load::{
    load, load_archive, load_archive_file, load_files, load_folder, locate, read_archive_metadata,
    read_metadata, unpack,
};
pub use metadata::{Dependency, Lock, Maintainer, Metadata};
pub use warning::Warning;

pub use crate::chart::{Chart, Content, CrdFile, File, Helm};
