use serde_json::json;

use super::*;

#[test]
fn an_event_reads_and_writes_as_in_flux() {
    let written = json!({
        "involvedObject": {
            "kind": "Kustomization",
            "namespace": "apps",
            "name": "webapp",
            "uid": "7d0cdc51-ddcf-4743-b223-83ca5c699632",
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        },
        "severity": "error",
        "timestamp": "2022-10-28T07:26:19Z",
        "message": "spec.type: Unsupported value: Ingress",
        "reason": "ValidationFailed",
        "metadata": { "kustomize.toolkit.fluxcd.io/revision": "main/731f7ea" },
        "reportingController": "kustomize-controller",
    });
    let event: Event = serde_json::from_value(written.clone()).expect("it is an event");
    assert!(event.is_error());
    assert_eq!(event.of_group(keys::REVISION), Some("main/731f7ea"));
    assert_eq!(event.involved_object.to_string(), "Kustomization/apps/webapp");
    assert_eq!(serde_json::to_value(&event).expect("it is JSON"), written);
}

#[test]
fn missing_fields_nulls_and_unknown_severities_are_taken() {
    let written = json!({ "involvedObject": null, "metadata": null, "severity": "fatal", "timestamp": null, "more": 1 });
    let event: Event = serde_json::from_value(written).expect("it is an event");
    assert_eq!(event.severity, Severity::Other("fatal".to_owned()));
    assert_eq!(event.group(), "");
    let again = serde_json::to_value(&event).expect("it is JSON");
    assert_eq!(again["severity"], "fatal");
    assert_eq!(again["timestamp"], json!(null));
}
