//! Freezes of ResourceSets: while one is in force only the objects may be applied that were applied last.

use std::sync::Arc;

use api::meta::{StatusObject as _, condition_types, reasons};
use change_window::freeze::InForce;
use controller_kit::conditions;
use controller_kit::events::Severity;
use controller_kit::record::Unrecorded;
use jiff::Timestamp;
use reconcile_kit::freezes;
use reconcile_kit::writer::Frame;

use super::{Ended, Pass};

/// Returns how a run ends that may not apply this revision.
pub(super) fn check(pass: &Pass<'_>, revision: &str, now: Timestamp) -> Option<Ended> {
    let freeze = pass.context.freezes.of(&*pass.object, now).now?;
    // A status may be forged; what this process has applied itself counts first.
    let status = pass.object.status.as_ref();
    let known = pass.context.memory.applied_of(pass.key);
    let known = known.or_else(|| status?.last_applied_revision.clone());
    let is_delivered = known.as_deref() == Some(revision);
    (!is_delivered || !freeze.corrects_drift).then_some(Ended::Frozen(freeze, !is_delivered))
}

/// Says what waits, if something does.
pub(super) async fn record(
    pass: &mut Pass<'_>,
    freeze: &InForce,
    waits: bool,
    now: Timestamp,
) -> Result<(), Unrecorded> {
    let generation = pass.object.metadata.generation.unwrap_or_default();
    let next = &mut pass.next;
    freezes::thawed(&mut next.conditions, now);
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    let revision = pass.revision.as_deref().unwrap_or_default();
    let message = format!(
        "revision {} waits {freeze}",
        revision.get(..19).unwrap_or(revision)
    );
    if waits {
        let is_delivered = next.last_applied_revision.is_some();
        let frame = Frame {
            generation,
            requested_at: None,
            now,
        };
        freezes::report(&mut next.conditions, frame, &message, is_delivered);
    }
    next.observed_generation = Some(generation);
    let known = conditions::get(pass.object.conditions(), condition_types::FROZEN);
    let is_news = waits && known.is_none_or(|known| known.message != message);
    let sets = &pass.context.sets;
    let object = sets.write(Arc::clone(&pass.object), &pass.next).await?;
    if is_news {
        sets.publish(&object, Severity::Info, reasons::FROZEN, &message);
    }
    Ok(())
}
