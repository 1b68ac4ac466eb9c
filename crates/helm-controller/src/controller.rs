//! The controller: shared context, watches, and the work on the queue.

use std::sync::Arc;

use api::delivery::FreezeKind;
use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::ValuesKind;
use api::source::{ExternalArtifact, HelmChart, OCIRepository};
use controller_kit::flags::ALL_CONFIGS;
use controller_kit::queue::Slot;
use controller_kit::runtime::{scoped_api, watch_changes};
use controller_kit::{Context as Kit, ObjectKey};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use reconcile_kit::freezes::Freezes;
use reconcile_kit::setup::{self, Setup};
use reconcile_kit::{configs, sources};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use verification_policy::images::Judge;

use crate::charts::Charts;
use crate::context::Context;
use crate::flags::{Flags, NAME, Settings};
use crate::follow::{self, Facts};
use crate::memory::Memory;
use crate::reconcile::reconcile;
use crate::sources::Sources;

/// Watches and reconciles until the process is told to stop.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let settings = Settings::from_flags(&flags)?;
    let delivery = flags.delivery.clone();
    let watch = &delivery.common.watch;
    let (releases, releases_changed) = watch_changes(
        scoped_api(&kit.client, watch),
        watcher::Config::default(),
        |object| Some(Facts::from_object(object)),
    );
    let (charts, charts_changed) = sources::watch::<HelmChart>(&kit.client, watch);
    let (oci_repositories, oci_changed) = sources::watch::<OCIRepository>(&kit.client, watch);
    let (external, external_changed) = sources::watch::<ExternalArtifact>(&kit.client, watch);
    let (freezes, freezes_changed) = Freezes::new(
        &kit.client,
        watch,
        FreezeKind::HelmRelease,
        (&kit.namespace, delivery.freeze_exceptions),
    );
    let (images, policies_changed) = Judge::new(&kit, "HelmRelease", watch, flags.sigstore.root()?);
    let object_level = settings.policy.object_level_identity;
    let setup = Setup::new(&kit, &delivery, settings.apply, settings.artifacts, object_level)?;
    let tracks_digests = !settings.policy.ignore_chart_digest;
    let context = Arc::new(Context {
        base: setup::base(
            kit.clone(),
            &delivery,
            releases,
            setup.targets,
            settings.shard,
            NAME,
        ),
        sources: Sources {
            charts,
            oci_repositories,
            external_artifacts: external,
        },
        memory: Memory::default(),
        charts: Charts::new(setup.artifacts, flags.chart_cache_bytes, tracks_digests),
        freezes,
        images: Arc::new(images),
        policy: settings.policy,
        backoff: delivery.common.rate.into(),
        watches_configs: settings.watched_configs.as_deref() == Some(ALL_CONFIGS),
        shutdown: kit.token.clone(),
    });
    let labels = settings.watched_configs;
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = scoped_api(&context.base.client, watch);
    let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&context.base.client, watch);
    let follow = futures::future::join5(
        follow::releases(Arc::clone(&context), releases_changed),
        futures::future::join3(
            follow::source(Arc::clone(&context), ChartArtifactKind::HelmChart, charts_changed),
            follow::source(
                Arc::clone(&context),
                ChartArtifactKind::OCIRepository,
                oci_changed,
            ),
            follow::source(
                Arc::clone(&context),
                ChartArtifactKind::ExternalArtifact,
                external_changed,
            ),
        ),
        futures::future::join3(
            follow::drift(Arc::clone(&context), setup.drifts),
            context
                .freezes
                .follow(freezes_changed, |concerned: &dyn Fn(&HelmRelease) -> bool| {
                    // No run that is under way is broken off for it.
                    let concerned = context.base.concerned(concerned).into_iter();
                    concerned.for_each(|key| context.base.queue.add(key));
                }),
            context.images.follow(policies_changed, |concerns| {
                follow::ruled_anew(&context, concerns);
            }),
        ),
        futures::future::join(
            configs::follow(config_maps, labels.clone(), |key| {
                follow::touched(&context, ValuesKind::ConfigMap, &key);
            }),
            configs::follow(secrets.clone(), labels, |key| {
                follow::touched(&context, ValuesKind::Secret, &key);
            }),
        ),
        follow::records(Arc::clone(&context), secrets),
    );
    tokio::select! {
        _ = follow => anyhow::bail!("the watches ended"),
        () = setup.credentials => anyhow::bail!("the watch of the artifact service's authority ended"),
        result = work(Arc::clone(&context), &flags, kit.token) => result,
    }
}

/// Works on the queue once everything has been listed: a source that is not in the cache yet is not a missing one.
async fn work(context: Arc<Context>, flags: &Flags, token: CancellationToken) -> anyhow::Result<()> {
    let listed = async {
        context.base.objects.store().wait_until_ready().await?;
        context.sources.charts.wait_until_ready().await?;
        context.sources.oci_repositories.wait_until_ready().await?;
        context.sources.external_artifacts.wait_until_ready().await?;
        context.freezes.wait_until_ready().await;
        context.images.wait_until_ready().await;
        Ok::<_, anyhow::Error>(())
    };
    tokio::select! {
        result = listed => result?,
        () = token.cancelled() => return Ok(()),
    }
    let queue = context.base.queue.clone();
    let handler = move |key: ObjectKey, slot: Slot| {
        let span = controller_kit::telemetry::reconcile_span::<HelmRelease>(&key);
        reconcile(Arc::clone(&context), key, slot).instrument(span)
    };
    queue
        .run_in_slots(
            flags.concurrent.into(),
            flags.graceful_shutdown_timeout,
            token,
            handler,
        )
        .await;
    Ok(())
}
