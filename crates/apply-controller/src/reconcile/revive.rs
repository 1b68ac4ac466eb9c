//! A run that failed because a namespace or a definition is being deleted is tried again as soon as that has ended.
//!
//! Who deleted it is not known; the retry interval stays for whatever the watch does not tell.

use std::sync::Arc;
use std::time::Duration;

use reconcile_kit::base::placement;
use tokio_util::task::AbortOnDropHandle;

use super::ended::CutOff;
use super::pass::Pass;

/// After so many failures in a row that ended like this, the retry interval decides: something else is wrong.
const REVIVALS: u8 = 5;
/// Admission goes on refusing for a moment after the end.
const PAUSE: Duration = Duration::from_millis(250);

/// Wakes the object when what these objects lack has ended, or is back.
pub(super) fn when_possible(pass: &Pass<'_>, cut_off: CutOff) {
    if cut_off.objects.is_empty() {
        return;
    }
    let (waker, woken, object) = (
        Arc::clone(pass.context),
        pass.key.clone(),
        Arc::clone(&pass.observed.object),
    );
    let wait = async move {
        let Ok(target) = waker.base.targets.target_of(placement(&*object)).await else {
            return;
        };
        target.engine.wait_for_end(&cut_off.objects, &cut_off.own).await;
        tokio::time::sleep(PAUSE).await;
        waker.memory.with(&woken, |entry| entry.revived = true);
        waker.base.queue.add(woken);
    };
    pass.remembered(|entry| {
        entry.revivals = entry.revivals.saturating_add(1);
        if entry.revivals <= REVIVALS {
            entry.revival = Some(AbortOnDropHandle::new(tokio::spawn(wait)));
        }
    });
}
