//! Chart.yaml and Chart.lock as data.
//!
//! What templates see of it differs: Helm 4 gives them a map whose keys are the names of Go's fields (`Name`, `APIVersion`,
//! `AppVersion`, `KubeVersion`, `Type`, …) with all fields present, lists as `[]interface {}` (empty, never nil),
//! maintainers and dependencies as such maps (`ImportValues`, `Enabled`, …), and `Annotations` as `map[string]string` that is
//! nil when Chart.yaml has none. Helm 3 gives them the struct itself, with the JSON names of Chart.yaml in the order of
//! Go's fields and without the empty ones (a dependency's name and repository are always shown). Both add `IsRoot`.
//! The fields here stand in the order of Go's struct.

use std::collections::BTreeMap;

use serde_json::Value;

/// Chart.yaml. Fields that are not set are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// `name`; the alias once a dependency has one.
    pub name: String,
    /// `home`.
    pub home: String,
    /// `sources`.
    pub sources: Vec<String>,
    /// `version`.
    pub version: String,
    /// `description`.
    pub description: String,
    /// `keywords`.
    pub keywords: Vec<String>,
    /// `maintainers`.
    pub maintainers: Vec<Maintainer>,
    /// `icon`.
    pub icon: String,
    /// `apiVersion`; `v1` when it is missing.
    pub api_version: String,
    /// `condition`, which nothing reads.
    pub condition: String,
    /// `tags`, which nothing reads.
    pub tags: String,
    /// `appVersion`.
    pub app_version: String,
    /// `deprecated`.
    pub deprecated: bool,
    /// `annotations`; None when Go's map is nil.
    pub annotations: Option<BTreeMap<String, String>>,
    /// `kubeVersion`, a range.
    pub kube_version: String,
    /// `dependencies`; None when Go's slice is nil, which is not the same as none (see [`crate::dependencies`]).
    pub dependencies: Option<Vec<Dependency>>,
    /// `type`.
    pub kind: String,
}

/// A maintainer of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// `name`.
    pub name: String,
    /// `email`.
    pub email: String,
    /// `url`.
    pub url: String,
}

/// A chart that another chart depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    /// `name`; the alias, if there is one, once the dependencies are processed.
    pub name: String,
    /// `version`, a range.
    pub version: String,
    /// `repository`.
    pub repository: String,
    /// `condition`: paths in the values, comma-separated; the first that holds a boolean decides.
    pub condition: String,
    /// `tags`.
    pub tags: Vec<String>,
    /// `enabled`; overwritten when the dependencies are processed.
    pub enabled: bool,
    /// `import-values`: strings, or maps of `child` and `parent`; always such maps once the dependencies are processed.
    pub import_values: Vec<Value>,
    /// `alias`.
    pub alias: String,
}

/// Chart.lock or requirements.lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// `generated`, as written.
    pub generated: String,
    /// `digest`.
    pub digest: String,
    /// `dependencies`.
    pub dependencies: Vec<Dependency>,
}
