//! What an application carries: the version of its chart, and its images.
//!
//! In: a HelmRelease or Kustomization as the API server has it, a tenant's text. Out: values by their field, whose name is
//! `HelmRelease/shop: chart` or `HelmRelease/shop: image ghcr.io/shop/web`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::delivery::{AppKind, AppReference, Carried};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use yaml_setters::split;

use crate::Values;

/// Fields of one application; the rest is not looked at.
const MAX_FIELDS: usize = 100;
/// Bytes of a value. Versions and references of images are shorter.
const MAX_VALUE: usize = 512;
/// Levels of values of a chart that are looked at.
const MAX_DEPTH: usize = 32;

/// One field of an application.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Version of the chart.
    Chart,
    /// Tag and digest of the image with this name.
    Image(String),
    /// Folder that a Kustomization is built from.
    Path,
    /// What a source follows.
    Reference(Reference),
}

/// What a source follows, as its `spec.ref` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// A tag of an OCIRepository or a GitRepository.
    Tag,
    /// A digest of an OCIRepository.
    Digest,
    /// A commit of a GitRepository.
    Commit,
}

impl Reference {
    /// The name of the field in `spec.ref`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Digest => "digest",
            Self::Commit => "commit",
        }
    }

    fn named(word: &str) -> Option<Self> {
        [Self::Tag, Self::Digest, Self::Commit]
            .into_iter()
            .find(|one| one.word() == word)
    }
}

/// Values by field.
pub type Fields = BTreeMap<Field, String>;

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chart => formatter.write_str("chart"),
            Self::Path => formatter.write_str("path"),
            Self::Image(name) => write!(formatter, "image {name}"),
            Self::Reference(reference) => write!(formatter, "ref {}", reference.word()),
        }
    }
}

/// Returns the name of a field of an application.
pub fn key(app: &AppReference, field: &Field) -> String {
    format!("{}/{}: {field}", app.kind.as_str(), app.name)
}

/// Returns the field that a name stands for, if it is one of this application.
pub fn field(app: &AppReference, key: &str) -> Option<Field> {
    let rest = key.strip_prefix(app.kind.as_str())?.strip_prefix('/')?;
    let field = rest.strip_prefix(app.name.as_str())?.strip_prefix(": ")?;
    match field.split_once(' ') {
        Some(("image", image)) => Some(Field::Image(image.to_owned())),
        Some(("ref", word)) => Reference::named(word).map(Field::Reference),
        _ => [Field::Chart, Field::Path]
            .into_iter()
            .find(|one| one.to_string() == field),
    }
}

/// Returns what the spec of an application has that could move, without images that it has with different tags: that of a HelmRelease or of a Kustomization.
pub fn fields(spec: &Value) -> Fields {
    let mut found = Found::default();
    if let Some(version) = spec["chart"]["spec"]["version"].as_str() {
        found.add(Field::Chart, version);
    }
    if let Some(path) = spec["path"].as_str() {
        found.add(Field::Path, path);
    }
    found.chart_values(&spec["values"], 0);
    for image in spec["images"].as_array().into_iter().flatten() {
        let text = |name: &str| image[name].as_str().filter(|text| !text.is_empty());
        if let Some(name) = text("newName").or_else(|| text("name")) {
            found.image(name, text("newTag"), text("digest"));
        }
    }
    found.fields
}

/// Returns what a source follows, by its `spec.ref` and the revision of its artifact. What moves by itself, a range of versions or
/// a branch, is the tag or the commit that it is at. An OCIRepository that names nothing follows a tag that says nothing.
pub fn reference(kind: AppKind, reference: &Value, revision: &str) -> Fields {
    let text = |name: &str| reference[name].as_str().filter(|text| !text.is_empty());
    let (name, digest) = revision.rsplit_once('@').unwrap_or_default();
    let commit = digest.rsplit_once(':').map_or("", |(_, commit)| commit);
    let pinned = match kind {
        AppKind::OCIRepository => text("digest").map(|digest| (Reference::Digest, digest)),
        AppKind::GitRepository => text("commit").map(|commit| (Reference::Commit, commit)),
        AppKind::HelmRelease | AppKind::Kustomization => return Fields::new(),
    };
    let tagged = match text("semver") {
        Some(_) => Some(name),
        None => text("tag"),
    };
    let tagged = tagged.map(|tag| (Reference::Tag, tag));
    let moving = (kind == AppKind::GitRepository).then_some((Reference::Commit, commit));
    let mut found = Found::default();
    if let Some((field, value)) = pinned
        .or(tagged)
        .or(moving)
        .filter(|(_, value)| !value.is_empty())
    {
        found.add(Field::Reference(field), value);
    }
    found.fields
}

/// Returns what an application carries, by the names of its fields. Nothing carried means everything but paths: most often they are what
/// distinguishes environments.
pub fn values(app: &AppReference, fields: &Fields, carried: &[Carried]) -> Values {
    let carries = |field: &Field| {
        let what = match field {
            Field::Chart => Carried::ChartVersion,
            Field::Image(_) => Carried::Images,
            Field::Reference(_) => Carried::Reference,
            Field::Path => Carried::Path,
        };
        let is_meant = carried.is_empty() && what != Carried::Path;
        is_meant || carried.contains(&what)
    };
    let fields = fields.iter().filter(|(field, _)| carries(field));
    fields
        .map(|(field, value)| (key(app, field), value.clone()))
        .collect()
}

/// Returns the digest of values, by which a release is known.
pub fn digest(values: &Values) -> String {
    let mut hash = Sha256::new();
    for text in values.iter().flat_map(|(field, value)| [field, value]) {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

#[derive(Default)]
struct Found {
    fields: Fields,
    /// Images that stand there twice, with different tags: one value cannot be set at both places.
    unclear: BTreeSet<Field>,
}

impl Found {
    fn add(&mut self, field: Field, value: &str) {
        let known = self.fields.get(&field);
        if known.is_some_and(|known| known != value) {
            self.fields.remove(&field);
            self.unclear.insert(field);
        } else if self.fields.len() + self.unclear.len() < MAX_FIELDS
            && value.len() <= MAX_VALUE
            && !self.unclear.contains(&field)
        {
            self.fields.insert(field, value.to_owned());
        }
    }

    fn image(&mut self, name: &str, tag: Option<&str>, digest: Option<&str>) {
        let value = match (tag, digest) {
            (Some(tag), Some(digest)) => format!("{tag}@{digest}"),
            (Some(tag), None) => tag.to_owned(),
            (None, Some(digest)) => format!("@{digest}"),
            (None, None) => return,
        };
        if name.len() <= MAX_VALUE {
            self.add(Field::Image(name.to_owned()), &value);
        }
    }

    /// Images in the values of a chart, where charts have them: `repository` beside `tag`, or `image` as one text.
    fn chart_values(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(map) => {
                let text = |name: &str| map.get(name)?.as_str().filter(|text| !text.is_empty());
                if let (Some(repository), Some(tag)) = (text("repository"), text("tag")) {
                    let name = match text("registry") {
                        Some(registry) => format!("{registry}/{repository}"),
                        None => repository.to_owned(),
                    };
                    self.image(&name, Some(tag), text("digest"));
                }
                for (key, child) in map {
                    if key == "image"
                        && let Some(reference) = child.as_str()
                    {
                        let (name, tag, digest) = split(reference);
                        self.image(name, tag, digest);
                    }
                    self.chart_values(child, depth + 1);
                }
            }
            Value::Array(list) => list.iter().for_each(|child| self.chart_values(child, depth + 1)),
            _ => {}
        }
    }
}

/// Returns the tag and the digest of the value of an image.
pub fn tag_and_digest(value: &str) -> (&str, &str) {
    value.split_once('@').unwrap_or((value, ""))
}

#[cfg(test)]
mod tests {
    use api::delivery::AppKind;
    use serde_json::json;

    use super::*;

    fn shop(kind: AppKind) -> AppReference {
        let name = "shop".to_owned();
        AppReference {
            kind,
            name,
            selector: None,
        }
    }

    fn of(app: &AppReference, object: &Value, carried: &[Carried]) -> Vec<String> {
        let values = values(app, &fields(&object["spec"]), carried).into_iter();
        values
            .map(|(field, value)| format!("{field} = {value}"))
            .collect()
    }

    #[test]
    fn a_release_of_a_chart_has_its_version_and_images() {
        let object = json!({"spec": {
            "chart": {"spec": {"chart": "web", "version": "1.2.3"}},
            "values": {
                "image": {"registry": "ghcr.io", "repository": "shop/web", "tag": "v5", "digest": "sha256:1"},
                "sidecar": {"image": "localhost:5000/proxy:v2"},
                "workers": [{"image": {"repository": "shop/worker", "tag": "v7"}}],
                "plain": {"image": "busybox"},
                "number": {"repository": "x", "tag": 5},
            },
        }});
        let app = shop(AppKind::HelmRelease);
        let all = [
            "HelmRelease/shop: chart = 1.2.3",
            "HelmRelease/shop: image ghcr.io/shop/web = v5@sha256:1",
            "HelmRelease/shop: image localhost:5000/proxy = v2",
            "HelmRelease/shop: image shop/worker = v7",
        ];
        assert_eq!(of(&app, &object, &[]), all);
        assert_eq!(of(&app, &object, &[Carried::ChartVersion]), all[..1]);
        assert_eq!(of(&app, &object, &[Carried::Images]), all[1..]);
    }

    #[test]
    fn a_kustomization_has_its_images() {
        let object = json!({"spec": {"images": [
            {"name": "web", "newTag": "v5"},
            {"name": "old", "newName": "new", "digest": "sha256:1"},
            {"name": "nothing"},
        ]}});
        let expected = [
            "Kustomization/shop: image new = @sha256:1",
            "Kustomization/shop: image web = v5",
        ];
        assert_eq!(of(&shop(AppKind::Kustomization), &object, &[]), expected);
    }

    #[test]
    fn a_path_is_carried_where_that_is_wanted() {
        let object = json!({"spec": {"path": "./releases/7", "images": [{"name": "web", "newTag": "v5"}]}});
        let of = |carried: &[Carried]| of(&shop(AppKind::Kustomization), &object, carried);
        assert_eq!(of(&[]), ["Kustomization/shop: image web = v5"]);
        assert_eq!(of(&[Carried::Path]), ["Kustomization/shop: path = ./releases/7"]);
        assert_eq!(of(&[Carried::Path, Carried::Images]).len(), 2);
        let app = shop(AppKind::Kustomization);
        assert_eq!(field(&app, "Kustomization/shop: path"), Some(Field::Path));
        assert_eq!(field(&app, "Kustomization/shop: paths"), None);
    }

    #[test]
    fn a_source_has_what_it_follows() {
        let of = |kind, spec: Value, revision: &str| -> Vec<String> {
            let app = shop(kind);
            let fields = reference(kind, &spec, revision);
            assert!(
                fields
                    .keys()
                    .all(|one| field(&app, &key(&app, one)).as_ref() == Some(one))
            );
            fields
                .iter()
                .map(|(field, value)| format!("{field}={value}"))
                .collect()
        };
        let digest = format!("sha256:{}", "a".repeat(64));
        let oci = |spec| of(AppKind::OCIRepository, spec, &format!("1.4.2@{digest}"));
        assert_eq!(oci(json!({"tag": "1.4"})), ["ref tag=1.4"]);
        assert_eq!(oci(json!({"semver": "1.x", "tag": "0"})), ["ref tag=1.4.2"]);
        assert_eq!(
            oci(json!({"semver": "1.x", "digest": digest})),
            [format!("ref digest={digest}")]
        );
        assert_eq!(oci(json!(null)), [""; 0]);
        let git = |spec| of(AppKind::GitRepository, spec, "main@sha1:abc");
        assert_eq!(git(json!({"branch": "main"})), ["ref commit=abc"]);
        assert_eq!(
            git(json!({"branch": "main", "commit": "def"})),
            ["ref commit=def"]
        );
        assert_eq!(git(json!({"tag": "v1"})), ["ref tag=v1"]);
        assert_eq!(git(json!(null)), ["ref commit=abc"]);
        assert_eq!(of(AppKind::GitRepository, json!(null), ""), [""; 0]);
        assert_eq!(of(AppKind::HelmRelease, json!({"tag": "v1"}), ""), [""; 0]);
    }

    #[test]
    fn an_image_with_two_tags_is_not_carried() {
        let image = |tag: &str| json!({"repository": "shop/web", "tag": tag});
        let values = |third: &str| {
            let values = json!({"web": image("v5"), "job": image("v4"), "more": image(third),
                "proxy": {"image": "proxy:v1"}});
            json!({"spec": {"values": values}})
        };
        let app = shop(AppKind::HelmRelease);
        for third in ["v4", "v5", "v6"] {
            let expected = ["HelmRelease/shop: image proxy = v1"];
            assert_eq!(of(&app, &values(third), &[]), expected, "{third}");
        }
    }

    #[test]
    fn hostile_objects_are_bounded() {
        let app = shop(AppKind::HelmRelease);
        let mut deep = json!({"repository": "a", "tag": "b"});
        for _ in 0..100 {
            deep = json!({ "x": deep });
        }
        assert!(of(&app, &json!({"spec": {"values": deep}}), &[]).is_empty());
        let many: Vec<_> = (0..1000)
            .map(|n| json!({"repository": format!("r{n}"), "tag": "t"}))
            .collect();
        assert_eq!(
            of(&app, &json!({"spec": {"values": many}}), &[]).len(),
            MAX_FIELDS
        );
        let long = json!({"spec": {"chart": {"spec": {"version": "9".repeat(MAX_VALUE + 1)}}}});
        assert!(of(&app, &long, &[]).is_empty());
        assert!(of(&app, &json!(null), &[]).is_empty());
    }

    #[test]
    fn names_of_fields_are_read_back() {
        let app = shop(AppKind::HelmRelease);
        for wanted in [Field::Chart, Field::Image("ghcr.io/a: b/c".to_owned())] {
            assert_eq!(field(&app, &key(&app, &wanted)), Some(wanted));
        }
        assert_eq!(
            field(&shop(AppKind::Kustomization), &key(&app, &Field::Chart)),
            None
        );
        assert_eq!(field(&app, "HelmRelease/shopping: chart"), None);
    }

    #[test]
    fn a_digest_knows_where_a_field_ends() {
        let values = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            digest(&pairs.collect())
        };
        assert_ne!(values(&[("a", "bc")]), values(&[("ab", "c")]));
        assert_eq!(
            values(&[("a", "1"), ("b", "2")]),
            values(&[("b", "2"), ("a", "1")])
        );
    }
}
