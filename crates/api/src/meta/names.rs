//! Names that clients and other controllers look for in the cluster. They are part of the API.

/// Annotation: any change of its value asks for a reconciliation now.
pub const RECONCILE_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/requestedAt";
/// Annotation: with the same value as [`RECONCILE_REQUEST_ANNOTATION`] it asks for a forced reconciliation.
pub const FORCE_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/forceAt";
/// Annotation: with the same value as [`RECONCILE_REQUEST_ANNOTATION`] it resets the failure counts of a release.
pub const RESET_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/resetAt";
/// Annotation of a Kustomization or HelmRelease: what a person has gone back to. Not one of Flux's.
pub const ROLLBACK_TO_ANNOTATION: &str = "windlass.dev/rollback-to";
/// Annotation of a Kustomization or HelmRelease: why a person has gone back. Not one of Flux's.
pub const ROLLBACK_REASON_ANNOTATION: &str = "windlass.dev/rollback-reason";
/// Annotation on a managed object: `disabled` means that the object is left alone.
pub const RECONCILE_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/reconcile";
/// Annotation on a managed object: `disabled` means that the object is never pruned.
pub const PRUNE_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/prune";
/// Annotation on a managed object: how it is applied ([`OVERRIDE_VALUE`], [`MERGE_VALUE`] and so on).
pub const SSA_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/ssa";
/// Annotation on a managed object: `enabled` means that it is recreated when a field cannot be changed.
pub const FORCE_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/force";
/// Annotation on a managed object: `disabled` means that variables in it are not substituted.
pub const SUBSTITUTE_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/substitute";
/// Prefix of the annotations and labels that belong to a Kustomization.
pub const KUSTOMIZE_PREFIX: &str = "kustomize.toolkit.fluxcd.io";

/// Value of an annotation that switches something on.
pub const ENABLED_VALUE: &str = "enabled";
/// Value of an annotation that switches something off.
pub const DISABLED_VALUE: &str = "disabled";
/// Value of [`SSA_ANNOTATION`]: what the manifest says wins, fields of kubectl are taken over.
pub const OVERRIDE_VALUE: &str = "Override";
/// Value of [`SSA_ANNOTATION`]: fields that others added stay.
pub const MERGE_VALUE: &str = "Merge";
/// Value of [`SSA_ANNOTATION`]: the object is created if it is absent, and not changed afterwards.
pub const IF_NOT_PRESENT_VALUE: &str = "IfNotPresent";
/// Value of [`SSA_ANNOTATION`]: the object is not applied.
pub const IGNORE_VALUE: &str = "Ignore";

/// Finalizer of every kind.
pub const FINALIZER: &str = "finalizers.fluxcd.io";

/// Label on an object that a Kustomization manages: the Kustomization's name.
pub const KUSTOMIZATION_NAME_LABEL: &str = "kustomize.toolkit.fluxcd.io/name";
/// Label on an object that a Kustomization manages: the Kustomization's namespace.
pub const KUSTOMIZATION_NAMESPACE_LABEL: &str = "kustomize.toolkit.fluxcd.io/namespace";
/// Label on an object that a HelmRelease manages: the HelmRelease's name.
pub const HELM_RELEASE_NAME_LABEL: &str = "helm.toolkit.fluxcd.io/name";
/// Label on an object that a HelmRelease manages: the HelmRelease's namespace.
pub const HELM_RELEASE_NAMESPACE_LABEL: &str = "helm.toolkit.fluxcd.io/namespace";
/// Label on a ConfigMap or Secret: with [`WATCH_LABEL_VALUE`] a change of it triggers those who refer to it.
pub const WATCH_LABEL: &str = "reconcile.fluxcd.io/watch";
/// Value of [`WATCH_LABEL`].
pub const WATCH_LABEL_VALUE: &str = "Enabled";

/// Group of the sources.
pub const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";
/// Group of Kustomization.
pub const KUSTOMIZE_GROUP: &str = "kustomize.toolkit.fluxcd.io";
/// Group of HelmRelease.
pub const HELM_GROUP: &str = "helm.toolkit.fluxcd.io";
/// Group of Alert, Provider and Receiver.
pub const NOTIFICATION_GROUP: &str = "notification.toolkit.fluxcd.io";
/// Group of the kinds of images.
pub const IMAGE_GROUP: &str = "image.toolkit.fluxcd.io";

/// Key in [`Artifact::metadata`](super::Artifact::metadata): the revision that an OCI artifact was made from.
pub const ORIGIN_REVISION_KEY: &str = "org.opencontainers.image.revision";
/// Key in [`Artifact::metadata`](super::Artifact::metadata): when the content was made, such as the time of the commit.
pub const ORIGIN_CREATED_KEY: &str = "org.opencontainers.image.created";
/// Metadata of an artifact of Git: the name of the commit's author.
pub const AUTHOR_KEY: &str = "windlass.dev/author";
/// Metadata of an artifact of Git: the first line of the commit's message.
pub const SUBJECT_KEY: &str = "windlass.dev/subject";
/// Longest message that is put into a condition, in bytes, so that a status stays far below etcd's limit.
pub const MAX_CONDITION_MESSAGE_LENGTH: usize = 20_000;
