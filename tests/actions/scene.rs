//! Shared start of every test: a namespace, a cluster seen through a client that records the requests, and
//! helpers for charts and orders.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use helm_action::{
    Cluster, Content, Context, Install, Log, Outcome, Propagation, Rollback, ServerSide, Storage, Uninstall,
    Unpaced, Upgrade, Waiting,
};
use helm_chart::Helm;
use helm_release::Release;
use helm_render::Renderer;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use kube_apply::{Engine, Settings};
use kube_health::{Hub, Resolve, ResolveError, Resolved};
use manifest::GroupVersionKind;
use serde_json::Value;
use testkit::ControlPlane;
use tokio::sync::Notify;
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
    pub stopped: CancellationToken,
    /// A client whose requests are not recorded.
    pub client: Client,
    requests: Arc<Mutex<Vec<String>>>,
    /// How many requests are still answered.
    left: Arc<AtomicUsize>,
    /// Told when the last one was.
    cut: Arc<Notify>,
}

impl Scene {
    pub async fn new(purpose: &str) -> Self {
        let control_plane = ControlPlane::shared().await.unwrap();
        let namespace = control_plane.namespace(purpose).await.unwrap();
        Self::in_namespace(control_plane.client(), namespace)
    }

    pub fn in_namespace(client: Client, namespace: String) -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let cut = Arc::new(Notify::new());
        let recorded = recording(
            &client,
            Arc::clone(&requests),
            Arc::clone(&left),
            Arc::clone(&cut),
        );
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
            stopped: CancellationToken::new(),
            client,
            requests,
            left,
            cut,
        }
    }

    /// Does what a process does that is killed after so many requests: the last of them is done and
    /// not answered, and the action is dropped. None if it was cut off.
    pub async fn killed_after<T>(&self, requests: usize, action: impl Future<Output = T>) -> Option<T> {
        self.left.store(requests, Ordering::SeqCst);
        let done = tokio::select! {
            done = action => Some(done),
            () = self.cut.notified() => None,
        };
        self.left.store(usize::MAX, Ordering::SeqCst);
        done
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            cluster: &self.cluster,
            storage: &self.storage,
            pace: &Unpaced,
            cancelled: self.cancelled.clone(),
            stopped: self.stopped.clone(),
            tell: &|_| (),
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
            server_side: ServerSide::Auto,
            take_ownership: true,
            force_replace: false,
            cleanup_on_fail: false,
            reuse_values: false,
            max_history: 5,
        }
    }

    pub fn rollback(&self, name: &str, version: i64) -> Rollback {
        Rollback {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            version,
            waiting: waiting(),
            disable_hooks: false,
            server_side: ServerSide::Auto,
            force_replace: false,
            cleanup_on_fail: false,
            max_history: 5,
        }
    }

    pub fn uninstall(&self, name: &str) -> Uninstall {
        Uninstall {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            waiting: waiting(),
            disable_hooks: false,
            keep_history: false,
            propagation: Propagation::Background,
        }
    }

    /// Installs a chart of these files, which must succeed.
    pub async fn installed(&self, name: &str, files: &[(&str, &str)], values: Value) -> Outcome {
        let order = self.install(name, content(files, values));
        succeeded(helm_action::install(&self.context(), &order).await)
    }

    /// Upgrades to a chart of these files, which must succeed.
    pub async fn upgraded(&self, name: &str, files: &[(&str, &str)], values: Value) -> Outcome {
        let order = self.upgrade(name, content(files, values));
        succeeded(helm_action::upgrade(&self.context(), &order).await)
    }

    /// The statuses of all revisions that are stored, the oldest first.
    pub async fn statuses(&self, name: &str) -> Vec<String> {
        let history = self.storage.history(name).await.unwrap();
        history
            .iter()
            .map(|revision| revision.status.to_string())
            .collect()
    }

    /// The newest revision that is stored.
    pub async fn last(&self, name: &str) -> Release {
        self.storage.last(name).await.unwrap().unwrap().release
    }

    /// Writes as kubectl does: a merge patch under a manager of its own.
    pub async fn edit(&self, api: &Api<DynamicObject>, name: &str, patch: Value) {
        let params = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        api.patch(name, &params, &Patch::Merge(patch)).await.unwrap();
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

/// Returns an outcome that is one.
pub fn succeeded(outcome: Outcome) -> Outcome {
    if let Err(error) = &outcome.result {
        panic!("{error}");
    }
    outcome
}

/// The annotation and label values of an object, by pointer.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A ConfigMap with this value.
pub const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word | quote }}}\n";

/// A Deployment of one Pod, labelled as Flux's post-renderer would.
pub const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {helm.toolkit.fluxcd.io/name: demo, helm.toolkit.fluxcd.io/namespace: flux-system}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: example.com/web:{{ .Values.tag | default "1" }}
        ports: [{containerPort: 80}]
"#;

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
    let file = |name: &str, text: &str| helm_chart::File {
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
    let chart = helm_chart::load_files(all, Helm::V4, &mut Vec::new()).unwrap();
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
        admission: None,
        looks_up: true,
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

/// Passes requests on and notes each. The last one is done and never answered; those after it are not even sent.
fn recording(
    client: &Client,
    requests: Arc<Mutex<Vec<String>>>,
    left: Arc<AtomicUsize>,
    cut: Arc<Notify>,
) -> Client {
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
        let take = |left: usize| (left != usize::MAX).then(|| left.saturating_sub(1));
        let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        let is_last = before.is_ok_and(|before| before <= 1);
        let is_too_late = before == Ok(0);
        let (client, cut) = (client.clone(), Arc::clone(&cut));
        async move {
            if is_too_late {
                std::future::pending::<()>().await;
            }
            let answer = client.send(request).await;
            if is_last {
                cut.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    Client::new(service, "default")
}
