//! Decides whether a scan is due. Pure.

use std::time::Duration;

use api::image::ImageRepository;
use controller_kit::runtime::should_reconcile_now;
use jiff::Timestamp;

/// When the next scan is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// Later.
    In(Duration),
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
    if should_reconcile_now(object)
        || status.canonical_image_name.as_deref() != Some(canonical)
        || status.observed_exclusion_list != object.exclusion_list()
    {
        return Due::Now;
    }
    // Only when someone asks for it.
    if object.spec.interval.to_std().is_zero() {
        return Due::In(Duration::MAX);
    }
    let next = last.0.checked_add(object.spec.interval.to_std());
    match next
        .ok()
        .and_then(|next| Duration::try_from(next.duration_since(now)).ok())
    {
        Some(rest) if !rest.is_zero() => Due::In(rest),
        _ => Due::Now,
    }
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
}
