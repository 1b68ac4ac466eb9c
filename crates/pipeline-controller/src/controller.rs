//! Watches, queue and workers: which Pipeline is reconciled when. The only file that knows the API server's streams.

use std::sync::Arc;

use access_review::Reviews;
use anyhow::Context as _;
use api::delivery::{AppKind, AppReference, ChangeRequest, Pipeline, Preview};
use api::helm::HelmRelease;
use api::kustomize::Kustomization;
use api::notification::Receiver;
use api::source::{GitRepository, OCIRepository};
use api::weave::{self, GitopsCluster};
use cluster_access::targets::{Options, Targets};
use controller_kit::queue::{Outcome, Queue};
use controller_kit::record::{Kind, Writer};
use controller_kit::runtime::{
    Cache, scoped_api, selecting, watch_changes, watch_into_store, watch_into_store_noting,
    watch_into_store_without,
};
use controller_kit::telemetry::reconcile_span;
use controller_kit::{Context as Kit, ObjectKey};
use delivery_diff::Archives;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use git_client::Algorithms;
use git_writer::branch::Workshop;
use git_writer::turns::Writers;
use kube::runtime::reflector::ObjectRef;
use remote_access::identity::Identities;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::app::App;
use crate::change_request::{self, Requests};
use crate::context::Context;
use crate::failures::Failures;
use crate::flags::{Flags, NAME};
use crate::preview::{self, Lists, Previews};
use crate::reconcile::reconcile;
use crate::remote::Remotes;
use crate::weave::Weave;
use crate::weave::status::unready;

/// Feature gate of identities of ServiceAccounts at cloud providers.
const OBJECT_LEVEL_IDENTITY: &str = "ObjectLevelWorkloadIdentity";

/// Reconciles Pipelines until the token is cancelled.
pub(crate) async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let watch = &flags.common.watch;
    let (pipelines, touched) = watch_into_store_noting::<Pipeline>(
        scoped_api(&kit.client, watch),
        watch,
        &promotion::decisions::ANNOTATIONS,
    );
    let (releases, touched_releases) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |app: &App<HelmRelease>| Some(app.fingerprint()),
    );
    let (kustomizations, touched_kustomizations) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |app: &App<Kustomization>| Some(app.fingerprint()),
    );
    let (artifacts, touched_artifacts) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |app: &App<OCIRepository>| Some(app.fingerprint()),
    );
    let (repositories, touched_repositories) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |app: &App<GitRepository>| Some(app.fingerprint()),
    );
    // Their contents would be the largest part of the memory, and are read once.
    let (requests, touched_requests) =
        watch_into_store_without::<ChangeRequest>(scoped_api(&kit.client, watch), watch, |request| {
            request.spec.files.clear();
        });
    let (previews, touched_previews) = watch_into_store::<Preview>(scoped_api(&kit.client, watch), watch);
    let (receivers, touched_receivers) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |receiver: &Receiver| {
            let path = receiver
                .status
                .as_ref()
                .and_then(|status| status.webhook_path.clone());
            Some((receiver.metadata.generation, path))
        },
    );
    kit.metrics.objects(pipelines.clone(), |_| true);
    kit.metrics.objects(requests.clone(), |_| true);
    kit.metrics.objects(previews.clone(), |_| true);
    let (weave, touched_weave) = match flags.weave_pipelines {
        true => {
            let (weave, touched) = weave(&flags, &kit);
            (Some(weave), Some(touched))
        }
        false => (None, None),
    };
    let queue = Queue::new("pipeline", flags.common.rate, &kit.metrics);
    let features = flags.common.features.resolve(&[(OBJECT_LEVEL_IDENTITY, false)])?;
    let token = &flags.common.token;
    let identities = Identities::new(
        token.token_cache_max_size,
        token.token_cache_max_duration,
        features.enabled(OBJECT_LEVEL_IDENTITY),
        "",
    );
    let folder = flags.fetch_path.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&folder).context("failed to make the folder of --fetch-path")?;
    let context = Arc::new(Context {
        client: kit.client.clone(),
        pipelines: Writer {
            client: kit.client.clone(),
            cache: Cache::new(pipelines),
            recorder: kit.recorder.clone(),
            metrics: kit.metrics.clone(),
            manager: NAME,
        },
        releases: Cache::new(releases),
        kustomizations: Cache::new(kustomizations),
        artifacts: Cache::new(artifacts),
        repositories: Cache::new(repositories),
        queue,
        reviews: Reviews::for_users(kit.client.clone()),
        clients: transport::http::Clients::default(),
        receivers: Cache::new(receivers),
        webhook_url: flags.webhook_url.trim_end_matches('/').to_owned(),
        gate_hosts: flags.gate_hosts.clone(),
        identities: identities.locked(flags.common.acl.no_cross_namespace_refs),
        ssh_algorithms: Algorithms::new(&flags.ssh_kex_algos, &flags.ssh_hostkey_algos)?,
        workshop: Workshop {
            folder,
            packs: git_pack::Memory::default(),
        },
        writers: Writers::default(),
        failures: Failures::default(),
        remotes: Arc::new(Remotes::new({
            let (flags, kit, has_identities) = (
                flags.clone(),
                kit.clone(),
                features.enabled(OBJECT_LEVEL_IDENTITY),
            );
            move || targets(&flags, &kit, has_identities)
        })),
        requests: Requests {
            writer: Writer {
                client: kit.client.clone(),
                cache: Cache::new(requests),
                recorder: kit.recorder.clone(),
                metrics: kit.metrics.clone(),
                manager: NAME,
            },
            queue: Queue::new("changerequest", flags.common.rate, &kit.metrics),
        },
        previews: Previews {
            writer: Writer {
                client: kit.client.clone(),
                cache: Cache::new(previews),
                recorder: kit.recorder.clone(),
                metrics: kit.metrics.clone(),
                manager: NAME,
            },
            queue: Queue::new("preview", flags.common.rate, &kit.metrics),
            archives: Archives::from_server(flags.source_url.as_ref(), &kit.namespace)
                .context("the namespace makes no URL")?,
            listed: Lists::default(),
        },
        weave,
        jitter_percentage: flags.common.jitter.interval_jitter_percentage,
    });
    let tokens = context.identities.clone();
    kit.metrics.token_cache(move || tokens.token_cache());

    tokio::select! {
        () = feed(touched, &context.queue) => anyhow::bail!("the watch of Pipelines ended"),
        () = waking(touched_releases, AppKind::HelmRelease, &context) => anyhow::bail!("the watch of HelmReleases ended"),
        () = waking(touched_kustomizations, AppKind::Kustomization, &context) => anyhow::bail!("the watch of Kustomizations ended"),
        () = waking(touched_artifacts, AppKind::OCIRepository, &context) => anyhow::bail!("the watch of OCIRepositories ended"),
        () = waking(touched_repositories, AppKind::GitRepository, &context) => anyhow::bail!("the watch of GitRepositories ended"),
        () = hooked(touched_receivers, &context) => anyhow::bail!("the watch of Receivers ended"),
        () = beside(
            touched_requests,
            (&context.requests.writer, &context.requests.queue),
            (&context, flags.concurrent.into(), kit.token.clone()),
            change_request::reconcile,
        ) => anyhow::bail!("the watch of ChangeRequests ended"),
        () = beside(
            touched_previews,
            (&context.previews.writer, &context.previews.queue),
            (&context, PREVIEWS, kit.token.clone()),
            preview::reconcile,
        ) => anyhow::bail!("the watch of Previews ended"),
        () = weave_pipelines(touched_weave, &context, (flags.concurrent, kit.token.clone())) => anyhow::bail!("a watch of Weave's kinds ended"),
        () = async {
            listed(&context).await;
            let handler = {
                let context = context.clone();
                move |key: ObjectKey| {
                    let (context, span) = (context.clone(), reconcile_span::<Pipeline>(&key));
                    reconcile(key, context).instrument(span)
                }
            };
            context.queue.run(flags.concurrent.into(), kit.token.clone(), handler).await;
        } => Ok(()),
    }
}

type Touched<K> = BoxStream<'static, ObjectRef<K>>;

/// Watches of Weave's kinds.
fn weave(flags: &Flags, kit: &Kit) -> (Weave, (Touched<weave::Pipeline>, Touched<GitopsCluster>)) {
    let watch = &flags.common.watch;
    let (pipelines, touched) = watch_into_store::<weave::Pipeline>(scoped_api(&kit.client, watch), watch);
    let (clusters, touched_clusters) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |cluster: &GitopsCluster| Some((cluster.metadata.generation, unready(cluster))),
    );
    let writer = Writer {
        client: kit.client.clone(),
        cache: Cache::new(pipelines),
        recorder: kit.recorder.clone(),
        metrics: kit.metrics.clone(),
        manager: NAME,
    };
    let queue = Queue::new("weave-pipeline", flags.common.rate, &kit.metrics);
    (
        Weave::new(writer, clusters, queue),
        (touched.boxed(), touched_clusters.boxed()),
    )
}

/// Has Pipelines of Weave GitOps served; never ends where there are none to serve.
async fn weave_pipelines(
    touched: Option<(Touched<weave::Pipeline>, Touched<GitopsCluster>)>,
    context: &Arc<Context>,
    (concurrent, token): (u16, CancellationToken),
) {
    let (Some((pipelines, clusters)), Some(weave)) = (touched, &context.weave) else {
        return std::future::pending().await;
    };
    let of_clusters = clusters.for_each(|cluster| {
        weave.wake_those_of(&cluster);
        std::future::ready(())
    });
    let working = async {
        listed(context).await;
        // A store is dropped with its watch only, and that ends the process.
        let _ = tokio::join!(
            weave.pipelines.cache.store().wait_until_ready(),
            weave.clusters.store().wait_until_ready(),
        );
        let handler = {
            let context = context.clone();
            move |key: ObjectKey| {
                let (context, span) = (context.clone(), reconcile_span::<weave::Pipeline>(&key));
                crate::weave::reconcile(key, context).instrument(span)
            }
        };
        let workers = weave.queue.run(concurrent.into(), token, handler);
        workers.await;
        // The end of the process is the other queue's.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = feed(pipelines, &weave.queue) => {}
        () = of_clusters => {}
        () = working => {}
    }
}

/// Previews that are worked on at once: each may hold a repository and what is built from it.
const PREVIEWS: usize = 2;

/// Serves a kind beside Pipelines; ends with its watch only.
async fn beside<K, F>(
    touched: impl futures::Stream<Item = ObjectRef<K>>,
    (writer, queue): (&Writer<K>, &Queue<ObjectKey>),
    (context, concurrent, token): (&Arc<Context>, usize, CancellationToken),
    reconcile: impl Fn(ObjectKey, Arc<Context>) -> F + Send + Sync + 'static,
) where
    K: Kind,
    F: Future<Output = Outcome> + Send + 'static,
{
    let working = async {
        listed(context).await;
        // A store is dropped with its watch only, and that ends the process.
        let _ = writer.cache.store().wait_until_ready().await;
        let handler = {
            let context = context.clone();
            move |key: ObjectKey| {
                let span = reconcile_span::<K>(&key);
                reconcile(key, context.clone()).instrument(span)
            }
        };
        queue.run(concurrent, token, handler).await;
        // The end of the process is the other queue's.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = feed(touched, queue) => {}
        () = working => {}
    }
}

/// Ways to other clusters, as Kustomizations have them. Nothing is applied there.
fn targets(flags: &Flags, kit: &Kit, has_identities: bool) -> Targets {
    let identities =
        workload_identity::Identities::new(kit.client.clone(), flags.common.token, has_identities);
    let options = Options {
        kubeconfig: flags.kubeconfig,
        client: flags.common.client.clone(),
        name: kit.name,
        metrics: kit.metrics.rest().clone(),
        default_account: None,
        identities: Arc::new(identities),
        remote_account: None,
    };
    Targets::new(kit.client.clone(), kube_apply::Settings::default(), options).0
}

/// Waits until all kinds are listed: what is not seen yet must not be taken for something that is not there.
async fn listed(context: &Context) {
    // A store is dropped with its watch only, and that ends the process.
    let _ = tokio::join!(
        context.pipelines.cache.store().wait_until_ready(),
        context.releases.store().wait_until_ready(),
        context.kustomizations.store().wait_until_ready(),
        context.artifacts.store().wait_until_ready(),
        context.repositories.store().wait_until_ready(),
    );
}

async fn feed<K>(touched: impl futures::Stream<Item = ObjectRef<K>>, queue: &Queue<ObjectKey>)
where
    K: kube::Resource<DynamicType = ()>,
{
    touched
        .for_each(|object| {
            queue.add(ObjectKey::from(object));
            std::future::ready(())
        })
        .await;
}

/// Has applications that changed wake the pipelines that promote them.
async fn waking<K>(touched: impl futures::Stream<Item = ObjectRef<K>>, kind: AppKind, context: &Context)
where
    K: kube::Resource<DynamicType = ()>,
{
    touched
        .for_each(|object| {
            let app = ObjectKey::from(object);
            for pipeline in context.pipelines.cache.store().state() {
                if promotes(&pipeline, kind, &app) {
                    context.queue.add(ObjectKey::from_object(&*pipeline));
                }
            }
            std::future::ready(())
        })
        .await;
}

/// Has the pipelines of a namespace looked at when its webhooks change.
async fn hooked(touched: impl futures::Stream<Item = ObjectRef<Receiver>>, context: &Context) {
    touched
        .for_each(|receiver| {
            for pipeline in context.pipelines.cache.store().state() {
                if pipeline.metadata.namespace == receiver.namespace {
                    context.queue.add(ObjectKey::from_object(&*pipeline));
                }
            }
            std::future::ready(())
        })
        .await;
}

/// Returns whether an application is one of a pipeline.
fn promotes(pipeline: &Pipeline, kind: AppKind, app: &ObjectKey) -> bool {
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    let mut targets = pipeline.spec.environments.iter().flat_map(|one| &one.targets);
    // Those that are selected are looked up each time: a label may have come or gone.
    let may_be = |one: &AppReference| one.kind == kind && (one.selector.is_some() || one.name == app.name);
    pipeline.spec.apps.iter().any(may_be)
        && targets.any(|target| {
            let is_here = target.kube_config.is_none();
            is_here && target.namespace.as_deref().unwrap_or(own) == app.namespace
        })
}
