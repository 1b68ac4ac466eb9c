//! The files of a commit with the images of policies in them. Pure but for the pack; runs on a blocking thread.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use api::image::ImagePolicy;
use git_client::ObjectId;
use git_client::edit::Changes;
use git_client::pack::{self, Node, Pack};
use git_writer::files::{below, cleaned};
use image_policy::hold::Holds;
use kube::ResourceExt as _;
use yaml_setters::is_yaml;
use yaml_setters::{Change, Image, Outcome, Setters, Unmarked};

use super::scope::Scope;

/// Key of markers.
const MARKER: &str = "$imagepolicy";
/// Places that are named in the status.
const MAX_NOTES: usize = 20;
/// Characters of each.
const MAX_NOTE: usize = 400;

/// Why nothing can be updated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The commit cannot be read.
    #[error(transparent)]
    Read(#[from] pack::Error),
    /// `spec.update.path` is not there.
    #[error("path '{0}' does not exist in the repository")]
    NoPath(String),
}

/// What changed, by file.
pub(crate) type Files = BTreeMap<String, Vec<Change>>;

/// Updated files.
#[derive(Debug, Default)]
pub(crate) struct Updated {
    /// New contents, by path in the repository.
    pub(crate) contents: Changes,
    /// What changed, by path below `spec.update.path`.
    pub(crate) files: Files,
    /// Markers that do nothing and files that cannot be read: `file:line: problem`.
    pub(crate) notes: Vec<String>,
    /// How many of those there are.
    pub(crate) problems: usize,
    /// What became of the markers of each policy, by `namespace:name`.
    pub(crate) tallies: BTreeMap<String, Tally>,
}

/// What became of the markers of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Values that are changed.
    pub(crate) changed: usize,
    /// Values that are what the policy has chosen.
    pub(crate) kept: usize,
    /// One of the values has the digest of the image, if it has one.
    pub(crate) has_digest: bool,
}

/// What is set where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    /// Files and folders; none is the whole repository.
    paths: Vec<String>,
    /// The values that markers may name.
    setters: Setters,
    /// Images that are set without markers.
    unmarked: Unmarked,
    /// Policies whose choice is held back: what they mark stays as it is. By `namespace:name`.
    held: BTreeSet<String>,
}

impl Values {
    /// Returns whether files without markers may change, too.
    fn is_without_markers(&self) -> bool {
        self.unmarked.containers || self.unmarked.kustomizations || self.unmarked.values
    }
}

/// How markers name a policy.
pub(crate) fn key(policy: &ImagePolicy) -> String {
    let meta = &policy.metadata;
    let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
    format!("{}:{}", namespace.unwrap_or_default(), name.unwrap_or_default())
}

/// The policy that a marker names, without the part of its image.
pub(super) fn policy_of(setter: &str) -> &str {
    let mut colons = setter.match_indices(':');
    match (colons.next(), colons.next()) {
        (_, Some((end, _))) => &setter[..end],
        _ => setter,
    }
}

/// The tags of a policy that people, or a delivery that failed, hold back. What cannot be read holds nothing.
pub(super) fn holds_of(policy: &ImagePolicy) -> Holds {
    let annotation = policy.annotations().get(image_policy::hold::ANNOTATION);
    Holds::parse(annotation.map(String::as_str)).unwrap_or_default()
}

/// The values of what policies have chosen.
pub(crate) fn values<'a>(policies: impl IntoIterator<Item = &'a ImagePolicy>, scope: &Scope) -> Values {
    let mut values = Values {
        paths: scope.paths.clone(),
        unmarked: scope.unmarked.clone(),
        ..Values::default()
    };
    for policy in policies {
        let Some(image) = policy
            .status
            .as_ref()
            .and_then(|status| status.latest_ref.as_ref())
        else {
            continue;
        };
        let key = key(policy);
        if holds_of(policy)
            .get_image(&image.tag, image.digest.as_deref())
            .is_some()
        {
            values.held.insert(key);
            continue;
        }
        values.unmarked.images.push(Image {
            setter: key.clone(),
            name: image.name.clone(),
            tag: image.tag.clone(),
            digest: image.digest.clone().unwrap_or_default(),
        });
        values.setters.insert(format!("{key}:tag"), image.tag.clone());
        values.setters.insert(format!("{key}:name"), image.name.clone());
        values
            .setters
            .insert(format!("{key}:digest"), image.digest.clone().unwrap_or_default());
        values.setters.insert(key, image.to_string());
    }
    values
}

/// Sets values in all files below the paths. `plain` are files that are known to have no marker; afterwards it has those of
/// this commit.
pub(crate) fn update(pack: &Pack, values: &Values, plain: &mut HashSet<ObjectId>) -> Result<Updated, Error> {
    let mut roots = Vec::new();
    for path in &values.paths {
        let root = cleaned(path);
        if !root.is_empty() && pack.entry(&root)?.is_none() {
            return Err(Error::NoPath(path.clone()));
        }
        roots.push(root);
    }
    if roots.is_empty() {
        roots.push(String::new());
    }
    let is_within = |path: &str| {
        let mut roots = roots.iter();
        roots.any(|root| root.is_empty() || path == root || below(path, root).is_some())
    };
    let mut files = Vec::new();
    pack.walk(|entry| {
        let is_within = is_within(entry.path);
        let leads_there = || roots.iter().any(|root| below(root, entry.path).is_some());
        match entry.kind {
            Node::Directory => Ok(is_within || leads_there()),
            Node::File { .. } if is_within && is_yaml(entry.path) => {
                files.push((entry.path.to_owned(), entry.id));
                Ok(false)
            }
            _ => Ok::<_, pack::Error>(false),
        }
    })?;
    let mut updated = Updated::default();
    let mut content = Vec::new();
    let known = std::mem::take(plain);
    for (path, id) in files {
        if known.contains(&id) && !values.is_without_markers() {
            plain.insert(id);
            continue;
        }
        match pack.read_blob(id, yaml_setters::MAX_FILE as u64, &mut content) {
            Ok(()) => {}
            Err(pack::Error::ReadObject { .. }) => {
                updated.note(format!("{path}: the file is too large"));
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        let has_markers = yaml_setters::may_have_markers(&content, MARKER);
        if has_markers || values.unmarked.may_be_in(&content) {
            // Paths are told below the one that was asked for.
            let root = match roots.as_slice() {
                [root] => root,
                _ => "",
            };
            updated.file(root, path, &content, values);
        } else if !values.is_without_markers() {
            plain.insert(id);
        }
    }
    Ok(updated)
}

impl Updated {
    /// The notes, with how many there are besides.
    pub(crate) fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.problems > notes.len() {
            notes.push(format!("and {} more", self.problems - notes.len()));
        }
        notes
    }

    fn file(&mut self, root: &str, path: String, content: &[u8], values: &Values) {
        let Ok(text) = std::str::from_utf8(content) else {
            return self.note(format!("{path}: the file is not UTF-8"));
        };
        let update = match yaml_setters::update_with(text, MARKER, &values.setters, &values.unmarked) {
            Ok(update) => update,
            Err(error) => return self.note(format!("{path}:{}: {}", error.line, error.problem)),
        };
        for marker in update.markers {
            let (line, setter) = (marker.line, marker.setter);
            let policy = policy_of(&setter);
            match marker.outcome {
                Outcome::Changed => self.tally(&setter).changed += 1,
                Outcome::UpToDate => self.tally(&setter).kept += 1,
                Outcome::UnknownSetter if values.held.contains(policy) => {}
                Outcome::UnknownSetter => self.note(format!(
                    "{path}:{line}: the marker names '{setter}', which is no policy that this automation applies"
                )),
                Outcome::Misplaced(problem) => self.note(format!("{path}:{line}: {problem}")),
            }
        }
        if let Some(text) = update.text {
            let shown = match below(&path, root) {
                Some(rest) => rest.to_owned(),
                None if path == root => path.rsplit('/').next().unwrap_or_default().to_owned(),
                None => path.clone(),
            };
            self.files.insert(shown, update.changes);
            self.contents.insert(path, Some(text.into_bytes().into()));
        }
    }

    fn tally(&mut self, setter: &str) -> &mut Tally {
        let policy = policy_of(setter);
        let tally = self.tallies.entry(policy.to_owned()).or_default();
        tally.has_digest |= matches!(&setter[policy.len()..], "" | ":digest");
        tally
    }

    /// Paths and setters are a repository's: what they say is cut, and made fit to be shown.
    fn note(&mut self, text: String) {
        self.problems += 1;
        if self.notes.len() < MAX_NOTES {
            let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            self.notes.push(plain.take(MAX_NOTE).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_sets_the_image_and_its_parts() {
        let policy: ImagePolicy = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "app", "namespace": "ns"},
            "spec": {"imageRepositoryRef": {"name": "app"}, "policy": {}},
            "status": {"latestRef": {"name": "ghcr.io/app", "tag": "v1", "digest": "sha256:1"}},
        }))
        .unwrap();
        let values = values([&policy], &Scope::default());
        let get = |key: &str| values.setters.get(key).map(String::as_str);
        assert_eq!(get("ns:app"), Some("ghcr.io/app:v1@sha256:1"));
        assert_eq!(get("ns:app:tag"), Some("v1"));
        assert_eq!(get("ns:app:name"), Some("ghcr.io/app"));
        assert_eq!(get("ns:app:digest"), Some("sha256:1"));
        assert_eq!(get("other:app"), None);
    }

    #[test]
    fn a_marker_names_a_policy_and_perhaps_a_part() {
        for (setter, expected) in [
            ("ns:app", "ns:app"),
            ("ns:app:tag", "ns:app"),
            ("app", "app"),
            ("", ""),
        ] {
            assert_eq!(policy_of(setter), expected);
        }
    }

    #[test]
    fn a_choice_that_is_held_back_is_not_set() {
        let policy: ImagePolicy = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "app", "namespace": "ns",
                "annotations": {"windlass.dev/held-tags": r#"[{"tag": "v1"}]"#}},
            "spec": {"imageRepositoryRef": {"name": "app"}, "policy": {}},
            "status": {"latestRef": {"name": "ghcr.io/app", "tag": "v1"}},
        }))
        .unwrap();
        let values = values([&policy], &Scope::default());
        assert!(values.setters.is_empty());
        assert!(values.held.contains("ns:app"));
    }
}
