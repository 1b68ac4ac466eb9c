//! Decides whether a scan is due. Pure.

use std::time::Duration;

use api::image::{ImageRepository, PUSHED_TAGS_ANNOTATION, PushedTags};
use controller_kit::runtime::{requested_at, should_reconcile_now};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

/// Tags that are looked for one by one.
const MAX_PUSHED: usize = 10;

/// When the next scan is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// Later.
    In(Duration),
    /// Only these tags are to be looked for, which the registry reported; all of them later.
    Tags(Vec<String>, Duration),
}

/// Says when the next scan is due.
pub(crate) fn due(object: &ImageRepository, canonical: &str, has_tags: bool, now: Timestamp) -> Due {
    let Some(status) = &object.status else {
        return Due::Now;
    };
    let last = status
        .last_scan_result
        .as_ref()
        .and_then(|last| last.scan_time.clone());
    let is_ready = controller_kit::conditions::is_ready(&status.conditions);
    let (Some(last), true, true) = (last, has_tags, is_ready) else {
        return Due::Now;
    };
    if status.canonical_image_name.as_deref() != Some(canonical)
        || status.observed_exclusion_list != object.exclusion_list()
    {
        return Due::Now;
    }
    let rest = rest(object, &last, now);
    match (should_reconcile_now(object), rest) {
        (_, None) => Due::Now,
        (false, Some(rest)) => Due::In(rest),
        (true, Some(rest)) => pushed(object).map_or(Due::Now, |tags| Due::Tags(tags, rest)),
    }
}

/// The tags that came with the request.
fn pushed(object: &ImageRepository) -> Option<Vec<String>> {
    let annotation = object.annotations().get(PUSHED_TAGS_ANNOTATION)?;
    let pushed: PushedTags = serde_json::from_str(annotation).ok()?;
    let is_current = requested_at(object) == Some(&pushed.requested_at);
    let is_short = (1..=MAX_PUSHED).contains(&pushed.tags.len());
    (is_current && is_short).then_some(pushed.tags)
}

/// The time until the interval is over; None if it is. Without an interval it never is.
fn rest(object: &ImageRepository, last: &Time, now: Timestamp) -> Option<Duration> {
    if object.spec.interval.to_std().is_zero() {
        return Some(Duration::MAX);
    }
    let next = last.0.checked_add(object.spec.interval.to_std());
    let rest = Duration::try_from(next.ok()?.duration_since(now)).ok()?;
    (!rest.is_zero()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const CANONICAL: &str = "ghcr.io/org/app";

    fn object(change: impl FnOnce(&mut Value)) -> ImageRepository {
        let mut object = json!({
            "metadata": {"name": "a", "namespace": "b", "annotations": {}},
            "spec": {"image": CANONICAL, "interval": "5m"},
            "status": {
                "canonicalImageName": CANONICAL,
                "observedExclusionList": [r"^.*\.sig$"],
                "lastScanResult": {"tagCount": 1, "scanTime": "2026-01-01T00:00:00Z", "revision": "x"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        });
        change(&mut object);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_scan_is_due_when_something_changed_or_time_is_up() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let soon = at("2026-01-01T00:02:00Z");
        let rest = Due::In(Duration::from_secs(180));
        assert_eq!(due(&object(|_| {}), CANONICAL, true, soon), rest);
        assert_eq!(
            due(&object(|_| {}), CANONICAL, false, soon),
            Due::Now,
            "no tags are kept"
        );
        assert_eq!(due(&object(|_| {}), "other", true, soon), Due::Now);
        let never = object(|object| object["spec"]["interval"] = json!("0s"));
        assert_eq!(due(&never, CANONICAL, true, soon), Due::In(Duration::MAX));
        assert_eq!(
            due(&object(|_| {}), CANONICAL, true, at("2026-01-01T00:05:00Z")),
            Due::Now
        );
        for change in [
            (|o: &mut Value| o["status"] = Value::Null) as fn(&mut Value),
            |o| o["spec"]["exclusionList"] = json!(["^x"]),
            |o| o["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"] = json!("now"),
            |o| o["status"]["conditions"][0]["status"] = json!("False"),
        ] {
            assert_eq!(due(&object(change), CANONICAL, true, soon), Due::Now);
        }
    }

    #[test]
    fn tags_that_come_with_the_request_are_looked_for_alone() {
        let soon = "2026-01-01T00:02:00Z".parse().unwrap();
        let asked = |pushed: &str| {
            let object = object(|o| {
                o["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"] = json!("now");
                o["metadata"]["annotations"][PUSHED_TAGS_ANNOTATION] = json!(pushed);
            });
            due(&object, CANONICAL, true, soon)
        };
        let tags = Due::Tags(vec!["v1".to_owned()], Duration::from_secs(180));
        assert_eq!(asked(r#"{"requestedAt": "now", "tags": ["v1"]}"#), tags);
        for all in [
            r#"{"requestedAt": "before", "tags": ["v1"]}"#,
            r#"{"requestedAt": "now", "tags": []}"#,
            r#"{"requestedAt": "now", "tags": ["0","1","2","3","4","5","6","7","8","9","10"]}"#,
            "v1",
        ] {
            assert_eq!(asked(all), Due::Now, "{all}");
        }
    }
}
