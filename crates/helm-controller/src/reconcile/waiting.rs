//! Reports in the status what an action waits for, while it waits.
//!
//! The hub that waits looks for causes after a few seconds and then ever more rarely, and tells only what is new: a wait that
//! is soon over costs nothing.

use std::pin::pin;

use tokio::sync::watch;

use super::record::Recorder;
use super::status;

/// Takes what is told by an action.
pub(super) fn channel() -> (impl Fn(String) + Send + Sync, watch::Receiver<String>) {
    let (sender, told) = watch::channel(String::new());
    let tell = move |text| {
        sender.send_replace(text);
    };
    (tell, told)
}

/// Carries an action out, and writes what it tells. That something could not be written does not keep it from going on.
pub(super) async fn telling<T>(
    recorder: &mut Recorder<'_>,
    mut told: watch::Receiver<String>,
    action: impl Future<Output = T>,
) -> T {
    let mut action = pin!(action);
    loop {
        tokio::select! {
            biased;
            done = &mut action => return done,
            Ok(()) = told.changed() => {}
            // No one is left who could tell.
            else => return action.await,
        }
        let status = status::waiting(&recorder.status(), &told.borrow_and_update());
        let mut write = pin!(recorder.write(&status));
        tokio::select! {
            written = &mut write => log(written),
            done = &mut action => {
                // What was sent must not arrive after what comes next.
                log(write.await);
                return done;
            }
        }
    }
}

fn log<E: std::fmt::Display>(written: Result<bool, E>) {
    if let Err(error) = written {
        tracing::debug!(%error, "failed to tell what is waited for");
    }
}
