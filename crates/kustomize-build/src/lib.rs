//! `kustomize build` as a library.
//!
//! A tree of files (any [`FileSystem`]) and a folder in it go in; the objects that kustomize 5.8 would print come out,
//! with the set of paths that the answer depends on. Nothing here starts a process, opens a connection or knows a
//! cluster: [`build_fetching`] asks its caller for remote resources and for what Helm charts render. What kustomize can and
//! this crate cannot (exec plugins) is rejected by name.
//!
//! The order of a build, module by module: [`load`] finds and reads files, `kustomization` gives them types,
//! `accumulate` walks bases and components, `generate` makes ConfigMaps and Secrets, `transform` and `patch` change
//! what was read, `name_reference` repairs references to names that changed, `order` and the writer end it.
//!
//! ```
//! use kustomize_build::{MemoryFs, Options, build};
//!
//! let mut files = MemoryFs::default();
//! files.insert("app/kustomization.yaml", "namePrefix: my-\nresources: [cm.yaml]\n");
//! files.insert("app/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
//! let built = build(&files, "app", &Options::default()).unwrap();
//! assert_eq!(built.objects[0].name(), "my-a");
//! ```

mod accumulate;
mod built;
mod charts;
mod configuration;
mod error;
mod fetch;
mod field_spec;
mod fs;
mod generate;
mod id;
mod kustomization;
mod load;
mod lookup;
mod name_reference;
mod nodes;
mod patch;
mod path;
mod plugin;
mod replacement;
mod resource;
mod resource_map;
mod schema;
mod selector;
mod transform;
mod variable;

pub use accumulate::{build, build_fetching};
pub use built::Built;
pub use charts::{ChartReference, ChartRelease, ChartSettings, Charts};
pub use error::{Error, ErrorKind};
pub use fetch::{Fetch, FetchError, NoFetch, Repository, without_credentials};
pub use fs::{DirEntry, DirectoryFs, FileKind, FileSystem, FsError, MemoryFs, OverlayFs};
pub use manifest::yaml::Budget;
pub use schema::BuiltInSchema;

/// Options of a build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where files may be read from.
    pub load_restrictions: LoadRestrictions,
    /// In which order objects come out when the kustomization does not say (`sortOptions`).
    pub default_order: DefaultOrder,
    /// Name of the tree's root in messages: `/srv/repo` makes `/srv/repo/app/web.yaml` of `app/web.yaml`.
    /// When it is empty, paths are shown relative to the root.
    pub shown_root: String,
    /// Adds the label that `buildMetadata: [managedByLabel]` adds, also when the kustomization does not ask for it.
    pub managed_by_label: bool,
    /// Memory limit of the build, for everything that it reads, copies and changes. kustomize has none; builds for other users
    /// need one, because a patch of one line can double an object.
    pub budget: Option<Budget>,
    /// Settings of all Helm charts.
    pub charts: ChartSettings,
    /// Schema of the built-in types.
    pub built_in_schema: BuiltInSchema,
    /// The version that `buildMetadata: [managedByLabel]` names, as `kustomize-<version>`.
    pub version: Version,
}

/// Which files a kustomization may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadRestrictions {
    /// Files in or below the kustomization's folder; bases may lie anywhere in the tree.
    #[default]
    RootOnly,
    /// Any file of the tree.
    None,
}

/// The order of a build's result when `sortOptions` is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultOrder {
    /// The command's default: by kind, then by name.
    #[default]
    Legacy,
    /// The order of the files.
    Fifo,
}

/// A version to name in the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

impl Default for Version {
    fn default() -> Self {
        Self("v5.8.3".to_owned())
    }
}
