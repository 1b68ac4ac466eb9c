//! Options of Helm's actions. Plain data.

use std::sync::Arc;
use std::time::Duration;

use helm_action::{Content, CrdPolicy, Install, Propagation, ServerSide, Uninstall, Upgrade, Waiting};
use helm_render::{PostRenderStrategy, Renderer};
use serde_json::{Map, Value};

use crate::platform::RELEASE;

/// As many revisions as helm keeps.
const MAX_HISTORY: usize = 10;

/// The first revision, or one under a name that is free again.
pub(super) fn install(namespace: &str, content: Content, waiting: Waiting, take_ownership: bool) -> Install {
    Install {
        name: RELEASE.to_owned(),
        namespace: namespace.to_owned(),
        content,
        waiting,
        disable_hooks: false,
        server_side: true,
        take_ownership,
        replace: true,
        create_namespace: false,
    }
}

/// The next revision.
pub(super) fn upgrade(namespace: &str, content: Content, waiting: Waiting, take_ownership: bool) -> Upgrade {
    Upgrade {
        name: RELEASE.to_owned(),
        namespace: namespace.to_owned(),
        content,
        waiting,
        disable_hooks: false,
        server_side: ServerSide::Auto,
        take_ownership,
        force_replace: false,
        cleanup_on_fail: false,
        reuse_values: false,
        max_history: MAX_HISTORY,
    }
}

pub(super) fn content(chart: &Arc<Renderer>, values: Map<String, Value>) -> Content {
    Content {
        chart: Arc::clone(chart),
        values,
        post_render: None,
        post_render_strategy: PostRenderStrategy::default(),
        crds: CrdPolicy::Create,
        origin_labels: Default::default(),
        skip_schema_validation: false,
        disable_openapi_validation: false,
        enable_dns: false,
        admission: None,
        looks_up: true,
    }
}

/// Takes it away with its records, and waits until Pods are gone.
pub(super) fn uninstall(namespace: &str, waiting: Waiting) -> Uninstall {
    Uninstall {
        name: RELEASE.to_owned(),
        namespace: namespace.to_owned(),
        waiting,
        disable_hooks: false,
        keep_history: false,
        propagation: Propagation::Foreground,
    }
}

/// Wait options for Helm's actions.
pub(super) fn waiting(timeout: Duration) -> Waiting {
    Waiting {
        timeout,
        ..Waiting::default()
    }
}
