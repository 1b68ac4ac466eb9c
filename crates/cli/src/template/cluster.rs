//! The cluster that a template is rendered for, if one is asked: what templates see of it, and whether it would take what
//! they render.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use helm_action::dry_run::{self, Strictness};
use helm_chart::Helm;
use helm_render::capabilities::Capabilities;
use helm_render::{Lookup, Rendered};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use super::Failure;
use super::dry_run::Asked;
use super::flags::Settings;
use crate::cluster;
use crate::platform::helm::acting;

/// A cluster, and the runtime in which it answers.
pub(super) struct Cluster {
    runtime: Runtime,
    acting: helm_action::Cluster,
    /// The namespace that the kubeconfig's context names.
    pub(super) namespace: String,
}

/// What templates see outside of the chart.
#[derive(Default)]
pub(super) struct Surroundings {
    /// The cluster's; none if it was not asked.
    pub(super) capabilities: Option<Capabilities>,
    pub(super) lookup: Option<Arc<dyn Lookup>>,
}

impl Cluster {
    /// Finds the way to the cluster that the settings name. It is asked nothing yet.
    pub(super) fn find(settings: &Settings) -> Result<Self, Failure> {
        // Templates wait for their answers on a thread of their own while this one renders.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure::Cluster(format!("failed to start: {error}")))?;
        let found = runtime.block_on(cluster::connect(&settings.connection));
        let found = found.map_err(|error| Failure::Cluster(error.to_string()))?;
        let acting = runtime.block_on(async { acting(&found.client()) });
        Ok(Self {
            runtime,
            acting,
            namespace: found.named_namespace.unwrap_or_else(|| "default".to_owned()),
        })
    }

    /// Asks for what templates see.
    pub(super) fn surroundings(&self, settings: &Settings, asked: Asked) -> Result<Surroundings, Failure> {
        let seen = dry_run::seen(&self.acting, settings.helm, settings.enable_dns);
        let seen = self
            .runtime
            .block_on(seen)
            .map_err(|error| Failure::Cluster(format!("{}: {error}", unreachable(settings.helm))))?;
        let names = settings.enable_dns.then(|| Arc::new(Names) as Arc<dyn Lookup>);
        Ok(Surroundings {
            capabilities: asked.validate.then_some(seen.capabilities),
            lookup: if asked.lookup { Some(seen.lookup) } else { names },
        })
    }

    /// Asks whether it would take a release.
    pub(super) fn check(&self, rendered: &Rendered, name: &str, settings: &Settings) -> Result<(), Failure> {
        let strictness = Strictness {
            with_crds: settings.shown.crds,
            owned: !(settings.is_upgrade || settings.take_ownership),
            applied: settings.dry_run_apply,
        };
        let namespace = settings.namespace.as_deref().unwrap_or(&self.namespace);
        let checked = dry_run::check(&self.acting, rendered, (name, namespace), strictness);
        self.runtime.block_on(checked).map_err(|error| {
            let text = error.to_string();
            Failure::Cluster(match (settings.helm, text.strip_prefix("unable to continue")) {
                (Helm::V3, Some(rest)) => format!("Unable to continue{rest}"),
                _ => text,
            })
        })
    }
}

/// In the words of each Helm.
fn unreachable(helm: Helm) -> &'static str {
    match helm {
        Helm::V3 => "Kubernetes cluster unreachable",
        Helm::V4 => "cluster reachability check failed: kubernetes cluster unreachable",
    }
}

impl Surroundings {
    /// Without a cluster.
    pub(super) fn none(settings: &Settings) -> Self {
        Self {
            capabilities: None,
            lookup: settings.enable_dns.then(|| Arc::new(Names) as Arc<dyn Lookup>),
        }
    }
}

/// Resolves names, as this machine does, and finds no objects.
#[derive(Debug)]
struct Names;

impl Lookup for Names {
    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Option<Map<String, Value>>, String> {
        Ok(None)
    }

    fn addresses(&self, host: &str) -> Result<Option<Vec<IpAddr>>, String> {
        let found = (host, 0).to_socket_addrs();
        Ok(Some(found.map_or_else(
            |_| Vec::new(),
            |found| found.map(|address| address.ip()).collect(),
        )))
    }
}
