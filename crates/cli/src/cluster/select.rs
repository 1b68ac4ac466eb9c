//! Selection on the command line: kinds of Flux, or objects of them, in all forms that users of Flux and
//! Kubernetes write.

use delivery_graph::kind::{ALL, Kind, named};
use manifest::ObjectId;

use super::Failure;

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

/// Selected objects: all objects of some kinds, or objects by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Kinds(Vec<&'static Kind>),
    Targets(Vec<Target>),
}

/// Reads `KIND`, `KIND NAME…`, `KIND/NAME…`, `all`, `sources` and `images`, and `source KIND NAME…` as Flux's users write it.
pub(crate) fn select(words: &[String]) -> Result<Selection, Failure> {
    let words = joined(words);
    let Some((first, names)) = words.split_first() else {
        return Ok(Selection::Kinds(ALL.iter().collect()));
    };
    if first.contains('/') {
        let targets = words.iter().map(|word| target(word)).collect::<Result<_, _>>()?;
        return Ok(Selection::Targets(targets));
    }
    let group: Option<Vec<_>> = match group(first) {
        Some((group, _)) => Some(ALL.iter().filter(|kind| kind.group == group).collect()),
        None if first.eq_ignore_ascii_case("all") => Some(ALL.iter().collect()),
        None => None,
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

/// Returns whether a word names a group of kinds.
pub(crate) fn is_group(word: &str) -> bool {
    group(word).is_some()
}

/// The API group that a word stands for in Flux's own command, and what the names of its kinds begin with.
fn group(word: &str) -> Option<(&'static str, &'static str)> {
    match word.to_lowercase().as_str() {
        "source" | "sources" => Some((api::meta::SOURCE_GROUP, "")),
        "image" | "images" => Some((api::meta::IMAGE_GROUP, "image")),
        _ => None,
    }
}

/// Makes one word of the two by which Flux's own command names a kind, such as `source git` and `image policy`.
fn joined(words: &[String]) -> Vec<String> {
    let [first, second, rest @ ..] = words else {
        return words.to_vec();
    };
    let one = match group(first) {
        Some(_) if second == "all" => first.clone(),
        Some((_, prefix)) if named(&format!("{prefix}{second}")).is_some() => format!("{prefix}{second}"),
        Some(_) if named(second).is_some() => second.clone(),
        _ => return words.to_vec(),
    };
    [&[one], rest].concat()
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

fn known(word: &str) -> Result<&'static Kind, Failure> {
    named(word).ok_or_else(|| {
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
            ("image repository app", "ImageRepository/app"),
            ("images policies", "ImagePolicy"),
            (
                "image update app web",
                "ImageUpdateAutomation/app ImageUpdateAutomation/web",
            ),
            ("imagepolicy/app", "ImagePolicy/app"),
            ("images all", "ImageRepository ImagePolicy ImageUpdateAutomation"),
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
