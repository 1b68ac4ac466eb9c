//! Translates the spec into options of the engine that performs Helm's actions. Pure.

use std::sync::Arc;
use std::time::Duration;

use api::helm::{
    CrdsPolicy, DeletionPropagation, HelmRelease, PostRenderStrategy, ServerSideApplyMode, WaitStrategyName,
};
use flux_spec::release::{PostRenderers, origin_labels};
use helm_action::order::{
    Content, CrdPolicy, Install, Propagation, Rollback, ServerSide, Test, Uninstall, Upgrade, WaitStrategy,
    Waiting,
};
use kube_health::Checks;
use serde_json::{Map, Value};

use crate::charts::Loaded;
use crate::flags::Policy;
use crate::release::{Action, timeout};

/// One release: which it is, and what the spec says of it.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    /// The object.
    pub object: &'a HelmRelease,
    /// Name of the release.
    pub name: &'a str,
    /// Where its objects are.
    pub namespace: &'a str,
    /// Health checks of the spec.
    pub checks: &'a Arc<Checks>,
    /// Policy set by feature gates.
    pub policy: &'a Policy,
}

impl Orders<'_> {
    /// The first revision; over what an uninstall has left, if it has left records.
    pub fn install(&self, content: Content, over_uninstalled: bool) -> Install {
        let spec = self.object.spec.install.clone().unwrap_or_default();
        Install {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            content: Content {
                crds: crds(spec.crds),
                skip_schema_validation: spec.disable_schema_validation,
                disable_openapi_validation: spec.disable_open_api_validation,
                ..content
            },
            waiting: self.waiting(&Action::Install, spec.disable_wait, !spec.disable_wait_for_jobs),
            disable_hooks: spec.disable_hooks,
            server_side: spec.server_side_apply.unwrap_or(!self.policy.helm_3_defaults),
            take_ownership: !spec.disable_take_ownership,
            replace: spec.replace || over_uninstalled,
            create_namespace: spec.create_namespace && self.object.spec.target_namespace.is_some(),
        }
    }

    /// A later revision.
    pub fn upgrade(&self, content: Content) -> Upgrade {
        let spec = self.object.spec.upgrade.clone().unwrap_or_default();
        Upgrade {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            content: Content {
                crds: crds(spec.crds),
                skip_schema_validation: spec.disable_schema_validation,
                disable_openapi_validation: spec.disable_open_api_validation,
                ..content
            },
            waiting: self.waiting(&Action::Upgrade, spec.disable_wait, !spec.disable_wait_for_jobs),
            disable_hooks: spec.disable_hooks,
            server_side: server_side(spec.server_side_apply),
            take_ownership: !spec.disable_take_ownership,
            force_replace: spec.force,
            cleanup_on_fail: spec.cleanup_on_fail,
            reuse_values: spec.preserve_values,
            max_history: self.max_history(),
        }
    }

    /// An earlier revision again.
    pub fn roll_back(&self, action: &Action, version: i64) -> Rollback {
        let spec = self.object.spec.rollback.clone().unwrap_or_default();
        Rollback {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            version,
            waiting: self.waiting(action, spec.disable_wait, !spec.disable_wait_for_jobs),
            disable_hooks: spec.disable_hooks,
            server_side: server_side(spec.server_side_apply),
            force_replace: spec.force,
            cleanup_on_fail: spec.cleanup_on_fail,
            max_history: self.max_history(),
        }
    }

    /// The end of the release.
    pub fn uninstall(&self, action: &Action) -> Uninstall {
        let spec = self.object.spec.uninstall.clone().unwrap_or_default();
        Uninstall {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            waiting: self.waiting(action, spec.disable_wait, false),
            disable_hooks: spec.disable_hooks,
            keep_history: spec.keep_history,
            propagation: match spec.deletion_propagation.unwrap_or_default() {
                DeletionPropagation::Background => Propagation::Background,
                DeletionPropagation::Foreground => Propagation::Foreground,
                DeletionPropagation::Orphan => Propagation::Orphan,
            },
        }
    }

    /// The chart's tests.
    pub fn test(&self) -> Test {
        let spec = self.object.spec.test.clone().unwrap_or_default();
        let filters = spec.filters.into_iter();
        Test {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            timeout: timeout(self.object, &Action::Test).into(),
            checks: Arc::clone(self.checks),
            filters: filters.map(|filter| (filter.name, filter.exclude)).collect(),
        }
    }

    /// Common options of install and upgrade.
    pub fn content(&self, chart: &Loaded, values: &Map<String, Value>) -> Content {
        Content {
            chart: Arc::clone(&chart.renderer),
            values: values.clone(),
            post_render: Some(Arc::new(PostRenderers::from_object(self.object))),
            post_render_strategy: match self.object.spec.post_render_strategy.unwrap_or_default() {
                PostRenderStrategy::Nohooks => helm_render::PostRenderStrategy::NoHooks,
                PostRenderStrategy::Combined => helm_render::PostRenderStrategy::Combined,
                PostRenderStrategy::Separate => helm_render::PostRenderStrategy::Separate,
            },
            crds: CrdPolicy::default(),
            origin_labels: origin_labels(self.object),
            skip_schema_validation: false,
            disable_openapi_validation: false,
            enable_dns: self.policy.allow_dns,
            admission: None,
            looks_up: true,
        }
    }

    fn waiting(&self, action: &Action, disabled: bool, for_jobs: bool) -> Waiting {
        let named = self.object.spec.wait_strategy.as_ref();
        let strategy = match named.map(|strategy| strategy.name) {
            _ if disabled => WaitStrategy::HookOnly,
            Some(WaitStrategyName::Poller) => WaitStrategy::StatusWatcher,
            Some(WaitStrategyName::Legacy) => WaitStrategy::Legacy,
            None if self.policy.helm_3_defaults => WaitStrategy::Legacy,
            None => WaitStrategy::StatusWatcher,
        };
        Waiting {
            strategy,
            for_jobs,
            checks: Arc::clone(self.checks),
            timeout: Duration::from(timeout(self.object, action)),
        }
    }

    fn max_history(&self) -> usize {
        usize::try_from(self.object.max_history()).unwrap_or(0)
    }
}

/// As in Flux's code; its documentation has Skip for upgrades.
fn crds(policy: Option<CrdsPolicy>) -> CrdPolicy {
    match policy {
        Some(CrdsPolicy::Skip) => CrdPolicy::Skip,
        None | Some(CrdsPolicy::Create) => CrdPolicy::Create,
        Some(CrdsPolicy::CreateReplace) => CrdPolicy::CreateReplace,
    }
}

fn server_side(mode: Option<ServerSideApplyMode>) -> ServerSide {
    match mode.unwrap_or_default() {
        ServerSideApplyMode::Enabled => ServerSide::On,
        ServerSideApplyMode::Disabled => ServerSide::Off,
        ServerSideApplyMode::Auto => ServerSide::Auto,
    }
}

#[cfg(test)]
mod tests {
    use helm_chart::Helm;
    use helm_render::Renderer;
    use serde_json::json;

    use super::*;

    fn loaded() -> Loaded {
        let file = helm_chart::File {
            name: "Chart.yaml".to_owned(),
            data: "{apiVersion: v2, name: web, version: 1.0.0}".into(),
        };
        let chart = helm_chart::load_files(vec![file], Helm::V4, &mut Vec::new()).unwrap();
        Loaded::new(Renderer::new(chart, Helm::V4), None)
    }

    fn with<T>(spec: Value, policy: Policy, look: impl FnOnce(Orders<'_>, Content) -> T) -> T {
        let mut full = json!({"interval": "1m", "timeout": "2m"});
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object: HelmRelease = serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "apps"}, "spec": full,
        }))
        .unwrap();
        let orders = Orders {
            object: &object,
            name: "web",
            namespace: "apps",
            checks: &Arc::default(),
            policy: &policy,
        };
        look(orders, orders.content(&loaded(), &Map::new()))
    }

    #[test]
    fn the_defaults_are_those_of_flux() {
        with(json!({}), Policy::default(), |orders, content| {
            let install = orders.install(content.clone(), false);
            assert!(install.server_side && install.take_ownership && install.waiting.for_jobs);
            assert!(!install.create_namespace && !install.replace && !install.disable_hooks);
            assert_eq!(install.content.crds, CrdPolicy::Create);
            assert_eq!(install.waiting.strategy, WaitStrategy::StatusWatcher);
            assert_eq!(install.waiting.timeout, Duration::from_secs(120));
            let upgrade = orders.upgrade(content);
            assert_eq!((upgrade.server_side, upgrade.max_history), (ServerSide::Auto, 5));
            assert!(!upgrade.reuse_values && !upgrade.force_replace && upgrade.take_ownership);
            let uninstall = orders.uninstall(&Action::Uninstall);
            assert_eq!(uninstall.propagation, Propagation::Background);
            assert!(!uninstall.keep_history && orders.test().filters.is_empty());
        });
        let old = Policy {
            helm_3_defaults: true,
            ..Policy::default()
        };
        with(json!({}), old, |orders, content| {
            let install = orders.install(content, true);
            assert!(!install.server_side && install.replace);
            assert_eq!(install.waiting.strategy, WaitStrategy::Legacy);
        });
    }

    #[test]
    fn every_action_has_its_own_options() {
        let spec = json!({
            "targetNamespace": "there", "maxHistory": 0, "waitStrategy": {"name": "legacy"},
            "install": {
                "timeout": "1s", "createNamespace": true, "replace": true, "disableWait": true, "crds": "Skip",
                "disableSchemaValidation": true, "disableOpenAPIValidation": true, "disableTakeOwnership": true,
                "serverSideApply": false, "disableHooks": true,
            },
            "upgrade": {
                "force": true, "preserveValues": true, "cleanupOnFail": true, "crds": "CreateReplace",
                "serverSideApply": "enabled", "disableWaitForJobs": true,
            },
            "uninstall": {"keepHistory": true, "deletionPropagation": "foreground", "disableWait": true},
            "test": {"enable": true, "timeout": "3s", "filters": [{"name": "a"}, {"name": "b", "exclude": true}]},
        });
        with(spec, Policy::default(), |orders, content| {
            let install = orders.install(content.clone(), false);
            assert!(install.create_namespace && install.replace && install.disable_hooks);
            assert!(!install.server_side && !install.take_ownership);
            assert!(install.content.skip_schema_validation && install.content.disable_openapi_validation);
            assert_eq!(install.content.crds, CrdPolicy::Skip);
            assert_eq!(install.waiting.strategy, WaitStrategy::HookOnly);
            assert_eq!(install.waiting.timeout, Duration::from_secs(1));
            let upgrade = orders.upgrade(content);
            assert!(upgrade.force_replace && upgrade.reuse_values && upgrade.cleanup_on_fail);
            assert_eq!((upgrade.server_side, upgrade.max_history), (ServerSide::On, 0));
            assert_eq!(upgrade.waiting.strategy, WaitStrategy::Legacy);
            assert!(!upgrade.waiting.for_jobs && !upgrade.content.skip_schema_validation);
            let uninstall = orders.uninstall(&Action::Uninstall);
            assert!(uninstall.keep_history);
            assert_eq!(uninstall.propagation, Propagation::Foreground);
            let filters = vec![("a".to_owned(), false), ("b".to_owned(), true)];
            assert_eq!(orders.test().filters, filters);
            assert_eq!(orders.test().timeout, Duration::from_secs(3));
        });
    }
}
