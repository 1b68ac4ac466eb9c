//! The end of an object: its release is uninstalled and its HelmChart deleted, then it may go.
//!
//! It must not hang for what cannot be helped: without storage, account or kubeconfig there is no one who could uninstall, and
//! as in Flux the release stays. A suspended object leaves everything as it is.

use std::sync::Arc;

use api::helm::HelmRelease;
use api::meta::condition_types;
use cluster_access::targets::Target;
use controller_kit::conditions::{self, Fact};
use controller_kit::queue::{Outcome as Next, Slot};
use controller_kit::{ObjectKey, finalizer};
use error_chain::chain;
use jiff::Timestamp;
use reconcile_kit::base::{owner, placement};

use super::observe::Observed;
use super::record::Recorder;
use super::template;
use super::world::{Place, World};
use crate::context::Context;
use crate::memory::Ends;
use crate::release;

/// Flux's reason of Ready while it cannot be uninstalled.
const UNINSTALL_FAILED: &str = "UninstallFailed";

/// Uninstalls, deletes and lets go.
pub(super) async fn finalize(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    slot: Slot,
) -> Next {
    let object = &observed.object;
    if !finalizer::is_set(&**object) {
        context.forget(key);
        return Next::Done;
    }
    if !object.spec.suspend {
        if let Err(next) = uninstall(context, key, object, &mut recorder, &slot).await {
            return next;
        }
        if let Some(chart) = template::last(context, object)
            && let Err(error) = template::remove(context, &recorder, &chart).await
        {
            return recorder.failed(UNINSTALL_FAILED, error.message()).await;
        }
    }
    match recorder.remove_finalizer().await {
        Ok(()) => {
            context.forget(key);
            Next::Done
        }
        Err(error) => recorder.unwritten(&error),
    }
}

async fn uninstall(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<HelmRelease>,
    recorder: &mut Recorder<'_>,
    slot: &Slot,
) -> Result<(), Next> {
    let mut status = recorder.status();
    if status.storage_namespace.as_deref().unwrap_or_default().is_empty() {
        tracing::info!("skipping Helm release uninstallation: no storage namespace configured");
        return Ok(());
    }
    let target = match target(context, object).await {
        Ok(Some(target)) => target,
        Ok(None) => return Ok(()),
        Err(message) => {
            let generation = object.metadata.generation.unwrap_or_default();
            let fact = Fact::does_not_hold(condition_types::READY, UNINSTALL_FAILED, message.clone());
            conditions::set(&mut status.conditions, fact, generation, Timestamp::now());
            tracing::error!(error = message, "failed to uninstall");
            return Err(match recorder.write(&status).await {
                Ok(_) => Next::Backoff,
                Err(error) => recorder.unwritten(&error),
            });
        }
    };
    let uninstalled = {
        let mut world = World::new(context, key, object, recorder, slot, Ends::new(&context.shutdown));
        world.enter(Place::of_status(object, &status, &target));
        release::uninstall(&mut world, object, &mut status).await
    };
    if let Err(failure) = uninstalled {
        tracing::error!(error = %failure, "failed to uninstall");
        return Err(match recorder.write(&status).await {
            Ok(_) => Next::Backoff,
            Err(error) => recorder.unwritten(&error),
        });
    }
    context.base.targets.forget(&owner(key));
    tracing::info!("uninstalled Helm release for deleted resource");
    Ok(())
}

/// Where to uninstall; None if no one can any more.
async fn target(context: &Context, object: &HelmRelease) -> Result<Option<Arc<Target>>, String> {
    let placement = placement(object);
    // An account of a remote cluster is that cluster's.
    if placement.kube_config.is_none() {
        match context.base.targets.has_account(placement).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(
                    "skipping Helm release uninstallation: the service account to impersonate is gone"
                );
                return Ok(None);
            }
            Err(error) => {
                return Err(format!(
                    "failed to confirm ServiceAccount can be used to uninstall release: {}",
                    chain(&error)
                ));
            }
        }
    }
    match context.base.targets.target_of(placement).await {
        Ok(target) => Ok(Some(target)),
        Err(error) if error.is_missing() => {
            tracing::error!(error = chain(&error), "skipping Helm release uninstallation");
            Ok(None)
        }
        Err(error) => Err(format!(
            "failed to build REST client getter to uninstall release: {}",
            chain(&error)
        )),
    }
}
