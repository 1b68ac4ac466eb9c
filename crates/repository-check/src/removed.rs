//! APIs that a version of Kubernetes no longer serves.
//!
//! From the deprecation guide of Kubernetes. The version that no longer serves an API is announced with its deprecation,
//! so that future versions can be checked, too.

use manifest::Object;

use crate::report::{Level, Report};

/// API version, kind (empty for all), the first minor version that does not serve it, and its replacement.
type Row = (&'static str, &'static str, u32, &'static str);

const REMOVED: &[Row] = &[
    ("extensions/v1beta1", "Ingress", 22, "networking.k8s.io/v1"),
    ("extensions/v1beta1", "NetworkPolicy", 16, "networking.k8s.io/v1"),
    (
        "extensions/v1beta1",
        "PodSecurityPolicy",
        16,
        "Pod Security Admission",
    ),
    ("extensions/v1beta1", "", 16, "apps/v1"),
    ("apps/v1beta1", "", 16, "apps/v1"),
    ("apps/v1beta2", "", 16, "apps/v1"),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfiguration",
        22,
        "admissionregistration.k8s.io/v1",
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingWebhookConfiguration",
        22,
        "admissionregistration.k8s.io/v1",
    ),
    ("apiextensions.k8s.io/v1beta1", "", 22, "apiextensions.k8s.io/v1"),
    (
        "apiregistration.k8s.io/v1beta1",
        "",
        22,
        "apiregistration.k8s.io/v1",
    ),
    (
        "authentication.k8s.io/v1beta1",
        "TokenReview",
        22,
        "authentication.k8s.io/v1",
    ),
    ("authorization.k8s.io/v1beta1", "", 22, "authorization.k8s.io/v1"),
    (
        "certificates.k8s.io/v1beta1",
        "CertificateSigningRequest",
        22,
        "certificates.k8s.io/v1",
    ),
    (
        "coordination.k8s.io/v1beta1",
        "Lease",
        22,
        "coordination.k8s.io/v1",
    ),
    ("networking.k8s.io/v1beta1", "Ingress", 22, "networking.k8s.io/v1"),
    (
        "networking.k8s.io/v1beta1",
        "IngressClass",
        22,
        "networking.k8s.io/v1",
    ),
    (
        "rbac.authorization.k8s.io/v1beta1",
        "",
        22,
        "rbac.authorization.k8s.io/v1",
    ),
    ("scheduling.k8s.io/v1beta1", "", 22, "scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIDriver", 22, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSINode", 22, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "StorageClass", 22, "storage.k8s.io/v1"),
    (
        "storage.k8s.io/v1beta1",
        "VolumeAttachment",
        22,
        "storage.k8s.io/v1",
    ),
    ("batch/v1beta1", "CronJob", 25, "batch/v1"),
    (
        "discovery.k8s.io/v1beta1",
        "EndpointSlice",
        25,
        "discovery.k8s.io/v1",
    ),
    ("events.k8s.io/v1beta1", "Event", 25, "events.k8s.io/v1"),
    (
        "autoscaling/v2beta1",
        "HorizontalPodAutoscaler",
        25,
        "autoscaling/v2",
    ),
    ("policy/v1beta1", "PodDisruptionBudget", 25, "policy/v1"),
    (
        "policy/v1beta1",
        "PodSecurityPolicy",
        25,
        "Pod Security Admission",
    ),
    ("node.k8s.io/v1beta1", "RuntimeClass", 25, "node.k8s.io/v1"),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "",
        26,
        "flowcontrol.apiserver.k8s.io/v1",
    ),
    (
        "autoscaling/v2beta2",
        "HorizontalPodAutoscaler",
        26,
        "autoscaling/v2",
    ),
    (
        "storage.k8s.io/v1beta1",
        "CSIStorageCapacity",
        27,
        "storage.k8s.io/v1",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta2",
        "",
        29,
        "flowcontrol.apiserver.k8s.io/v1",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta3",
        "",
        32,
        "flowcontrol.apiserver.k8s.io/v1",
    ),
];

/// Checks one object: an error if the version that is asked for does not serve it, and a warning without one.
pub(crate) fn check(object: &Object, kubernetes: Option<u32>, report: &mut Report) {
    let gvk = object.gvk();
    let version = match gvk.group.as_str() {
        "" => gvk.version.clone(),
        group => format!("{group}/{}", gvk.version),
    };
    let found = REMOVED
        .iter()
        .find(|(of, kind, _, _)| *of == version && (kind.is_empty() || *kind == gvk.kind));
    let Some((_, _, removed, instead)) = found else {
        return;
    };
    let level = match kubernetes {
        Some(minor) if minor < *removed => return,
        Some(_) => Level::Error,
        None => Level::Warning,
    };
    let message = format!(
        "{version} {} is no longer served since Kubernetes 1.{removed}; use {instead}",
        gvk.kind
    );
    report.add("removed-api", level, message).of(object);
}
