//! Group `fluxcd.controlplane.io`: kinds of flux-operator that resource-set-controller serves.

mod input_provider;
mod resource_set;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::meta::DISABLED_VALUE;

pub use input_provider::{
    ExternalArtifactSelector, InputFilter, InputProviderStatus, InputSchedule, InputSkip, NextSchedule,
    ProviderType, ResourceSetInputProvider, ResourceSetInputProviderSpec, ServiceFamily, Subject,
};
pub use resource_set::{
    Dependency, InputReference, InputStrategy, ResourceSet, ResourceSetSpec, ResourceSetStatus, Step,
    StrategyName,
};

/// This group.
pub const GROUP: &str = "fluxcd.controlplane.io";
/// Version of every kind in this group.
pub const VERSION: &str = "v1";

/// Finalizer of ResourceSets, by which flux-operator's are ended here, and ours there.
pub const FINALIZER: &str = "fluxcd.controlplane.io/finalizer";

/// Annotation of a kind of this group and of objects that are made: `disabled` means that they are left alone.
pub const RECONCILE: &str = "fluxcd.controlplane.io/reconcile";
/// Annotation of a kind of this group: the interval between two reconciles.
pub const RECONCILE_EVERY: &str = "fluxcd.controlplane.io/reconcileEvery";
/// Annotation of a kind of this group: the longest time for one reconcile, waits included.
pub const RECONCILE_TIMEOUT: &str = "fluxcd.controlplane.io/reconcileTimeout";
/// Annotation of a ConfigMap or Secret that is made: `namespace/name` of the one whose data it gets.
pub const COPY_FROM: &str = "fluxcd.controlplane.io/copyFrom";
/// Annotation of a ConfigMap that is made: `namespace/name[:key]` of a Secret with a kubeconfig, of which it gets what is no secret.
pub const CONVERT_KUBECONFIG_FROM: &str = "fluxcd.controlplane.io/convertKubeConfigFrom";
/// Annotation of an object that is made: `Kind/namespace/name` of ConfigMaps and Secrets, separated by commas.
pub const CHECKSUM_FROM: &str = "fluxcd.controlplane.io/checksumFrom";
/// Annotation of a Pod template: digest of what [`CHECKSUM_FROM`] names.
pub const CHECKSUM: &str = "fluxcd.controlplane.io/checksum";
/// Annotation of an object that is made: `enabled` means that it is deleted and made again once it has failed, as Jobs are.
pub const RECREATE_ON_FAILURE: &str = "fluxcd.controlplane.io/recreateOnFailure";

/// Prefix of the labels that say which ResourceSet made an object.
pub const OWNER_PREFIX: &str = "resourceset.fluxcd.controlplane.io";

/// Returns whether an object is to be left alone.
pub(crate) fn is_disabled<K: kube::Resource>(object: &K) -> bool {
    let annotations = object.meta().annotations.as_ref();
    let value = annotations.and_then(|annotations| annotations.get(RECONCILE));
    value.is_some_and(|value| value.eq_ignore_ascii_case(DISABLED_VALUE))
}

/// An object of any kind, or values by name.
pub type AnyMap = Map<String, Value>;

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn any_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

fn any_inputs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
        },
    })
}
