//! The kinds that events are about, and the controllers that write Events about them.

use kube::core::ApiResource;

/// Group, version, kind, plural.
type Row = (&'static str, &'static str, &'static str, &'static str);

const SOURCE: &str = "source.toolkit.fluxcd.io";
const IMAGE: &str = "image.toolkit.fluxcd.io";

const KINDS: [Row; 18] = [
    (SOURCE, "v1", "Bucket", "buckets"),
    (SOURCE, "v1", "GitRepository", "gitrepositories"),
    (SOURCE, "v1", "HelmChart", "helmcharts"),
    (SOURCE, "v1", "HelmRepository", "helmrepositories"),
    (SOURCE, "v1", "OCIRepository", "ocirepositories"),
    (SOURCE, "v1", "ExternalArtifact", "externalartifacts"),
    (
        "source.extensions.fluxcd.io",
        "v1beta1",
        "ArtifactGenerator",
        "artifactgenerators",
    ),
    (
        "kustomize.toolkit.fluxcd.io",
        "v1",
        "Kustomization",
        "kustomizations",
    ),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases"),
    (IMAGE, "v1", "ImageRepository", "imagerepositories"),
    (IMAGE, "v1", "ImagePolicy", "imagepolicies"),
    (IMAGE, "v1", "ImageUpdateAutomation", "imageupdateautomations"),
    (
        api::delivery::GROUP,
        "v1alpha1",
        "ChangeRequest",
        "changerequests",
    ),
    (api::delivery::GROUP, "v1alpha1", "Pipeline", "pipelines"),
    (api::delivery::GROUP, "v1alpha1", "Preview", "previews"),
    (
        api::delivery::GROUP,
        "v1alpha1",
        "EnvironmentPolicy",
        "environmentpolicies",
    ),
    (api::flux_operator::GROUP, "v1", "ResourceSet", "resourcesets"),
    (
        api::flux_operator::GROUP,
        "v1",
        "ResourceSetInputProvider",
        "resourcesetinputproviders",
    ),
];

/// Names of the controllers in the Events that they write.
pub const CONTROLLERS: [&str; 8] = [
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "image-reflector-controller",
    "image-automation-controller",
    "source-watcher",
    "pipeline-controller",
    "flux-operator",
];

/// Kinds that others are made of.
pub const SOURCES: [&str; 6] = [
    "Bucket",
    "GitRepository",
    "HelmChart",
    "HelmRepository",
    "OCIRepository",
    "ExternalArtifact",
];

/// How a kind is read; None if it is none of ours.
pub fn resource(kind: &str) -> Option<ApiResource> {
    let (group, version, kind, plural) = *KINDS.iter().find(|row| row.2 == kind)?;
    Some(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    })
}

/// Returns whether a definition of this name is of one of ours.
pub fn is_definition(name: &str) -> bool {
    let is_of = |row: &Row| name.strip_prefix(row.3).and_then(|rest| rest.strip_prefix('.')) == Some(row.0);
    KINDS.iter().any(is_of)
}

/// Returns whether a kind of this group is ours.
pub fn is_ours(group: &str, kind: &str) -> bool {
    KINDS.iter().any(|row| row.0 == group && row.2 == kind)
}
