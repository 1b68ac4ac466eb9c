//! Options of an action. Plain data.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helm_render::{PostRender, PostRenderStrategy, Renderer};
use kube_health::Checks;
use serde_json::{Map, Value};

use crate::admission::Admission;

/// Makes a release.
#[derive(Clone, Debug)]
pub struct Install {
    /// Its name.
    pub name: String,
    /// Where its objects are, unless they say otherwise.
    pub namespace: String,
    /// Chart and values to install.
    pub content: Content,
    /// Wait options.
    pub waiting: Waiting,
    /// Leaves hooks aside.
    pub disable_hooks: bool,
    /// Applies on the server, and not by patches of the client.
    pub server_side: bool,
    /// Takes objects that are there and not the release's.
    pub take_ownership: bool,
    /// Takes the name of a release that failed or was uninstalled.
    pub replace: bool,
    /// Makes the namespace.
    pub create_namespace: bool,
}

/// Makes the next revision of a release.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Its name.
    pub name: String,
    /// Where its objects are. A release keeps the namespace that it was installed in.
    pub namespace: String,
    /// Chart and values to install.
    pub content: Content,
    /// Wait options.
    pub waiting: Waiting,
    /// Leaves hooks aside.
    pub disable_hooks: bool,
    /// Where patches are made.
    pub server_side: ServerSide,
    /// Takes objects that are there and not the release's.
    pub take_ownership: bool,
    /// Replaces objects and does not patch them; only if they are not applied on the server.
    pub force_replace: bool,
    /// Deletes what it made when it fails.
    pub cleanup_on_fail: bool,
    /// Lays the values over those of the revision before.
    pub reuse_values: bool,
    /// How many revisions are kept; 0 for all.
    pub max_history: usize,
}

/// Makes the next revision of a release out of an older one.
#[derive(Clone, Debug)]
pub struct Rollback {
    /// Its name.
    pub name: String,
    /// Where its objects are.
    pub namespace: String,
    /// Which revision; 0 for the one before.
    pub version: i64,
    /// Wait options.
    pub waiting: Waiting,
    /// Leaves hooks aside.
    pub disable_hooks: bool,
    /// Where patches are made.
    pub server_side: ServerSide,
    /// Replaces objects and does not patch them; only if they are not applied on the server.
    pub force_replace: bool,
    /// Deletes what it made when it fails.
    pub cleanup_on_fail: bool,
    /// How many revisions are kept; 0 for all.
    pub max_history: usize,
}

/// Takes a release away.
#[derive(Clone, Debug)]
pub struct Uninstall {
    /// Its name.
    pub name: String,
    /// Where its objects are.
    pub namespace: String,
    /// Wait options.
    pub waiting: Waiting,
    /// Leaves hooks aside.
    pub disable_hooks: bool,
    /// Keeps the records.
    pub keep_history: bool,
    /// Propagation policy for objects that the deleted ones own.
    pub propagation: Propagation,
}

/// Runs the tests of a release.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Where its objects are.
    pub namespace: String,
    /// How long each may take.
    pub timeout: Duration,
    /// Health checks of the user.
    pub checks: Arc<Checks>,
    /// Names of tests that run or, if `exclude` is true, do not.
    pub filters: Vec<(String, bool)>,
}

/// The chart, and what is common to install and upgrade.
#[derive(Clone)]
pub struct Content {
    /// The chart, parsed.
    pub chart: Arc<Renderer>,
    /// The values that are laid over the chart's own.
    pub values: Map<String, Value>,
    /// Changes what was rendered.
    pub post_render: Option<Arc<dyn PostRender>>,
    /// Input of the post-renderer.
    pub post_render_strategy: PostRenderStrategy,
    /// Policy for CRDs in crds/.
    pub crds: CrdPolicy,
    /// Set on CRDs; on all other objects it is the post-renderer that sets them.
    pub origin_labels: BTreeMap<String, String>,
    /// Leaves values.schema.json aside.
    pub skip_schema_validation: bool,
    /// Lets the API server pass over fields that it does not know.
    pub disable_openapi_validation: bool,
    /// Lets templates ask the DNS.
    pub enable_dns: bool,
    /// Judges what was rendered, before it is recorded.
    pub admission: Option<Arc<dyn Admission>>,
    /// False to have `lookup` find nothing in the cluster.
    pub looks_up: bool,
}

impl fmt::Debug for Content {
    /// Values may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = &self.chart.chart().metadata;
        let mut shown = formatter.debug_struct("Content");
        shown.field("chart", &metadata.name);
        shown.field("version", &metadata.version);
        shown.field("crds", &self.crds);
        shown.finish_non_exhaustive()
    }
}

/// Policy for the CRDs in a chart's crds/.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdPolicy {
    /// Nothing.
    Skip,
    /// They are created where they are not there.
    #[default]
    Create,
    /// They are made as the chart has them.
    CreateReplace,
}

/// Where patches are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerSide {
    /// On the server.
    On,
    /// By the client, out of three states.
    Off,
    /// As the release was applied before.
    #[default]
    Auto,
}

/// Wait options: for which objects, and how long.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// By which rules.
    pub strategy: WaitStrategy,
    /// True if Jobs that are no hooks have to end.
    pub for_jobs: bool,
    /// Health checks of the user.
    pub checks: Arc<Checks>,
    /// How long one wait may take.
    pub timeout: Duration,
}

/// By which rules objects are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Only hooks are waited for.
    HookOnly,
    /// Helm 4's: those of kstatus.
    #[default]
    StatusWatcher,
    /// Helm 3's.
    Legacy,
}

/// Propagation policy for objects that deleted ones own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// It is deleted afterwards.
    #[default]
    Background,
    /// It is deleted before.
    Foreground,
    /// It stays.
    Orphan,
}
