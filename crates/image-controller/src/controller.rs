//! Watches, queues and workers: which object is reconciled when. The only file that knows the API server's streams.

use std::sync::Arc;

use anyhow::Context as _;
use api::delivery::{CHANGE_POLICY, ChangePolicy};
use api::image::{ImagePolicy, ImageRepository, ImageUpdateAutomation};
use api::source::GitRepository;
use controller_kit::queue::{Outcome, Queue};
use controller_kit::runtime::{
    Cache, ReconcileTrigger, scoped_api, selecting, watch_changes, watch_into_store, watch_into_store_noting,
};
use controller_kit::telemetry::reconcile_span;
use controller_kit::{Context as Kit, ObjectKey};
use futures::StreamExt as _;
use git_client::Algorithms;
use git_writer::branch::Workshop;
use git_writer::turns::Writers;
use kube::runtime::reflector::{ObjectRef, Store};
use remote_access::identity::Identities;
use tracing::Instrument as _;

use crate::automation::{self, branch::heads::Heads, kept, scope::Scopes, target};
use crate::context::{Context, Queues};
use crate::delivery::Delivery;
use crate::flags::{AUTOMATION, Flags, REFLECTOR};
use crate::metrics::Meters;
use crate::pauses::Pauses;
use crate::{policy, repository, tags};
use controller_kit::record::{Kind, Writer};

/// Feature gate of identities of ServiceAccounts at cloud providers.
const OBJECT_LEVEL_IDENTITY: &str = "ObjectLevelWorkloadIdentity";
/// Feature gate of push branches that are made anew.
const REPLACE_PUSH_BRANCH: &str = "GitForcePushBranch";
/// Feature gates of Flux's controllers, with their defaults. All but these two are known and without effect: every fetch is
/// shallow, and there is one kind of storage.
const FEATURE_GATES: [(&str, bool); 7] = [
    (OBJECT_LEVEL_IDENTITY, false),
    ("CacheSecretsAndConfigMaps", false),
    ("FluxStorage", false),
    (REPLACE_PUSH_BRANCH, true),
    ("GitShallowClone", true),
    ("GitAllBranchReferences", true),
    ("GitSparseCheckout", false),
];

/// Reconciles all kinds until the token is cancelled.
pub(crate) async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let watch = &flags.common.watch;
    let (repositories, touched_repositories) =
        watch_into_store::<ImageRepository>(scoped_api(&kit.client, watch), watch);
    let (policies, touched_policies) =
        watch_into_store_noting::<ImagePolicy>(scoped_api(&kit.client, watch), watch, &policy::ANNOTATIONS);
    let (automations, touched_automations) = watch_into_store_noting::<ImageUpdateAutomation>(
        scoped_api(&kit.client, watch),
        watch,
        &automation::ANNOTATIONS,
    );
    // New revisions of a source wake nothing: those wait for the interval, as in Flux.
    let (sources, touched_sources) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |source: &GitRepository| Some(ReconcileTrigger::from_object(source)),
    );
    // Only to wake: a run reads the newest. Nothing waits for this list, as the definition may be missing where Flux's are in use.
    let (_, touched_change_policies) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |policy: &ChangePolicy| Some(policy.metadata.generation),
    );
    // Likewise: the definition is there only where Kustomizations are.
    let (deliveries, touched_deliveries) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |delivery: &Delivery| Some((delivery.failed(), delivery.healthy().map(str::to_owned))),
    );
    kit.metrics.objects(repositories.clone(), |_| true);
    kit.metrics.objects(policies.clone(), |_| true);
    kit.metrics.objects(automations.clone(), |_| true);
    let queue = |name: &str| Queue::new(name, flags.common.rate, &kit.metrics);
    let queues = Queues {
        repositories: queue("imagerepository"),
        policies: queue("imagepolicy"),
        automations: queue("imageupdateautomation"),
    };
    let stores = Stores {
        repositories,
        policies,
        automations,
        sources,
        deliveries,
    };
    let context = Arc::new(open(&flags, &kit, &queues, stores)?);
    let tokens = context.identities.clone();
    kit.metrics.token_cache(move || tokens.token_cache());

    let workers = flags.concurrent;
    tokio::select! {
        () = feed(touched_repositories, &queues.repositories) => anyhow::bail!("the watch of ImageRepositories ended"),
        () = feed(touched_policies, &queues.policies) => anyhow::bail!("the watch of ImagePolicies ended"),
        () = feed(touched_automations, &queues.automations) => anyhow::bail!("the watch of ImageUpdateAutomations ended"),
        () = waking(touched_sources, &context, wake_automations_of) => anyhow::bail!("the watch of GitRepositories ended"),
        () = waking(touched_change_policies, &context, wake_automations_under) => anyhow::bail!("the watch of ChangePolicies ended"),
        () = waking(touched_deliveries, &context, wake_automations_after) => anyhow::bail!("the watch of Kustomizations ended"),
        result = async {
            listed(&context).await;
            tokio::try_join!(
                reflect(&queues, workers, &kit, &context),
                automate(&queues.automations, workers, &kit, &context),
            )
        } => result.map(|_| ()),
    }
}

async fn reflect(queues: &Queues, workers: u16, kit: &Kit, context: &Arc<Context>) -> anyhow::Result<()> {
    tokio::join!(
        work::<ImageRepository, _, _>(&queues.repositories, workers, kit, context, repository::reconcile),
        work::<ImagePolicy, _, _>(&queues.policies, workers, kit, context, policy::reconcile),
    );
    Ok(())
}

/// Automations wait for a Lease of their own: Flux has a separate controller for them, which may still be at work.
async fn automate(
    queue: &Queue<ObjectKey>,
    workers: u16,
    kit: &Kit,
    context: &Arc<Context>,
) -> anyhow::Result<()> {
    if kit.elections.win(AUTOMATION).await? {
        work::<ImageUpdateAutomation, _, _>(queue, workers, kit, context, automation::reconcile).await;
    }
    Ok(())
}

/// Waits until all kinds are listed: what is not seen yet must not be taken for something that is not there.
async fn listed(context: &Context) {
    // A store is dropped with its watch only, and that ends the process.
    let _ = tokio::join!(
        context.repositories.cache.store().wait_until_ready(),
        context.policies.cache.store().wait_until_ready(),
        context.automations.cache.store().wait_until_ready(),
        context.sources.store().wait_until_ready(),
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

/// Has objects that changed wake what depends on them.
async fn waking<K>(
    touched: impl futures::Stream<Item = ObjectRef<K>>,
    context: &Context,
    wake: fn(&ObjectKey, &Context),
) where
    K: kube::Resource<DynamicType = ()>,
{
    touched
        .for_each(|object| {
            wake(&ObjectKey::from(object), context);
            std::future::ready(())
        })
        .await;
}

async fn work<K, F, R>(
    queue: &Queue<ObjectKey>,
    workers: u16,
    kit: &Kit,
    context: &Arc<Context>,
    reconcile: F,
) where
    K: Kind,
    F: Fn(ObjectKey, Arc<Context>) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    let context = context.clone();
    let handler = move |key: ObjectKey| {
        let (context, span) = (context.clone(), reconcile_span::<K>(&key));
        reconcile(key, context).instrument(span)
    };
    queue.run(workers.into(), kit.token.clone(), handler).await;
}

/// Wakes the automations that write to a source.
fn wake_automations_of(source: &ObjectKey, context: &Context) {
    for automation in context.automations.cache.store().state() {
        if target::source_of(&automation) == *source {
            context
                .queues
                .automations
                .add(ObjectKey::from_object(&*automation));
        }
    }
}

/// Wakes the automations whose changes go in by a policy.
fn wake_automations_under(policy: &ObjectKey, context: &Context) {
    for automation in context.automations.cache.store().state() {
        let meta = &automation.metadata;
        let named = meta.annotations.as_ref().and_then(|all| all.get(CHANGE_POLICY));
        if meta.namespace.as_deref() == Some(&*policy.namespace) && named == Some(&policy.name) {
            context
                .queues
                .automations
                .add(ObjectKey::from_object(&*automation));
        }
    }
}

/// Wakes the automations that follow a delivery.
fn wake_automations_after(delivery: &ObjectKey, context: &Context) {
    let known = context.deliveries.get(&delivery.object_ref());
    let has_failed = known.is_some_and(|known| known.failed().is_some());
    for automation in context.automations.cache.store().state() {
        if automation.metadata.namespace.as_deref() == Some(&*delivery.namespace)
            && automation::follows_delivery(&automation, &delivery.name, has_failed)
        {
            context
                .queues
                .automations
                .add(ObjectKey::from_object(&*automation));
        }
    }
}

/// What is watched.
struct Stores {
    repositories: Store<ImageRepository>,
    policies: Store<ImagePolicy>,
    automations: Store<ImageUpdateAutomation>,
    sources: Store<GitRepository>,
    deliveries: Store<Delivery>,
}

fn open(flags: &Flags, kit: &Kit, queues: &Queues, stores: Stores) -> anyhow::Result<Context> {
    let token = &flags.common.token;
    let features = flags.common.features.resolve(&FEATURE_GATES)?;
    let object_level = features.enabled(OBJECT_LEVEL_IDENTITY);
    let locked = flags.common.acl.no_cross_namespace_refs;
    let identities = Identities::new(
        token.token_cache_max_size,
        token.token_cache_max_duration,
        object_level,
        &flags.default_service_account,
    );
    let fetching = flags.fetch_path.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&fetching).context("failed to make the folder of --fetch-path")?;
    let recorder = |manager: &'static str| match manager {
        REFLECTOR => kit.recorder.clone(),
        manager => kit
            .recorder
            .beside(kit.client.clone(), manager, kit.token.clone()),
    };
    let meters = Meters::register(&kit.metrics, stores.repositories.clone(), stores.policies.clone());
    Ok(Context {
        client: kit.client.clone(),
        repositories: Writer {
            client: kit.client.clone(),
            cache: Cache::new(stores.repositories),
            recorder: recorder(REFLECTOR),
            metrics: kit.metrics.clone(),
            manager: REFLECTOR,
        },
        policies: Writer {
            client: kit.client.clone(),
            cache: Cache::new(stores.policies),
            recorder: recorder(REFLECTOR),
            metrics: kit.metrics.clone(),
            manager: REFLECTOR,
        },
        automations: Writer {
            client: kit.client.clone(),
            cache: Cache::new(stores.automations),
            recorder: recorder(AUTOMATION),
            metrics: kit.metrics.clone(),
            manager: AUTOMATION,
        },
        sources: Cache::new(stores.sources),
        deliveries: Cache::new(stores.deliveries),
        queues: queues.clone(),
        tags: tags::Store::open(flags.storage_path.clone()).context("failed to open the storage path")?,
        clients: transport::http::Clients::default(),
        registries: oci_client::registry::Memory::default(),
        meters,
        pauses: Pauses::new(flags.registry_qps),
        sigstore: flags.sigstore.root()?,
        identities: identities.locked(locked),
        ssh_algorithms: Algorithms::new(&flags.ssh_kex_algos, &flags.ssh_hostkey_algos)?,
        workshop: Workshop {
            folder: fetching,
            packs: git_pack::Memory::default(),
        },
        writers: Writers::default(),
        kept: kept::Store::default(),
        heads: Heads::default(),
        scopes: Scopes::default(),
        replaces_push_branches: features.enabled(REPLACE_PUSH_BRANCH),
        requeue_dependency: flags.requeue_dependency,
        no_cross_namespace_refs: locked,
        jitter_percentage: flags.common.jitter.interval_jitter_percentage,
    })
}
