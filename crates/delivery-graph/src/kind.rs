//! The kinds of Flux: in which group and version they are served, by which words people name them, and what can be asked of
//! them. Nothing is asked of the API server for it: the kinds are a contract, and the tests compare it with the CRDs.

use kube::api::ApiResource;
use manifest::ObjectId;

/// A kind of Flux.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// The version that is asked for.
    pub version: &'static str,
    /// Its name in manifests.
    pub kind: &'static str,
    /// In the API's paths.
    pub plural: &'static str,
    /// Other names that people use, in small letters; kind and plural are implied.
    words: &'static [&'static str],
    /// True if there is `spec.suspend`.
    pub suspends: bool,
    /// True if its controller answers the annotation that asks for a reconcile.
    pub answers: bool,
}

impl Kind {
    /// Returns how the API server names it.
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Returns whether its objects hold content that others are made of.
    pub fn is_source(&self) -> bool {
        self.group == SOURCES && self.kind != "HelmChart"
    }

    /// Returns whether its objects have an artifact in their status.
    pub fn has_artifact(&self) -> bool {
        self.group == SOURCES
    }

    /// Returns the identity of an object.
    pub fn id(&self, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

const SOURCES: &str = api::meta::SOURCE_GROUP;
const IMAGES: &str = api::meta::IMAGE_GROUP;

macro_rules! kind {
    ($group:expr, $version:literal, $kind:literal, $plural:literal, $words:expr, $suspends:literal, $answers:literal) => {
        Kind {
            group: $group,
            version: $version,
            kind: $kind,
            plural: $plural,
            words: &$words,
            suspends: $suspends,
            answers: $answers,
        }
    };
}

/// In the order in which the data moves.
#[rustfmt::skip] // one line for each kind
pub static ALL: [Kind; 22] = [
    kind!(SOURCES, "v1", "GitRepository", "gitrepositories", ["git", "gitrepo"], true, true),
    kind!(SOURCES, "v1", "OCIRepository", "ocirepositories", ["oci", "ocirepo"], true, true),
    kind!(SOURCES, "v1", "HelmRepository", "helmrepositories", ["helm", "helmrepo"], true, true),
    kind!(SOURCES, "v1", "HelmChart", "helmcharts", ["chart", "hc"], true, true),
    kind!(SOURCES, "v1", "Bucket", "buckets", [], true, true),
    kind!(SOURCES, "v1", "ExternalArtifact", "externalartifacts", ["external", "ea"], false, false),
    kind!("source.extensions.fluxcd.io", "v1beta1", "ArtifactGenerator", "artifactgenerators", ["generator", "ag"], false, true),
    kind!(api::meta::KUSTOMIZE_GROUP, "v1", "Kustomization", "kustomizations", ["ks"], true, true),
    kind!(api::meta::HELM_GROUP, "v2", "HelmRelease", "helmreleases", ["hr"], true, true),
    kind!(IMAGES, "v1", "ImageRepository", "imagerepositories", ["imagerepo", "imgrepo"], true, true),
    kind!(IMAGES, "v1", "ImagePolicy", "imagepolicies", ["imagepol", "imgpol"], true, true),
    kind!(IMAGES, "v1", "ImageUpdateAutomation", "imageupdateautomations", ["imageupdate", "iua", "imgupd", "imgauto"], true, true),
    kind!(api::delivery::GROUP, "v1alpha1", "ChangePolicy", "changepolicies", [], false, false),
    kind!(api::delivery::GROUP, "v1alpha1", "ChangeRequest", "changerequests", [], false, true),
    kind!(api::delivery::GROUP, "v1alpha1", "Freeze", "freezes", [], true, false),
    kind!(api::delivery::GROUP, "v1alpha1", "VerificationPolicy", "verificationpolicies", [], true, false),
    kind!(api::delivery::GROUP, "v1alpha1", "Pipeline", "pipelines", [], true, true),
    kind!(api::delivery::GROUP, "v1alpha1", "Preview", "previews", [], true, true),
    kind!(api::delivery::GROUP, "v1alpha1", "EnvironmentPolicy", "environmentpolicies", ["environments"], true, true),
    kind!(api::meta::NOTIFICATION_GROUP, "v1", "Receiver", "receivers", [], true, true),
    kind!(api::meta::NOTIFICATION_GROUP, "v1beta3", "Provider", "providers", ["alert-provider", "alert-providers"], true, false),
    kind!(api::meta::NOTIFICATION_GROUP, "v1beta3", "Alert", "alerts", [], true, false),
];

/// Finds the kind that a word names, however it is written.
pub fn named(word: &str) -> Option<&'static Kind> {
    let word = word.to_lowercase();
    ALL.iter().find(|kind| {
        kind.kind.to_lowercase() == word || kind.plural == word || kind.words.contains(&word.as_str())
    })
}

/// Finds the kind that objects refer to by its exact name.
pub fn exact(kind: &str) -> Option<&'static Kind> {
    ALL.iter().find(|known| known.kind == kind)
}

/// Reads `Kind/namespace/name`, as messages name objects of Flux; None for those of others.
pub fn parse_id(text: &str) -> Option<ObjectId> {
    let mut parts = text.split('/');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let kind = exact(kind).filter(|_| parts.next().is_none())?;
    Some(kind.id(namespace, name))
}

/// Finds the kind of an object; None for those of others.
pub fn kind_of(id: &ObjectId) -> Option<&'static Kind> {
    exact(&id.kind).filter(|kind| kind.group == id.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_those_of_the_crds() {
        let mut ours: Vec<_> = ALL
            .iter()
            .map(|kind| (kind.group, kind.kind, kind.plural, kind.version, kind.suspends))
            .collect();
        let crds = api::crd::all();
        let mut theirs: Vec<_> = crds
            .iter()
            .map(|crd| {
                let spec = &crd.spec;
                let version = spec.versions.iter().find(|version| version.storage).unwrap();
                let schema = serde_json::to_value(&version.schema).unwrap();
                let suspends = schema
                    .pointer("/openAPIV3Schema/properties/spec/properties/suspend")
                    .is_some();
                (
                    &*spec.group,
                    &*spec.names.kind,
                    &*spec.names.plural,
                    &*version.name,
                    suspends,
                )
            })
            .collect();
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn no_word_names_two_kinds() {
        let mut seen = std::collections::HashSet::new();
        for kind in &ALL {
            let own = [kind.kind.to_lowercase(), kind.plural.to_owned()];
            for word in own
                .into_iter()
                .chain(kind.words.iter().map(|&word| word.to_owned()))
            {
                assert!(seen.insert(word.clone()), "{word}");
            }
        }
    }
}
