//! From a chart and values to the record of a revision: rendered for this cluster, on a thread of its own.

use std::any::Any;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use helm_chart::{Chart, Helm};
use helm_release::{Record, made};
use helm_render::capabilities::{Capabilities, HelmVersion, KubeVersion};
use helm_render::{Limits, Options, OutputLimits, Rendered, Turn};
use kube::Client;
use kube_apply::Engine;
use memchr::memmem;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::admission;
use crate::lookup::ClusterLookup;
use crate::{Content, Context, Error, ErrorKind};

/// Time limit of a rendering. Public charts take less than a second.
const TIME: Duration = Duration::from_secs(60);
/// Total bytes that the templates of a rendering may produce, including intermediate results; the process needs about twice
/// as much memory. The largest of 1,500 public charts produces 36 MB.
const BYTES: usize = 128 << 20;
/// Bytes that renderings may produce concurrently. Above it, only one runs at a time, so that the charts of one tenant cannot
/// exhaust the memory of the process.
const BYTES_AT_ONCE: usize = 48 << 20;
/// Size limit of the rendered manifests: a larger record could not be read back (see [`helm_release::record`]), and all
/// manifests are in memory while they are applied.
const OUTPUT: OutputLimits = OutputLimits {
    bytes: 32 << 20,
    values: 500_000,
};

/// Held by the rendering that exceeds [`BYTES_AT_ONCE`].
static TURN: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// For which revision a chart is rendered.
#[derive(Clone, Debug)]
pub(crate) struct Revision<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) version: i64,
    pub(crate) is_upgrade: bool,
    /// The values that are recorded; those of the content, or with what is kept of the revision before.
    pub(crate) values: Map<String, Value>,
    /// Defaults in place of the chart's own.
    pub(crate) chart_values: Option<Arc<Map<String, Value>>>,
}

/// Renders, and makes the release of it: manifest, hooks, notes, chart and values are filled.
pub(crate) async fn render(
    context: &Context<'_>,
    content: &Content,
    revision: Revision<'_>,
) -> Result<Record, Error> {
    let cluster = context.cluster;
    let (mut rendered, values) = rendered(&cluster.client, &cluster.engine, content, &revision).await?;
    warn(context, &rendered);
    if let Some(admission) = &content.admission {
        admission::admit(&**admission, revision.namespace, &mut rendered).await?;
    }
    let release = made::release(
        rendered,
        (revision.name, revision.namespace),
        revision.version,
        values,
    );
    Ok(Record {
        release,
        labels: Default::default(),
    })
}

/// Renders on a thread of its own; the values come back.
pub(crate) async fn rendered(
    client: &Client,
    engine: &Engine,
    content: &Content,
    revision: &Revision<'_>,
) -> Result<(Rendered, Map<String, Value>), Error> {
    let options = options(client, engine, content, revision).await?;
    let chart = Arc::clone(&content.chart);
    let values = revision.values.clone();
    let rendered = tokio::task::spawn_blocking(move || {
        let rendered = chart.render(&values, &options);
        rendered.map(|rendered| (rendered, values))
    });
    rendered
        .await
        .map_err(|error| Error::new(ErrorKind::Render, format!("failed to render the chart: {error}")))?
        .map_err(|error| Error::new(ErrorKind::Render, error.to_string()))
}

fn warn(context: &Context<'_>, rendered: &Rendered) {
    for warning in &rendered.warnings {
        tracing::debug!(%warning, "rendering a chart");
        context.log.line(format!("warning: {warning}"));
    }
}

/// Sets what a rendering depends on.
async fn options(
    client: &Client,
    engine: &Engine,
    content: &Content,
    revision: &Revision<'_>,
) -> Result<Options, Error> {
    let lookup = ClusterLookup::new(client.clone(), engine.clone(), content.enable_dns);
    let release = helm_render::Release {
        name: revision.name.to_owned(),
        namespace: revision.namespace.to_owned(),
        revision: revision.version,
        is_upgrade: revision.is_upgrade,
    };
    Ok(Options {
        capabilities: Some(capabilities(engine, Helm::V4, asks_for_capabilities(content)).await?),
        lookup: content.looks_up.then(|| Arc::new(lookup) as _),
        post_render: content.post_render.clone(),
        post_render_strategy: content.post_render_strategy,
        skip_schema_validation: content.skip_schema_validation,
        chart_values: revision.chart_values.clone(),
        output: OUTPUT,
        ..within_limits(Options::new(release))
    })
}

fn within_limits(options: Options) -> Options {
    let runtime = Handle::current();
    let take = move || {
        let turn = runtime.block_on(Arc::clone(&TURN).acquire_owned());
        Box::new(turn) as Box<dyn Any>
    };
    let limits = Limits {
        bytes: BYTES,
        turn: Some(Turn {
            above: BYTES_AT_ONCE,
            take: Arc::new(take),
        }),
        time: Some(TIME),
        ..options.limits
    };
    Options { limits, ..options }
}

/// Asks what a cluster is and serves. What a chart does not ask for may be old: `fresh` says that it asks.
pub(crate) async fn capabilities(engine: &Engine, helm: Helm, fresh: bool) -> Result<Capabilities, Error> {
    let mapper = engine.mapper();
    let failed = |doing: &'static str| {
        move |error: kube_apply::mapper::Error| {
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            Error::new(ErrorKind::Cluster, format!("{doing}: {error}{cause}"))
        }
    };
    let version = mapper
        .server_version()
        .await
        .map_err(failed("could not get server version from Kubernetes"))?;
    let served = if fresh {
        mapper.served_now().await
    } else {
        mapper.served_lately().await
    };
    let mut kube_version = KubeVersion::parse(&version.git_version, helm)
        .map_err(|error| Error::new(ErrorKind::Cluster, error.to_string()))?;
    kube_version.major.clone_from(&version.major);
    kube_version.minor.clone_from(&version.minor);
    Ok(Capabilities {
        kube_version,
        api_versions: served.map_err(failed("could not get apiVersions from Kubernetes"))?,
        helm_version: HelmVersion::from_helm(helm),
    })
}

/// Variable with which templates ask for the API versions of a cluster.
const CAPABILITIES: &str = "Capabilities";

/// Returns whether a template could ask what the cluster serves. Values may be templates too.
fn asks_for_capabilities(content: &Content) -> bool {
    chart_asks(content.chart.chart())
        || content
            .values
            .values()
            .any(|value| value.to_string().contains(CAPABILITIES))
}

fn chart_asks(chart: &Chart) -> bool {
    let files = chart.content.templates.iter().chain(&chart.content.files);
    files
        .chain(&chart.content.values)
        .any(|file| memmem::find(&file.data, CAPABILITIES.as_bytes()).is_some())
        || chart.dependencies.iter().any(chart_asks)
}
