//! The kinds of Flux: in which group and version they are served, by which words people name them, and what can be asked of
//! them. Nothing is asked of the API server for it: the kinds are a contract, and the tests compare it with the CRDs.

use kube::api::ApiResource;
use manifest::ObjectId;

use super::Failure;

/// A kind of Flux.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// In the API's paths.
    pub(crate) plural: &'static str,
    /// What else people say, in small letters; kind and plural go without saying.
    words: &'static [&'static str],
    /// Whether there is `spec.suspend`.
    pub(crate) suspends: bool,
    /// Whether its controller answers the annotation that asks for a reconcile.
    pub(crate) answers: bool,
}

impl Kind {
    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    pub(crate) fn is_source(&self) -> bool {
        self.group == SOURCES && self.kind != "HelmChart"
    }

    pub(crate) fn id(&self, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

const SOURCES: &str = api::meta::SOURCE_GROUP;

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
pub(crate) static ALL: [Kind; 12] = [
    kind!(SOURCES, "v1", "GitRepository", "gitrepositories", ["git", "gitrepo"], true, true),
    kind!(SOURCES, "v1", "OCIRepository", "ocirepositories", ["oci", "ocirepo"], true, true),
    kind!(SOURCES, "v1", "HelmRepository", "helmrepositories", ["helm", "helmrepo"], true, true),
    kind!(SOURCES, "v1", "HelmChart", "helmcharts", ["chart", "hc"], true, true),
    kind!(SOURCES, "v1", "Bucket", "buckets", [], true, true),
    kind!(SOURCES, "v1", "ExternalArtifact", "externalartifacts", ["external", "ea"], false, false),
    kind!("source.extensions.fluxcd.io", "v1beta1", "ArtifactGenerator", "artifactgenerators", ["generator", "ag"], false, true),
    kind!(api::meta::KUSTOMIZE_GROUP, "v1", "Kustomization", "kustomizations", ["ks"], true, true),
    kind!(api::meta::HELM_GROUP, "v2", "HelmRelease", "helmreleases", ["hr"], true, true),
    kind!(api::meta::NOTIFICATION_GROUP, "v1", "Receiver", "receivers", [], true, true),
    kind!(api::meta::NOTIFICATION_GROUP, "v1beta3", "Provider", "providers", ["alert-provider", "alert-providers"], true, false),
    kind!(api::meta::NOTIFICATION_GROUP, "v1beta3", "Alert", "alerts", [], true, false),
];

/// Finds the kind that a word names, however it is written.
pub(crate) fn named(word: &str) -> Option<&'static Kind> {
    let word = word.to_lowercase();
    ALL.iter().find(|kind| {
        kind.kind.to_lowercase() == word || kind.plural == word || kind.words.contains(&word.as_str())
    })
}

/// Finds the kind that objects refer to by its exact name.
pub(crate) fn exact(kind: &str) -> Option<&'static Kind> {
    ALL.iter().find(|known| known.kind == kind)
}

/// Finds the kind of an object; None for those of others.
pub(crate) fn of(id: &ObjectId) -> Option<&'static Kind> {
    exact(&id.kind).filter(|kind| kind.group == id.group)
}

/// An object that was named on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn id(&self, namespace: &str) -> ObjectId {
        self.kind.id(namespace, &self.name)
    }
}

/// What was asked for: all objects of some kinds, or objects by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Kinds(Vec<&'static Kind>),
    Targets(Vec<Target>),
}

/// Reads `KIND`, `KIND NAME…`, `KIND/NAME…`, `all` and `sources`, and `source KIND NAME…` as Flux's users write it.
pub(crate) fn select(words: &[String]) -> Result<Selection, Failure> {
    let words = without_source(words);
    let Some((first, names)) = words.split_first() else {
        return Ok(Selection::Kinds(ALL.iter().collect()));
    };
    if first.contains('/') {
        let targets = words.iter().map(|word| target(word)).collect::<Result<_, _>>()?;
        return Ok(Selection::Targets(targets));
    }
    let group: Option<Vec<_>> = match first.to_lowercase().as_str() {
        "all" => Some(ALL.iter().collect()),
        "source" | "sources" => Some(ALL.iter().filter(|kind| kind.group == SOURCES).collect()),
        _ => None,
    };
    match group {
        Some(kinds) if names.is_empty() => Ok(Selection::Kinds(kinds)),
        Some(_) => Err(Failure::Usage(format!("{first:?} takes no names; name one kind"))),
        None => {
            let kind = known(first)?;
            if names.is_empty() {
                return Ok(Selection::Kinds(vec![kind]));
            }
            let named = |name: &String| {
                let name = name.clone();
                if name.contains('/') {
                    return Err(Failure::Usage(format!(
                        "{name:?}: write either KIND NAME… or KIND/NAME…"
                    )));
                }
                Ok(Target { kind, name })
            };
            Ok(Selection::Targets(
                names.iter().map(named).collect::<Result<_, _>>()?,
            ))
        }
    }
}

/// Reads words that have to name objects.
pub(crate) fn targets(words: &[String]) -> Result<Vec<Target>, Failure> {
    match select(words)? {
        Selection::Targets(targets) => Ok(targets),
        Selection::Kinds(_) => Err(Failure::Usage(
            "name an object, for example kustomization/app or helmrelease/web".to_owned(),
        )),
    }
}

/// Reads words that have to name one object.
pub(crate) fn one_target(words: &[String]) -> Result<Target, Failure> {
    let mut targets = targets(words)?;
    match targets.pop() {
        Some(target) if targets.is_empty() => Ok(target),
        _ => Err(Failure::Usage("name one object only".to_owned())),
    }
}

/// Drops the word that groups the sources in Flux's own command.
fn without_source(words: &[String]) -> &[String] {
    match words.split_first() {
        Some((first, rest)) if first == "source" || first == "sources" => match rest.first() {
            Some(next) if next == "all" || named(next).is_some() => {
                if next == "all" {
                    &words[..1]
                } else {
                    rest
                }
            }
            _ => words,
        },
        _ => words,
    }
}

fn target(word: &str) -> Result<Target, Failure> {
    match word.split_once('/') {
        Some((kind, name)) if !name.is_empty() && !name.contains('/') => Ok(Target {
            kind: known(kind)?,
            name: name.to_owned(),
        }),
        _ => Err(Failure::Usage(format!("{word:?} is not of the form KIND/NAME"))),
    }
}

/// How the words begin by which Flux's users name the kinds of image automation.
const IMAGES: [&str; 3] = ["imagerepositor", "imagepolic", "imageupdate"];

fn is_of_images(word: &str) -> bool {
    let word = word.to_lowercase();
    matches!(word.as_str(), "image" | "images") || IMAGES.iter().any(|begin| word.starts_with(begin))
}

fn known(word: &str) -> Result<&'static Kind, Failure> {
    named(word).ok_or_else(|| {
        if is_of_images(word) {
            return Failure::Usage(format!(
                "{word:?}: Windlass does not serve the image kinds of Flux yet; where Flux's own image controllers serve \
                 them, ask with `flux get images all` or kubectl"
            ));
        }
        let kinds: Vec<_> = ALL.iter().map(|kind| kind.kind.to_lowercase()).collect();
        Failure::Usage(format!(
            "{word:?} is no kind of Flux; there are {}",
            kinds.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(words: &str) -> Result<Selection, Failure> {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        select(&words)
    }

    fn shown(words: &str) -> String {
        match selected(words) {
            Ok(Selection::Kinds(kinds)) => kinds.iter().map(|kind| kind.kind).collect::<Vec<_>>().join(" "),
            Ok(Selection::Targets(targets)) => targets
                .iter()
                .map(|target| format!("{}/{}", target.kind.kind, target.name))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn kinds_of_image_automation_are_said_not_to_be_served() {
        for words in [
            "imagerepositories",
            "image repository app",
            "imagepolicy/app",
            "images all",
        ] {
            let Err(Failure::Usage(said)) = selected(words) else {
                panic!("{words}");
            };
            assert!(said.contains("does not serve the image kinds"), "{said}");
        }
    }

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

    #[test]
    fn objects_are_named_in_all_ways_that_flux_and_kubectl_have() {
        for (words, expected) in [
            ("ks", "Kustomization"),
            ("Kustomizations app web", "Kustomization/app Kustomization/web"),
            ("ks/app hr/web", "Kustomization/app HelmRelease/web"),
            ("source git app", "GitRepository/app"),
            ("sources git", "GitRepository"),
            (
                "sources",
                "GitRepository OCIRepository HelmRepository HelmChart Bucket ExternalArtifact",
            ),
            (
                "sources all",
                "GitRepository OCIRepository HelmRepository HelmChart Bucket ExternalArtifact",
            ),
            ("alert-providers chat", "Provider/chat"),
        ] {
            assert_eq!(shown(words), expected, "{words}");
        }
        assert_eq!(shown("").split(' ').count(), ALL.len());
        assert_eq!(shown("all"), shown(""));
        for (words, expected) in [
            (
                "pods",
                "error: \"pods\" is no kind of Flux; there are gitrepository",
            ),
            ("ks app/web", "error: \"app/web\": write either"),
            ("ks/app web", "error: \"web\" is not of the form KIND/NAME"),
            ("ks/", "error: \"ks/\" is not of the form"),
            ("all app", "error: \"all\" takes no names"),
        ] {
            assert!(shown(words).starts_with(expected), "{words}: {}", shown(words));
        }
    }
}
