//! What every test starts from: a namespace, a cluster seen through a client that records what is asked of it, and short
//! words for charts and orders.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use helm_action::{Cluster, Content, Context, Install, Log, Storage, Unpaced, Upgrade, Waiting};
use helm_render::{Helm, Renderer, chart};
use kube::api::{ApiResource, DynamicObject};
use kube::client::Body;
use kube::{Api, Client};
use kube_apply::{Engine, Settings};
use kube_health::{Hub, Resolve, ResolveError, Resolved};
use manifest::GroupVersionKind;
use serde_json::Value;
use testkit::ControlPlane;
use tokio_util::sync::CancellationToken;

/// The group of HelmReleases, whose labels say whose an object is.
pub const GROUP: &str = "helm.toolkit.fluxcd.io";

/// A namespace, and a cluster to act on.
pub struct Scene {
    pub cluster: Cluster,
    pub storage: Storage,
    pub namespace: String,
    pub log: Log,
    pub cancelled: CancellationToken,
    /// A client whose requests are not recorded.
    pub client: Client,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    pub async fn new(purpose: &str) -> Self {
        let control_plane = ControlPlane::shared().await.unwrap();
        let namespace = control_plane.namespace(purpose).await.unwrap();
        Self::in_namespace(control_plane.client(), namespace)
    }

    pub fn in_namespace(client: Client, namespace: String) -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = recording(&client, Arc::clone(&requests));
        let settings = Settings {
            field_manager: "helm-controller".to_owned(),
            group: GROUP.to_owned(),
            ..Settings::default()
        };
        let engine = Engine::new(recorded.clone(), settings);
        let label = format!("{GROUP}/name");
        let hub = Hub::with_owner_label(recorded.clone(), Arc::new(Mapper(engine.clone())), &label);
        Self {
            cluster: Cluster {
                client: recorded.clone(),
                engine,
                hub,
                field_manager: "helm-controller".to_owned(),
            },
            storage: Storage::new(recorded, &namespace),
            namespace,
            log: Log::new(),
            cancelled: CancellationToken::new(),
            client,
            requests,
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            cluster: &self.cluster,
            storage: &self.storage,
            pace: &Unpaced,
            cancelled: self.cancelled.clone(),
            log: &self.log,
        }
    }

    /// Returns what was asked since the last call, as `VERB path`.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    pub fn install(&self, name: &str, content: Content) -> Install {
        Install {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            content,
            waiting: waiting(),
            disable_hooks: false,
            server_side: true,
            take_ownership: true,
            replace: false,
            create_namespace: false,
        }
    }

    pub fn upgrade(&self, name: &str, content: Content) -> Upgrade {
        Upgrade {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            content,
            waiting: waiting(),
            disable_hooks: false,
            server_side: helm_action::ServerSide::Auto,
            take_ownership: true,
            force_replace: false,
            cleanup_on_fail: false,
            reuse_values: false,
            max_history: 5,
        }
    }

    pub fn api(&self, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource(api_version, kind, plural),
        )
    }

    pub fn config_maps(&self) -> Api<DynamicObject> {
        self.api("v1", "ConfigMap", "configmaps")
    }

    /// Reads an object as JSON; null when there is none.
    pub async fn read(&self, api: &Api<DynamicObject>, name: &str) -> Value {
        serde_json::to_value(api.get_opt(name).await.unwrap()).unwrap()
    }
}

/// Everything, for half a minute.
pub fn waiting() -> Waiting {
    Waiting {
        for_jobs: true,
        timeout: Duration::from_secs(30),
        ..Waiting::default()
    }
}

/// A chart of these files, with a Chart.yaml unless it is among them.
pub fn content(files: &[(&str, &str)], values: Value) -> Content {
    let file = |name: &str, text: &str| chart::File {
        name: name.into(),
        data: text.into(),
    };
    let mut all = vec![];
    if !files.iter().any(|(name, _)| *name == "Chart.yaml") {
        all.push(file(
            "Chart.yaml",
            "{apiVersion: v2, name: demo, version: 1.0.0, appVersion: 1.2.3}",
        ));
    }
    all.extend(files.iter().map(|(name, text)| file(name, text)));
    let chart = chart::load_files(all, Helm::V4, &mut Vec::new()).unwrap();
    Content {
        chart: Arc::new(Renderer::new(chart, Helm::V4)),
        values: values.as_object().cloned().unwrap_or_default(),
        post_render: None,
        post_render_strategy: helm_render::PostRenderStrategy::default(),
        crds: helm_action::CrdPolicy::default(),
        origin_labels: [
            (format!("{GROUP}/name"), "demo".to_owned()),
            (format!("{GROUP}/namespace"), "flux-system".to_owned()),
        ]
        .into(),
        skip_schema_validation: false,
        disable_openapi_validation: false,
        enable_dns: false,
    }
}

pub fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
    }
}

/// The engine's discovery, for the waits.
struct Mapper(Engine);

impl Resolve for Mapper {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        async move {
            let found = self.0.mapper().resolve(gvk).await?;
            Ok(Resolved {
                resource: found.api.clone(),
                namespaced: found.namespaced,
            })
        }
        .boxed()
    }
}

/// Passes requests on and notes each.
fn recording(client: &Client, requests: Arc<Mutex<Vec<String>>>) -> Client {
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let verb = if query.contains("watch=true") {
            "WATCH"
        } else {
            request.method().as_str()
        };
        let line = format!("{verb} {}", request.uri().path());
        requests.lock().unwrap().push(line);
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}
