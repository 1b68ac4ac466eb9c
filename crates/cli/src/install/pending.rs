//! A release whose making was broken off: by a kill, or it is still being made.

use std::time::Duration;

use helm_release::{Record, Release, Status};
use jiff::Timestamp;

use crate::cluster::Failure;
use crate::platform::lock::Lock;
use crate::platform::{Platform, RELEASE};

/// Reads the newest revision. One that was broken off is taken for failed, so that the next one may be made.
pub(crate) async fn unlocked(
    platform: &Platform,
    lock: &Lock,
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<Option<Record>, Failure> {
    let Some(last) = platform.last().await? else {
        return Ok(None);
    };
    let release = &last.release;
    if !is_open(&release.info.status) {
        return Ok(Some(last));
    }
    let age = age(release, Timestamp::now());
    if !is_left_behind(age, lock.after_a_kill, timeout) {
        return Err(Failure::Request {
            what: format!("change the release {RELEASE}"),
            why: format!(
                "its revision {} is {} since {}s, by somebody else: if that is nobody any more, try again after {}s",
                release.version,
                release.info.status,
                age.unwrap_or_default(),
                timeout.as_secs()
            ),
        });
    }
    report_line(&format!(
        "revision {} was left {}: it counts as failed",
        release.version, release.info.status
    ));
    platform.unlock(&last).await?;
    platform.last().await
}

fn is_open(status: &Status) -> bool {
    status.is_pending() || *status == Status::Uninstalling
}

/// Seconds since it was begun.
fn age(release: &Release, now: Timestamp) -> Option<i64> {
    let info = &release.info;
    let began = info.deleted.as_ref().or(info.last_deployed.as_ref())?;
    Some(now.as_second().saturating_sub(began.at().as_second()))
}

/// A command of ours that works holds the lock. So either it was killed, or it is helm: which does not wait for longer than it
/// was told to, by default as long as we do.
fn is_left_behind(age: Option<i64>, after_a_kill: bool, timeout: Duration) -> bool {
    let limit = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    after_a_kill || age.is_none_or(|age| age > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_be_making_any_more_was_left_behind() {
        let timeout = Duration::from_secs(300);
        for (age, after_a_kill, expected) in [
            (Some(10), false, false),
            (Some(10), true, true),
            (Some(301), false, true),
            (None, false, true),
        ] {
            assert_eq!(
                is_left_behind(age, after_a_kill, timeout),
                expected,
                "{age:?} {after_a_kill}"
            );
        }
        assert!(
            is_open(&Status::PendingUpgrade) && is_open(&Status::Uninstalling) && !is_open(&Status::Failed)
        );
    }
}
